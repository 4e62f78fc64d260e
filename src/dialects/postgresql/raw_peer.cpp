// This file knows the plain use of libpq that dlock-bench compares with.
#include "dialects/raw_peer.hpp"

#include "dialects/embedded.hpp"
#include "types/url.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace dlock::dialects::DLOCK_DIALECT {

const Embedded& embedded() noexcept;

namespace {

struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

class Peer final : public RawPeer {
 public:
  Peer(std::string_view url, const std::string& table) : connection_(PQconnectdb(std::string(url).c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) {
      const std::string text = PQerrorMessage(connection_);
      PQfinish(connection_);
      throw std::runtime_error("raw peer: " + text);
    }
    // The plans are to be the same: these are the settings of the engine's sessions that choose them.
    checked(PQexec(connection_, "SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan"),
            PGRES_COMMAND_OK);
    TableNames names;
    const auto schema = checked(PQexec(connection_, "VALUES (current_schema())"), PGRES_TUPLES_OK);
    names.schema = PQgetvalue(schema.get(), 0, 0);
    names.lock = table;
    names.history = table + "_schema_history";
    const Statements statements(embedded().lock_sql, names, Marker::dollar,
                                [](std::string_view identifier) { return '"' + std::string(identifier) + '"'; });
    const auto& acquire = statements.at(
        "acquire", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta", "entry", "ticket"});
    const auto& release = statements.at("release", {"name", "owner", "token"});
    checked(PQprepare(connection_, "acquire", acquire.sql.c_str(), 0, nullptr), PGRES_COMMAND_OK);
    checked(PQprepare(connection_, "release", release.sql.c_str(), 0, nullptr), PGRES_COMMAND_OK);
  }
  ~Peer() override { PQfinish(connection_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::int64_t acquire(std::string_view name, std::string_view owner) override {
    const std::string the_name(name), the_owner(owner);
    const std::array<const char*, 10> values{the_name.c_str(), the_owner.c_str(), "bench", "bench", the_owner.c_str(),
                                             "30000000", "0", "", "", "0"};
    const auto result = checked(
        PQexecPrepared(connection_, "acquire", static_cast<int>(values.size()), values.data(), nullptr, nullptr, 0),
        PGRES_TUPLES_OK);
    return PQntuples(result.get()) == 0 ? 0 : std::strtoll(PQgetvalue(result.get(), 0, 0), nullptr, 10);
  }

  void release(std::string_view name, std::string_view owner, std::int64_t token) override {
    const std::string the_name(name), the_owner(owner), the_token = std::to_string(token);
    const std::array<const char*, 3> values{the_name.c_str(), the_owner.c_str(), the_token.c_str()};
    checked(PQexecPrepared(connection_, "release", static_cast<int>(values.size()), values.data(), nullptr, nullptr, 0),
            PGRES_TUPLES_OK);
  }

  std::string server() const override {
    return fmt::format("PostgreSQL {}", PQparameterStatus(connection_, "server_version"));
  }

  Load load() override {
    const auto counted = checked(
        PQexec(connection_, "SELECT (xact_commit + xact_rollback)::bigint,"
                            " (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint, numbackends"
                            " FROM pg_catalog.pg_stat_database WHERE datname = current_database()"),
        PGRES_TUPLES_OK);
    const auto number = [&](int column) { return std::strtoll(PQgetvalue(counted.get(), 0, column), nullptr, 10); };
    return {number(0), number(1), number(2)};
  }

 private:
  Result checked(PGresult* raw, ExecStatusType expected) {
    Result result(raw);
    if (PQresultStatus(raw) != expected) throw std::runtime_error("raw peer: " + std::string(PQerrorMessage(connection_)));
    return result;
  }

  PGconn* connection_;
};

}  // namespace

std::unique_ptr<RawPeer> make_raw_peer(const Url&, std::string_view url, const std::string& table) {
  return std::make_unique<Peer>(url, table);
}

}  // namespace dlock::dialects::DLOCK_DIALECT

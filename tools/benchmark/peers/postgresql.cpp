// The plain use of libpq that dlock-bench compares with.
#include "raw_peer.hpp"

#include "dialects/dialect.hpp"
#include "peers.hpp"
#include "raw_pair.hpp"
#include "types/url.hpp"

#include <libpq-fe.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace bench::postgresql {

std::string_view peers_sql() noexcept;
const Peers& peers() noexcept;

namespace {

constexpr std::array<std::string_view, 3> words{"raw", "naive", "advisory"};

struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

class Peer final : public RawPeer {
 public:
  explicit Peer(const PeerOf& of) : connection_(PQconnectdb(std::string(of.url).c_str())) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) fail();
    PQsetNoticeReceiver(
        connection_.get(), [](void*, const PGresult*) {}, nullptr);
    // The plans are to be the same: these are the settings of the engine's sessions that choose them.
    checked(PQexec(raw(), "SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan"),
            PGRES_COMMAND_OK);
    dlock::dialects::TableNames names;
    names.schema = of.table.schema;
    if (names.schema.empty()) {
      const auto schema = checked(PQexec(raw(), "VALUES (current_schema())"), PGRES_TUPLES_OK);
      names.schema = PQgetvalue(schema.get(), 0, 0);
    }
    names.lock = of.table.name;
    names.history = of.table.name + "_schema_history";
    const auto quoted = [](std::string_view identifier) { return '"' + std::string(identifier) + '"'; };
    const dlock::dialects::Statements ours(of.lock_sql, names, dlock::dialects::Marker::dollar, quoted);
    const dlock::dialects::Statements theirs(peers_sql(), names, dlock::dialects::Marker::dollar, quoted);
    const auto pair = raw_pair(of.word, ours, theirs);
    acquire_size_ = static_cast<int>(pair.acquire.arguments.size());
    release_size_ = static_cast<int>(pair.release.arguments.size());
    prepare("acquire", pair.acquire);
    if (pair.first) prepare("first", *pair.first);
    has_first_ = pair.first.has_value();
    prepare("release", pair.release);
    prepare("read", theirs.at("read", {"name"}));
    fill_ = theirs.at("fill", {"prefix", "first", "count"}).sql;
    tidy_ = theirs.at("tidy", {}).sql;
  }

  std::int64_t acquire(std::string_view name, std::string_view owner) override {
    const std::string the_name(name), the_owner(owner);
    const std::array<const char*, 9> values{
        the_name.c_str(), the_owner.c_str(), "bench", "bench", the_owner.c_str(), "30000000", "0", "", "0"};
    if (has_first_) {
      const auto granted =
          checked(PQexecPrepared(raw(), "first", 8, values.data(), nullptr, nullptr, 0), PGRES_TUPLES_OK);
      if (PQntuples(granted.get()) > 0) return number(granted, 0);
    }
    const auto result =
        checked(PQexecPrepared(raw(), "acquire", acquire_size_, values.data(), nullptr, nullptr, 0), PGRES_TUPLES_OK);
    return PQntuples(result.get()) == 0 ? 0 : std::strtoll(PQgetvalue(result.get(), 0, 0), nullptr, 10);
  }

  void release(std::string_view name, std::string_view owner, std::int64_t token) override {
    const std::string the_name(name), the_owner(owner), the_token = std::to_string(token);
    const std::array<const char*, 3> values{the_name.c_str(), the_owner.c_str(), the_token.c_str()};
    good(PQexecPrepared(raw(), "release", release_size_, values.data(), nullptr, nullptr, 0));
  }

  void read(std::string_view name) override {
    const std::string the_name(name);
    const char* value = the_name.c_str();
    checked(PQexecPrepared(raw(), "read", 1, &value, nullptr, nullptr, 0), PGRES_TUPLES_OK);
  }

  std::string server() const override {
    const std::string version = PQparameterStatus(connection_.get(), "server_version");
    return "PostgreSQL " + version.substr(0, version.find(' '));
  }

  Settings settings() override {
    const auto found = checked(
        PQexec(raw(),
               "SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN"
               " ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names') ORDER BY name"),
        PGRES_TUPLES_OK);
    Settings settings;
    for (int row = 0; row < PQntuples(found.get()); ++row)
      settings.emplace_back(PQgetvalue(found.get(), row, 0), PQgetvalue(found.get(), row, 1));
    return settings;
  }

  Load load() override {
    const auto counted = checked(PQexec(raw(),
                                        "SELECT (xact_commit + xact_rollback)::bigint,"
                                        " (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint, numbackends"
                                        " FROM pg_catalog.pg_stat_database WHERE datname = current_database()"),
                                 PGRES_TUPLES_OK);
    return {number(counted, 0), number(counted, 1), number(counted, 2)};
  }

  std::int64_t end_of_log() override {
    const auto end =
        checked(PQexec(raw(), "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"), PGRES_TUPLES_OK);
    return number(end, 0);
  }

  void fill(std::string_view prefix, std::int64_t first, std::int64_t count) override {
    const std::string the_prefix(prefix), from = std::to_string(first), size = std::to_string(count);
    const std::array<const char*, 3> values{the_prefix.c_str(), from.c_str(), size.c_str()};
    checked(PQexecParams(raw(), fill_.c_str(), 3, nullptr, values.data(), nullptr, nullptr, 0), PGRES_COMMAND_OK);
  }

  void tidy() override { checked(PQexec(raw(), tidy_.c_str()), PGRES_COMMAND_OK); }

 private:
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  [[noreturn]] void fail() { throw std::runtime_error("raw peer: " + std::string(PQerrorMessage(raw()))); }

  Result checked(PGresult* raw, ExecStatusType expected) {
    Result result(raw);
    if (PQresultStatus(raw) != expected) fail();
    return result;
  }

  // Of a statement that may answer rows or none.
  void good(PGresult* raw) {
    const Result result(raw);
    const auto status = PQresultStatus(raw);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail();
  }

  void prepare(const char* name, const dlock::dialects::Statement& statement) {
    checked(PQprepare(raw(), name, statement.sql.c_str(), 0, nullptr), PGRES_COMMAND_OK);
  }

  static std::int64_t number(const Result& result, int column) {
    return std::strtoll(PQgetvalue(result.get(), 0, column), nullptr, 10);
  }

  PGconn* raw() const noexcept { return connection_.get(); }

  const std::unique_ptr<PGconn, Finish> connection_;
  int acquire_size_ = 0, release_size_ = 0;
  bool has_first_ = false;
  std::string fill_, tidy_;
};

}  // namespace

const Peers& peers() noexcept {
  static constexpr Peers instance{
      words, [](const PeerOf& of) -> std::unique_ptr<RawPeer> { return std::make_unique<Peer>(of); }};
  return instance;
}

}  // namespace bench::postgresql

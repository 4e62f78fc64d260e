// How to open a fresh PostgreSQL database, and how to look at one from outside.
#include "pooler.hpp"
#include "wire.hpp"

#include "support/eventually.hpp"
#include "support/main.hpp"
#include "support/paths.hpp"
#include "support/scripted_server.hpp"
#include "support/server_url.hpp"
#include "types/url.hpp"

#include <fmt/format.h>
#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <mutex>
#include <utility>

namespace dlock::test {
namespace postgresql {
namespace {

// A server, as its superuser reaches it.
struct Server {
  Address address{};
  std::string user, password, database;

  static Server at(const std::string& text) {
    const auto url = Url::parse(text);
    Server server;
    const auto colon = url.hosts.rfind(':');
    server.address.host = url.hosts.substr(0, colon);
    server.address.port = colon == std::string::npos
                              ? std::uint16_t{5432}
                              : static_cast<std::uint16_t>(std::stoi(url.hosts.substr(colon + 1)));
    server.user = url.user.value_or("postgres");
    server.password = url.password.value_or("");
    server.database = url.path.size() > 1 ? url.path.substr(1) : "postgres";
    return server;
  }

  std::unique_ptr<soci::session> connect(const std::string& to) const {
    const std::string where = "host=" + address.host + " port=" + std::to_string(address.port) + " user=" + user +
                              (password.empty() ? "" : " password=" + password) + " dbname=" + to;
    return std::make_unique<soci::session>(soci::postgresql, where);
  }

  std::string url(const Address& door, const std::string& to, const std::string& as, const std::string& secret) const {
    return "postgresql://" + as + (secret.empty() ? "" : ":" + secret) + "@" + door.host + ":" +
           std::to_string(door.port) + "/" + to;
  }
};

// Databases that are empty again: making and dropping one takes a server much longer than emptying it.
class Shelf {
 public:
  void clear() {
    for (const auto& [server, name] : databases_) drop(server, name);
    databases_.clear();
  }

  std::string take(const Server& server) {
    {
      const std::lock_guard guard(mutex_);
      const auto found = std::find_if(databases_.begin(), databases_.end(), [&](const auto& entry) {
        return entry.first.address.host == server.address.host && entry.first.address.port == server.address.port;
      });
      if (found != databases_.end()) {
        auto name = found->second;
        databases_.erase(found);
        return name;
      }
    }
    return make(server);
  }

  static std::string make(const Server& server) {
    auto name = "dlock_test_" + unique_suffix();
    auto sql = server.connect(server.database);
    *sql << "CREATE DATABASE " + name + " TEMPLATE template0";
    return name;
  }

  void put(const Server& server, const std::string& name) {
    const std::lock_guard guard(mutex_);
    databases_.emplace_back(server, name);
  }

  static void drop(const Server& server, const std::string& name) noexcept {
    try {
      auto sql = server.connect(server.database);
      *sql << "DROP DATABASE " + name + " WITH (FORCE)";
    } catch (const std::exception&) {  // the server is gone, and the database with it
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<Server, std::string>> databases_;  // guarded by mutex_
};

Shelf& shelf() {
  static Shelf one;
  return one;
}

const Afterwards afterwards{[] { shelf().clear(); }};

class DatabaseOnServer final : public ServerTestDatabase {
 public:
  explicit DatabaseOnServer(Server server) : server_(std::move(server)), name_(shelf().take(server_)) {
    try {
      watching_ = connect();
    } catch (const std::exception&) {  // it was made on another server, whose port this one has by now
      name_ = Shelf::make(server_);
      watching_ = connect();
    }
  }

  ~DatabaseOnServer() override {
    pooler_.reset();
    try {
      empty();
      shelf().put(server_, name_);
    } catch (const std::exception&) {
      watching_.reset();
      Shelf::drop(server_, name_);
    }
  }

  std::string url() const override { return url_preferring_tls_at(server_.address); }
  std::string url_at(const Address& door) const override { return url_preferring_tls_at(door) + "?sslmode=disable"; }
  std::string url_preferring_tls_at(const Address& door) const override {
    return server_.url(door, name_, server_.user, server_.password);
  }
  std::vector<TableLock> table_locks(std::string_view table) const override {
    std::vector<TableLock> locks;
    const std::pair<std::string, std::string> modes[] = {{"ACCESS EXCLUSIVE", "AccessExclusiveLock"},
                                                         {"EXCLUSIVE", "ExclusiveLock"},
                                                         {"SHARE ROW EXCLUSIVE", "ShareRowExclusiveLock"},
                                                         {"SHARE", "ShareLock"}};
    for (const auto& [mode, as_shown] : modes)
      locks.push_back({mode,
                       {"BEGIN", "LOCK TABLE " + std::string(table) + " IN " + mode + " MODE"},
                       "ROLLBACK",
                       mode != "ACCESS EXCLUSIVE",
                       " holds " + as_shown});
    return locks;
  }
  std::string url_with_tls_at(const Address& door) const override {
    return url_preferring_tls_at(door) + "?sslmode=require";
  }
  std::string url_verified_at(const Address& door, const std::string& authority) const override {
    return url_preferring_tls_at(door) + "?sslmode=verify-full&sslrootcert=" + authority;
  }
  std::size_t bytes_before_tls() const override { return 8; }  // the SSLRequest
  Address address() const override { return server_.address; }
  std::unique_ptr<RequestCounter> request_counter() const override { return std::make_unique<Counter>(); }
  std::string begin_writing() const override { return "BEGIN"; }
  std::string client() const override { return "psql -X -q -v ON_ERROR_STOP=1 '" + url() + "'"; }

  std::unique_ptr<soci::session> connect() const override { return connect_at(server_.address); }
  std::unique_ptr<soci::session> connect_at(const Address& door) const override {
    auto server = server_;
    server.address = door;
    auto sql = server.connect(name_);
    long long pid = 0;
    *sql << "SELECT pg_backend_pid()", soci::into(pid);
    const std::lock_guard guard(mutex_);
    administrative_ += "," + std::to_string(pid);
    return sql;
  }

  std::string written() override {
    std::string position;
    *watching_ << "SELECT CAST(pg_current_wal_insert_lsn() AS text)", soci::into(position);
    return position;
  }

  std::vector<Beginning> beginnings() const override {
    return {{"read committed", {"BEGIN ISOLATION LEVEL READ COMMITTED"}, false},
            {"repeatable read", {"BEGIN ISOLATION LEVEL REPEATABLE READ"}, true},
            {"serializable", {"BEGIN ISOLATION LEVEL SERIALIZABLE"}, true}};
  }
  std::vector<std::string> odd_session() const override {
    return {"SET lock_timeout = '1ms'", "SET standard_conforming_strings = off", "SET client_encoding = 'LATIN1'",
            "SET datestyle = 'SQL, DMY'", "SET intervalstyle = 'sql_standard'"};
  }
  std::string session_state() const override {
    return "SELECT string_agg(name || '=' || setting, ',' ORDER BY name) FROM pg_settings WHERE source = 'session'";
  }

  std::string written_together(std::string_view table, std::string_view column) const override {
    return fmt::format(
        "SELECT string_agg({0}, ',' ORDER BY ctid) FROM {1} WHERE {0} <> '' GROUP BY xmin::text "
        "ORDER BY xmin::text LIMIT 1",
        column, table);
  }

  std::string row_of(std::string_view literal_name) const override {
    return "SELECT CAST(l AS text) FROM resource_lock l WHERE name = '" + std::string(literal_name) + "'";
  }

  std::string url_of_role(const std::vector<std::string>& rights) override {
    roles_.push_back("dlock_role_" + unique_suffix());
    const auto& role = roles_.back();
    *watching_ << "CREATE ROLE " + role + " LOGIN PASSWORD 'of_a_role'";
    for (const auto& right : rights) *watching_ << "GRANT " + right + " ON ALL TABLES IN SCHEMA public TO " + role;
    return server_.url(server_.address, name_, role, "of_a_role");
  }

  void use_password(const std::string& password) override {
    std::string literal;
    for (const char c : password) literal += c == '\'' ? "''" : std::string(1, c);
    *watching_ << "ALTER ROLE " + roles_.back() + " PASSWORD '" + literal + "'";
  }

  std::string url_by_socket() override {
    std::string folder;
    *watching_ << "SHOW unix_socket_directories", soci::into(folder);
    return "postgresql://" + server_.user + ":" + server_.password + "@/" + name_ + "?host=" + folder +
           "&port=" + std::to_string(server_.address.port);
  }
  std::vector<std::string> ways_to_log_in() const override { return {"scram-sha-256"}; }
  void use_way_to_log_in(const std::string& way, const std::string& password) override {
    *watching_ << "SET password_encryption = '" + way + "'";
    use_password(password);
  }

  void disconnect_everybody() override {
    const auto sql = server_.connect(name_);
    *sql << "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid NOT IN (pg_backend_pid()" +
                administrative_ + ")";
  }

  void use_time_zone(std::string_view zone) override {
    *watching_ << "ALTER DATABASE " + name_ + " SET timezone = '" + std::string(zone) + "'";
  }

  void use_odd_defaults() override {
    use_odd_defaults_for_all();
    for (const char* setting : {"plan_cache_mode = 'force_generic_plan'", "enable_indexscan = off",
                                "synchronous_commit = off", "client_min_messages = 'debug5'"})
      *watching_ << "ALTER DATABASE " + name_ + " SET " + setting;
  }

  void use_odd_defaults_for_all() override {
    for (const char* setting : {"default_transaction_isolation = 'serializable'", "standard_conforming_strings = off",
                                "datestyle = 'SQL, DMY'", "intervalstyle = 'sql_standard'", "bytea_output = 'escape'",
                                "client_encoding = 'LATIN1'", "statement_timeout = '7s'"})
      *watching_ << "ALTER DATABASE " + name_ + " SET " + setting;
  }

  std::vector<std::string> defaults_in_the_way() const override {
    return {"quote_all_identifiers = on",     "datestyle = 'SQL, DMY'",
            "intervalstyle = 'sql_standard'", "search_path = public",
            "bytea_output = 'escape'",        "standard_conforming_strings = off",
            "extra_float_digits = -15",       "default_transaction_read_only = on"};
  }
  void set_default(const std::string& setting, bool yes) override {
    *watching_ << "ALTER DATABASE " + name_ + (yes ? " SET " + setting : " RESET ALL");
  }

  void fail_writes(Mishap mishap) override {
    const char* const code = mishap == Mishap::deadlock ? "40P01" : mishap == Mishap::serialization ? "40001" : "55P03";
    *watching_ << std::string(
                      "CREATE OR REPLACE FUNCTION dlock_test_mishap() RETURNS trigger LANGUAGE plpgsql AS $$ "
                      "BEGIN RAISE EXCEPTION 'a mishap' USING ERRCODE = '") +
                      code + "'; END $$";
    *watching_ << "CREATE TRIGGER dlock_test_mishap BEFORE INSERT OR UPDATE ON resource_lock FOR EACH ROW "
                  "EXECUTE FUNCTION dlock_test_mishap()";
  }
  void fail_no_more() override { *watching_ << "DROP TRIGGER dlock_test_mishap ON resource_lock"; }

  void take_writes(bool yes) override {
    *watching_ << std::string("ALTER SYSTEM SET default_transaction_read_only = ") + (yes ? "off" : "on");
    *watching_ << "SET default_transaction_read_only = off";  // of this session
    *watching_ << "SELECT CAST(pg_reload_conf() AS text)";
    // The server reads it when it comes to it, and each session when it likes: new ones do from the first on that did.
    for (std::string now; now != (yes ? "off" : "on");)
      *server_.connect(name_) << "SHOW default_transaction_read_only", soci::into(now);
    disconnect_everybody();
  }

  bool has_standbys() const override { return true; }
  void await_standby() override {
    *watching_ << "ALTER DATABASE " + name_ + " SET client_min_messages = error";
    *watching_ << "SET synchronous_commit = local";
    *watching_ << "ALTER SYSTEM SET synchronous_standby_names = 'nobody'";
    *watching_ << "DO $$ BEGIN PERFORM pg_reload_conf(); END $$";
    // The server's commits wait from some moment on: until one does, there are more of them.
    const auto sql = server_.connect(name_);
    for (bool waits = false; !waits;) {
      auto committing = std::async(std::launch::async, [&] {
        *sql << "DO $$ BEGIN PERFORM pg_logical_emit_message(true, 'dlock', ''); END $$";
      });
      while (!waits && committing.wait_for(std::chrono::milliseconds{1}) != std::future_status::ready)
        waits = commits_waiting() > 0;
      if (waits) cancel_waiting_commits();
    }
  }
  void await_standby_no_more() override {
    *watching_ << "ALTER SYSTEM RESET synchronous_standby_names";
    *watching_ << "DO $$ BEGIN PERFORM pg_reload_conf(); END $$";
  }
  long long commits_waiting() override {
    long long waiting = 0;
    *watching_ << "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'",
        soci::into(waiting);
    return waiting;
  }
  void cancel_waiting_commits() override {
    *watching_ << "DO $$ BEGIN PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                  "AND wait_event = 'SyncRep'; END $$";
  }

  // From a copy of the other one's data, by the script that runs it.
  void follow(ServerTestDatabase& primary) override {
    const auto there = Server::at(primary.url()).connect("postgres");
    const auto follows = [&] {
      long long streaming = 0;
      *there << "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name = "
                "'walreceiver'",
          soci::into(streaming);
      return streaming > 0;
    };
    if (!follows()) run_anew("DLOCK_SERVER_FOLLOWS=" + primary.url());
    if (!eventually(follows)) throw std::runtime_error("the standby does not follow");
  }
  void wait_for_followers() override {
    *watching_ << "ALTER SYSTEM SET synchronous_standby_names = '*'";
    *watching_ << "DO $$ BEGIN PERFORM pg_reload_conf(); END $$";
    for (std::string now; now != "*";) *server_.connect(name_) << "SHOW synchronous_standby_names", soci::into(now);
  }

  std::string make_forgetful() override {
    *watching_ << "ALTER SYSTEM SET fsync = off";
    *watching_ << "DO $$ BEGIN PERFORM pg_reload_conf(); END $$";
    return "fsync";
  }

  std::string url_to_hold_back() override { return url_of_role({"ALL"}); }
  void hold_back() override {
    *watching_ << "CREATE TABLE dlock_test_gate (open boolean)";
    *watching_ << "GRANT SELECT ON dlock_test_gate TO " + roles_.back();
    *watching_
        << "CREATE FUNCTION dlock_test_wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN LOOP EXIT WHEN "
           "session_user <> '" +
               roles_.back() +
               "' OR EXISTS (SELECT FROM dlock_test_gate); PERFORM pg_sleep(0.005); END LOOP; RETURN NEW; END $$";
    *watching_ << "CREATE TRIGGER dlock_test_wait BEFORE INSERT ON resource_lock FOR EACH ROW "
                  "EXECUTE FUNCTION dlock_test_wait()";
  }
  std::string url_to_hold_writes() override { return url_of_role({"ALL"}); }
  void hold_writes(const std::string& table, const std::string& way) override {
    *watching_ << "CREATE TABLE dlock_test_gate (open boolean)";
    *watching_ << "GRANT SELECT ON dlock_test_gate TO " + roles_.back();
    *watching_ << "CREATE FUNCTION dlock_test_hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN LOOP EXIT WHEN "
                  "session_user <> '" +
                      roles_.back() +
                      "' OR EXISTS (SELECT FROM dlock_test_gate); PERFORM pg_sleep(0.005); END LOOP; "
                      "IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$";
    *watching_ << "CREATE TRIGGER dlock_test_hold BEFORE " + way + " ON " + table +
                      " FOR EACH ROW EXECUTE FUNCTION dlock_test_hold()";
  }
  std::vector<std::string> session_traces() const override {
    // The name of the application is the pooler's doing, and the digits are this client library's.
    return {
        "SELECT coalesce(string_agg(name || '=' || setting, ','), '') FROM pg_settings WHERE source = 'session' "
        "AND name NOT IN ('application_name', 'extra_float_digits')",
        "SELECT count(*)::text FROM pg_prepared_statements", "SELECT count(*)::text FROM pg_listening_channels()",
        "SELECT count(*)::text FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"};
  }
  std::string idle_bound() const override { return "SHOW idle_in_transaction_session_timeout"; }
  std::string wait_for_locks() const override { return "SET lock_timeout = '1234ms'"; }
  std::string sleep_for(std::chrono::seconds time) const override {
    return "SELECT pg_sleep(" + std::to_string(time.count()) + ")";
  }
  std::string lock_wait() const override { return "SHOW lock_timeout"; }
  void run_prepared(void* connection, const std::string& sql) const override {
    auto* const handle = static_cast<PGconn*>(connection);
    const auto check = [&](PGresult* result) {
      const std::unique_ptr<PGresult, decltype(&PQclear)> owned(result, &PQclear);
      if (PQresultStatus(result) != PGRES_COMMAND_OK) throw std::runtime_error(PQerrorMessage(handle));
    };
    check(PQprepare(handle, "", sql.c_str(), 0, nullptr));
    check(PQexecPrepared(handle, "", 0, nullptr, nullptr, nullptr, 0));
  }
  std::vector<OddClock> odd_clocks() const override {
    return {{{"CREATE SCHEMA odd",
              "CREATE FUNCTION odd.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
              "$$ SELECT pg_catalog.clock_timestamp() + interval '10 hours' $$",
              "SET search_path = odd, pg_catalog, public"},
             false}};
  }
  int ways_to_leave_unread() const override { return 4; }
  void leave_unread(void* connection, int way) const override {
    auto* const handle = static_cast<PGconn*>(connection);
    if (way < 2) PQenterPipelineMode(handle);
    PQsendQueryParams(handle, way % 2 == 0 ? "SELECT 1" : "COPY app FROM STDIN", 0, nullptr, nullptr, nullptr, nullptr,
                      0);
  }
  std::string bind_idle(std::chrono::seconds bound) const override {
    return fmt::format("SET idle_in_transaction_session_timeout = '{}s'", bound.count());
  }
  std::optional<Address> pooler() override {
    if (!pooler_) pooler_.emplace(server_.address, server_.user, server_.password, name_);
    return pooler_->address();
  }
  bool forget_prepared() override {
    *watching_ << "CREATE FUNCTION dlock_test_forget() RETURNS trigger LANGUAGE plpgsql AS $$ "
                  "BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN NULL; END $$";
    *watching_ << "CREATE TRIGGER dlock_test_forget AFTER INSERT OR UPDATE ON resource_lock FOR EACH STATEMENT "
                  "EXECUTE FUNCTION dlock_test_forget()";
    return true;
  }
  bool take_prepared_names() override {
    *watching_ << "CREATE FUNCTION dlock_test_take() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE mine record; BEGIN "
                  "SELECT substring(name FROM '^(.*_)[0-9]+$') AS prefix, "
                  "max(CAST(substring(name FROM '_([0-9]+)$') AS integer)) AS used INTO mine "
                  "FROM pg_prepared_statements WHERE name LIKE 'dlock\\_%' GROUP BY 1; "
                  "IF mine.used IS NOT NULL THEN FOR n IN mine.used + 1 .. mine.used + 5 LOOP "
                  "EXECUTE format('PREPARE %I AS SELECT 1', mine.prefix || n); END LOOP; END IF; "
                  "RETURN NULL; END $$";
    *watching_ << "CREATE TRIGGER dlock_test_take AFTER INSERT OR UPDATE ON resource_lock FOR EACH STATEMENT "
                  "EXECUTE FUNCTION dlock_test_take()";
    return true;
  }
  bool has_prepared(std::string_view sent) const override { return prepares(sent); }
  long long locks_held() override {
    long long count = 0;
    *watching_
        << "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database JOIN pg_stat_activity a USING (pid) "
           "WHERE d.datname = current_database() AND a.backend_type = 'client backend' AND pid <> pg_backend_pid()",
        soci::into(count);
    return count;
  }
  bool somebody_waits() override {
    long long waiting = 0;
    *watching_
        << "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        soci::into(waiting);
    return waiting > 0;
  }
  void let_go() override { *watching_ << "INSERT INTO dlock_test_gate VALUES (true)"; }
  bool holding_back() override {
    long long waiting = 0;
    *watching_ << "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
        soci::into(waiting);
    return waiting > 0;
  }

 private:
  // With new data, at the same address.
  void run_anew(const std::string& environment) {
    std::string data;
    *watching_ << "SHOW data_directory", soci::into(data);
    const auto folder = std::filesystem::path(data).parent_path();
    const auto script = path::servers() + "/postgresql";
    const auto run = [&](const std::string& command) {
      Child child({script, command, folder.string()}, {environment});
      while (child.line()) continue;
      if (const auto ended = child.wait(); ended != 0)
        throw std::runtime_error(script + " " + command + " ended with " + ended.text());
    };
    run("stop");
    std::filesystem::remove(folder / "password");
    run("start");
  }

  void empty() {
    *watching_ << "SET client_min_messages = error";
    *watching_ << "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() "
                  "AND pid <> pg_backend_pid()";
    *watching_
        << "DO $$ DECLARE s name; BEGIN FOR s IN SELECT nspname FROM pg_namespace WHERE nspname <> "
           "'information_schema' AND left(nspname, 3) <> 'pg_' LOOP EXECUTE format('DROP SCHEMA %I CASCADE', s); "
           "END LOOP; END $$";
    *watching_ << "CREATE SCHEMA public";
    *watching_ << "GRANT USAGE ON SCHEMA public TO PUBLIC";
    *watching_ << "ALTER DATABASE " + name_ + " RESET ALL";
    for (const auto& role : roles_) {
      *watching_ << "DROP OWNED BY " + role;
      *watching_ << "DROP ROLE " + role;
    }
  }

  const Server server_;
  std::string name_;
  std::unique_ptr<soci::session> watching_;
  std::optional<Pooler> pooler_;
  mutable std::mutex mutex_;  // of administrative_
  mutable std::string administrative_;
  std::vector<std::string> roles_;
};

std::optional<std::string> missing() {
  if (server_url("DLOCK_TEST_PG")) return std::nullopt;
  return "no PostgreSQL server: set DLOCK_TEST_PG, or let the tests start one";
}

std::unique_ptr<ServerTestDatabase> database_at(const std::string& url) {
  return std::make_unique<DatabaseOnServer>(Server::at(url));
}
std::unique_ptr<ServerTestDatabase> server_database() { return database_at(server_url("DLOCK_TEST_PG").value()); }
std::unique_ptr<TestDatabase> test_database() { return server_database(); }
std::unique_ptr<PrivateServer> private_server() {
  return std::make_unique<ScriptedServer>("postgresql", "DLOCK_TEST_PG", &database_at);
}
std::unique_ptr<PrivateServer> server_offering(Tls tls) {
  const std::string word = tls == Tls::none ? "" : tls == Tls::expired ? "expired" : "yes";
  return std::make_unique<ScriptedServer>("postgresql", "DLOCK_TEST_PG", &database_at,
                                          std::vector<std::string>{"DLOCK_SERVER_TLS=" + word});
}
std::unique_ptr<PrivateServer> server_with(const std::string& arguments) {
  return std::make_unique<ScriptedServer>("postgresql", "DLOCK_TEST_PG", &database_at,
                                          std::vector<std::string>{"DLOCK_SERVER_ARGS=" + arguments});
}
std::unique_ptr<PrivateServer> replicating_server() { return private_server(); }
std::vector<WeakServer> weak_servers() {
  return {{"-c fsync=off", {}, "fsync"}, {"-c full_page_writes=off", {}, "full_page_writes"}};
}
std::unique_ptr<TestDatabase> quiet_database() {
  if (server_is_chosen("DLOCK_TEST_PG")) return test_database();
  static const auto server = private_server();
  return server->test_database();
}

const Opener opener{"postgresql",           &missing,         &test_database, &quiet_database, &server_database,
                    &private_server,        &server_offering, &server_with,   &weak_servers,   &replicating_server,
                    "-c listen_addresses=*"};

}  // namespace
}  // namespace postgresql
}  // namespace dlock::test

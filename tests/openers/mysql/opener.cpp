// How to open a fresh MariaDB or MySQL database, and how to look at one from outside.
#include "wire.hpp"

#include "support/eventually.hpp"
#include "support/scripted_server.hpp"
#include "support/server_url.hpp"
#include "types/url.hpp"

#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>

#include <mutex>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace dlock::test {
namespace mysql {
namespace {

// A server, as its superuser reaches it.
struct Server {
  Address address{};
  std::string user, password;

  static Server at(const std::string& text) {
    const auto url = Url::parse(text);
    Server server;
    const auto colon = url.hosts.rfind(':');
    server.address.host = url.hosts.substr(0, colon);
    server.address.port = colon == std::string::npos
                              ? std::uint16_t{3306}
                              : static_cast<std::uint16_t>(std::stoi(url.hosts.substr(colon + 1)));
    server.user = url.user.value_or("root");
    server.password = url.password.value_or("");
    return server;
  }

  std::unique_ptr<soci::session> connect(const std::string& to) const {
    const std::string where = "host=" + address.host + " port=" + std::to_string(address.port) + " user=" + user +
                              (password.empty() ? "" : " password='" + password + "'") + " db=" + to +
                              " charset=utf8mb4";
    auto sql = std::make_unique<soci::session>(soci::mysql, where);
    *sql << "SET SESSION autocommit = 1, sql_safe_updates = 0, sql_mode = ''";
    return sql;
  }

  std::string url(const Address& door, const std::string& to, const std::string& as, const std::string& secret) const {
    return "mysql://" + as + (secret.empty() ? "" : ":" + secret) + "@" + door.host + ":" + std::to_string(door.port) +
           "/" + to;
  }
};

class DatabaseOnServer final : public ServerTestDatabase {
 public:
  explicit DatabaseOnServer(Server server, std::vector<Address> peers = {})
      : server_(std::move(server)), peers_(std::move(peers)), name_("dlock_test_" + unique_suffix()) {
    auto sql = server_.connect("mysql");
    *sql << "CREATE DATABASE " + name_ + " CHARACTER SET utf8mb4";
    watching_ = connect();
    std::string version;
    *watching_ << "SELECT version()", soci::into(version);
    mariadb_ = version.find("MariaDB") != std::string::npos;
  }

  ~DatabaseOnServer() override {
    try {
      if (zone_changed_) *watching_ << "SET GLOBAL time_zone = 'SYSTEM'";
      for (const auto& role : roles_) *watching_ << "DROP USER " + role;
      *watching_ << "DROP DATABASE IF EXISTS " + name_ + "_views";
      *watching_ << "DROP DATABASE " + name_;
    } catch (const std::exception&) {  // the server is gone, and the database with it
    }
  }

  void await_peers() const override {
    for (const auto& peer : peers_) {
      auto behind = server_;
      behind.address = peer;
      const auto sql = behind.connect("mysql");
      const bool group = server_is_chosen("DLOCK_TEST_MYSQLD");
      *sql << (group ? "SET SESSION group_replication_consistency = 'BEFORE'" : "SET SESSION wsrep_sync_wait = 15");
      if (group) *sql << "BEGIN";  // waits there; a SELECT without a table does not
      int caught_up = 0;
      *sql << "SELECT 1", soci::into(caught_up);
    }
  }
  std::string url() const override { return url_preferring_tls_at(server_.address); }
  std::string url_at(const Address& door) const override { return url_preferring_tls_at(door) + "?ssl-mode=DISABLED"; }
  std::string url_preferring_tls_at(const Address& door) const override {
    return server_.url(door, name_, server_.user, server_.password);
  }
  std::vector<TableLock> table_locks(std::string_view table) const override {
    const auto sql = "LOCK TABLES " + std::string(table);
    const std::string told = "another session has locked ";
    return {{"WRITE", {sql + " WRITE"}, "UNLOCK TABLES", false, told},
            {"READ", {sql + " READ"}, "UNLOCK TABLES", true, told},
            {"FLUSH", {"FLUSH TABLES " + std::string(table) + " WITH READ LOCK"}, "UNLOCK TABLES", true, told}};
  }
  std::string url_with_tls_at(const Address& door) const override {
    return url_preferring_tls_at(door) + "?ssl-mode=REQUIRED";
  }
  std::string url_verified_at(const Address& door, const std::string& authority) const override {
    return url_preferring_tls_at(door) + "?ssl-mode=VERIFY_IDENTITY&ssl-ca=" + authority;
  }
  std::size_t bytes_before_tls() const override { return 0; }  // the server speaks first, and says what it can
  Address address() const override { return server_.address; }
  std::vector<Address> peers() const override { return peers_; }
  std::unique_ptr<RequestCounter> request_counter() const override { return std::make_unique<Counter>(); }
  // MySQL tells of it.
  std::unique_ptr<Undoer> undoer() const override { return is_mariadb() ? std::make_unique<Rollback>() : nullptr; }
  std::string client() const override {
    return "mariadb --no-defaults --protocol=tcp -h" + server_.address.host + " -P" +
           std::to_string(server_.address.port) + " -u" + server_.user +
           (server_.password.empty() ? "" : " -p'" + server_.password + "'") + " " + name_;
  }
  std::string begin_writing() const override { return "BEGIN"; }
  // MySQL keeps the text of a trigger wrongly where a name in it has a backtick, and refuses it where such a name ends
  // with a letter beyond ASCII.
  std::string odd_column() const override {
    auto name = ServerTestDatabase::odd_column();
    if (!is_mariadb()) std::erase(name, '`');
    return name;
  }
  bool reaches_others() const override { return true; }

  std::unique_ptr<soci::session> connect() const override { return connect_at(server_.address); }
  std::unique_ptr<soci::session> connect_at(const Address& door) const override {
    auto server = server_;
    server.address = door;
    auto sql = server.connect(name_);
    long long id = 0;
    *sql << "SELECT connection_id()", soci::into(id);
    const std::lock_guard guard(mutex_);
    administrative_ += "," + std::to_string(id);
    return sql;
  }

  // MySQL's status variable of that is late.
  std::string written() override {
    const std::string of_mysql =
        "SELECT 'LSN', CONCAT(JSON_EXTRACT(storage_engines, '$.InnoDB.LSN')) "
        "FROM performance_schema.log_status";
    std::string position, name;
    *watching_ << (is_mariadb() ? "SHOW GLOBAL STATUS LIKE 'Innodb_lsn_current'" : of_mysql), soci::into(name),
        soci::into(position);
    return position;
  }

  std::vector<Beginning> beginnings() const override {
    const auto at = [](const std::string& level, bool snapshot) {
      return Beginning{level, {"SET TRANSACTION ISOLATION LEVEL " + level, "START TRANSACTION"}, snapshot};
    };
    return {at("READ COMMITTED", false), at("REPEATABLE READ", true), at("SERIALIZABLE", true)};
  }
  std::vector<std::string> odd_session() const override {
    return {"SET SESSION innodb_lock_wait_timeout = 0", "SET SESSION sql_safe_updates = 1",
            "SET SESSION sql_mode = '" + std::string(is_mariadb() ? "ORACLE" : "ANSI_QUOTES,PIPES_AS_CONCAT") +
                ",NO_BACKSLASH_ESCAPES'",
            "SET NAMES latin1"};
  }
  std::string session_state() const override {
    return "SELECT CONCAT_WS(',', @@session.innodb_lock_wait_timeout, @@session.sql_mode, LAST_INSERT_ID(), "
           "@@session.lock_wait_timeout, @@session.autocommit, @@session.character_set_client, "
           "@@session.sql_safe_updates /*M! , @@session.idle_write_transaction_timeout */)";
  }

  std::string row_of(std::string_view literal_name) const override {
    return "SELECT concat_ws('|', name, coalesce(owner, '-'), token, acquired_at, expires_at, reopens_at, lease_us, "
           "meta, label, actor, node, mode) FROM resource_lock WHERE name = '" +
           std::string(literal_name) + "'";
  }

  std::string url_of_role(const std::vector<std::string>& rights) override {
    const auto role = "dlock_role_" + unique_suffix();
    roles_.push_back("'" + role + "'@'%'");
    *watching_ << "CREATE USER " + roles_.back() + " IDENTIFIED BY 'of_a_role'";
    // A role without any right on the database could not even select it, which is another error.
    *watching_ << "GRANT CREATE TEMPORARY TABLES ON " + name_ + ".* TO " + roles_.back();
    for (const auto& right : rights) *watching_ << "GRANT " + right + " ON " + name_ + ".* TO " + roles_.back();
    return server_.url(server_.address, name_, role, "of_a_role");
  }

  void use_password(const std::string& password) override {
    std::string literal;
    for (const char c : password) literal += c == '\'' ? "''" : c == '\\' ? "\\\\" : std::string(1, c);
    *watching_ << "ALTER USER " + roles_.back() + " IDENTIFIED BY '" + literal + "'";
  }

  std::string url_by_socket() override {
    std::string socket;
    *watching_ << "SELECT @@socket", soci::into(socket);
    return "mysql://" + server_.user + (server_.password.empty() ? "" : ":" + server_.password) + "@/" + name_ +
           "?socket=" + socket;
  }
  std::vector<std::string> ways_to_log_in() const override {
    if (is_mariadb()) return {"mysql_native_password", "ed25519"};
    return {"caching_sha2_password", "sha256_password"};
  }
  void use_way_to_log_in(const std::string& way, const std::string& password) override {
    if (!is_mariadb()) {
      *watching_ << "ALTER USER " + roles_.back() + " IDENTIFIED WITH " + way + " BY '" + password + "'";
      return;
    }
    *watching_ << "ALTER USER " + roles_.back() + " IDENTIFIED VIA " + way + " USING PASSWORD('" + password + "')";
  }

  void disconnect_everybody() override {
    const auto killer = server_.connect(name_);
    // Those that are there now: whoever comes back at once would keep this going for ever.
    long long last = 0;
    *killer << "SELECT max(id) FROM information_schema.processlist", soci::into(last);
    const std::string sql = "SELECT coalesce(max(id), 0) FROM information_schema.processlist WHERE db = '" + name_ +
                            "' AND id <= " + std::to_string(last) + " AND id NOT IN (connection_id()" +
                            administrative_ + ")";
    for (;;) {
      long long id = 0;
      *killer << sql, soci::into(id);
      if (id == 0) return;
      try {
        *killer << "KILL CONNECTION " + std::to_string(id);
      } catch (const std::exception&) {  // it has just ended by itself
      }
    }
  }

  void use_time_zone(std::string_view zone) override {
    zone_changed_ = true;
    const std::string sql = "SET GLOBAL time_zone = :zone";
    const std::string value(zone);
    *watching_ << sql, soci::use(value, "zone");
  }

  void use_odd_defaults() override {
    set_globally({"sql_mode = 'SIMULTANEOUS_ASSIGNMENT,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,TRADITIONAL'",
                  "tx_isolation = 'SERIALIZABLE'", "autocommit = 0", "sql_safe_updates = 1", "sql_auto_is_null = 1",
                  "character_set_client = 'latin1'", "collation_connection = 'latin1_swedish_ci'",
                  "last_insert_id = 77"});
  }
  void use_odd_defaults_for_all() override {
    set_globally({"sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'", "sql_mode = 'ORACLE,NO_BACKSLASH_ESCAPES'",
                  "tx_isolation = 'SERIALIZABLE'", "transaction_isolation = 'SERIALIZABLE'", "sql_auto_is_null = 1",
                  "character_set_client = 'latin1'", "collation_connection = 'latin1_swedish_ci'"});
  }

  std::vector<std::string> defaults_in_the_way() const override {
    return {"sql_mode = 'EMPTY_STRING_IS_NULL'",
            "sql_mode = 'ORACLE'",
            "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'",
            "sql_mode = 'HIGH_NOT_PRECEDENCE'",
            "group_concat_max_len = 4",
            "sql_select_limit = 0",
            "sql_select_limit = 1",
            "autocommit = 0",
            "completion_type = 1",
            "tx_read_only = 1",
            "transaction_read_only = 1"};
  }
  void set_default(const std::string& setting, bool yes) override {
    const auto as_before = setting.substr(0, setting.find(' ')) + " = DEFAULT";
    set_globally({yes ? setting.c_str() : as_before.c_str()});
  }

  void fail_writes(Mishap mishap) override {
    const char* const error = mishap == Mishap::deadlock        ? "'40001' SET MYSQL_ERRNO = 1213"
                              : mishap == Mishap::serialization ? "'HY000' SET MYSQL_ERRNO = 1020"
                                                                : "'HY000' SET MYSQL_ERRNO = 1205";
    for (const std::string event : {"INSERT", "UPDATE"})
      *watching_ << "CREATE TRIGGER dlock_test_mishap_" + event + " BEFORE " + event +
                        " ON resource_lock FOR EACH ROW SIGNAL SQLSTATE " + error + ", MESSAGE_TEXT = 'a mishap'";
  }
  void fail_no_more() override {
    for (const std::string event : {"INSERT", "UPDATE"}) *watching_ << "DROP TRIGGER dlock_test_mishap_" + event;
  }

  void take_writes(bool yes) override { *watching_ << std::string("SET GLOBAL read_only = ") + (yes ? "0" : "1"); }

  void follow(ServerTestDatabase& primary) override {
    const auto source = Server::at(primary.url());
    const auto there = source.connect("mysql");
    std::string variable, waited_for = "OFF";
    *there << "SHOW GLOBAL VARIABLES WHERE variable_name IN ('rpl_semi_sync_master_enabled', "
              "'rpl_semi_sync_source_enabled')",
        soci::into(variable), soci::into(waited_for);
    *watching_ << "SET GLOBAL server_id = 2";
    const auto source_as = [&](const std::string& word) {
      return word + "_HOST = '" + source.address.host + "', " + word +
             "_PORT = " + std::to_string(source.address.port) + ", " + word + "_USER = '" + source.user + "', " + word +
             "_PASSWORD = '" + source.password + "'";
    };
    if (is_mariadb()) {
      *watching_ << "SET GLOBAL rpl_semi_sync_slave_enabled = " + waited_for;
      *watching_ << "STOP SLAVE";
      *watching_ << "CHANGE MASTER TO " + source_as("MASTER");
      *watching_ << "START SLAVE IO_THREAD";
    } else {
      install("rpl_semi_sync_replica", "semisync_replica.so");
      *watching_ << "SET GLOBAL rpl_semi_sync_replica_enabled = " + waited_for;
      *watching_ << "STOP REPLICA";
      // In clear: MySQL 9.7 insists on TLS for this unless told not to, and not every server here offers it.
      *watching_ << "CHANGE REPLICATION SOURCE TO " + source_as("SOURCE") +
                        ", SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1";
      *watching_ << "START REPLICA IO_THREAD";
    }
    const bool follows = eventually([&] {
      long long dumps = 0;
      *there << "SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'",
          soci::into(dumps);
      return dumps > 0;
    });
    if (!follows) throw std::runtime_error("the replica does not follow");
  }
  void wait_for_followers() override {
    if (!is_mariadb()) install("rpl_semi_sync_source", "semisync_source.so");
    *watching_ << std::string("SET GLOBAL ") +
                      (is_mariadb() ? "rpl_semi_sync_master_enabled" : "rpl_semi_sync_source_enabled") + " = 1";
  }

  std::string make_forgetful() override {
    *watching_ << "SET GLOBAL innodb_flush_log_at_trx_commit = 2";
    return "innodb_flush_log_at_trx_commit";
  }

  // A trigger would do, if it did not change what an acquire answers that inserts its row. Instead, a database of
  // views: the one of the lock table waits whenever a row has been read, so that an acquire through it stops when it
  // has read the floor (the rows to be inserted are collected before the first is inserted). On MySQL that inserts
  // nothing, and says nothing of it: LEFT JOIN with a view that is merged, and VALUES() in ON DUPLICATE KEY UPDATE, are
  // too much for one statement. So there it is the trigger, for whoever is of one role.
  bool can_hold_back_inserts() const override { return is_mariadb(); }
  bool undoes_overtaken() override {
    int on = 0;
    if (is_mariadb())
      *watching_ << "SELECT COUNT(*) FROM information_schema.global_variables "
                    "WHERE variable_name = 'innodb_snapshot_isolation' AND variable_value = 'ON'",
          soci::into(on);
    return on > 0;
  }
  std::string url_to_hold_back() override { return is_mariadb() ? url_of_views() : url_of_triggering_role(); }
  std::string url_of_triggering_role() {
    const auto url = url_of_role({"ALL"});
    const auto gate = "'" + name_ + "'", role = roles_.back().substr(0, roles_.back().find('@'));
    *watching_ << "CREATE TRIGGER dlock_test_gate BEFORE INSERT ON resource_lock FOR EACH ROW SET NEW.label = "
                  "IF(NEW.name <> '' AND SUBSTRING_INDEX(user(), '@', 1) = " +
                      role + ", concat(NEW.label, left(get_lock(" + gate + ", 60) + release_lock(" + gate +
                      "), 0)), NEW.label)";
    return url;
  }
  std::string url_of_views() {
    const auto views = name_ + "_views", gate = "concat('" + name_ + "', left(token, 0))";
    *watching_ << "CREATE DATABASE " + views;
    *watching_ << "CREATE VIEW " + views + ".resource_lock_schema_history AS SELECT * FROM " + name_ +
                      ".resource_lock_schema_history";
    *watching_ << "CREATE VIEW " + views + ".resource_lock_status AS SELECT * FROM " + name_ + ".resource_lock_status";
    *watching_ << "CREATE VIEW " + views + ".resource_lock_waiter AS SELECT * FROM " + name_ + ".resource_lock_waiter";
    *watching_ << "CREATE VIEW " + views + ".resource_lock_holder AS SELECT * FROM " + name_ + ".resource_lock_holder";
    *watching_ << "CREATE VIEW " + views + ".resource_lock AS SELECT * FROM " + name_ +
                      ".resource_lock WHERE get_lock(" + gate + ", 60) + release_lock(" + gate + ") > 0";
    return server_.url(server_.address, views, server_.user, server_.password);
  }
  void hold_back() override { hold_back_by(server_.connect(name_)); }
  void hold_back_by(std::unique_ptr<soci::session> gate) {
    gate_ = std::move(gate);
    long long taken = 0;
    *gate_ << "SELECT get_lock('" + name_ + "', 10)", soci::into(taken);
  }
  void let_go() override { gate_.reset(); }
  std::string url_to_hold_writes() override { return url_of_role({"ALL"}); }
  void hold_writes(const std::string& table, const std::string& way) override {
    const auto gate = "'" + name_ + "'", role = roles_.back().substr(0, roles_.back().find('@'));
    *watching_ << "CREATE TRIGGER dlock_test_hold BEFORE " + way + " ON " + table +
                      " FOR EACH ROW DO IF(SUBSTRING_INDEX(user(), '@', 1) = " + role + ", get_lock(" + gate +
                      ", 60) + release_lock(" + gate + "), 0)";
    hold_back_by(connect());
  }
  std::vector<OddClock> odd_clocks() const override {
    return {{{"SET timestamp = UNIX_TIMESTAMP() + 36000"}, true},
            {{"SET timestamp = UNIX_TIMESTAMP() - 36000"}, true},
            {{"SET timestamp = UNIX_TIMESTAMP() - 1", "SET time_zone = '+05:30'"}, true}};
  }
  std::string stop_clock() const override { return "SET timestamp = UNIX_TIMESTAMP(SYSDATE(6))"; }
  std::string answer_nothing() const override { return "SET sql_select_limit = 0"; }
  bool begin_anew(void* connection) const override {
    const my_bool yes = 1;
    return mysql_options(static_cast<MYSQL*>(connection), MYSQL_OPT_RECONNECT, &yes) == 0;
  }
  int ways_to_leave_unread() const override { return 5; }
  void leave_unread(void* connection, int way) const override {
    auto* const handle = static_cast<MYSQL*>(connection);
    mysql_set_server_option(handle, MYSQL_OPTION_MULTI_STATEMENTS_ON);
    const std::string_view texts[] = {"SELECT 1", "SELECT 1; SELECT 2", "DO 1", "INSERT INTO app VALUES (7)",
                                      "SELECT 1 FROM nowhere"};
    const auto sql = texts[way];
    mysql_send_query(handle, sql.data(), sql.size());
    if (way < 2) mysql_read_query_result(handle);
  }
  void run_prepared(void* connection, const std::string& sql) const override {
    const std::unique_ptr<MYSQL_STMT, decltype(&mysql_stmt_close)> statement(
        mysql_stmt_init(static_cast<MYSQL*>(connection)), &mysql_stmt_close);
    if (mysql_stmt_prepare(statement.get(), sql.data(), sql.size()) != 0 || mysql_stmt_execute(statement.get()) != 0)
      throw std::runtime_error(mysql_stmt_error(statement.get()));
  }
  std::vector<std::string> begin_in_what_fails() const override {
    return {
        "CREATE PROCEDURE bad() BEGIN START TRANSACTION; INSERT INTO app VALUES (9); "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'it fails'; END",
        "CALL bad()"};
  }
  std::vector<std::string> odd_ends() const override {
    return {"SET SESSION completion_type = 'CHAIN'", "SET SESSION completion_type = 'RELEASE'"};
  }
  std::string bind_idle(std::chrono::seconds bound) const override {
    return "SET SESSION wait_timeout = " + std::to_string(bound.count());
  }
  std::string wait_for_locks() const override {
    return "SET SESSION innodb_lock_wait_timeout = 77, lock_wait_timeout = 78";
  }
  std::string lock_wait() const override {
    return "SELECT CONCAT_WS(',', @@session.innodb_lock_wait_timeout, @@session.lock_wait_timeout)";
  }
  std::string sleep_for(std::chrono::seconds time) const override {
    return "SELECT SLEEP(" + std::to_string(time.count()) + ")";
  }
  std::string wait_briefly() const override {
    return is_mariadb() ? "" : "SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1";
  }
  bool ends_silent_work() const override { return is_mariadb(); }
  std::optional<Address> pooler() override { return std::nullopt; }
  bool has_prepared(std::string_view sent) const override { return prepares(sent); }
  long long locks_held() override { throw std::logic_error("metadata_lock_info is a plugin"); }
  bool somebody_waits() override {
    long long waiting = 0;
    *watching_ << "SELECT count(*) FROM information_schema.processlist WHERE db = '" + name_ +
                      "' AND state LIKE 'Waiting for table metadata lock%'",
        soci::into(waiting);
    return waiting > 0;
  }
  bool holding_back() override {
    long long waiting = 0;
    *watching_ << "SELECT count(*) FROM information_schema.processlist WHERE db IN ('" + name_ + "', '" + name_ +
                      "_views') AND state = 'User lock'",
        soci::into(waiting);
    return waiting > 0;
  }

 private:
  bool is_mariadb() const { return mariadb_; }
  void set_globally(std::initializer_list<const char*> settings) {
    for (const char* setting : settings) try {
        *watching_ << std::string("SET GLOBAL ") + setting;
      } catch (const std::exception&) {  // not every server has a global one of it
      }
  }
  void install(const std::string& plugin, const std::string& file) {
    long long there = 0;
    *watching_ << "SELECT count(*) FROM information_schema.plugins WHERE plugin_name = '" + plugin + "'",
        soci::into(there);
    if (there == 0) *watching_ << "INSTALL PLUGIN " + plugin + " SONAME '" + file + "'";
  }

  const Server server_;
  const std::vector<Address> peers_;
  const std::string name_;
  std::unique_ptr<soci::session> watching_, gate_;
  mutable std::mutex mutex_;  // of administrative_
  mutable std::string administrative_;
  std::vector<std::string> roles_;
  bool mariadb_ = false, zone_changed_ = false;
};

// With DLOCK_TEST_CLUSTERED in the environment every database is in a cluster, on its first server.
bool clustered() { return server_is_chosen("DLOCK_TEST_CLUSTERED"); }

std::optional<std::string> missing() {
  if (clustered() && !server_url("DLOCK_TEST_GALERA")) return "no Galera cluster: let the tests start one";
  if (clustered()) return std::nullopt;
  if (server_url("DLOCK_TEST_MYSQL")) return std::nullopt;
  return "no MariaDB or MySQL server: set DLOCK_TEST_MYSQL, or let the tests start one";
}

std::unique_ptr<ServerTestDatabase> database_at(const std::string& url) {
  return std::make_unique<DatabaseOnServer>(Server::at(url));
}
std::unique_ptr<ServerTestDatabase> server_database() {
  if (!clustered()) return database_at(server_url("DLOCK_TEST_MYSQL").value());
  std::istringstream urls(server_url("DLOCK_TEST_GALERA").value());
  std::string first;
  urls >> first;
  std::vector<Address> others;
  for (std::string url; urls >> url;) others.push_back(Server::at(url).address);
  return std::make_unique<DatabaseOnServer>(Server::at(first), std::move(others));
}
std::unique_ptr<TestDatabase> test_database() { return server_database(); }
// MySQL where one is named.
std::string script() { return server_is_chosen("DLOCK_TEST_MYSQLD") ? "mysql" : "mariadb"; }

std::unique_ptr<PrivateServer> private_server() {
  return std::make_unique<ScriptedServer>(script(), "DLOCK_TEST_MYSQL", &database_at);
}
std::unique_ptr<PrivateServer> server_offering(Tls tls) {
  const std::string word = tls == Tls::none ? "" : tls == Tls::expired ? "expired" : "yes";
  return std::make_unique<ScriptedServer>(script(), "DLOCK_TEST_MYSQL", &database_at,
                                          std::vector<std::string>{"DLOCK_SERVER_TLS=" + word});
}
std::unique_ptr<PrivateServer> replicating_server() {
  return std::make_unique<ScriptedServer>(script(), "DLOCK_TEST_MYSQL", &database_at,
                                          std::vector<std::string>{"DLOCK_SERVER_ARGS=--log-bin --server-id=1"});
}
std::unique_ptr<PrivateServer> server_with(const std::string& arguments) {
  return std::make_unique<ScriptedServer>(script(), "DLOCK_TEST_MYSQL", &database_at,
                                          std::vector<std::string>{"DLOCK_SERVER_ARGS=" + arguments});
}
std::vector<WeakServer> weak_servers() {
  const std::string replicated = "--log-bin --server-id=1 --sync-binlog=1";
  return {{"--innodb-doublewrite=OFF", {}, "innodb_doublewrite"},
          {replicated, {"SET GLOBAL sync_binlog = 0"}, "sync_binlog"},
          {replicated, {"SET GLOBAL binlog_format = 'STATEMENT'"}, "binlog_format", true}};
}
std::unique_ptr<TestDatabase> quiet_database() {
  if (server_is_chosen("DLOCK_TEST_MYSQL")) return test_database();
  static const auto server = private_server();
  return server->test_database();
}

const Opener opener{"mysql",           &missing,         &test_database, &quiet_database, &server_database,
                    &private_server,   &server_offering, &server_with,   &weak_servers,   &replicating_server,
                    "--bind-address=*"};

}  // namespace
}  // namespace mysql
}  // namespace dlock::test

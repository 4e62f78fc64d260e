// This file knows how to open a fresh MariaDB or MySQL database, and how to look at one from outside.
#include "wire.hpp"

#include "support/scripted_server.hpp"
#include "support/server_url.hpp"
#include "types/url.hpp"

#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>

#include <mutex>

namespace dlock::test {
namespace DLOCK_DIALECT {
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
    return DLOCK_DIALECT_NAME "://" + as + (secret.empty() ? "" : ":" + secret) + "@" + door.host + ":" +
           std::to_string(door.port) + "/" + to;
  }
};

class DatabasePlace final : public ServerPlace {
 public:
  explicit DatabasePlace(Server server) : server_(std::move(server)), name_("dlock_test_" + unique_suffix()) {
    auto sql = server_.connect("mysql");
    *sql << "CREATE DATABASE " + name_ + " CHARACTER SET utf8mb4";
    watching_ = connect();
  }

  ~DatabasePlace() override {
    try {
      if (zone_changed_) *watching_ << "SET GLOBAL time_zone = 'SYSTEM'";
      for (const auto& role : roles_) *watching_ << "DROP USER " + role;
      *watching_ << "DROP DATABASE IF EXISTS " + name_ + "_views";
      *watching_ << "DROP DATABASE " + name_;
    } catch (const std::exception&) {  // the server is gone, and the place with it
    }
  }

  std::string url() const override { return url_at(server_.address); }
  std::string url_at(const Address& door) const override {
    return server_.url(door, name_, server_.user, server_.password);
  }
  std::string url_with_tls_at(const Address& door) const override { return url_at(door) + "?ssl-mode=REQUIRED"; }
  std::size_t bytes_before_tls() const override { return 0; }  // the server speaks first, and says what it can
  Address address() const override { return server_.address; }
  std::unique_ptr<RequestCounter> request_counter() const override { return std::make_unique<Counter>(); }
  std::string client() const override {
    return "mariadb --no-defaults --protocol=tcp -h" + server_.address.host + " -P" + std::to_string(server_.address.port) +
           " -u" + server_.user + (server_.password.empty() ? "" : " -p'" + server_.password + "'") + " " + name_;
  }
  std::string begin_writing() const override { return "BEGIN"; }
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

  std::string written() override {
    std::string position;
    *watching_ << "SELECT variable_value FROM information_schema.global_status "
                  "WHERE variable_name = 'INNODB_LSN_CURRENT'",
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
            "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", "SET NAMES latin1"};
  }
  std::string session_state() const override {
    return "SELECT CONCAT_WS(',', @@session.innodb_lock_wait_timeout, @@session.sql_mode, LAST_INSERT_ID(), "
           "@@session.lock_wait_timeout, @@session.autocommit, @@session.character_set_client, @@session.sql_safe_updates)";
  }

  std::string row_of(std::string_view literal_name) const override {
    return "SELECT concat_ws('|', name, coalesce(owner, '-'), token, acquired_at, expires_at, reopens_at, lease_us, "
           "meta, label, actor, node, entries) FROM resource_lock WHERE name = '" +
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

  void disconnect_everybody() override {
    const auto killer = server_.connect(name_);
    const std::string sql = "SELECT coalesce(max(id), 0) FROM information_schema.processlist WHERE db = '" + name_ +
                            "' AND id NOT IN (connection_id()" + administrative_ + ")";
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
    for (const char* setting :
         {"sql_mode = 'SIMULTANEOUS_ASSIGNMENT,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,TRADITIONAL'",
          "tx_isolation = 'SERIALIZABLE'", "autocommit = 0", "sql_safe_updates = 1", "sql_auto_is_null = 1",
          "character_set_client = 'latin1'", "collation_connection = 'latin1_swedish_ci'", "last_insert_id = 77"})
      try {
        *watching_ << std::string("SET GLOBAL ") + setting;
      } catch (const std::exception&) {  // not every server has a global one of it
      }
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

  void take_writes(bool yes) override {
    *watching_ << std::string("SET GLOBAL read_only = ") + (yes ? "0" : "1");
  }

  std::string make_forgetful() override {
    *watching_ << "SET GLOBAL innodb_flush_log_at_trx_commit = 2";
    return "innodb_flush_log_at_trx_commit";
  }

  // A trigger would do, if it did not change what the acquire answers. Instead, a database of views: the one of the
  // lock table waits whenever a row has been read, so that an acquire through it stops when it has read the floor (the
  // rows to be inserted are collected before the first is inserted).
  std::string url_to_hold_back() override {
    const auto views = name_ + "_views", gate = "concat('" + name_ + "', left(token, 0))";
    *watching_ << "CREATE DATABASE " + views;
    *watching_ << "CREATE VIEW " + views + ".resource_lock_schema_history AS SELECT * FROM " + name_ +
                      ".resource_lock_schema_history";
    *watching_ << "CREATE VIEW " + views + ".resource_lock_status AS SELECT * FROM " + name_ + ".resource_lock_status";
    *watching_ << "CREATE VIEW " + views + ".resource_lock_waiter AS SELECT * FROM " + name_ + ".resource_lock_waiter";
    *watching_ << "CREATE VIEW " + views + ".resource_lock AS SELECT * FROM " + name_ +
                      ".resource_lock WHERE get_lock(" + gate + ", 60) + release_lock(" + gate + ") > 0";
    return server_.url(server_.address, views, server_.user, server_.password);
  }
  void hold_back() override {
    gate_ = server_.connect(name_);
    long long taken = 0;
    *gate_ << "SELECT get_lock('" + name_ + "', 10)", soci::into(taken);
  }
  void let_go() override { gate_.reset(); }
  std::string url_of_pooler() override { return {}; }
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
    *watching_ << "SELECT count(*) FROM information_schema.processlist WHERE db = '" + name_ +
                      "_views' AND state = 'User lock'",
        soci::into(waiting);
    return waiting > 0;
  }

 private:
  const Server server_;
  const std::string name_;
  std::unique_ptr<soci::session> watching_, gate_;
  mutable std::mutex mutex_;  // of administrative_
  mutable std::string administrative_;
  std::vector<std::string> roles_;
  bool zone_changed_ = false;
};

std::optional<std::string> missing() {
  if (server_url("DLOCK_TEST_MYSQL")) return std::nullopt;
  return "no MariaDB or MySQL server: set DLOCK_TEST_MYSQL, or let the tests start one";
}

std::unique_ptr<ServerPlace> place_at(const std::string& url) {
  return std::make_unique<DatabasePlace>(Server::at(url));
}
std::unique_ptr<ServerPlace> server_place() { return place_at(server_url("DLOCK_TEST_MYSQL").value()); }
std::unique_ptr<Place> place() { return server_place(); }
std::unique_ptr<PrivateServer> private_server() {
  return std::make_unique<ScriptedServer>("mariadb", "DLOCK_TEST_MYSQL", &place_at);
}
std::unique_ptr<Place> quiet_place() {
  if (server_is_chosen("DLOCK_TEST_MYSQL")) return place();
  static const auto server = private_server();
  return server->place();
}

const Opener opener{DLOCK_DIALECT_NAME, &missing, &place, &quiet_place, &server_place, &private_server};

}  // namespace
}  // namespace DLOCK_DIALECT
}  // namespace dlock::test

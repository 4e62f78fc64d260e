// This file knows the plain use of Connector/C that dlock-bench compares with.
#include "dialects/raw_peer.hpp"

#include "dialects/embedded.hpp"
#include "server.hpp"

#include <fmt/format.h>
#include <mysql.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

namespace dlock::dialects::DLOCK_DIALECT {

const Embedded& embedded() noexcept;

namespace {

class Peer final : public RawPeer {
 public:
  Peer(const Url& url, const std::string& table) : connection_(mysql_init(nullptr)) {
    const auto server = server_of(url, "dlock-bench");
    const auto or_null = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
    mysql_options(connection_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(connection_, or_null(server.host), or_null(server.user), or_null(server.password),
                           or_null(server.database), server.port, or_null(server.socket), CLIENT_FOUND_ROWS) == nullptr)
      fail();
    for (const char* setting : {"SET SESSION sql_mode = 'STRICT_ALL_TABLES'",
                                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"})
      if (mysql_query(connection_, setting) != 0) fail();
    TableNames names;
    names.schema = server.database;
    names.lock = table;
    names.history = table + "_schema_history";
    const Statements statements(embedded().lock_sql, names, Marker::question,
                                [](std::string_view identifier) { return '`' + std::string(identifier) + '`'; });
    acquire_sql_ = statements.at(
        "acquire", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta", "entry", "ticket"});
    release_sql_ = statements.at("release", {"name", "owner", "token"});
    acquire_ = prepare(acquire_sql_);
    release_ = prepare(release_sql_);
  }
  ~Peer() override {
    mysql_stmt_close(acquire_);
    mysql_stmt_close(release_);
    mysql_close(connection_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::int64_t acquire(std::string_view name, std::string_view owner) override {
    const std::array<std::string_view, 10> texts{name, owner, "bench", "bench", owner, {}, {}, "", "", {}};
    std::array<std::int64_t, 10> numbers{0, 0, 0, 0, 0, 30'000'000, 0, 0};
    execute(acquire_, acquire_sql_, texts, numbers);
    return static_cast<std::int64_t>(mysql_stmt_insert_id(acquire_));
  }

  void release(std::string_view name, std::string_view owner, std::int64_t token) override {
    const std::array<std::string_view, 10> texts{name, owner};
    std::array<std::int64_t, 10> numbers{0, 0, token};
    execute(release_, release_sql_, texts, numbers);
  }

  std::string server() const override {
    const std::string text = mysql_get_server_info(connection_);
    return fmt::format("{} {}", mariadb_connection(connection_) != 0 ? "MariaDB" : "MySQL", text.substr(0, text.find('-')));
  }

  Load load() override {
    if (mysql_query(connection_, "SHOW GLOBAL STATUS WHERE Variable_name IN"
                                 " ('Questions', 'Innodb_os_log_written', 'Threads_connected')") != 0)
      fail();
    const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> rows(mysql_store_result(connection_),
                                                                        mysql_free_result);
    if (!rows) fail();
    Load load;
    while (const auto row = mysql_fetch_row(rows.get())) {
      const auto number = std::strtoll(row[1], nullptr, 10);
      if (std::string_view(row[0]) == "Questions") load.statements = number;
      else if (std::string_view(row[0]) == "Threads_connected") load.connections = number;
      else load.bytes_written = number;
    }
    return load;
  }

 private:
  [[noreturn]] void fail() { throw std::runtime_error(fmt::format("raw peer: {}", mysql_error(connection_))); }

  MYSQL_STMT* prepare(const Statement& statement) {
    auto* handle = mysql_stmt_init(connection_);
    if (mysql_stmt_prepare(handle, statement.sql.data(), statement.sql.size()) != 0)
      throw std::runtime_error(fmt::format("raw peer: {}", mysql_stmt_error(handle)));
    return handle;
  }

  // An argument without text is a number.
  static void execute(MYSQL_STMT* handle, const Statement& statement, const std::array<std::string_view, 10>& texts,
                      std::array<std::int64_t, 10>& numbers) {
    std::vector<MYSQL_BIND> binds(statement.markers.size());
    for (std::size_t i = 0; i < binds.size(); ++i) {
      const auto argument = statement.markers[i];
      if (texts[argument].data() == nullptr) {
        binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
        binds[i].buffer = &numbers[argument];
      } else {
        binds[i].buffer_type = MYSQL_TYPE_STRING;
        binds[i].buffer = const_cast<char*>(texts[argument].data());
        binds[i].buffer_length = texts[argument].size();
      }
    }
    if (mysql_stmt_bind_param(handle, binds.data()) != 0 || mysql_stmt_execute(handle) != 0)
      throw std::runtime_error(fmt::format("raw peer: {}", mysql_stmt_error(handle)));
  }

  MYSQL* connection_;
  Statement acquire_sql_, release_sql_;
  MYSQL_STMT *acquire_ = nullptr, *release_ = nullptr;
};

}  // namespace

std::unique_ptr<RawPeer> make_raw_peer(const Url& url, std::string_view, const std::string& table) {
  return std::make_unique<Peer>(url, table);
}

}  // namespace dlock::dialects::DLOCK_DIALECT

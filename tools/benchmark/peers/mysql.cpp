// The plain use of Connector/C that dlock-bench compares with.
#include "raw_peer.hpp"

#include "dialects/dialect.hpp"
#include "peers.hpp"
#include "raw_pair.hpp"
#include "types/url.hpp"

#include <fmt/format.h>
#include <mysql.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

namespace bench::mysql {

std::string_view peers_sql() noexcept;
const Peers& peers() noexcept;

namespace {

constexpr std::array<std::string_view, 3> words{"raw", "naive", "getlock"};

struct Free {
  void operator()(MYSQL* connection) const noexcept { mysql_close(connection); }
  void operator()(MYSQL_STMT* statement) const noexcept { mysql_stmt_close(statement); }
  void operator()(MYSQL_RES* rows) const noexcept { mysql_free_result(rows); }
};
using Rows = std::unique_ptr<MYSQL_RES, Free>;

// One prepared statement. An argument without text is a number.
class Prepared {
 public:
  using Texts = std::array<std::string_view, 9>;
  using Numbers = std::array<std::int64_t, 9>;

  Prepared(MYSQL* connection, dlock::dialects::Statement statement)
      : statement_(std::move(statement)), handle_(mysql_stmt_init(connection)), binds_(statement_.markers.size()) {
    if (mysql_stmt_prepare(handle_.get(), statement_.sql.data(), statement_.sql.size()) != 0) fail();
    answers_ = mysql_stmt_field_count(handle_.get()) > 0;
  }

  void execute(const Texts& texts, Numbers& numbers) {
    for (std::size_t i = 0; i < binds_.size(); ++i) {
      const auto argument = statement_.markers[i];
      binds_[i] = MYSQL_BIND{};
      if (texts[argument].data() == nullptr) {
        binds_[i].buffer_type = MYSQL_TYPE_LONGLONG;
        binds_[i].buffer = &numbers[argument];
      } else {
        binds_[i].buffer_type = MYSQL_TYPE_STRING;
        binds_[i].buffer = const_cast<char*>(texts[argument].data());
        binds_[i].buffer_length = texts[argument].size();
      }
    }
    if (mysql_stmt_bind_param(handle_.get(), binds_.data()) != 0 || mysql_stmt_execute(handle_.get()) != 0) fail();
    if (answers_ && mysql_stmt_store_result(handle_.get()) != 0) fail();
  }

  // Of a statement that answers rows; the first column of the first one.
  std::int64_t answer() {
    std::int64_t number = 0;
    std::array<MYSQL_BIND, 1> bind{};
    bind[0].buffer_type = MYSQL_TYPE_LONGLONG;
    bind[0].buffer = &number;
    if (mysql_stmt_bind_result(handle_.get(), bind.data()) != 0 || mysql_stmt_fetch(handle_.get()) != 0) fail();
    done();
    return number;
  }

  // Drops the rows of an answer, if there are any.
  void done() {
    if (answers_) mysql_stmt_free_result(handle_.get());
  }

  bool answers() const noexcept { return answers_; }
  std::int64_t insert_id() { return static_cast<std::int64_t>(mysql_stmt_insert_id(handle_.get())); }

 private:
  [[noreturn]] void fail() { throw std::runtime_error(fmt::format("raw peer: {}", mysql_stmt_error(handle_.get()))); }

  const dlock::dialects::Statement statement_;
  const std::unique_ptr<MYSQL_STMT, Free> handle_;
  std::vector<MYSQL_BIND> binds_;
  bool answers_ = false;
};

struct Server {
  std::string host, user, password, database, socket;
  unsigned port = 0;
};

Server server_of(dlock::Url url) {
  const auto colon = url.hosts.find(':');
  Server server{url.hosts.substr(0, colon), url.user.value_or(""), url.password.value_or(""), "",
                url.take("socket").value_or("")};
  if (!url.path.empty()) server.database = url.path.substr(1);
  if (colon != std::string::npos) server.port = static_cast<unsigned>(std::stoul(url.hosts.substr(colon + 1)));
  return server;
}

class Peer final : public RawPeer {
 public:
  explicit Peer(const PeerOf& of) : connection_(mysql_init(nullptr)) {
    const auto server = server_of(of.parsed);
    const auto or_null = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
    mysql_options(raw(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(raw(), or_null(server.host), or_null(server.user), or_null(server.password),
                           or_null(server.database), server.port, or_null(server.socket), CLIENT_FOUND_ROWS) == nullptr)
      fail();
    for (const char* setting :
         {"SET SESSION sql_mode = 'STRICT_ALL_TABLES'", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"})
      if (mysql_query(raw(), setting) != 0) fail();
    dlock::dialects::TableNames names;
    names.schema = of.table.schema.empty() ? server.database : of.table.schema;
    names.lock = of.table.name;
    names.history = of.table.name + "_schema_history";
    const auto quoted = [](std::string_view identifier) { return '`' + std::string(identifier) + '`'; };
    const dlock::dialects::Statements ours(of.lock_sql, names, dlock::dialects::Marker::question, quoted);
    const dlock::dialects::Statements theirs(peers_sql(), names, dlock::dialects::Marker::question, quoted);
    auto pair = raw_pair(of.word, ours, theirs);
    acquire_ = std::make_unique<Prepared>(raw(), std::move(pair.acquire));
    if (pair.first) first_ = std::make_unique<Prepared>(raw(), std::move(*pair.first));
    release_ = std::make_unique<Prepared>(raw(), std::move(pair.release));
    read_ = std::make_unique<Prepared>(raw(), theirs.at("read", {"name"}));
    fill_ = std::make_unique<Prepared>(raw(), theirs.at("fill", {"prefix", "first", "count"}));
    tidy_ = theirs.at("tidy", {}).sql;
  }

  std::int64_t acquire(std::string_view name, std::string_view owner) override {
    const Prepared::Texts texts{name, owner, "bench", "bench", owner, {}, {}, "", {}};
    Prepared::Numbers numbers{0, 0, 0, 0, 0, 30'000'000, 0, 0};
    if (first_ != nullptr) {
      first_->execute(texts, numbers);
      if (const auto token = first_->insert_id(); token != 0) return token;
    }
    acquire_->execute(texts, numbers);
    return acquire_->answers() ? acquire_->answer() : acquire_->insert_id();
  }

  void release(std::string_view name, std::string_view owner, std::int64_t token) override {
    const Prepared::Texts texts{name, owner};
    Prepared::Numbers numbers{0, 0, token};
    release_->execute(texts, numbers);
    release_->done();
  }

  void read(std::string_view name) override {
    Prepared::Numbers numbers{};
    read_->execute({name}, numbers);
    read_->done();
  }

  std::string server() const override {
    const std::string text = mysql_get_server_info(raw());
    return fmt::format("{} {}", mariadb_connection(raw()) != 0 ? "MariaDB" : "MySQL", text.substr(0, text.find('-')));
  }

  Settings settings() override {
    Settings settings;
    const auto rows = query(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit',"
        " 'innodb_doublewrite', 'innodb_flush_method', 'log_bin', 'sync_binlog', 'wsrep_on')");
    while (const auto row = mysql_fetch_row(rows.get())) settings.emplace_back(row[0], row[1]);
    return settings;
  }

  Load load() override {
    Load load;
    const auto rows = query(
        "SHOW GLOBAL STATUS WHERE Variable_name IN"
        " ('Questions', 'Innodb_os_log_written', 'Threads_connected')");
    while (const auto row = mysql_fetch_row(rows.get())) {
      const auto number = std::strtoll(row[1], nullptr, 10);
      if (std::string_view(row[0]) == "Questions") load.statements = number;
      else if (std::string_view(row[0]) == "Threads_connected") load.connections = number;
      else load.bytes_written = number;
    }
    return load;
  }

  std::int64_t end_of_log() override {
    // MariaDB's name of it, and MySQL's.
    const auto rows = query(
        "SHOW GLOBAL STATUS WHERE Variable_name IN"
        " ('Innodb_lsn_current', 'Innodb_redo_log_current_lsn')");
    const auto row = mysql_fetch_row(rows.get());
    return row == nullptr ? load().bytes_written : std::strtoll(row[1], nullptr, 10);
  }

  void fill(std::string_view prefix, std::int64_t first, std::int64_t count) override {
    Prepared::Numbers numbers{0, first, count};
    fill_->execute({prefix}, numbers);
  }

  void tidy() override { query(tidy_.c_str()); }

 private:
  [[noreturn]] void fail() { throw std::runtime_error(fmt::format("raw peer: {}", mysql_error(raw()))); }

  Rows query(const char* sql) {
    if (mysql_query(raw(), sql) != 0) fail();
    Rows rows(mysql_store_result(raw()));
    if (!rows) fail();
    return rows;
  }

  MYSQL* raw() const noexcept { return connection_.get(); }

  const std::unique_ptr<MYSQL, Free> connection_;
  std::unique_ptr<Prepared> first_, acquire_, release_, read_, fill_;
  std::string tidy_;
};

}  // namespace

const Peers& peers() noexcept {
  static constexpr Peers instance{
      words, [](const PeerOf& of) -> std::unique_ptr<RawPeer> { return std::make_unique<Peer>(of); }};
  return instance;
}

}  // namespace bench::mysql

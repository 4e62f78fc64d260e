// This file knows how a connection to MySQL or MariaDB is opened, set up and looked over.
#include "connection.hpp"

#include "faults.hpp"
#include "greeting.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <mutex>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr unsigned long oldest_mysql = 80001, oldest_mariadb = 100600;

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

ServerConnection::ServerConnection(const Server& server, Deadline deadline) : user_(server.user) {
  static std::once_flag once;
  std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
  connection_ = mysql_init(nullptr);
  if (connection_ == nullptr) throw Failure(Cause::refused, "MySQL: out of memory");
  try {
    open(server, deadline);
    make_settings(deadline);
  } catch (...) {
    mysql_close(connection_);
    throw;
  }
}

void ServerConnection::open(const Server& server, Deadline deadline) {
  const my_bool yes = 1, no = 0;
  const unsigned local_infile = 0;
  mysql_options(connection_, MYSQL_OPT_NONBLOCK, nullptr);
  mysql_options(connection_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options(connection_, MYSQL_OPT_LOCAL_INFILE, &local_infile);
  mysql_options(connection_, MYSQL_OPT_RECONNECT, &no);
  mysql_optionsv(connection_, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", server.application.c_str());
  if (server.user.empty() || server.password.empty() || (server.host.empty() && server.socket.empty()))
    mysql_options(connection_, MYSQL_READ_DEFAULT_GROUP, "client");
  if (server.tls != Tls::disabled && (server.tls != Tls::preferred || !server.ssl_cert.empty() || server.socket.empty()))
    mysql_ssl_set(connection_, or_null(server.ssl_key), or_null(server.ssl_cert), or_null(server.ssl_ca), nullptr, nullptr);
  const bool must = server.tls == Tls::required || server.tls == Tls::verified;
  mysql_options(connection_, MYSQL_OPT_SSL_ENFORCE, must ? &yes : &no);
  mysql_options(connection_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, server.tls == Tls::verified ? &yes : &no);

  // With verification the library insists on TLS by itself; without it, the server must be known to offer it.
  if (server.tls == Tls::required && !offers_tls(server, deadline))
    throw Failure(Cause::rejected,
                  fmt::format("MySQL: TLS was asked for (ssl-mode=REQUIRED), and {} does not offer it; nothing was sent",
                              server.target));

  MYSQL* connected = nullptr;
  bool inherited = true;
  const auto keep_from_children = [&] {
    const int socket = mysql_get_socket(connection_);
    if (!inherited || socket < 0) return;
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    inherited = false;
  };
  int status = mysql_real_connect_start(&connected, connection_, or_null(server.host), or_null(server.user),
                                        or_null(server.password), or_null(server.database), server.port,
                                        or_null(server.socket), CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS);
  try {
    finish(status, deadline, [&](int happened) {
      keep_from_children();
      return mysql_real_connect_cont(&connected, connection_, happened);
    });
  } catch (const Failure&) {
    throw Failure(Cause::refused, fmt::format("MySQL: no connection to {} in time", server.target));
  }
  keep_from_children();
  if (connected == nullptr) {
    const auto number = mysql_errno(connection_);
    const std::string text = mysql_error(connection_);
    if (must && (number == 2026 || text.find("SSL") != std::string::npos || text.find("TLS") != std::string::npos))
      throw Failure(Cause::rejected,
                    fmt::format("MySQL: TLS was asked for (ssl-mode), and {} does not offer it as asked: {}; nothing was "
                                "sent in the clear",
                                server.target, text),
                    std::to_string(number));
    auto failure = failure_of(number, fmt::format("cannot connect to {}: {}", server.target, text), user_, false);
    // Whatever breaks while connecting was never sent a statement.
    throw failure.cause() == Cause::disconnected ? Failure(Cause::refused, failure.what(), failure.code()) : failure;
  }
  if (must && mysql_get_ssl_cipher(connection_) == nullptr)
    throw Failure(Cause::rejected, fmt::format("MySQL: the connection to {} is not encrypted although TLS was asked for",
                                               server.target));
  mariadb_ = mariadb_connection(connection_) != 0;
  const auto version = mysql_get_server_version(connection_);
  if (version < (mariadb_ ? oldest_mariadb : oldest_mysql))
    throw Failure(Cause::rejected, fmt::format("{} is too old: MariaDB 10.6 and MySQL 8.0.1 are the oldest supported",
                                               this->server()));
}

void ServerConnection::make_settings(Deadline deadline) {
  // A row that is locked elsewhere is an answer, not a reason to wait: MariaDB says so at once, MySQL after its least.
  query(fmt::format("SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO', autocommit = 1, "
                    "innodb_lock_wait_timeout = {}; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                    mariadb_ ? 0 : 1),
        deadline);
}

std::vector<std::string> ServerConnection::weaknesses(Deadline deadline) {
  query("SELECT @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite, @@log_bin, @@sync_binlog, @@binlog_format, "
        "@@innodb_rollback_on_timeout",
        deadline);
  const auto on = [&](std::size_t column) {
    if (answer_.is_null(0, column)) return false;
    const auto read_text = [&] { return answer_.text(0, column) == "ON" || answer_.text(0, column) == "1"; };
    try {
      return answer_.integer(0, column) != 0;
    } catch (const std::bad_variant_access&) {
      return read_text();
    }
  };
  if (on(2) && answer_.text(0, 4) == "STATEMENT")
    throw Failure(Cause::rejected,
                  "MySQL: binlog_format=STATEMENT cannot replicate what a lock engine writes; set binlog_format=ROW (or MIXED)");
  std::vector<std::string> found;
  if (const auto flush = answer_.integer(0, 0); flush != 1)
    found.push_back(fmt::format("innodb_flush_log_at_trx_commit={}: a grant acknowledged before a crash can be forgotten, and "
                                "granted a second time",
                                flush));
  if (!on(1)) found.emplace_back("innodb_doublewrite is off: a crash of the machine can damage the lock table");
  if (on(2) && answer_.integer(0, 3) != 1)
    found.emplace_back("sync_binlog is not 1: after a crash of the machine a replica may have other grants than its source");
  return found;
}

std::string ServerConnection::server() const {
  const std::string text = mysql_get_server_info(connection_);
  return fmt::format("{} {}", mariadb_ ? "MariaDB" : "MySQL", text.substr(0, text.find('-')));
}

}  // namespace dlock::dialects::DLOCK_DIALECT

// This file knows how a connection to MySQL or MariaDB is opened, set up and looked over.
#include "connection.hpp"

#include "faults.hpp"
#include "greeting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr unsigned long oldest_mysql = 80001, oldest_mariadb = 100600;

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

bool insists_on_tls(const Server& server) { return server.tls == Tls::required || server.tls == Tls::verified; }

// Connector/C reads the option files when it connects, over what was set before, so that a line in one of them could
// switch off what the URL asks for. One attempt that leads nowhere (there is no socket in that place, nobody listens on
// that port, and nothing of value is shown) makes it read them now: what is set after it wins.
void read_option_files(MYSQL* connection) {
  mysql_options(connection, MYSQL_READ_DEFAULT_GROUP, "client");
  mysql_real_connect(connection, "localhost", "nobody", "", nullptr, 1, "/dev/null", CLIENT_REMEMBER_OPTIONS);
}

bool is_connected(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return socket >= 0 && ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

}  // namespace

ServerConnection::ServerConnection(const Server& server, bool prepared_statements, Deadline deadline)
    : prepare_(prepared_statements), user_(server.user) {
  static std::once_flag once;
  std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
  connection_ = mysql_init(nullptr);
  if (connection_ == nullptr) throw Failure(Cause::refused, "MySQL: out of memory");
  try {
    open(server, deadline);
    if (prepare_) make_settings(deadline);
    else check_settings();
  } catch (...) {
    close();
    throw;
  }
}

void ServerConnection::choose_options(const Server& server) {
  const my_bool yes = 1, no = 0;
  const unsigned local_infile = 0;
  mysql_options(connection_, MYSQL_OPT_NONBLOCK, nullptr);
  if (server.user.empty() || server.password.empty() || (server.host.empty() && server.socket.empty()))
    read_option_files(connection_);
  mysql_options(connection_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options(connection_, MYSQL_OPT_LOCAL_INFILE, &local_infile);
  mysql_options(connection_, MYSQL_OPT_RECONNECT, &no);
  mysql_optionsv(connection_, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", server.application.c_str());
  // "localhost" alone means the usual socket; with a port, or with TLS, it means the network.
  const bool network = !server.host.empty() && (server.port != 0 || insists_on_tls(server));
  const unsigned tcp = MYSQL_PROTOCOL_TCP, unix_socket = MYSQL_PROTOCOL_SOCKET;
  if (!server.socket.empty()) mysql_options(connection_, MYSQL_OPT_PROTOCOL, &unix_socket);
  else if (network) mysql_options(connection_, MYSQL_OPT_PROTOCOL, &tcp);
  if (!server.ssl_ca.empty()) mysql_options(connection_, MYSQL_OPT_SSL_CA, server.ssl_ca.c_str());
  if (!server.ssl_cert.empty()) mysql_options(connection_, MYSQL_OPT_SSL_CERT, server.ssl_cert.c_str());
  if (!server.ssl_key.empty()) mysql_options(connection_, MYSQL_OPT_SSL_KEY, server.ssl_key.c_str());
  // To Connector/C 3.3 "enforce" means no more than "where it is offered".
  const bool wanted = insists_on_tls(server) || (server.tls == Tls::preferred && server.socket.empty());
  mysql_options(connection_, MYSQL_OPT_SSL_ENFORCE, wanted ? &yes : &no);
  mysql_options(connection_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, server.tls == Tls::verified ? &yes : &no);
}

// Before the client library reads the greeting, which it would answer with the account and a proof of its password.
void ServerConnection::insist_on_tls(const Server& server, Deadline deadline) {
  switch (peek_greeting(mysql_get_socket(connection_), deadline)) {
    case Greeting::offers_tls:
    case Greeting::refusal: return;
    case Greeting::without_tls:
      throw Failure(Cause::rejected,
                    fmt::format("MySQL: TLS was asked for (ssl-mode), and {} does not offer it; nothing was sent",
                                server.target));
    case Greeting::incomplete:
      throw Failure(Cause::refused, fmt::format("MySQL: no greeting from {} in time", server.target));
  }
}

void ServerConnection::open(const Server& server, Deadline deadline) {
  choose_options(server);
  const bool must = insists_on_tls(server);
  int greeted = -1, kept = -1;  // sockets: the library tries one address of a host after the other
  const auto keep_from_children = [&] {
    const int socket = mysql_get_socket(connection_);
    if (socket < 0 || socket == kept) return;
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    kept = socket;
  };
  MYSQL* connected = nullptr;
  const int status = mysql_real_connect_start(&connected, connection_, or_null(server.host), or_null(server.user),
                                              or_null(server.password), or_null(server.database), server.port,
                                              or_null(server.socket), CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS);
  keep_from_children();
  try {
    finish(status, deadline, false, [&](int happened) {
      keep_from_children();
      const int socket = mysql_get_socket(connection_);
      if (must && server.socket.empty() && socket != greeted && is_connected(socket)) {
        usable_ = false;  // what is thrown from here leaves a call of the library half done
        insist_on_tls(server, deadline);
        usable_ = true;
        greeted = socket;
      }
      return mysql_real_connect_cont(&connected, connection_, happened);
    });
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::timed_out) throw;
    throw Failure(Cause::refused, fmt::format("MySQL: no connection to {} in time", server.target));
  }
  keep_from_children();
  if (connected == nullptr) {
    const auto number = mysql_errno(connection_);
    auto failure = failure_of(number, fmt::format("cannot connect to {}: {}", server.target, mysql_error(connection_)),
                              user_, false);
    // Whatever breaks while connecting was never sent a statement.
    if (failure.cause() == Cause::disconnected)
      throw Failure(must && number == tls_failed ? Cause::rejected : Cause::refused, failure.what(), failure.code());
    throw Failure(std::move(failure));
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

// In one round trip.
//  - Lists of assignments are read from left to right (no SIMULTANEOUS_ASSIGNMENT), and nothing is cut to fit.
//  - A row that is locked elsewhere is an answer, not a reason to wait: MariaDB says so at once, MySQL after its least.
void ServerConnection::make_settings(Deadline deadline) {
  try {
    query(fmt::format("SET NAMES utf8mb4; SET SESSION sql_mode = '{}', autocommit = 1, sql_safe_updates = 0, "
                      "innodb_lock_wait_timeout = {}; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; "
                      "SELECT @@max_allowed_packet",
                      sql_mode, mariadb_ ? 0 : 1),
          deadline);
    largest_packet_ = static_cast<std::size_t>(answer_.integer(0, 0));
  } catch (const Failure& failure) {
    // Nothing that was asked for has been sent, whatever became of the settings.
    const bool passes = failure.cause() == Cause::disconnected || failure.cause() == Cause::timed_out;
    throw Failure(passes ? Cause::refused : failure.cause(),
                  fmt::format("{} (to the session's settings)", failure.what()), failure.code());
  }
}

// What cannot be brought along with each statement must be right already.
void ServerConnection::check_settings() {
  unsigned status = 0;
  mariadb_get_infov(connection_, MARIADB_CONNECTION_SERVER_STATUS, &status);
  if ((status & SERVER_STATUS_AUTOCOMMIT) == 0)
    throw Failure(Cause::rejected, "MySQL: autocommit is off on this server, so that nothing would ever be granted; without "
                                   "prepared statements no session setting is made: set autocommit=1 there");
}

void ServerConnection::close() noexcept {
  // A server that does not answer must not hold up the farewell.
  if (const int socket = mysql_get_socket(connection_); !usable_ && socket >= 0) ::shutdown(socket, SHUT_RDWR);
  mysql_close(connection_);
  for (auto& entry : prepared_) mysql_stmt_close(entry.prepared.handle);
}

std::vector<std::string> ServerConnection::weaknesses(Deadline deadline) {
  // As text, whatever type a server gives them.
  query("SELECT CONCAT(@@innodb_flush_log_at_trx_commit), CONCAT(@@innodb_doublewrite), CONCAT(@@log_bin), "
        "CONCAT(@@sync_binlog), CONCAT(@@binlog_format)",
        deadline);
  const auto off = [&](std::size_t column) { return answer_.text(0, column) == "0" || answer_.text(0, column) == "OFF"; };
  const bool binlog = !off(2);
  if (binlog && answer_.text(0, 4) == "STATEMENT")
    throw Failure(Cause::rejected,
                  "MySQL: binlog_format=STATEMENT cannot replicate what a lock engine writes; set binlog_format=ROW (or MIXED)");
  std::vector<std::string> found;
  if (answer_.text(0, 0) != "1")
    found.push_back(fmt::format("innodb_flush_log_at_trx_commit={}: a grant acknowledged before a crash can be forgotten, and "
                                "granted a second time",
                                answer_.text(0, 0)));
  if (off(1)) found.emplace_back("innodb_doublewrite is off: a crash of the machine can damage the lock table");
  if (binlog && answer_.text(0, 3) != "1")
    found.emplace_back("sync_binlog is not 1: after a crash of the machine a replica may have other grants than its source");
  return found;
}

std::string ServerConnection::server() const {
  const std::string text = mysql_get_server_info(connection_);
  return fmt::format("{} {}", mariadb_ ? "MariaDB" : "MySQL", text.substr(0, text.find('-')));
}

}  // namespace dlock::dialects::DLOCK_DIALECT

// How a connection to MySQL or MariaDB is opened: which address is tried, for how long, when TLS is used, the oldest
// server; which settings its session is given; whether it is of a cluster; and what of its set-up can forget a grant.
#include "connection.hpp"

#include "broken_pipe.hpp"
#include "dialects/readiness.hpp"
#include "faults.hpp"
#include "greeting.hpp"
#include "handshake.hpp"
#include "types/mutant.hpp"
#include "types/process.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <utility>

namespace dlock::dialects::mysql {
namespace {

constexpr unsigned long oldest_mysql = 80001, oldest_mariadb = 100600;

// What a server has to tell of itself.
constexpr std::string_view variables =
    "SHOW VARIABLES WHERE Variable_name IN ('max_allowed_packet', 'wsrep_on', 'group_replication_group_name')";

// How texts are written and compared, and the beginning of the other settings.
constexpr std::string_view texts =
    "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci; SET SESSION /*M!110201 character_set_collations = "
    "'utf8mb4=utf8mb4_general_ci', */";

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

bool insists_on_tls(const Server& server) { return server.tls == Tls::required || server.tls == Tls::verified; }

// "localhost" alone means the usual socket; with a port, or with TLS, it means the network.
bool by_network(const Server& server) { return !server.host.empty() && (server.port != 0 || insists_on_tls(server)); }

// Connector/C reads the option files when it connects, over what was set before, so that a line in one of them could
// switch off what the URL asks for. One attempt that leads nowhere (there is no socket in that place, nobody listens on
// that port, and nothing of value is shown) makes it read them now: what is set after it wins.
void read_option_files(MYSQL* connection) {
  const ForkLock lock;
  mysql_options(connection, MYSQL_READ_DEFAULT_GROUP, "client");
  mysql_real_connect(connection, "localhost", "nobody", "", nullptr, 1, "/dev/null", CLIENT_REMEMBER_OPTIONS);
}

}  // namespace

void init_library() {
  static std::once_flag once;
  const ForkLock lock;
  std::call_once(once, [] {
    struct sigaction before {};
    ::sigaction(SIGPIPE, nullptr, &before);
    mysql_library_init(0, nullptr, nullptr);
    if (!planted("broken_pipe_ignored")) ::sigaction(SIGPIPE, &before, nullptr);
  });
}

ServerConnection::ServerConnection(const Server& server, const SessionUse& use, Deadline deadline)
    : prepare_(use.prepared_statements), server_(server) {
  init_library();
  const BrokenPipeGuard guard;
  connection_ = mysql_init(nullptr);
  if (connection_ == nullptr) throw Failure(Cause::refused, "MySQL: out of memory");
  try {
    open(server, deadline);
    if (prepare_) make_settings(deadline);
    else if (use.waits_for_locks && !planted("migrators_defaults")) make_settings_to_wait(deadline);
    else check_settings(deadline);
  } catch (...) {
    close();
    throw;
  }
}

void ServerConnection::choose_options(const Server& server) {
  const my_bool yes = 1, no = 0;
  const unsigned local_infile = 0;
  mysql_options(connection_, MYSQL_OPT_NONBLOCK, nullptr);
  take_waits_over(connection_);
  if (server.user.empty() || server.password.empty() || (server.host.empty() && server.socket.empty()))
    read_option_files(connection_);
  mysql_options(connection_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options(connection_, MYSQL_OPT_LOCAL_INFILE, &local_infile);
  mysql_options(connection_, MYSQL_OPT_RECONNECT, &no);
  mysql_optionsv(connection_, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", server.application.c_str());
  const unsigned tcp = MYSQL_PROTOCOL_TCP, unix_socket = MYSQL_PROTOCOL_SOCKET;
  if (!server.socket.empty()) mysql_options(connection_, MYSQL_OPT_PROTOCOL, &unix_socket);
  else if (by_network(server)) mysql_options(connection_, MYSQL_OPT_PROTOCOL, &tcp);
  if (server.tls == Tls::disabled) return leave_tls_out(connection_);
  if (!server.ssl_ca.empty()) mysql_options(connection_, MYSQL_OPT_SSL_CA, server.ssl_ca.c_str());
  if (!server.ssl_cert.empty()) mysql_options(connection_, MYSQL_OPT_SSL_CERT, server.ssl_cert.c_str());
  if (!server.ssl_key.empty()) mysql_options(connection_, MYSQL_OPT_SSL_KEY, server.ssl_key.c_str());
  // To Connector/C 3.3 "enforce" means no more than "where it is offered".
  const bool wanted = (insists_on_tls(server) || server.socket.empty()) && !planted("tls_not_preferred");
  mysql_options(connection_, MYSQL_OPT_SSL_ENFORCE, wanted ? &yes : &no);
  const bool verified = server.tls == Tls::verified && !planted("tls_not_verified");
  mysql_options(connection_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, verified ? &yes : &no);
}

// Before the client library reads the greeting, which it would answer with the account and a proof of its password, or
// with the password itself.
void ServerConnection::heed_greeting(const Server& server, const Deadline& deadline) {
  const auto greeting = peek_greeting(mysql_get_socket(connection_), deadline);
  if (greeting == Greeting::refusal || (greeting == Greeting::offers_tls && server.tls != Tls::disabled)) return;
  if (greeting == Greeting::incomplete && (insists_on_tls(server) || deadline.passed()))
    throw Failure(Cause::refused, fmt::format("MySQL: no greeting from {} in time", server.target));
  if (greeting == Greeting::without_tls && insists_on_tls(server) && !planted("tls_not_insisted"))
    throw Failure(
        Cause::rejected,
        fmt::format("MySQL: TLS was asked for (ssl-mode), and {} does not offer it; nothing was sent", server.target));
  leave_tls_out(connection_);
  keep_password_hidden(connection_);
}

// What the URL or an option file calls the server.
std::string ServerConnection::host_name(const Server& server) const {
  return server.host.empty() && connection_->options.host != nullptr ? connection_->options.host : server.host;
}

// The addresses of the host, each to be tried by itself, as far as they are to be looked up here: the client library
// would do so by itself, and block.
std::vector<std::string> ServerConnection::hosts(const Server& server, const Deadline& deadline) const {
  const auto host = host_name(server);
  const bool socket = !server.socket.empty() || host.empty() || (host == "localhost" && !by_network(server));
  if (socket || is_address(host)) return {server.host};
  try {
    return server.resolver->addresses_of(host, deadline);
  } catch (const Failure& failure) {
    throw Failure(failure.cause(), fmt::format("MySQL: no connection to {}: {}", server.target, failure.what()));
  }
}

void ServerConnection::open(const Server& server, Deadline deadline) {
  choose_options(server);
  const auto all = hosts(server, deadline);
  for (std::size_t i = 0;; ++i) {
    try {
      return open_at(server, all[i], deadline.share(all.size() - i));
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::refused || i + 1 == all.size()) throw;
    }
    // What an attempt leaves behind is of no use to the next.
    close();
    usable_ = true;
    connection_ = mysql_init(nullptr);
    if (connection_ == nullptr) throw Failure(Cause::refused, "MySQL: out of memory");
    choose_options(server);
  }
}

void ServerConnection::open_at(const Server& server, const std::string& host, const Deadline& deadline) {
  const bool must = insists_on_tls(server);
  // The library looks here for where to connect to, and once it is connected for the name that a certificate must have.
  const auto name = host_name(server);
  std::string place(std::max(host.size(), name.size()), '\0');
  host.copy(place.data(), host.size());
  const TimeForLibrary time(deadline);
  bool greeted = false;
  MYSQL* connected = nullptr;
  // What the library opens is not for programs that this process starts: a fork() waits until that is said.
  const auto proceed = [&](int happened) {
    const ForkLock lock;
    const int next = mysql_real_connect_cont(&connected, connection_, happened);
    tame(mysql_get_socket(connection_));
    return next;
  };
  const auto heed = [&](int happened) {
    SocketAside aside(mysql_get_socket(connection_));
    if (!host.empty()) name.copy(place.data(), place.size());
    if (!host.empty()) std::fill(place.begin() + static_cast<std::ptrdiff_t>(name.size()), place.end(), '\0');
    const int status = proceed(happened);
    if (status == 0) return status;  // it has given up, and closed its socket
    aside.put_back();
    heed_greeting(server, deadline);
    greeted = true;
    return status;
  };
  int status = 0;
  {
    const ForkLock lock;
    status = mysql_real_connect_start(&connected, connection_, host.empty() ? nullptr : place.c_str(),
                                      or_null(server.user), or_null(server.password), or_null(server.database),
                                      server.port, or_null(server.socket), CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS);
    tame(mysql_get_socket(connection_));
  }
  try {
    finish(status, deadline, false, [&](int happened) {
      if (greeted || !is_connected_by_network(mysql_get_socket(connection_))) return proceed(happened);
      usable_ = false;  // what is thrown from here leaves a call of the library half done
      const int next = heed(happened);
      usable_ = true;
      return next;
    });
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::timed_out) throw;
    throw Failure(Cause::refused, fmt::format("MySQL: no connection to {} in time", server.target));
  }
  tame(mysql_get_socket(connection_));
  if (connected == nullptr && deadline.passed())
    throw Failure(Cause::refused, fmt::format("MySQL: no connection to {} in time", server.target));
  if (connected == nullptr) {
    const auto number = mysql_errno(connection_);
    auto failure = failure_of(number, fmt::format("cannot connect to {}: {}", server.target, mysql_error(connection_)),
                              server_.user, false);
    // Whatever breaks while connecting was never sent a statement.
    if (failure.cause() == Cause::disconnected)
      throw Failure(must && number == tls_failed ? Cause::rejected : Cause::refused, failure.what(), failure.code());
    throw Failure(std::move(failure));
  }
  if (must && mysql_get_ssl_cipher(connection_) == nullptr && !planted("tls_not_insisted"))
    throw Failure(
        Cause::rejected,
        fmt::format("MySQL: the connection to {} is not encrypted although TLS was asked for", server.target));
  encrypted_ = mysql_get_ssl_cipher(connection_) != nullptr;
  mariadb_ = mariadb_connection(connection_) != 0;
  const auto version = mysql_get_server_version(connection_);
  if (version < (mariadb_ ? oldest_mariadb : oldest_mysql))
    throw Failure(Cause::rejected,
                  fmt::format("{} is too old: MariaDB 10.6 and MySQL 8.0.1 are the oldest supported", this->server()));
}

// In one round trip.
//  - The collation is the one that the client library asks for when it connects, so that a text made here is no other
//    than one made by a connection without settings; a server's own default for the character set may be another one,
//    and MariaDB 11.2 has defaults for a session, too: texts of two collations are not compared.
//  - Lists of assignments are read from left to right (no SIMULTANEOUS_ASSIGNMENT), and nothing is cut to fit.
//  - A row, or a table, that is locked elsewhere is an answer, not a reason to wait: MariaDB says so at once, MySQL
//    after its least.
//  - How long a statement may take is said by who asks, and not by the server.
void ServerConnection::make_settings(Deadline deadline) {
  make_settings(
      fmt::format("{4} sql_mode = '{2}', autocommit = 1, sql_safe_updates = 0, "
                  "innodb_lock_wait_timeout = {0}, lock_wait_timeout = {0}, {3} = 0; "
                  "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; {1}",
                  mariadb_ ? 0 : 1, variables, sql_mode, mariadb_ ? "max_statement_time" : "max_execution_time", texts),
      deadline);
}

// A trigger that is made keeps the sql_mode for ever; and what is read of the catalog is not to be cut.
void ServerConnection::make_settings_to_wait(Deadline deadline) {
  make_settings(
      fmt::format("{} sql_mode = '{}', autocommit = 1, completion_type = 0, sql_safe_updates = 0, "
                  "sql_big_selects = 1, sql_select_limit = 18446744073709551615, group_concat_max_len = 1048576; "
                  "SET SESSION TRANSACTION READ WRITE; {}",
                  texts, sql_mode, variables),
      deadline);
}

void ServerConnection::make_settings(const std::string& sql, Deadline deadline) {
  try {
    query(sql, deadline);
    note_variables();
  } catch (const Failure& failure) {
    // Nothing that was asked for has been sent, whatever became of the settings.
    const bool passes = failure.cause() == Cause::disconnected || failure.cause() == Cause::timed_out;
    throw Failure(passes ? Cause::refused : failure.cause(),
                  fmt::format("{} (to the session's settings)", failure.what()), failure.code());
  }
}

void ServerConnection::note_variables() {
  for (std::size_t row = 0; row < answer_.rows(); ++row) {
    const auto &name = answer_.text(row, 0), &value = answer_.text(row, 1);
    if (name == "max_allowed_packet") largest_packet_ = std::stoul(value);
    if (name == "wsrep_on" && value == "ON") cluster_ = Cluster::galera;
    if (name == "group_replication_group_name" && !value.empty()) cluster_ = Cluster::group;
  }
}

// What cannot be brought along with each statement must be right already.
void ServerConnection::check_settings(Deadline deadline) {
  try {
    query(std::string(variables), deadline);
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::disconnected && failure.cause() != Cause::timed_out) throw;
    throw Failure(Cause::refused, failure.what(), failure.code());
  }
  // As the answer to a statement says it: what is run at the login (init_connect) comes after the login's own.
  unsigned status = 0;
  mariadb_get_infov(connection_, MARIADB_CONNECTION_SERVER_STATUS, &status);
  if ((status & SERVER_STATUS_AUTOCOMMIT) == 0)
    throw Failure(
        Cause::rejected,
        "MySQL: autocommit is off on this server, so that nothing would ever be committed, and who asks without "
        "prepared statements makes no session setting: set autocommit=1 there");
  note_variables();
}

void ServerConnection::close() noexcept {
  if (connection_ == nullptr) return;
  const BrokenPipeGuard guard(encrypted_);
  // A server that does not answer must not hold up the farewell.
  const int socket = mysql_get_socket(connection_);
  if ((!usable_ || unanswered_) && socket >= 0) ::shutdown(socket, SHUT_RDWR);
  const ForkLock fork_lock;
  mysql_close(std::exchange(connection_, nullptr));
  for (auto& entry : prepared_) mysql_stmt_close(entry.prepared.handle);
}

bool ServerConnection::drain(const Deadline& deadline) noexcept {
  usable_ = false;
  const int socket = mysql_get_socket(connection_);
  return socket < 0 || dialects::drain(socket, deadline);
}

std::vector<std::string> ServerConnection::weaknesses(Deadline deadline) {
  check_sendable(deadline);
  const BrokenPipeGuard guard(encrypted_);
  // As text, whatever type a server gives them.
  query(
      "SELECT CONCAT(@@innodb_flush_log_at_trx_commit), CONCAT(@@innodb_doublewrite), CONCAT(@@log_bin), "
      "CONCAT(@@sync_binlog), CONCAT(@@binlog_format)",
      deadline);
  const auto off = [&](std::size_t column) {
    return answer_.text(0, column) == "0" || answer_.text(0, column) == "OFF";
  };
  const bool binlog = !off(2);
  if (binlog && answer_.text(0, 4) == "STATEMENT" && !planted("binlog_statement_taken"))
    throw Failure(
        Cause::rejected,
        "MySQL: binlog_format=STATEMENT cannot replicate what a lock engine writes; set binlog_format=ROW (or MIXED)");
  std::vector<std::string> found;
  if (answer_.text(0, 0) != "1")
    found.push_back(
        fmt::format("innodb_flush_log_at_trx_commit={}: a grant acknowledged before a crash can be forgotten, and "
                    "granted a second time",
                    answer_.text(0, 0)));
  if (off(1) && !planted("doublewrite_untold"))
    found.emplace_back("innodb_doublewrite is off: a crash of the machine can damage the lock table");
  if (binlog && answer_.text(0, 3) != "1" && !planted("sync_binlog_untold"))
    found.emplace_back(
        "sync_binlog is not 1: after a crash of the machine a replica may have other grants than its source");
  if (binlog && !in_cluster() && loses_in_failover(deadline))
    found.push_back(
        fmt::format("{} is not on, or no replica acknowledges commits, and a replica follows: a failover to it "
                    "forgets the last grants, and they are granted again with the same tokens",
                    mariadb_ ? "rpl_semi_sync_master_enabled" : "rpl_semi_sync_source_enabled"));
  return found;
}

// Whether replicas follow, and commits wait for none of them. MySQL shows those that follow only to who may see the
// sessions of others (PROCESS); MariaDB counts them for everybody.
bool ServerConnection::loses_in_failover(Deadline deadline) {
  query(
      "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Rpl_semi_sync_master_status', "
      "'Rpl_semi_sync_master_clients', 'Rpl_semi_sync_source_status', 'Rpl_semi_sync_source_clients')",
      deadline);
  bool follow = false, waits = false, acknowledge = false;
  for (std::size_t row = 0; row < answer_.rows(); ++row) {
    const auto &name = answer_.text(row, 0), &value = answer_.text(row, 1);
    if (name == "Slaves_connected") follow = value != "0";
    else if (name.ends_with("_status")) waits = waits || value == "ON";
    else acknowledge = acknowledge || value != "0";
  }
  if ((waits && acknowledge) || planted("replicas_untold")) return false;
  if (mariadb_) return follow;
  try {
    query("SELECT COUNT(*) FROM information_schema.processlist WHERE COMMAND LIKE 'Binlog Dump%'", deadline);
  } catch (const Failure&) {
    if (!usable_) throw;
    return false;  // a server that does not show its sessions, which is no reason not to open
  }
  return answer_.integer(0, 0) > 0;
}

std::string ServerConnection::server() const {
  const std::string text = mysql_get_server_info(connection_);
  return fmt::format("{} {}", mariadb_ ? "MariaDB" : "MySQL", text.substr(0, text.find('-')));
}

}  // namespace dlock::dialects::mysql

// The ledger's SQL, and how a URL is said to SOCI.
#include "ledger.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace demo {
namespace {

std::string between(std::string_view& text, std::string_view end) {
  const auto at = text.find(end);
  const auto part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
  return std::string(part);
}

std::string in_quotes(const std::string& value) {
  std::string result = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string unescaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

// user:password@host:port/database?socket=path as key=value pairs.
std::string key_value_pairs(std::string_view rest) {
  std::string account;
  if (rest.find('@') != std::string_view::npos) account = between(rest, "@");
  std::string_view account_rest = account;
  const auto user = between(account_rest, ":");
  std::string host_port = between(rest, "/");
  std::string_view host_rest = host_port;
  const auto host = between(host_rest, ":");
  const auto database = between(rest, "?");
  std::string result = fmt::format("db={} charset=utf8mb4", in_quotes(unescaped(database)));
  if (!host.empty()) result += fmt::format(" host={}", in_quotes(host));
  if (!host_rest.empty()) result += fmt::format(" port={}", host_rest);
  if (!user.empty()) result += fmt::format(" user={}", in_quotes(unescaped(user)));
  if (!account_rest.empty()) result += fmt::format(" password={}", in_quotes(unescaped(std::string(account_rest))));
  while (!rest.empty()) {
    auto option = between(rest, "&");
    std::string_view value = option;
    if (between(value, "=") == "socket")
      result += fmt::format(" unix_socket={}", in_quotes(unescaped(std::string(value))));
  }
  return result;
}

// The SOCI backend and its connect string.
std::pair<std::string, std::string> said_to_soci(std::string_view url) {
  const auto whole = std::string(url);
  const auto scheme = between(url, ":");
  if (scheme == "sqlite") {
    if (url.substr(0, 2) == "//") url.remove_prefix(2);
    return {"sqlite3", fmt::format("db=\"{}\" timeout=30", unescaped(between(url, "?")))};
  }
  if (url.substr(0, 2) == "//") url.remove_prefix(2);
  if (scheme == "mysql" || scheme == "mariadb") return {"mysql", key_value_pairs(url)};
  if (scheme == "postgresql" || scheme == "postgres")
    return {"postgresql", whole + (whole.find('?') == std::string::npos ? "?" : "&") + "application_name=dlock-demo"};
  throw std::runtime_error("the demo knows sqlite:, postgresql:// and mysql:// URLs, not \"" + scheme + ":\"");
}

}  // namespace

Ledger::Ledger(std::string_view url) {
  const auto [backend, connect] = said_to_soci(url);
  one_writer_ = backend == "sqlite3";
  if (backend == "postgresql")
    ::setenv("PGOPTIONS", "-c client_min_messages=warning", 0);  // no word about absent tables
  sql_.open(backend, connect);
}

void Ledger::create_afresh() {
  for (const char* statement : {
           "drop table if exists order_task_runs",
           "drop table if exists order_task_refused",
           "drop table if exists order_task_guard",
           // No key on tick: a tick that ran twice must be able to show.
           "create table order_task_runs (tick integer not null, replica varchar(40) not null, token bigint not null)",
           "create table order_task_refused (tick integer not null, replica varchar(40) not null, token bigint not "
           "null)",
           "create table order_task_guard (id integer not null primary key, last_token bigint not null)",
           "insert into order_task_guard (id, last_token) values (1, 0)",
       }) {
    const std::string query = statement;
    sql_ << query;
  }
}

void Ledger::begin() {
  const std::string query = one_writer_ ? "begin immediate" : "begin";
  sql_ << query;
}

long long Ledger::count(const std::string& query) {
  long long result = 0;
  sql_ << query, soci::into(result);
  return result;
}

bool Ledger::has(int tick) {
  return count(fmt::format("select count(*) from order_task_runs where tick = {}", tick)) > 0;
}

bool Ledger::write(int tick, const std::string& replica, dlock::Token token) {
  const auto number = dlock::number(token);
  begin();
  try {
    // The guard row makes the check exact: whoever writes holds it until its transaction ends.
    long long accepted = 0;
    {
      const std::string query =
          fmt::format("update order_task_guard set last_token = {0} where id = 1 and last_token <= {0}", number);
      soci::statement update = (sql_.prepare << query);
      update.execute(true);
      accepted = count(fmt::format("select count(*) from order_task_guard where id = 1 and last_token = {}", number));
    }
    const std::string query =
        fmt::format("insert into {} (tick, replica, token) values ({}, '{}', {})",
                    accepted > 0 ? "order_task_runs" : "order_task_refused", tick, replica, number);
    sql_ << query;
    const std::string commit = "commit";
    sql_ << commit;
    return accepted > 0;
  } catch (...) {
    const std::string rollback = "rollback";
    sql_ << rollback;
    throw;
  }
}

Summary Ledger::summary() {
  Summary result;
  result.ticks = static_cast<int>(count("select count(distinct tick) from order_task_runs"));
  result.runs = static_cast<int>(count("select count(*) from order_task_runs"));
  result.duplicates = result.runs - result.ticks;
  result.refused = static_cast<int>(count("select count(*) from order_task_refused"));
  return result;
}

}  // namespace demo

// Where the URL and the password come from, and what may be said about them.
#include "tools/shared/connection.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <ios>
#include <iostream>
#include <iterator>

namespace dlock::tools {
namespace {

constexpr std::size_t longest_password = 4096;

// One line: its end of line is not part of the password, everything else is.
std::string checked_password(std::string password, std::string_view source) {
  if (password.ends_with('\n')) password.pop_back();
  if (password.ends_with('\r')) password.pop_back();
  if (password.empty()) throw UsageError(fmt::format("the password from {} is empty", source));
  if (password.size() > longest_password)
    throw UsageError(fmt::format("the password from {} has more than {} bytes", source, longest_password));
  if (password.find('\n') != std::string::npos || password.find('\0') != std::string::npos)
    throw UsageError(fmt::format("the password from {} has more than one line, or a NUL byte", source));
  return password;
}

std::string from_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("--password-file {} cannot be read: {}", in_quotes(path), why));
  };
  if (!file.is_open()) refuse(std::strerror(errno));
  std::string password;
  try {
    password.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure& failure) { refuse(failure.code().message()); }
  if (file.bad()) refuse(std::strerror(errno));
  return checked_password(std::move(password), "--password-file " + in_quotes(path));
}

// Byte by byte, because what follows the line is the input of the command that is run.
std::string from_stdin() {
  std::string password;
  for (char c = 0; password.size() <= longest_password && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) password += c;
  return checked_password(std::move(password), "--password-stdin");
}

// Turns the echo of a terminal off as long as it lives; Ctrl-C is read as a character meanwhile, so that no signal can
// leave the terminal silent.
class Silence {
 public:
  Silence() : on_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!on_) return;
    auto silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ISIG);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
  }
  ~Silence() {
    if (on_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  termios before_{};
  bool on_;
};

std::string from_prompt() {
  if (::isatty(STDIN_FILENO) == 0)
    throw UsageError("-W asks for the password on a terminal, and standard input is none; use --password-stdin");
  std::string password;
  {
    const Silence silence;
    std::cerr << "Password: " << std::flush;
    std::getline(std::cin, password);
    std::cerr << '\n';
  }
  if (password.find('\x03') != std::string::npos) {  // Ctrl-C
    std::raise(SIGINT);
    throw UsageError("the prompt for the password was interrupted");
  }
  return checked_password(std::move(password), "the prompt");
}

bool unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

std::string percent_encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (unreserved(c)) result += c;
    else result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string from_variable(const char* name, std::string_view flag) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw UsageError(fmt::format("{} {}: there is no environment variable of this name", flag, in_quotes(name)));
  if (*value == '\0')
    throw UsageError(fmt::format("the environment variable {} is empty; it must hold a database URL", name));
  return value;
}

void check_identifier(std::string_view flag, const std::string& text) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto later = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  if (text.empty() || text.size() > 48 || !letter(text.front()) || !std::all_of(text.begin(), text.end(), later))
    throw UsageError(fmt::format("{} {} is not of the form [A-Za-z_][A-Za-z0-9_]{{0,47}}", flag, in_quotes(text)));
}

}  // namespace

std::string with_password(const std::string& url, const std::string& password) {
  const auto slashes = url.find("://");
  if (slashes == std::string::npos)
    throw UsageError("a password was given, but the database URL has no host it could be for");
  const auto begin = slashes + 3;
  const auto end = std::min(url.find_first_of("/?", begin), url.size());
  const auto at = url.substr(0, end).rfind('@');
  if (at == std::string::npos || at < begin)
    return url.substr(0, begin) + ":" + percent_encoded(password) + "@" + url.substr(begin);
  if (url.substr(begin, at - begin).find(':') != std::string::npos)
    throw UsageError("a password was given twice: in the database URL and by an option");
  return url.substr(0, at) + ":" + percent_encoded(password) + url.substr(at);
}

void ConnectionOptions::add_to(Command& tool) {
  tool.begin_group("Connection");
  tool.add_option("-u,--url", "URL", url_,
                  "database: scheme://user@host:port/database?option=value, or scheme:PATH; "
                  "prepared=off is for a pooler that is not recognised");
  tool.add_option("-e,--url-env", "NAME", url_env_, "environment variable that holds the URL");
  tool.add_option("--password-file", "FILE", password_file_, "file that holds the password");
  tool.add_flag("--password-stdin", password_stdin_, "read the password from the first line of standard input");
  tool.add_flag("-W", prompt_, "ask for the password on the terminal");
  tool.add_option("--connect-timeout", "D", connect_timeout_, "give up connecting after this long (10s)");
  tool.add_option("--schema", "S", schema_, "schema of the table (the connection's default)");
  tool.add_option("--table", "T", table_, "name of the table (resource_lock)");
  tool.add_option("--history-table", "T", history_table_, "name of the history (<table>_schema_history)");
}

std::string ConnectionOptions::url(std::initializer_list<const char*> variables) const {
  std::string result;
  if (url_) {
    if (url_->empty()) throw UsageError("-u \"\" is empty; it must be a database URL");
    result = *url_;
  } else if (url_env_) {
    result = from_variable(url_env_->c_str(), "-e");
  } else {
    std::string names;
    for (const char* name : variables) {
      if (std::getenv(name) != nullptr) {
        result = from_variable(name, "-e");
        break;
      }
      names += names.empty() ? "" : " or ";
      names += name;
    }
    if (result.empty()) throw UsageError(fmt::format("no database is named; pass -u URL, -e NAME, or set {}", names));
  }
  if (password_file_.has_value() + password_stdin_ + prompt_ > 1)
    throw UsageError("--password-file, --password-stdin and -W exclude each other");
  if (password_file_) return with_password(result, from_file(*password_file_));
  if (password_stdin_) return with_password(result, from_stdin());
  if (prompt_) return with_password(result, from_prompt());
  return result;
}

const std::string& ConnectionOptions::schema() const {
  if (!schema_.empty()) check_identifier("--schema", schema_);
  return schema_;
}

const std::string& ConnectionOptions::table() const {
  check_identifier("--table", table_);
  return table_;
}

const std::string& ConnectionOptions::history_table() const {
  if (!history_table_.empty()) check_identifier("--history-table", history_table_);
  return history_table_;
}

Duration ConnectionOptions::connect_timeout() const {
  return parse_positive_duration("--connect-timeout", connect_timeout_);
}

}  // namespace dlock::tools

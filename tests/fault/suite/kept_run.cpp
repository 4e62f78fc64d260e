// Writes and reads the two files of a kept run: `history`, a line for each event with whose it is in front, and
// `books`.
#include "fault/suite/kept_run.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace dlock::test {
namespace {

namespace files = std::filesystem;

std::ifstream opened(const files::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return file;
}

[[noreturn]] void unreadable(const files::path& path, std::size_t line) {
  throw std::runtime_error(path.string() + ":" + std::to_string(line) + " cannot be read");
}

void write_books(std::ostream& out, const Books& books) {
  for (const auto& [name, token] : books.tokens) out << "token " << name << ' ' << token << '\n';
  for (const auto& account : books.accounts)
    out << "account " << account.id << ' ' << account.opening << ' ' << account.balance << '\n';
  for (const auto& one : books.transfers)
    out << "transfer " << one.id << ' ' << one.name << ' ' << one.seq << ' ' << one.token << ' ' << one.source << ' '
        << one.target << ' ' << one.amount << '\n';
}

bool read_line(const std::string& line, Books& books) {
  std::istringstream fields(line);
  std::string kind;
  fields >> kind;
  if (kind == "token") {
    std::string name;
    long long token = 0;
    if (fields >> name >> token) books.tokens[name] = token;
  } else if (kind == "account") {
    auto& account = books.accounts.emplace_back();
    fields >> account.id >> account.opening >> account.balance;
  } else if (kind == "transfer") {
    auto& one = books.transfers.emplace_back();
    fields >> one.id >> one.name >> one.seq >> one.token >> one.source >> one.target >> one.amount;
  } else {
    return false;
  }
  return !fields.fail();
}

}  // namespace

void keep_run(const std::string& folder, const KeptRun& run) {
  files::create_directories(folder);
  std::ofstream history(files::path(folder) / "history");
  for (const auto& record : run.history) history << (record.who.empty() ? "-" : record.who) << ' ' << record.line();
  std::ofstream books(files::path(folder) / "books");
  write_books(books, run.books);
  if (!history.flush() || !books.flush()) throw std::runtime_error("cannot write to " + folder);
}

KeptRun read_run(const std::string& folder) {
  KeptRun run;
  std::string line;
  const auto history = files::path(folder) / "history", books = files::path(folder) / "books";
  auto events = opened(history);
  for (std::size_t number = 1; std::getline(events, line); ++number) {
    const auto blank = std::min(line.find(' '), line.size());
    auto record = blank < line.size() ? Record::parse(std::string_view(line).substr(blank + 1)) : std::nullopt;
    if (!record) unreadable(history, number);
    record->who = line.substr(0, blank);
    run.history.push_back(std::move(*record));
  }
  auto entries = opened(books);
  for (std::size_t number = 1; std::getline(entries, line); ++number)
    if (!read_line(line, run.books)) unreadable(books, number);
  return run;
}

}  // namespace dlock::test

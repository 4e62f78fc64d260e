// How a session of SOCI becomes what an application hands over.
#include "support/caller.hpp"

#include <dlock/soci.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace dlock::test {
namespace {

std::string field(const soci::row& row, std::size_t i) {
  switch (row.get_properties(i).get_data_type()) {
    case soci::dt_string: return row.get<std::string>(i);
    case soci::dt_integer: return std::to_string(row.get<int>(i));
    case soci::dt_long_long: return std::to_string(row.get<long long>(i));
    case soci::dt_unsigned_long_long: return std::to_string(row.get<unsigned long long>(i));
    case soci::dt_double: return std::to_string(static_cast<long long>(row.get<double>(i)));
    default: throw std::runtime_error("a field of an unexpected type");
  }
}

std::vector<std::optional<std::string>> run_once(soci::session& session, const std::string& sql) {
  soci::row row;
  soci::statement statement(session);
  statement.alloc();
  statement.prepare(sql);
  statement.define_and_bind();
  statement.exchange_for_rowset(soci::into(row));
  const bool found = statement.execute(true);
  std::vector<std::optional<std::string>> fields;
  if (found) {
    for (std::size_t i = 0; i < row.size(); ++i)
      fields.push_back(row.get_indicator(i) == soci::i_null ? std::nullopt : std::optional(field(row, i)));
    while (statement.fetch()) {}
  } else if (row.size() == 0) {
    fields.emplace_back(std::to_string(statement.get_affected_rows()));
  }
  return fields;
}

}  // namespace

Caller::Caller(const TestDatabase& test_database) : Caller(test_database.connect()) {}

Caller::Caller(const ServerTestDatabase& test_database, const Address& door) : Caller(test_database.connect_at(door)) {}

Caller::Caller(std::unique_ptr<soci::session> session) : sql_(std::move(session)) {
  runner_.dialect = opener().name;
  runner_.run = [this](std::string_view sql) { return run_once(*sql_, std::string(sql)); };
}

Caller::~Caller() = default;

// By the name of the database under test, which may be a copy with a name of its own.
TransactionRef Caller::native() { return {opener().name, Adapter<soci::session>::view(*sql_).native()}; }

void Caller::run(const std::string& sql) { *sql_ << sql; }

void Caller::run_anyway(const std::string& sql) {
  try {
    run(sql);
  } catch (const std::exception&) {}
}

std::string Caller::text(const std::string& sql) {
  std::string value;
  soci::indicator indicator = soci::i_null;
  *sql_ << sql, soci::into(value, indicator);
  return indicator == soci::i_ok ? value : std::string{};
}

long long Caller::number(const std::string& sql) {
  long long value = 0;
  soci::indicator indicator = soci::i_null;
  *sql_ << sql, soci::into(value, indicator);
  return indicator == soci::i_ok ? value : 0;
}

Copy::Copy(const std::function<void(const Say&)>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("no fork");
  if (pid_ == 0) {
    ::close(ends[0]);
    int code = 0;
    try {
      work([&](const std::string& line) {
        const auto text = line + '\n';
        if (::write(ends[1], text.data(), text.size()) < 0) ::_exit(4);
      });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "copy: %s\n", error.what());
      code = 3;
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  out_ = ends[0];
}

Copy::~Copy() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  ::close(out_);
}

std::string Copy::line() {
  std::string text;
  for (char c = 0; ::read(out_, &c, 1) == 1 && c != '\n';) text += c;
  return text;
}

void Copy::signal(int number) { ::kill(pid_, number); }

ExitStatus Copy::wait() { return await_end(std::exchange(pid_, -1)); }

}  // namespace dlock::test

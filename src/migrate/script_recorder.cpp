// How a statement with its arguments looks as text.
#include "migrate/script_recorder.hpp"

#include <algorithm>
#include <stdexcept>

namespace dlock::migrate {
namespace {

bool plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '\'' && c != '\\'; });
}

}  // namespace

std::string readable(const dialects::Dialect& dialect, const dialects::Statement& statement,
                     std::span<const Argument> arguments) {
  return with_literals(statement, arguments, [&dialect](std::string& sql, const Argument& argument) {
    const auto* text = std::get_if<std::string_view>(&argument);
    const auto* number = std::get_if<std::int64_t>(&argument);
    if (text != nullptr && plain(*text)) sql.append(1, '\'').append(*text).append(1, '\'');
    else if (number != nullptr && *number >= 0) sql += std::to_string(*number);
    else dialect.append_literal(sql, argument);
  });
}

void ScriptRecorder::comment(std::string_view line) {
  text_ += "\n-- ";
  for (const char c : line) text_ += c == '\n' || c == '\r' ? ' ' : c;
  text_ += '\n';
}

const Answer& ScriptRecorder::run(const dialects::Statement& statement, std::span<const Argument> arguments,
                                  Deadline deadline) {
  script(readable(dialect_, statement, arguments), deadline);
  return succeeded();
}

const Answer& ScriptRecorder::run_rows(const dialects::Statement& statement, std::span<const Argument>, std::size_t,
                                       Deadline) {
  throw std::logic_error("statement " + statement.name + ": statements over rows are not written down");
}

void ScriptRecorder::script(std::string_view sql, Deadline) {
  text_ += sql;
  text_ += sql.ends_with(';') ? "\n" : ";\n";
}

const Answer& ScriptRecorder::succeeded() {
  answer_.reset(1);
  answer_.next() = std::int64_t{1};
  answer_.affected = 1;
  return answer_;
}

}  // namespace dlock::migrate

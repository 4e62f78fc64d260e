// How statements are written down, for people to read and clients to run, instead of being sent.
#pragma once

#include "dialects/dialect.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

// A statement for a person to read: what means the same in every session is quoted as anybody would.
std::string readable(const dialects::Dialect& dialect, const dialects::Statement& statement,
                     std::span<const Argument> arguments);

// Takes the place of a connection where nothing may be written. Every statement succeeds: one row was affected, and the
// answer is 1.
// Threads: one at a time. Fails: nothing.
class ScriptRecorder final : public dialects::Connection {
 public:
  explicit ScriptRecorder(const dialects::Dialect& dialect) : dialect_(dialect) {}

  void comment(std::string_view line);
  // All of it, each statement with its semicolon.
  const std::string& text() const noexcept { return text_; }

  const Answer& run(const dialects::Statement& statement, std::span<const Argument> arguments, Deadline) override;
  const Answer& run_rows(const dialects::Statement& statement, std::span<const Argument> rows, std::size_t columns,
                         Deadline) override;
  void script(std::string_view sql, Deadline) override;
  std::string default_schema(Deadline) override { return {}; }
  std::vector<std::string> weaknesses(Deadline) override { return {}; }
  bool usable() const noexcept override { return true; }
  std::string server() const override { return {}; }

 private:
  const Answer& succeeded();

  const dialects::Dialect& dialect_;
  std::string text_;
  Answer answer_;
};

}  // namespace dlock::migrate

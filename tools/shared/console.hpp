// How a command speaks: results on standard output, everything else on standard error.
#pragma once

#include "tools/shared/exit_code.hpp"
#include "tools/shared/line_writer.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::tools {

class Command;
class Json;

// Threads: one; once begin_writing_apart() was called any for note, detail and warning. Lines are written whole.
class Console {
 public:
  // `knows_env`: --format env is possible too (NAME=value lines, for eval).
  explicit Console(std::string program, bool knows_env = false) : program_(std::move(program)), knows_env_(knows_env) {}

  // Adds --format, -q, -v, --no-color and --version.
  void add_to(Command& tool);
  // After parsing; throws UsageError on a wrong --format.
  void settle();
  // Where the words were not understood: whether they ask for JSON all the same.
  void settle_unparsed(const std::vector<std::string>& words);

  const std::string& program() const noexcept { return program_; }
  bool json() const noexcept { return json_; }
  bool env() const noexcept { return format_ == "env"; }
  bool verbose() const noexcept { return verbose_; }
  bool quiet() const noexcept { return quiet_; }

  // Results, on standard output. An object gets "format_version": 1.
  void result(std::string_view line);
  void result(const std::string& line) { result(std::string_view(line)); }
  void result(const char* line) { result(std::string_view(line)); }
  void result(Json object);
  // The error number of the first result that could not be written; 0: none.
  int unwritten() const noexcept { return unwritten_; }
  // On standard error. note: not with -q; detail: only with -v; warning: always.
  void note(std::string_view line);
  void detail(std::string_view line);
  void warning(std::string_view line);
  // One line (with --format json one object) on standard error, and the code to leave with. `word` is the "code" of
  // the JSON; empty: the usual word for the exit code.
  int error(Exit code, std::string_view message, std::string_view hint = {}, std::string_view word = {});

  // From now on nobody waits for whoever reads standard error: a thread writes what is said there.
  void begin_writing_apart();
  // Waits until what was said so far is written.
  void wait_until_written();
  // The same, and ends that thread. Nobody else uses the console by now.
  void end_writing_apart() noexcept;

  // Whether colours are wanted on standard output.
  bool colors() const;
  // SGR sequences around text where colour is wanted on that stream, else the text alone. `sgr`: "31", "1;33", …
  std::string colored_result(std::string_view sgr, std::string_view text) const;
  std::string colored_note(std::string_view sgr, std::string_view text) const;

 private:
  void line(std::string_view label, std::string_view sgr, std::string_view text);
  void write_error(std::string whole);
  std::string program_, format_ = "text";
  int unwritten_ = 0;
  std::unique_ptr<LineWriter> apart_;
  bool knows_env_ = false, json_ = false, quiet_ = false, verbose_ = false, no_color_ = false;
};

}  // namespace dlock::tools

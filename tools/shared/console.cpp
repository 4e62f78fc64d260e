// How lines, objects, errors and colours are printed.
#include "tools/shared/console.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/version.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace dlock::tools {
namespace {

// 0, or the error number.
int write_whole(std::FILE* stream, std::string text) {
  text += '\n';
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  return written && std::fflush(stream) == 0 ? 0 : errno;
}

std::string one_line(std::string_view text) {
  std::string result = without_passwords(text);
  for (auto& c : result)
    if (c == '\n' || c == '\r') c = ' ';
  while (result.ends_with(' ')) result.pop_back();
  return printable(result);
}

bool colors(int stream, bool refused) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return !refused && (no_color == nullptr || *no_color == '\0') && ::isatty(stream) != 0 && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string colored(bool wanted, std::string_view sgr, std::string_view text) {
  if (!wanted || sgr.empty()) return std::string(text);
  return "\x1b[" + std::string(sgr) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace

void Console::add_to(Command& tool) {
  tool.begin_group("Output");
  tool.add_option("--format", knows_env_ ? "text|json|env" : "text|json", format_,
                  knows_env_ ? "of results: text, JSON, or (acquire) env: NAME=value, for eval (text)"
                             : "of results: text or JSON (text)");
  const auto& quiet = tool.add_flag("-q,--quiet", quiet_, "only results, warnings and errors");
  tool.add_flag("-v,--verbose", verbose_, "say more").excludes = &quiet;
  tool.add_flag("--no-color", no_color_, "no colours (NO_COLOR is honoured too)");
  tool.add_version_flag("--version", program_ + " " DLOCK_VERSION, "print the version");
}

void Console::settle() {
  if (format_ != "text" && format_ != "json" && !(knows_env_ && format_ == "env"))
    throw UsageError("--format " + in_quotes(format_) +
                     (knows_env_ ? " is unknown; use text, json or (acquire) env" : " is neither text nor json"));
  json_ = format_ == "json";
}

void Console::settle_unparsed(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    json_ = json_ || words[i] == "--format=json" ||
            (words[i] == "--format" && i + 1 < words.size() && words[i + 1] == "json");
}

void Console::result(std::string_view text) {
  const int error = write_whole(stdout, std::string(text));
  if (unwritten_ == 0) unwritten_ = error;
}

void Console::result(Json object) {
  object["format_version"] = 1;
  result(object.text());
}

void Console::line(std::string_view label, std::string_view sgr, std::string_view text) {
  std::string whole = program_ + ": ";
  if (!label.empty()) whole += colored_note(sgr, label) + ": ";
  write_error(whole + one_line(text));
}

void Console::write_error(std::string whole) {
  if (!apart_) {
    write_whole(stderr, std::move(whole));
    return;
  }
  whole += '\n';
  apart_->add(std::move(whole));
}

void Console::begin_writing_apart() { apart_ = std::make_unique<LineWriter>(STDERR_FILENO); }

void Console::wait_until_written() {
  if (apart_) apart_->wait_until_written();
}

void Console::end_writing_apart() noexcept { apart_.reset(); }

void Console::note(std::string_view text) {
  if (!quiet_) line({}, {}, text);
}

void Console::detail(std::string_view text) {
  if (verbose_) line({}, {}, text);
}

void Console::warning(std::string_view text) { line("warning", "1;33", text); }

int Console::error(Exit code, std::string_view message, std::string_view hint, std::string_view code_word) {
  if (json_) {
    const auto error = Json::object({{"code", code_word.empty() ? word(code) : code_word},
                                     {"message", one_line(message)},
                                     {"hint", one_line(hint)}});
    write_error(Json::object({{"format_version", 1}, {"error", error}}).text());
  } else {
    line("error", "1;31", hint.empty() ? std::string(message) : std::string(message) + "; " + std::string(hint));
  }
  return number(code);
}

bool Console::colors() const { return tools::colors(STDOUT_FILENO, no_color_); }

std::string Console::colored_result(std::string_view sgr, std::string_view text) const {
  return colored(tools::colors(STDOUT_FILENO, no_color_), sgr, text);
}

std::string Console::colored_note(std::string_view sgr, std::string_view text) const {
  return colored(tools::colors(STDERR_FILENO, no_color_), sgr, text);
}

}  // namespace dlock::tools

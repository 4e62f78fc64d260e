// How a line on a terminal is written over.
#include "tools/shared/progress.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace dlock::tools {
namespace {

constexpr auto quiet_time = std::chrono::seconds{1};
constexpr auto between_lines = std::chrono::milliseconds{250};

// As long as the terminal is wide: a line that is wrapped cannot be written over.
std::string fitting(std::string text) {
  winsize size{};
  const std::size_t columns =
      ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 79U;
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && ++count > columns) return text.substr(0, i);
  return text;
}

void write_line(const std::string& text) {
  const auto line = "\r\x1b[K" + fitting(text);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressLine::ProgressLine(const Console& console) : program_(console.program()) {
  if (console.quiet() || console.verbose() || console.json() || ::isatty(STDERR_FILENO) == 0) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ProgressLine::~ProgressLine() = default;

void ProgressLine::say(std::string_view text) {
  const std::lock_guard guard(mutex_);
  text_ = printable(without_passwords(text));
}

void ProgressLine::run(const std::stop_token& stop) {
  constexpr std::string_view spinner = "|/-\\";
  std::unique_lock guard(mutex_);
  wake_.wait_for(guard, stop, quiet_time, [] { return false; });
  bool shown_any = false;
  for (std::size_t turn = 0; !stop.stop_requested(); ++turn) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(std::chrono::steady_clock::now() - began_);
    write_line(fmt::format("{}: {} {}s {}", program_, spinner[turn % spinner.size()], seconds.count(), text_));
    shown_any = true;
    wake_.wait_for(guard, stop, between_lines, [] { return false; });
  }
  if (shown_any) write_line("");
}

}  // namespace dlock::tools

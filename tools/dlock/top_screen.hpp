// `dlock top` looks at the table in one thread and at the keyboard in another.
#pragma once

#include "top_rows.hpp"

#include "tools/shared/console.hpp"

#include <dlock/duration.hpp>
#include <dlock/options.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace dlock::tools {

// What is asked, how often.
struct TopQuestion {
  std::string url, glob;
  EngineOptions options;
  Duration delay{};
  std::optional<std::int64_t> times{};
};

// Until a key or a signal ends it; leaves the terminal as it was. Answers the exit code.
// Throws UsageError if the terminal cannot show it, and Error if the first look at the table failed.
int show_on_screen(const TopQuestion& question, const TopView& view, const Console& console);

}  // namespace dlock::tools

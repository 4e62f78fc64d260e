// How a run is told to scripts: one JSON object in a file.
#include "report.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dlock::tools::run {

StatusFile::StatusFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0)
    throw UsageError(fmt::format("--status-file {} cannot be written: {}", in_quotes(path), std::strerror(errno)));
}

StatusFile::~StatusFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void StatusFile::write(const Report& report, Console& console) const {
  if (descriptor_ < 0) return;
  auto json = Json::object({{"format_version", 1},
                            {"outcome", report.outcome},
                            {"exit_code", report.exit_code},
                            {"child_status", nullptr},
                            {"child_signal", nullptr},
                            {"token", nullptr},
                            {"tokens", Json::object()},
                            {"held_ms", report.held.count() / 1000},
                            {"wait_ms", report.waited.count() / 1000}});
  if (report.child_status) json["child_status"] = *report.child_status;
  if (report.child_signal != 0) json["child_signal"] = report.child_signal;
  if (report.tokens.size() == 1) json["token"] = number(report.tokens.front().second);
  for (const auto& [name, token] : report.tokens) json["tokens"][name] = number(token);
  const auto text = json.text_in_order() + "\n";
  if (::write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    console.warning(fmt::format("--status-file {} could not be written", in_quotes(path_)));
}

}  // namespace dlock::tools::run

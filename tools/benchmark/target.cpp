// This file knows how a benchmark asks for its own locks.
#include "target.hpp"

#include <fmt/format.h>

#include <mutex>
#include <stdexcept>

namespace bench {

dlock::EngineOptions engine_options(const Target& target) {
  dlock::EngineOptions options;
  options.table = target.table;
  options.application = "dlock-bench";
  return options;
}

dlock::Lock take(dlock::Engine& locks, std::string_view name) {
  auto lock = locks.try_lock(name);
  if (!lock) throw std::runtime_error(fmt::format("the lock \"{}\" is held by somebody else", name));
  return std::move(*lock);
}

void give_back(dlock::Lock&& lock) {
  if (lock.release() != dlock::Released::freed) throw std::runtime_error("a release was not confirmed");
}

std::vector<std::string> weaknesses(const Target& target) {
  std::vector<std::string> found;
  std::mutex mutex;
  auto options = engine_options(target);
  options.observer = [&](const dlock::Event& event) {
    const std::lock_guard guard(mutex);
    if (event.kind == dlock::Event::Kind::weak_durability) found.emplace_back(event.text);
  };
  { const dlock::Engine look(target.url, options); }
  return found;
}

}  // namespace bench

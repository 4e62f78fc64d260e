// How a benchmark asks for its own locks.
#include "target.hpp"

#include <fmt/core.h>

#include <mutex>
#include <stdexcept>

namespace bench {
namespace {

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

}  // namespace

dlock::EngineOptions engine_options(const Target& target) {
  dlock::EngineOptions options;
  options.schema = target.schema;
  options.table = target.table;
  options.history_table = target.history_table;
  options.timeouts.connect = target.connect_timeout;
  options.timeouts.release = options.timeouts.request;  // what is slow is to be timed, and not cut short
  options.application = "dlock-bench";
  return options;
}

std::unique_ptr<RawPeer> raw_peer(const Target& target, std::string_view word) {
  return raw_peer(target.url, {target.schema, target.table}, word);
}

dlock::Lock take(dlock::Engine& locks, std::string_view name) {
  auto lock = locks.try_lock(name);
  if (!lock) throw std::runtime_error(fmt::format("the lock \"{}\" is held by somebody else", name));
  return std::move(*lock);
}

void give_back(dlock::Lock&& lock) {
  if (lock.release() != dlock::Released::freed) throw std::runtime_error("a release was not confirmed");
}

Setup setup_of(const Target& target) {
  Setup setup;
  setup.weaknesses = weaknesses(target);
  const auto peer = raw_peer(target);
  setup.database = peer->server();
  setup.settings = peer->settings();
  return setup;
}

}  // namespace bench

// Looks at intervals who leads, and tells of each change.
#include "api/background.hpp"
#include "api/open.hpp"
#include "engine/backoff.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/pause.hpp"

#include <dlock/election.hpp>
#include <dlock/error.hpp>

#include <algorithm>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

// While nobody leads somebody will soon.
constexpr Duration first_pause = std::chrono::milliseconds{20};
constexpr Duration longest_pause = std::chrono::hours{24 * 365};

bool same_term(const std::optional<Holder>& one, const std::optional<Holder>& other) noexcept {
  if (!one || !other) return !one && !other;
  return one->token == other->token && one->owner == other->owner;
}

}  // namespace

std::optional<Holder> leader_of(Engine& engine, std::string_view name) {
  auto row = engine.inspect(name);
  if (row && row->state != State::held) row.reset();
  return row;
}

// Threads: run() on its own, which owns all of it.
struct DLOCK_HIDDEN LeaderObserver::State : api::Background {
  State(Engine engine_share, std::string its_name, std::function<void(const std::optional<Holder>&)> callback,
        Duration interval, api::Callbacks its_callbacks)
      : name(std::move(its_name)),
        told(std::move(callback)),
        every(interval),
        callbacks(std::move(its_callbacks)),
        engine(std::move(engine_share)) {}

  const std::string name;
  const std::function<void(const std::optional<Holder>&)> told;
  const Duration every;
  const api::Callbacks callbacks;
  Engine engine;
  std::optional<std::optional<Holder>> last{};  // what was told; empty: nothing yet
  std::optional<engine::PollingPauses> soon{};  // while nobody leads

  // Who has destroyed it within the callback is told of nothing more.
  void tell(const std::optional<Holder>& leader) const {
    try {
      told(leader);
    } catch (...) {
      if (!ending()) throw;
    }
  }

  // Answers how long nothing new is expected.
  Duration look() {
    const auto leader = leader_of(engine, name);
    const bool news = !last || !same_term(*last, leader) || planted("leader_observer_repeats");
    if (news && !ending()) {
      last = leader;
      callbacks.run("the callback", [&] { tell(leader); });
    }
    if (!leader) {
      if (!soon) soon.emplace(first_pause, every);
      return soon->next();
    }
    soon.reset();
    return std::min(engine::jittered(every), std::max(leader->left, first_pause));
  }

  void work() override {
    engine::Backoff backoff(every);
    while (!ending()) {
      Duration pause{};
      try {
        pause = look();
        backoff.begin_anew();
      } catch (const std::exception& failure) {
        if (ending()) return;
        callbacks.report(failure);
        pause = backoff.next();
      }
      pause_until(later(BootClock::now(), pause), end());
    }
  }
};

struct LeaderObserver::Handle {
  std::shared_ptr<State> state;
};

LeaderObserver::LeaderObserver(const Engine& engine, std::string_view name,
                               std::function<void(const std::optional<Holder>&)> told, LeaderObserverOptions options) {
  const Name checked(name);
  if (!told) throw Error(Fault::misuse, "the observer of a leader is empty: there is nothing to be called");
  api::check_positive("LeaderObserverOptions::every", options.every);
  const auto whose = "the observer of the leader " + in_quotes(checked.text());
  handle_.reset(new Handle{std::make_shared<State>(engine.same(), checked.text(), std::move(told),
                                                   std::min<Duration>(options.every, longest_pause),
                                                   api::Callbacks(whose, std::move(options.on_error)))});
  handle_->state->start(whose);
}

LeaderObserver::~LeaderObserver() {
  // After fork() the thread is the parent's.
  if (handle_->state->forked()) static_cast<void>(handle_.release());
  else handle_->state->finish();
}

}  // namespace v0
}  // namespace dlock

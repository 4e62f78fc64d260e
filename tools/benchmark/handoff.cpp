// How a handoff is timed.
#include "handoff.hpp"

#include "helper.hpp"
#include "progress.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <thread>

namespace bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// What the two sides say to each other.
constexpr char open = 'o', wait_for_it = 'w', waiting = 'g', granted = 't', until_deadline = 'd', until_stopped = 's',
               late_by = 'l';

constexpr auto commit_name = "dlock-bench/handoff/commit";
constexpr int pairs = 3;  // uncontended, after each handoff
constexpr int cancelled_after = 20;

milliseconds between(std::mt19937& random, int low, int high) {
  return milliseconds(std::uniform_int_distribution(low, high)(random));
}

// So long that a waiter that looks at intervals is anywhere between two looks.
milliseconds a_while(std::mt19937& random) { return between(random, 50, 300); }

// The process that waits.
class Waiter {
 public:
  Waiter(Line& line, const Target& target, std::string name, const dlock::EngineOptions& options)
      : line_(line), name_(std::move(name)), locks_(target.url, options) {}

  void serve() {
    for (;;) switch (line_.hear().what) {
        case wait_for_it: wait(); break;
        case until_deadline: line_.say(late_by, after_deadline()); break;
        case until_stopped: line_.say(late_by, after_stop()); break;
        default: return;
      }
  }

 private:
  void wait() {
    line_.say(waiting);
    auto lock = locks_.lock(name_);
    const auto at = now();
    give_back(std::move(lock));
    line_.say(granted, at);
  }

  std::int64_t after_deadline() {
    const auto wait = between(random_, cancelled_after, 6 * cancelled_after);
    const auto begin = now();
    refuse(locks_.try_lock_for(name_, wait));
    return now() - begin - nanoseconds(wait).count();
  }

  std::int64_t after_stop() {
    std::stop_source source;
    std::int64_t asked = 0;
    std::jthread stopper([&, wait = between(random_, cancelled_after, 6 * cancelled_after)] {
      std::this_thread::sleep_for(wait);
      asked = now();
      source.request_stop();
    });
    refuse(locks_.lock(source.get_token(), name_));
    const auto returned = now();
    stopper.join();
    return returned - asked;
  }

  static void refuse(const std::optional<dlock::Lock>& lock) {
    if (lock) throw std::runtime_error("a wait for a lock that was held was granted");
  }

  Line& line_;
  const std::string name_;
  dlock::Engine locks_;
  std::mt19937 random_{std::random_device{}()};
};

// A contender as the holder sees it.
class Contender {
 public:
  Contender(const Target& target, std::string name, bool listens)
      : name_(std::move(name)), helper_([=, this](Line& line) {
          line.hear(open);
          auto options = engine_options(target);
          options.listen = listens;
          Waiter waiter(line, target, name_, options);
          line.say(open);
          waiter.serve();
        }) {}

  void open_engine() {
    helper_.line().say(open);
    helper_.line().hear(open);
  }

  void handoff(dlock::Engine& locks, std::mt19937& random, Handoff& samples) {
    auto lock = take(locks, name_);
    helper_.line().say(wait_for_it);
    helper_.line().hear(waiting);
    std::this_thread::sleep_for(a_while(random));
    const auto begin = now();
    give_back(std::move(lock));
    const auto released = now();
    const auto at = helper_.line().hear(granted).number;
    samples.acquired.push_back(at - begin);
    samples.release.push_back(released - begin);
  }

  // How late the waits returned: after a deadline, after a stop request.
  void cancel(dlock::Engine& locks, HandoffResult& result) {
    auto lock = take(locks, name_);
    for (const auto& [what, samples] : {std::pair{until_deadline, &result.deadline}, {until_stopped, &result.stop}}) {
      helper_.line().say(what);
      samples->push_back(helper_.line().hear(late_by).number);
      result.early = result.early || samples->back() < 0;
    }
    give_back(std::move(lock));
  }

 private:
  const std::string name_;
  Helper helper_;
};

void time_commits(dlock::Engine& locks, std::mt19937& random, HandoffResult& result) {
  for (int i = 0; i < pairs; ++i) {
    const auto begin = now();
    auto lock = take(locks, commit_name);
    result.commits.push_back(now() - begin);
    const bool last = i == pairs - 1;
    if (last) std::this_thread::sleep_for(a_while(random));
    const auto middle = now();
    give_back(std::move(lock));
    (last ? result.paused_commits : result.commits).push_back(now() - middle);
  }
}

}  // namespace

HandoffResult run_handoff(const HandoffOptions& options) {
  Contender listening(options.target, "dlock-bench/handoff/listening", true);
  Contender polling(options.target, "dlock-bench/handoff/polling", false);
  HandoffResult result;
  result.setup = setup_of(options.target);
  dlock::Engine locks(options.target.url, engine_options(options.target));
  listening.open_engine();
  polling.open_engine();
  std::mt19937 random{std::random_device{}()};
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(options.seconds);
  Progress progress("handoff", options.target.quiet);
  do {
    progress.part(std::chrono::duration<double>(Clock::now() - begin).count() / options.seconds);
    listening.handoff(locks, random, result.listening);
    time_commits(locks, random, result);
    polling.handoff(locks, random, result.polling);
    time_commits(locks, random, result);
    listening.cancel(locks, result);
  } while (Clock::now() < end);
  return result;
}

}  // namespace bench

// How a request that was answered begins the next one.
#include "in_flight.hpp"

#include <stdexcept>
#include <utility>

namespace bench {

InFlight::InFlight(const Field& field, const std::vector<std::string>& names)
    : locks_(field.target.url, [&] {
        auto options = engine_options(field);
        // So many at once that the last of them is answered late is what is measured, and no failure.
        options.timeouts.request = options.timeouts.release = std::chrono::minutes{1};
        options.executor = [this](std::function<void()> answer) {
          {
            const std::lock_guard guard(mutex_);
            answers_.push_back(std::move(answer));
          }
          more_.notify_one();
        };
        return options;
      }()) {
  for (const auto& name : names) all_.push_back({name});
}

void InFlight::run(const ThroughputRound& round, Times& times) {
  round_ = &round;
  times_ = &times;
  under_way_ = all_.size();
  for (auto& one : all_) begin(one);
  while (under_way_ > 0) work();
  if (failure_) std::rethrow_exception(failure_);
}

void InFlight::begin(One& one) {
  one.begin = Clock::now();
  if (failure_ || (one.begin >= round_->to && one.counted)) {
    --under_way_;
    return;
  }
  try {
    locks_.async_try_lock(one.name, {},
                          [this, &one](dlock::Result<dlock::Lock> result) { granted(one, std::move(result)); });
  } catch (...) { fail(std::current_exception()); }
}

void InFlight::granted(One& one, dlock::Result<dlock::Lock> result) {
  try {
    if (result.refused()) throw std::runtime_error("the lock \"" + one.name + "\" is held by somebody else");
    auto lock = std::move(result).value();
    one.middle = Clock::now();
    locks_.async_release(std::move(lock), [this, &one](dlock::Released told) { released(one, told); });
  } catch (...) { fail(std::current_exception()); }
}

void InFlight::released(One& one, dlock::Released told) {
  if (told != dlock::Released::freed)
    return fail(std::make_exception_ptr(std::runtime_error("a release was not confirmed")));
  if (one.begin >= round_->from) {
    times_->add(one.begin, one.middle, Clock::now());
    one.counted = true;
  }
  begin(one);
}

void InFlight::fail(std::exception_ptr failure) {
  if (!failure_) failure_ = std::move(failure);
  --under_way_;
}

// Runs the answers that are there, or waits for one.
void InFlight::work() {
  std::deque<std::function<void()>> answers;
  {
    std::unique_lock guard(mutex_);
    more_.wait(guard, [&] { return !answers_.empty(); });
    answers.swap(answers_);
  }
  for (const auto& answer : answers) answer();
}

}  // namespace bench

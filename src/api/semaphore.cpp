// What an acquisition of permits is to the engine.
#include "api/open.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>
#include <dlock/semaphore.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

void check_unset(std::string_view name, std::string_view option, std::int64_t value, std::int64_t unset) {
  if (value != unset)
    throw Error(Fault::misuse, fmt::format("LockOptions::{} {} must be left unset for the semaphore {}, which sets it",
                                           option, value, in_quotes(name)));
}

LockOptions checked(std::string_view name, std::int64_t permits, LockOptions options) {
  const LockOptions unset;
  if (permits < 1)
    throw Error(Fault::misuse,
                fmt::format("the semaphore {} of {} permits must have at least 1", in_quotes(name), permits));
  if (options.mode != unset.mode)
    throw Error(Fault::misuse,
                fmt::format("LockOptions::mode {} must be left unset for the semaphore {}, which sets it",
                            to_string(options.mode), in_quotes(name)));
  check_unset(name, "permits", options.permits, unset.permits);
  check_unset(name, "limit", options.limit, unset.limit);
  if (options.reentrance.value_or(Reentrance::none) != Reentrance::none)
    throw Error(Fault::misuse, fmt::format("LockOptions::reentrance {} must be none or left unset: nobody enters the "
                                           "semaphore {} again",
                                           to_string(*options.reentrance), in_quotes(name)));
  options.mode = Mode::permits;
  options.limit = permits;
  options.reentrance = Reentrance::none;
  api::check(options);
  return options;
}

}  // namespace

struct Semaphore::State {
  const std::string name;
  const LockOptions options;
  Engine engine;

  LockOptions with(const AcquireOptions& wanted) const {
    if (wanted.permits < 1 || wanted.permits > options.limit)
      throw Error(Fault::misuse,
                  fmt::format("AcquireOptions::permits {} is out of range: from 1 to {}, all that the semaphore {} has",
                              wanted.permits, options.limit, in_quotes(name)));
    auto with = options;
    with.permits = wanted.permits;
    return with;
  }
};

Semaphore::Semaphore(const Engine& engine, std::string_view name, std::int64_t permits, LockOptions options)
    : state_(new State{Name(name).text(), checked(name, permits, std::move(options)), engine.same()}) {}

Semaphore::~Semaphore() = default;

Permit Semaphore::acquire(const AcquireOptions& options) {
  return state_->engine.lock(state_->name, state_->with(options));
}

std::optional<Permit> Semaphore::acquire(std::stop_token stop, const AcquireOptions& options, Refusal* refusal) {
  return state_->engine.lock(state_->name, state_->with(options), std::move(stop), refusal);
}

std::optional<Permit> Semaphore::try_acquire(const AcquireOptions& options, Refusal* refusal) {
  return state_->engine.try_lock(state_->name, state_->with(options), refusal);
}

std::optional<Permit> Semaphore::try_acquire_for(SaturatingDuration wait, const AcquireOptions& options,
                                                 std::stop_token stop, Refusal* refusal) {
  return state_->engine.try_lock_for(state_->name, std::max<Duration>(wait, {}), state_->with(options), std::move(stop),
                                     refusal);
}

}  // namespace v0
}  // namespace dlock

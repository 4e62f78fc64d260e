// A lock of which there are several: as many hold it at one time as there are permits.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/engine.hpp>
#include <dlock/export.hpp>
#include <dlock/lock.hpp>
#include <dlock/options.hpp>
#include <dlock/refusal.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

namespace dlock {
inline namespace v0 {

// What one acquisition holds: all permits that it took, with a token, a lease and a loss of its own. Released as a Lock
// is, by any thread; one that dies gives its permits back when its lease is over.
using Permit = Lock;

// How a semaphore is acquired.
struct AcquireOptions {
  std::int64_t permits = 1;  // how many are taken, all of them or none: from 1 to as many as there are
};

// One name as a counting semaphore, across processes:
// `Semaphore gpu(locks, "gpu", 4); gpu.try_acquire_for(2s, {.permits = 2})`.
// No acquisition is granted that would make it more permits, of all that are held now, than this Semaphore says there
// are. Others may say otherwise: who says more is still granted, and where the number shrinks to below what is held
// nothing is taken away, and nobody who says the smaller one is granted any until enough have come back. A name that is
// held as a lock, exclusively or shared, has none to give.
// Never reentrant: a thread that acquires twice has two, and waits where there is one. What it waits for that way ends
// by no deadlock that is found, but by its time.
// Threads: all members from any. Owns: a share of the engine, which may go before it and ends no wait here; permits
// outlive it. No other thread may be inside of a member when it is destroyed.
// Fails: acquiring throws what Engine::try_lock throws, and misuse for a number of permits that can never be granted,
// before anything is sent; an empty answer is busy.
class DLOCK_EXPORT Semaphore {
 public:
  // `permits`: how many there are, 1 at least. Of the options lease, renewal, fairness, job and the like are taken.
  // Fails: misuse (a bad name or option, fewer permits than 1, a mode, permits or a limit in `options`, or another
  // reentrance than `none`). Nothing is sent.
  Semaphore(const Engine& engine, std::string_view name, std::int64_t permits, LockOptions options = {});
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // Waits as long as it takes.
  [[nodiscard]] Permit acquire(const AcquireOptions& options = {});

  // Waits until granted or stopped. Empty: stopped. `refusal`, here and below: as of Engine::try_lock.
  [[nodiscard]] std::optional<Permit> acquire(std::stop_token stop, const AcquireOptions& options = {},
                                              Refusal* refusal = nullptr);

  // One attempt. Empty: too many are held, or others queue.
  [[nodiscard]] std::optional<Permit> try_acquire(const AcquireOptions& options = {}, Refusal* refusal = nullptr);

  // Waits at most `wait`, or until the token is stopped. Empty: timed out, or stopped. A time that has passed is one
  // attempt.
  [[nodiscard]] std::optional<Permit> try_acquire_for(SaturatingDuration wait, const AcquireOptions& options = {},
                                                      std::stop_token stop = {}, Refusal* refusal = nullptr);
  template <class Clock, class Length>
  [[nodiscard]] std::optional<Permit> try_acquire_until(std::chrono::time_point<Clock, Length> end,
                                                        const AcquireOptions& options = {}, std::stop_token stop = {},
                                                        Refusal* refusal = nullptr) {
    return try_acquire_for(time_until(end), options, std::move(stop), refusal);
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace dlock

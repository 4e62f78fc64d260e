// What the standard asks of mutexes, which std::unique_lock and the others build on, is what dlock's have.
#include <dlock/dlock.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <concepts>
#include <optional>
#include <stop_token>
#include <type_traits>

using namespace dlock;

namespace {

using Length = std::chrono::milliseconds;
using End = std::chrono::system_clock::time_point;

// https://eel.is/c++draft/thread.req.lockable
template <class M>
concept TimedLockable = requires(M mutex, Length length, End end) {
  { mutex.lock() } -> std::same_as<void>;
  { mutex.unlock() } -> std::same_as<void>;
  { mutex.try_lock() } -> std::same_as<bool>;
  { mutex.try_lock_for(length) } -> std::same_as<bool>;
  { mutex.try_lock_until(end) } -> std::same_as<bool>;
};

// https://eel.is/c++draft/thread.sharedtimedmutex.requirements
template <class M>
concept SharedTimedLockable = TimedLockable<M> && requires(M mutex, Length length, End end) {
  { mutex.lock_shared() } -> std::same_as<void>;
  { mutex.unlock_shared() } -> std::same_as<void>;
  { mutex.try_lock_shared() } -> std::same_as<bool>;
  { mutex.try_lock_shared_for(length) } -> std::same_as<bool>;
  { mutex.try_lock_shared_until(end) } -> std::same_as<bool>;
};

// The names of std::counting_semaphore, with what is acquired as the answer.
template <class S>
concept Acquirable = requires(S semaphore, Length length, End end, std::stop_token stop) {
  { semaphore.acquire() } -> std::same_as<Permit>;
  { semaphore.acquire(stop) } -> std::same_as<std::optional<Permit>>;
  { semaphore.try_acquire() } -> std::same_as<std::optional<Permit>>;
  { semaphore.try_acquire_for(length) } -> std::same_as<std::optional<Permit>>;
  { semaphore.try_acquire_until(end) } -> std::same_as<std::optional<Permit>>;
};

template <class T>
constexpr bool stays = !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
                       !std::is_move_constructible_v<T> && !std::is_move_assignable_v<T>;

template <class T>
constexpr bool moves = !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
                       std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>;

}  // namespace

TEST_CASE("mutexes, semaphores and handles are to the compiler what they are called") {
  static_assert(TimedLockable<Mutex> && SharedTimedLockable<SharedMutex> && !SharedTimedLockable<Mutex>);
  static_assert(Acquirable<Semaphore>);
  static_assert(stays<Mutex> && stays<SharedMutex> && stays<Semaphore> && stays<Election>);
  static_assert(moves<Lock> && moves<Engine>);
  CHECK(TimedLockable<Mutex>);
}

// The barest coroutine there is, for tests.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <utility>

namespace dlock::test {

// A coroutine that begins at once. Its end destroys it, also where it is still suspended.
class Coroutine {
 public:
  struct promise_type {
    Coroutine get_return_object() { return Coroutine(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    // Says that it is over when nothing of it is touched any more, to whichever thread asks.
    struct Over {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept { ended.promise().over = true; }
      void await_resume() const noexcept {}
    };
    Over final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }
    std::exception_ptr failure{};
    std::atomic<bool> over{false};
  };

  Coroutine(Coroutine&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Coroutine& operator=(Coroutine&&) = delete;
  ~Coroutine() {
    if (handle_) handle_.destroy();
  }

  // Threads: any.
  bool done() const { return handle_.promise().over; }
  // Throws what it has ended with.
  void check() const {
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
  }

 private:
  explicit Coroutine(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace dlock::test

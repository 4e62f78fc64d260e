// Waits for locks in C++20 coroutines: `auto lock = co_await dlock::lock(engine, "order/4711");`. Include it where they
// are; <dlock/dlock.hpp> does without it.
#pragma once

#include <dlock/engine.hpp>

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace dlock {
inline namespace v0 {

// A request that begins when it is awaited, by `co_await` in a coroutine of any type, and answers there; once. What the
// engine refuses to begin (misuse) and what fails later is thrown from `co_await`.
// Threads: the coroutine goes on where EngineOptions::executor runs it, never inside of `co_await`; without an executor
// on a thread of the engine, where it holds up other answers for as long as it runs, and must not wait for any.
// What is taken is the job's that LockOptions names, or that is current for the thread that awaits (Job::Scope); a
// coroutine carries its Job by hand, since it may go on on another thread.
// Owns: the name and the options. The engine has to be there when it is awaited; if it ends meanwhile, that is misuse.
// A coroutine may be destroyed while it waits here, where it cannot be resumed at the same time: on the thread or
// strand that the executor runs it on. Its wait is stopped then. A Lock that is granted all the same is released there,
// which blocks as its destructor does.
// GCC 12 takes apart wrongly what `co_await` is given as a braced temporary: give options a name before,
// `const dlock::LockOptions options{.lease = 10s}; co_await dlock::lock(engine, name, options)`.
// Fails: as the call of the same name that blocks.
template <class T>
class [[nodiscard]] Awaitable {
  using Answer = std::conditional_t<std::is_same_v<T, Released>, Released, Result<Lock>>;
  using Handler = std::function<void(Answer)>;

 public:
  // What asks the engine, once, and the token that ends the wait. Made by the functions below.
  using Start = std::function<void(std::stop_token, Handler)>;
  explicit Awaitable(Start start, std::stop_token stop = std::stop_token())
      : start_(std::move(start)), stop_(std::move(stop)), state_(std::make_shared<State>()) {}
  Awaitable(Awaitable&&) noexcept = default;
  Awaitable& operator=(Awaitable&&) = delete;
  ~Awaitable() {
    if (state_ && state_->phase.exchange(Stage::abandoned) == Stage::waiting) state_->ended.request_stop();
  }

  bool await_ready() const noexcept { return false; }

  // The coroutine may have gone on, and be gone, before `start` has returned: from then on nothing of it is touched. It
  // is not inlined, because a compiler may then keep what is local here in the coroutine (clang before 17 does).
  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> caller) {
    const auto state = state_;
    const auto start = std::move(start_);
    state->caller = caller;
    try {
      state->passed_on.emplace(stop_, PassOn{state->ended});
      start(state->ended.get_token(), [state](Answer answer) { state->resume(std::move(answer)); });
      return true;
    } catch (...) {  // it may have begun all the same, and even have answered: then nothing is touched here either
      if (state->phase.exchange(Stage::abandoned) != Stage::waiting) return true;
      state->passed_on.reset();
      state->ended.request_stop();
      state->failure = std::current_exception();
      return false;
    }
  }

  T await_resume() {
    if (state_->failure) std::rethrow_exception(state_->failure);
    if constexpr (std::is_same_v<T, Released>) return *state_->answer;
    else if constexpr (std::is_same_v<T, Lock>) return std::move(*state_->answer).value();
    else return std::move(*state_->answer).get();
  }

 private:
  enum class Stage { waiting, answered, abandoned };
  struct PassOn {
    std::stop_source ended;
    void operator()() { ended.request_stop(); }
  };
  // Shared with the engine's handler, so that it outlives the coroutine.
  struct State {
    void resume(Answer&& given) {
      answer.emplace(std::move(given));
      if (phase.exchange(Stage::answered) != Stage::waiting) return answer.reset();
      passed_on.reset();
      caller.resume();
    }
    std::atomic<Stage> phase = Stage::waiting;
    std::coroutine_handle<> caller{};
    std::stop_source ended{};                               // by the caller's token, or because nobody waits any more
    std::optional<std::stop_callback<PassOn>> passed_on{};  // reset by whoever ends Stage::waiting and goes on
    std::optional<Answer> answer{};
    std::exception_ptr failure{};
  };

  Start start_;
  std::stop_token stop_;
  std::shared_ptr<State> state_;
};

// One attempt. Empty: busy.
inline Awaitable<std::optional<Lock>> try_lock(Engine& engine, std::string_view name, const LockOptions& options) {
  return Awaitable<std::optional<Lock>>(
      [&engine, name = std::string(name), options](const std::stop_token&, Engine::LockHandler handler) {
        engine.async_try_lock(name, options, std::move(handler));
      });
}
inline Awaitable<std::optional<Lock>> try_lock(Engine& engine, std::string_view name) {
  return try_lock(engine, name, LockOptions{});
}

// Waits at most `wait`, or until the token is stopped. Empty: time is up, or stopped.
inline Awaitable<std::optional<Lock>> try_lock_for(Engine& engine, std::string_view name, SaturatingDuration wait,
                                                   const LockOptions& options, std::stop_token stop) {
  return Awaitable<std::optional<Lock>>(
      [&engine, name = std::string(name), wait, options](std::stop_token ended, Engine::LockHandler handler) {
        engine.async_try_lock_for(name, wait, options, std::move(ended), std::move(handler));
      },
      std::move(stop));
}
inline Awaitable<std::optional<Lock>> try_lock_for(Engine& engine, std::string_view name, SaturatingDuration wait,
                                                   const LockOptions& options) {
  return try_lock_for(engine, name, wait, options, std::stop_token());
}
inline Awaitable<std::optional<Lock>> try_lock_for(Engine& engine, std::string_view name, SaturatingDuration wait) {
  return try_lock_for(engine, name, wait, LockOptions{}, std::stop_token());
}

// Waits as long as it takes.
inline Awaitable<Lock> lock(Engine& engine, std::string_view name, const LockOptions& options) {
  return Awaitable<Lock>(
      [&engine, name = std::string(name), options](std::stop_token ended, Engine::LockHandler handler) {
        engine.async_lock(name, options, std::move(ended), std::move(handler));
      });
}
inline Awaitable<Lock> lock(Engine& engine, std::string_view name) { return lock(engine, name, LockOptions{}); }

// Waits until granted or stopped. Empty: stopped.
inline Awaitable<std::optional<Lock>> lock(Engine& engine, std::string_view name, const LockOptions& options,
                                           std::stop_token stop) {
  return Awaitable<std::optional<Lock>>(
      [&engine, name = std::string(name), options](std::stop_token ended, Engine::LockHandler handler) {
        engine.async_lock(name, options, std::move(ended), std::move(handler));
      },
      std::move(stop));
}

// Releases without blocking, and tells what became of it. A Lock that nobody awaits the release of is released when
// this goes, by its destructor.
inline Awaitable<Released> release(Engine& engine, Lock lock) {
  return Awaitable<Released>([&engine, held = std::make_shared<Lock>(std::move(lock))](
                                 const std::stop_token&, std::function<void(Released)> handler) {
    engine.async_release(std::move(*held), std::move(handler));
  });
}

}  // namespace v0
}  // namespace dlock

// Waits for locks by Asio's completion tokens: `co_await dlock::async_lock(engine, "order/4711", asio::use_awaitable)`.
// Include it where they are; <dlock/dlock.hpp> does without it. It is standalone Asio (<asio.hpp>) that is meant; with
// DLOCK_USE_BOOST_ASIO defined before the first include it is Boost's. One file has one of them; of a program's
// libraries each may have its own. Without <…/associated_cancellation_slot.hpp> (Boost before 1.77, Asio before 1.19)
// nothing can be cancelled.
#pragma once

#include <dlock/engine.hpp>

#ifdef DLOCK_USE_BOOST_ASIO
#if __has_include(<boost/asio/associated_cancellation_slot.hpp>)
#include <boost/asio/associated_cancellation_slot.hpp>
#define DLOCK_ASIO_CANCELS 1
#endif
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#else
#if __has_include(<asio/associated_cancellation_slot.hpp>)
#include <asio/associated_cancellation_slot.hpp>
#define DLOCK_ASIO_CANCELS 1
#endif
#include <asio/associated_allocator.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/error.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/system_error.hpp>
#endif

#include <atomic>
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

// What either of them makes has a name of its own, so that both can be in one program.
#ifdef DLOCK_USE_BOOST_ASIO
inline namespace boost_asio {
#else
inline namespace standalone_asio {
#endif

namespace asio_face {

#ifdef DLOCK_USE_BOOST_ASIO
namespace net = ::boost::asio;
using SystemError = ::boost::system::system_error;
#else
namespace net = ::asio;
using SystemError = ::asio::system_error;
#endif

// A request under way: its handler, and what keeps the handler's executor at work until the answer is there.
// Threads: one at a time. Owned by what is going to answer, and then by the function that calls the handler.
template <class Handler, class Value>
class Operation {
 public:
  explicit Operation(Handler handler) : handler_(std::move(handler)), work_(net::make_work_guard(handler_)) {
#ifdef DLOCK_ASIO_CANCELS
    if (auto slot = net::get_associated_cancellation_slot(handler_); slot.is_connected())
      slot.assign([ended = ended_](net::cancellation_type type) mutable {
        if (type != net::cancellation_type::none) ended.request_stop();
      });
#endif
  }

  std::stop_token ended() const { return ended_.get_token(); }

  void end() { ended_.request_stop(); }

  // Has the handler called on its executor, once, after this has returned.
  static void complete(std::unique_ptr<Operation> operation, std::exception_ptr failure, Value value) {
    const auto executor = operation->work_.get_executor();
    const auto allocator = net::get_associated_allocator(operation->handler_);
    net::post(executor, Completion{std::move(operation), std::move(failure), std::move(value), allocator});
  }

 private:
  // What is posted: the handler's allocator allocates it.
  struct Completion {
    using allocator_type = net::associated_allocator_t<Handler>;
    allocator_type get_allocator() const noexcept { return allocator; }

    void operator()() {
#ifdef DLOCK_ASIO_CANCELS
      if (auto slot = net::get_associated_cancellation_slot(operation->handler_); slot.is_connected()) slot.clear();
#endif
      auto handler = std::move(operation->handler_);
      operation.reset();
      std::move(handler)(std::move(failure), std::move(value));
    }

    std::unique_ptr<Operation> operation;
    std::exception_ptr failure;
    Value value;
    allocator_type allocator;
  };

  Handler handler_;
  decltype(net::make_work_guard(std::declval<const Handler&>())) work_;
  std::stop_source ended_;
};

// What becomes of an answer: a value to go with an error, and the value and the error of a Result.
template <class Value>
struct Outcome;

template <>
struct Outcome<Lock> {
  static Lock nothing() { return {}; }
  static Lock take(Result<Lock>&& result, std::exception_ptr& failure) {
    if (result.has_value()) return std::move(result).value();
    if (const auto* error = result.error()) failure = std::make_exception_ptr(*error);
    else failure = std::make_exception_ptr(SystemError(net::error::operation_aborted));
    return {};
  }
};

template <>
struct Outcome<std::optional<Lock>> {
  static std::optional<Lock> nothing() { return {}; }
  static std::optional<Lock> take(Result<Lock>&& result, std::exception_ptr& failure) {
    if (const auto* error = result.error()) failure = std::make_exception_ptr(*error);
    else return std::move(result).get();
    return {};
  }
};

template <>
struct Outcome<Released> {
  static Released nothing() { return Released::unconfirmed; }
  static Released take(Released released, std::exception_ptr&) { return released; }
};

// Shared by the copies of the engine's handler, and by the function that begins: the first of them that has an answer
// takes the operation out. Threads: any.
template <class Own>
class Once {
 public:
  explicit Once(std::unique_ptr<Own> own) : own_(own.release()) {}
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  ~Once() { take(); }
  std::unique_ptr<Own> take() { return std::unique_ptr<Own>(own_.exchange(nullptr)); }

 private:
  std::atomic<Own*> own_;
};

// Begins a request: `start` gets the token that ends it and the engine's handler. What it throws is told to the
// handler.
template <class Value, class Handler, class Start>
void begin(Handler&& handler, Start start) {
  using Own = Operation<std::decay_t<Handler>, Value>;
  auto operation = std::make_unique<Own>(std::forward<Handler>(handler));
  const auto ended = operation->ended();
  const auto once = std::make_shared<Once<Own>>(std::move(operation));
  try {
    start(ended, [once](auto answer) {
      std::exception_ptr failure;
      auto value = Outcome<Value>::take(std::move(answer), failure);
      if (auto own = once->take()) Own::complete(std::move(own), std::move(failure), std::move(value));
    });
  } catch (...) {  // it may have begun all the same, and even have answered
    if (auto own = once->take()) {
      own->end();
      Own::complete(std::move(own), std::current_exception(), Outcome<Value>::nothing());
    }
  }
}

// `Token` is deduced as the caller's was, so that a handler that has a name stays what it is.
template <class Value, class Token, class Start>
auto initiate(Token&& token, Start start) {
  return net::async_initiate<Token, void(std::exception_ptr, Value)>(
      [](auto&& handler, Start begun) { begin<Value>(std::forward<decltype(handler)>(handler), std::move(begun)); },
      token, std::move(start));
}

}  // namespace asio_face

// Each of these begins a request, and tells the token's handler of the answer: an error, and a value that counts where
// the error is null. So `asio::use_awaitable` and `asio::use_future` answer the value, or throw.
// Threads: the handler is called on its associated executor (asio::bind_executor), never inside of the call, whether or
// not EngineOptions::executor is set; that executor has work until then, so that io_context::run() does not return.
// Without an associated executor a thread of Asio's own calls it. The context has to be there until the engine has
// ended, whose thread may still be on its way out of the last answer: declare it before the engine.
// Cancelled by the handler's cancellation slot, of any type, a wait ends: nothing is held then.
// What is taken is the job's that LockOptions names, or that is current for the thread that begins (Job::Scope).
// Owns: the name and the options. The engine has to be there when it begins: with asio::use_awaitable and
// asio::deferred that is when it is awaited or called. If it ends meanwhile, that is misuse.
// GCC 12 takes apart wrongly what `co_await` is given as a braced temporary: give options a name before.
// Fails: as the call of the same name that blocks; also misuse is told to the handler.

// One attempt. Empty: busy. It cannot be cancelled.
template <class Token>
auto async_try_lock(Engine& engine, std::string_view name, const LockOptions& options, Token&& token) {
  return asio_face::initiate<std::optional<Lock>>(
      std::forward<Token>(token),
      [&engine, name = std::string(name), options](const std::stop_token&, Engine::LockHandler handler) {
        engine.async_try_lock(name, options, std::move(handler));
      });
}
template <class Token>
auto async_try_lock(Engine& engine, std::string_view name, Token&& token) {
  return async_try_lock(engine, name, LockOptions{}, std::forward<Token>(token));
}

// Waits at most `wait`. Empty: time is up, or cancelled.
template <class Token>
auto async_try_lock_for(Engine& engine, std::string_view name, SaturatingDuration wait, const LockOptions& options,
                        Token&& token) {
  return asio_face::initiate<std::optional<Lock>>(
      std::forward<Token>(token),
      [&engine, name = std::string(name), wait, options](std::stop_token ended, Engine::LockHandler handler) {
        engine.async_try_lock_for(name, wait, options, std::move(ended), std::move(handler));
      });
}
template <class Token>
auto async_try_lock_for(Engine& engine, std::string_view name, SaturatingDuration wait, Token&& token) {
  return async_try_lock_for(engine, name, wait, LockOptions{}, std::forward<Token>(token));
}

// Waits as long as it takes. The value is a Lock; it holds nothing where there is an error. Cancelled: the error is a
// system_error of asio::error::operation_aborted.
template <class Token>
auto async_lock(Engine& engine, std::string_view name, const LockOptions& options, Token&& token) {
  return asio_face::initiate<Lock>(std::forward<Token>(token), [&engine, name = std::string(name), options](
                                                                   std::stop_token ended, Engine::LockHandler handler) {
    engine.async_lock(name, options, std::move(ended), std::move(handler));
  });
}
template <class Token>
auto async_lock(Engine& engine, std::string_view name, Token&& token) {
  return async_lock(engine, name, LockOptions{}, std::forward<Token>(token));
}

// Releases without blocking, and tells what became of it. It cannot be cancelled.
template <class Token>
auto async_release(Engine& engine, Lock lock, Token&& token) {
  return asio_face::initiate<Released>(std::forward<Token>(token),
                                       [&engine, held = std::make_shared<Lock>(std::move(lock))](
                                           const std::stop_token&, std::function<void(Released)> handler) {
                                         engine.async_release(std::move(*held), std::move(handler));
                                       });
}

}  // inline namespace: which Asio
}  // namespace v0
}  // namespace dlock

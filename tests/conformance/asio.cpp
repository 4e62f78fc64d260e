// The promise that Asio's completion tokens wait for locks: handlers, futures and coroutines.
#include "support/database.hpp"
#include "support/eventually.hpp"

#if defined(__clang__) && !defined(ASIO_HAS_CO_AWAIT)  // Asio looks for what clang had before the standard
#define ASIO_HAS_CO_AWAIT 1
#define ASIO_HAS_STD_COROUTINE 1
#endif
#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <dlock/asio.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr auto use_awaitable = asio::use_awaitable;

// Runs a coroutine to its end on this thread, and throws what it has ended with. run() must not return before.
void run(asio::io_context& context, asio::awaitable<void> coroutine) {
  auto end = asio::co_spawn(context, std::move(coroutine), asio::use_future);
  context.restart();
  context.run();
  REQUIRE(end.wait_for(0s) == std::future_status::ready);
  end.get();
}

// Runs what there is until the state is there.
template <class State>
bool run_until(asio::io_context& context, State state) {
  context.restart();
  return eventually(
      [&] {
        context.poll();
        return state();
      },
      far_longer(), closely);
}

bool one_waits(const Engine& engine, const std::string& name) { return engine.stats().waiting[name] == 1; }

// As a service sets it up, or left to the engine.
enum class Executor { unset, context };

EngineOptions options_with(Executor executor, asio::io_context& context) {
  if (executor == Executor::unset) return {};
  return {.executor = [&context](std::function<void()> work) { asio::post(context, std::move(work)); }};
}

// The fault that an awaited request ends with.
template <class Value>
asio::awaitable<std::optional<Fault>> fault_of(asio::awaitable<Value> request) {
  try {
    const auto value = co_await std::move(request);
  } catch (const Error& error) { co_return error.fault(); }
  co_return std::nullopt;
}

// Counts what is allocated with it.
struct Allocated {
  std::atomic<int> ever = 0, now = 0;
};
template <class T>
struct CountingAllocator {
  using value_type = T;
  explicit CountingAllocator(Allocated& to) : allocated(&to) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& other) : allocated(other.allocated) {}
  T* allocate(std::size_t count) {
    ++allocated->ever;
    ++allocated->now;
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* where, std::size_t count) {
    --allocated->now;
    std::allocator<T>().deallocate(where, count);
  }
  template <class U>
  bool operator==(const CountingAllocator<U>& other) const {
    return allocated == other.allocated;
  }
  Allocated* allocated;
};

// A handler with an executor and an allocator of its own.
template <class Function>
struct WithAllocator {
  using executor_type = asio::io_context::executor_type;
  using allocator_type = CountingAllocator<std::byte>;
  executor_type get_executor() const noexcept { return context.get_executor(); }
  allocator_type get_allocator() const noexcept { return allocator_type(allocated); }
  template <class... Values>
  void operator()(Values&&... values) const {
    CHECK(allocated.now == 0);  // it may begin another request in the same memory
    function(std::forward<Values>(values)...);
  }
  Function function;
  asio::io_context& context;
  Allocated& allocated;
};

}  // namespace

TEST_CASE("an awaitable is granted what is free, on the thread of its context, and told of the release") {
  for (const auto executor : {Executor::unset, Executor::context}) {
    Database database;
    asio::io_context context;
    auto engine = database.engine(options_with(executor, context));
    const auto coroutine = [](Engine& locks, std::thread::id here) -> asio::awaitable<void> {
      const LockOptions options{.label = "an awaitable"};
      Lock lock = co_await async_lock(locks, "first", options, use_awaitable);
      CHECK(lock.valid());
      CHECK(locks.inspect("first")->label == "an awaitable");
      CHECK(std::this_thread::get_id() == here);
      std::optional<Lock> second = co_await async_try_lock(locks, "second", use_awaitable);
      REQUIRE(second);
      std::optional<Lock> third = co_await async_try_lock_for(locks, "third", 1s, use_awaitable);
      REQUIRE(third);
      CHECK(co_await async_release(locks, std::move(lock), use_awaitable) == Released::freed);
      CHECK(co_await async_release(locks, std::move(*second), use_awaitable) == Released::freed);
      CHECK(std::this_thread::get_id() == here);
    };
    run(context, coroutine(engine, std::this_thread::get_id()));
    CHECK(database.admin().held() == 0);
  }
}

TEST_CASE("a future is granted a lock, and a handler that can only be moved is called once, where it is bound to") {
  Database database;
  asio::io_context context;
  auto engine = database.engine();
  Lock lock = async_lock(engine, "job", asio::use_future).get();
  CHECK(lock.valid());
  int calls = 0;
  const auto here = std::this_thread::get_id();
  async_try_lock(engine, "job", {},
                 asio::bind_executor(context, [&, mine = std::make_unique<int>(1)](const std::exception_ptr& failure,
                                                                                   const std::optional<Lock>& busy) {
                   calls += *mine;
                   CHECK(failure == nullptr);
                   CHECK_FALSE(busy);
                   CHECK(std::this_thread::get_id() == here);
                 }));
  CHECK(calls == 0);
  context.run();  // it has work until the answer is there
  CHECK(calls == 1);
  CHECK(async_release(engine, std::move(lock), asio::use_future).get() == Released::freed);
  CHECK(async_try_lock(engine, "job", asio::use_future).get().has_value());
}

TEST_CASE("a handler that has a name is copied, and may be given again") {
  Database database;
  auto other = database.engine();
  const auto held = other.lock("job");
  auto engine = database.engine();
  std::atomic<int> calls = 0;
  std::function<void(std::exception_ptr, std::optional<Lock>)> handler = [&](const std::exception_ptr&,
                                                                             const std::optional<Lock>&) { ++calls; };
  for (int i = 0; i < 2; ++i) async_try_lock(engine, "job", handler);
  CHECK(handler);
  CHECK(eventually([&] { return calls == 2; }));
}

TEST_CASE("what is posted is allocated by the handler's allocator") {
  Database database;
  Allocated allocated;
  asio::io_context context;
  auto engine = database.engine();
  bool told = false;
  const auto handler = [&](const std::exception_ptr& failure, const std::optional<Lock>&) {
    told = failure == nullptr;
  };
  async_try_lock(engine, "job", WithAllocator<decltype(handler)>{handler, context, allocated});
  context.run();
  CHECK(told);
  CHECK(allocated.ever > 0);
  CHECK(allocated.now == 0);
}

TEST_CASE("a request that begins, and throws all the same, is answered once") {
  asio::io_context context;
  int calls = 0;
  std::function<void(Released)> engines;
  std::stop_token stopped;
  const auto begin = [&](bool answered, std::optional<Released> expected) {
    const auto handler = [&calls, expected](const std::exception_ptr& failure, Released released) {
      ++calls;
      CHECK((failure == nullptr) == expected.has_value());
      if (expected) CHECK(released == *expected);
    };
    asio_face::initiate<Released>(asio::bind_executor(context, handler),
                                  [&, answered](std::stop_token ended, std::function<void(Released)> answer) {
                                    stopped = std::move(ended);
                                    engines = std::move(answer);
                                    if (answered) engines(Released::freed);
                                    throw std::bad_alloc();
                                  });
    if (!answered) engines(Released::freed);  // later
    context.restart();
    context.run();
  };
  begin(true, Released::freed);
  CHECK(calls == 1);
  CHECK_FALSE(stopped.stop_requested());
  begin(false, std::nullopt);
  CHECK(calls == 2);
  CHECK(stopped.stop_requested());
}

TEST_CASE("an awaitable is told that a lock is busy, and that its time is up") {
  Database database;
  asio::io_context context;
  auto other = database.engine();
  const auto held = other.lock("job");
  auto engine = database.engine();
  const auto coroutine = [](Engine& locks) -> asio::awaitable<void> {
    CHECK_FALSE(co_await async_try_lock(locks, "job", use_awaitable));
    const auto wait = 200ms * slowness();
    const Stopwatch time;
    CHECK_FALSE(co_await async_try_lock_for(locks, "job", wait, use_awaitable));
    CHECK(time.elapsed() >= wait);
  };
  run(context, coroutine(engine));
}

TEST_CASE("a wait that is cancelled ends, holds nothing, and says that it was aborted, or nothing if it may be empty") {
  Database database;
  asio::io_context context;
  auto other = database.engine();
  auto held = other.lock("job");
  auto engine = database.engine();
  for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::total}) {
    asio::cancellation_signal first, second;
    int calls = 0;
    async_lock(engine, "job",
               asio::bind_cancellation_slot(
                   first.slot(), asio::bind_executor(context, [&](const std::exception_ptr& failure, const Lock& lock) {
                     ++calls;
                     CHECK_FALSE(lock.valid());
                     REQUIRE(failure != nullptr);
                     try {
                       std::rethrow_exception(failure);
                     } catch (const std::system_error& error) { CHECK(error.code() == asio::error::operation_aborted); }
                   })));
    async_try_lock_for(
        engine, "job", 1h,
        asio::bind_cancellation_slot(second.slot(), asio::bind_executor(context, [&](const std::exception_ptr& failure,
                                                                                     const std::optional<Lock>& lock) {
                                       ++calls;
                                       CHECK(failure == nullptr);
                                       CHECK_FALSE(lock);
                                     })));
    REQUIRE(run_until(context, [&] { return engine.stats().waiting["job"] == 2; }));
    CHECK(calls == 0);
    first.emit(type);
    second.emit(type);
    CHECK(run_until(context, [&] { return calls == 2; }));
    CHECK(eventually([&] { return engine.stats().waiting["job"] == 0; }));
  }
  CHECK(held.release() == Released::freed);
  CHECK(other.try_lock("job"));
}

TEST_CASE("a wait beside a timer ends with it") {
  Database database;
  asio::io_context context;
  auto other = database.engine();
  const auto held = other.lock("job");
  auto engine = database.engine();
  const auto coroutine = [](Engine& locks) -> asio::awaitable<void> {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timer(co_await asio::this_coro::executor, 50ms);
    const auto first = co_await (async_lock(locks, "job", use_awaitable) || timer.async_wait(use_awaitable));
    CHECK(first.index() == 1);
    timer.expires_after(1h);
    const auto second = co_await (async_lock(locks, "free", use_awaitable) || timer.async_wait(use_awaitable));
    CHECK(second.index() == 0);
  };
  run(context, coroutine(engine));
  CHECK(eventually([&] { return engine.stats().waiting["job"] == 0; }));
}

TEST_CASE("what is done wrong, and what is broken, is thrown where an awaitable waits, and told to a handler") {
  Database database;
  asio::io_context context;
  auto engine = database.engine();
  database.admin().run("ALTER TABLE resource_lock RENAME TO resource_lock_away");
  const auto coroutine = [](Engine& locks) -> asio::awaitable<void> {
    CHECK(co_await fault_of(async_lock(locks, "", use_awaitable)) == Fault::misuse);
    CHECK(co_await fault_of(async_try_lock_for(locks, "", 1s, use_awaitable)) == Fault::misuse);
    CHECK(co_await fault_of(async_lock(locks, "job", use_awaitable)) == Fault::schema);
    CHECK(co_await fault_of(async_try_lock(locks, "job", use_awaitable)) == Fault::schema);
  };
  run(context, coroutine(engine));
  bool told = false, begun = false;
  async_try_lock(engine, "",
                 asio::bind_executor(context, [&](const std::exception_ptr& failure, const std::optional<Lock>&) {
                   told = failure != nullptr;
                   CHECK(begun);
                 }));
  begun = true;
  context.restart();
  context.run();
  CHECK(told);
  database.admin().run("ALTER TABLE resource_lock_away RENAME TO resource_lock");
}

TEST_CASE("a hundred awaitables on one thread take turns on one name") {
  for (const auto executor : {Executor::unset, Executor::context}) {
    Database database;
    asio::io_context context;
    auto engine = database.engine(options_with(executor, context));
    int inside = 0, most = 0, done = 0;
    const auto coroutine = [&](Engine& locks) -> asio::awaitable<void> {
      auto lock = co_await async_lock(locks, "job", use_awaitable);
      most = std::max(most, ++inside);
      co_await asio::post(co_await asio::this_coro::executor, use_awaitable);  // others run meanwhile
      --inside;
      CHECK(co_await async_release(locks, std::move(lock), use_awaitable) == Released::freed);
      ++done;
    };
    for (int i = 0; i < 100; ++i) asio::co_spawn(context, coroutine(engine), asio::detached);
    context.run();
    CHECK(done == 100);
    CHECK(most == 1);
  }
}

TEST_CASE("an awaitable that waits when its engine ends goes on with misuse") {
  Database database;
  asio::io_context context;
  auto other = database.engine();
  const auto held = other.lock("job");
  std::optional<Engine> engine = database.engine();
  const auto coroutine = [](Engine& locks) -> asio::awaitable<void> {
    CHECK(co_await fault_of(async_lock(locks, "job", use_awaitable)) == Fault::misuse);
  };
  auto end = asio::co_spawn(context, coroutine(*engine), asio::use_future);
  REQUIRE(run_until(context, [&] { return one_waits(*engine, "job"); }));
  engine.reset();
  context.restart();
  context.run();
  REQUIRE(end.wait_for(0s) == std::future_status::ready);
  end.get();
}

// Coroutines that wait for a lock on one thread, without any library for them: a loop that runs what the engine hands
// it, and the least of a coroutine type.
//
//   dlock-migrate -u sqlite:app.db up
//   coroutine sqlite:app.db
#include <dlock/coroutine.hpp>
#include <dlock/dlock.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <utility>
using namespace std::chrono_literals;

namespace {

// Runs functions one after another, on the thread that calls run().
class Loop {
 public:
  void post(std::function<void()> work) {
    {
      const std::lock_guard guard(mutex_);
      work_.push_back(std::move(work));
    }
    more_.notify_one();
  }
  void run_while(const int& left) {
    while (left > 0) next()();
  }

 private:
  std::function<void()> next() {
    std::unique_lock guard(mutex_);
    more_.wait(guard, [&] { return !work_.empty(); });
    auto first = std::move(work_.front());
    work_.pop_front();
    return first;
  }
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> work_;  // guarded by mutex_
};

// A coroutine that begins at once, and that nobody waits for.
struct Task {
  struct promise_type {
    Task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::abort(); }  // each task catches its own
  };
};

// What a coroutine uses comes as arguments: the captures of a lambda would be gone when it goes on.
Task import(dlock::Engine& locks, std::string who, int& left) {
  try {
    const dlock::LockOptions options{.lease = 30s, .label = who};  // of a name: GCC 12 needs that in a coroutine
    auto lock = co_await dlock::lock(locks, "import", options);    // here the thread goes on with others
    std::cout << who << " imports under token " << dlock::number(lock.token()) << '\n';
    const auto released = co_await dlock::release(locks, std::move(lock));
    std::cout << who << ": " << to_string(released) << '\n';
  } catch (const dlock::Error& error) {
    std::cerr << who << ": " << to_string(error.fault()) << ": " << error.what() << '\n';
  }
  --left;
}

}  // namespace

int main(int argc, char** argv) try {
  Loop loop;  // before the engine, which hands it work
  dlock::Engine locks(argc > 1 ? argv[1] : "sqlite:app.db",
                      {.executor = [&loop](std::function<void()> work) { loop.post(std::move(work)); }});
  int left = 3;
  for (const char* who : {"one", "two", "three"}) import(locks, who, left);
  loop.run_while(left);
} catch (const dlock::Error& error) {
  std::cerr << to_string(error.fault()) << ": " << error.what() << '\n';
  return 1;
}

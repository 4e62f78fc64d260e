// Where the handlers of asynchronous calls run.
#pragma once

#include "types/worker.hpp"

#include <functional>
#include <list>
#include <memory>
#include <utility>

namespace dlock::api {

// Handlers are functions that can be copied; what they are handed cannot. Both are here until the one is called.
template <class Handler, class Answer>
struct Telling {
  Telling(Handler&& its_handler, Answer&& its_answer) noexcept
      : handler(std::move(its_handler)), answer(std::move(its_answer)) {}
  void operator()() {
    const auto handle = std::move(handler);
    handle(std::move(answer));
  }
  Handler handler;
  Answer answer;
};

// On the program's executor, or where it has none one after another on a thread of its own.
// Threads: any. Owns: what is to be run, until it is.
class Handlers : public Worker {
 public:
  using Executor = std::function<void(std::function<void()>)>;
  explicit Handlers(Executor executor) : executor_(std::move(executor)) {}

  // Throws std::system_error where there is no thread to be had.
  void prepare();
  // At its end what was posted is still run, but for what has not begun in time. After that nothing is, nor handed to
  // the executor. Throws std::bad_alloc where there is no memory for it, but not what the executor throws.
  void post(std::function<void()> handler);
  // As finish(), with a moment at least for what was posted just now; and until the executor has returned.
  void finish_soon(Instant until) noexcept EXCLUDES(mutex);

 private:
  bool is_too_late() const REQUIRES(mutex);
  void hand_on(std::function<void()> handler) noexcept EXCLUDES(mutex);
  void run() override;

  static inline thread_local const Handlers* hands_on_ = nullptr;  // whose executor this thread is in

  const Executor executor_;
  int handed_on_ GUARDED_BY(mutex) = 0;  // just now, by threads that are in the executor
  std::list<std::function<void()>> posted_ GUARDED_BY(mutex);
};

}  // namespace dlock::api

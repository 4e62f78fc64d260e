// Where the handlers of asynchronous calls run.
#pragma once

#include "types/worker.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace dlock::api {

// Handlers are functions that can be copied; what they are handed cannot.
template <class Handler, class Answer>
std::function<void()> bound(Handler handler, Answer answer) {
  auto both = std::make_shared<std::pair<Handler, Answer>>(std::move(handler), std::move(answer));
  return [both] {
    const auto handle = std::move(both->first);
    handle(std::move(both->second));
  };
}

// On the program's executor, or where it has none one after another on a thread of its own.
// Threads: any. Owns: what is to be run, until it is.
class Handlers : public Worker {
 public:
  using Executor = std::function<void(std::function<void()>)>;
  explicit Handlers(Executor executor) : executor_(std::move(executor)) {}

  // Throws std::system_error where there is no thread to be had.
  void prepare();
  // At its end what was posted is still run, but for what has not begun in time.
  void post(std::function<void()> handler) noexcept;
  // As finish(), with a moment at least for what was posted just now.
  void finish_soon(Instant until) noexcept EXCLUDES(mutex);

 private:
  bool is_too_late() const REQUIRES(mutex);
  void run() override;

  const Executor executor_;
  std::deque<std::function<void()>> posted_ GUARDED_BY(mutex);
};

}  // namespace dlock::api

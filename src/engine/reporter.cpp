// This file knows the queue between the engine and its observer.
#include "engine/reporter.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace dlock::engine {
namespace {

constexpr std::size_t most_waiting = 4096;

struct News {
  Event::Kind kind{};
  std::string name;
  Token token{};
  Duration took{};
  std::string text;
  std::shared_ptr<Held> lost{};
};

}  // namespace

struct Reporter::State {
  explicit State(std::function<void(const Event&)> callback) : observer(std::move(callback)) {}
  const std::function<void(const Event&)> observer;
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex:
  std::deque<News> waiting;
  bool closing = false;

  void deliver(const News& news) const noexcept {
    if (news.lost) news.lost->signal_loss();
    if (!observer) return;
    try {
      observer(Event{news.kind, news.name, news.text, news.token, news.took});
    } catch (...) {  // the observer's own affair: there is nobody here to tell
    }
  }

  void run() {
    std::unique_lock guard(mutex);
    for (;;) {
      changed.wait(guard, [&] { return closing || !waiting.empty(); });
      if (waiting.empty()) return;
      {
        const News news = std::move(waiting.front());
        waiting.pop_front();
        guard.unlock();
        deliver(news);
      }
      guard.lock();
    }
  }
};

Reporter::Reporter(std::function<void(const Event&)> observer) : state_(std::make_shared<State>(std::move(observer))) {}

Reporter::~Reporter() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->closing = true;
  }
  state_->changed.notify_all();
}

bool Reporter::observed() const noexcept { return static_cast<bool>(state_->observer); }

void Reporter::tell(Event::Kind kind, const std::string& name, Token token, Duration took, std::string text) {
  if (!observed()) return;
  const std::lock_guard guard(state_->mutex);
  if (state_->waiting.size() >= most_waiting) {
    for (auto news = state_->waiting.begin(); news != state_->waiting.end(); ++news) {
      if (news->lost || news->kind == Event::Kind::abandoned) continue;
      state_->waiting.erase(news);
      break;
    }
  }
  state_->waiting.push_back(News{kind, name, token, took, std::move(text)});
  wake();
}

void Reporter::tell_loss(std::shared_ptr<Held> held, std::string text) {
  const std::lock_guard guard(state_->mutex);
  state_->waiting.push_back(
      News{Event::Kind::lost, held->name(), held->token(), {}, std::move(text), held});
  wake();
}

// Called with the state's mutex held.
void Reporter::wake() {
  if (!thread_.started()) thread_.start([state = state_] { state->run(); });
  state_->changed.notify_one();
}

}  // namespace dlock::engine

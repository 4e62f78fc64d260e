// The queue between the engine and its observer.
#include "engine/reporter.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

namespace dlock::engine {
namespace {

constexpr std::size_t most_waiting = 4096;
// For what is told at the very end.
constexpr Duration shortest_farewell = std::chrono::milliseconds{100};
// Where the system has no thread to give.
constexpr Duration until_again = std::chrono::milliseconds{100};

struct News {
  Event::Kind kind{};
  std::string name;
  Token token{};
  Duration took{};
  std::string text;
};

bool passing(const News& news) { return news.kind != Event::Kind::lost && news.kind != Event::Kind::abandoned; }

}  // namespace

struct Reporter::State {
  explicit State(std::function<void(const Event&)> callback) : observer(std::move(callback)) {}
  const std::function<void(const Event&)> observer;
  std::mutex mutex;
  std::condition_variable changed, ended;
  // Guarded by mutex:
  std::deque<News> waiting;
  std::function<void()> on_delay;
  bool closing = false, over = false;
  Instant ends_by = Instant::max();

  void deliver(const News& news) const noexcept {
    try {
      observer(Event{news.kind, news.name, news.text, news.token, news.took});
    } catch (...) {  // the observer's own affair: there is nobody here to tell
    }
  }

  void run() {
    std::unique_lock guard(mutex);
    for (;;) {
      changed.wait(guard, [&] { return closing || !waiting.empty(); });
      if (waiting.empty()) break;
      {
        const News news = std::move(waiting.front());
        waiting.pop_front();
        guard.unlock();
        deliver(news);
      }
      guard.lock();
    }
    over = true;
    ended.notify_all();
  }
};

Reporter::Reporter(std::function<void(const Event&)> observer, Duration farewell)
    : farewell_(farewell), state_(std::make_shared<State>(std::move(observer))) {}

Reporter::~Reporter() {
  auto until = later(BootClock::now(), farewell_);
  {
    const std::lock_guard guard(state_->mutex);
    until = std::min(until, std::max(state_->ends_by, later(BootClock::now(), shortest_farewell)));
    state_->closing = true;
  }
  state_->changed.notify_all();
  losses_.close(until);
  std::unique_lock guard(state_->mutex);
  if (thread_.is_this()) state_->waiting.clear();  // nobody is told anything when the engine has ended
  if (!thread_.started() || thread_.is_this()) return;
  if (state_->ended.wait_until(guard, until, [&] { return state_->over; })) return;
  state_->waiting.clear();
  thread_.let_be();
}

void Reporter::close(Instant until) noexcept {
  const std::lock_guard guard(state_->mutex);
  state_->ends_by = std::min(state_->ends_by, until);
}

bool Reporter::observed() const noexcept { return static_cast<bool>(state_->observer); }

void Reporter::tell(Event::Kind kind, const std::string& name, Token token, Duration took, std::string text) noexcept {
  if (observed()) queue(kind, name, token, took, std::move(text));
}

void Reporter::tell_loss(const std::shared_ptr<Held>& held, std::string_view text) noexcept {
  losses_.fire(held);
  if (!observed()) return;
  try {
    queue(Event::Kind::lost, held->name(), held->token(), {}, std::string(text));
  } catch (const std::exception&) {  // there is no memory for the words
    queue(Event::Kind::lost, held->name(), held->token(), {}, {});
  }
}

void Reporter::queue(Event::Kind kind, const std::string& name, Token token, Duration took, std::string text) noexcept {
  try {
    std::function<void()> call;
    {
      const std::lock_guard guard(state_->mutex);
      auto& waiting = state_->waiting;
      if (waiting.size() >= most_waiting)
        if (const auto oldest = std::ranges::find_if(waiting, passing); oldest != waiting.end()) waiting.erase(oldest);
      waiting.push_back(News{kind, name, token, took, std::move(text)});
      state_->changed.notify_one();
      if (ensure_running()) return;
      call = state_->on_delay;
    }
    if (call) call();
  } catch (const std::exception&) {  // there is no memory to tell it
  }
}

// Called with the state's mutex held. False: the system has no thread to give.
bool Reporter::ensure_running() noexcept {
  if (thread_.started()) return true;
  try {
    thread_.start([state = state_] { state->run(); });
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

void Reporter::on_delay(std::function<void()> call) {
  losses_.on_delay(call);
  const std::lock_guard guard(state_->mutex);
  state_->on_delay = std::move(call);
}

Instant Reporter::look_after() noexcept {
  const auto next = losses_.look_after();
  const std::lock_guard guard(state_->mutex);
  if (state_->waiting.empty() || ensure_running()) return next;
  return std::min(next, later(BootClock::now(), until_again));
}

}  // namespace dlock::engine

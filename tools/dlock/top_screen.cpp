// What the keys of `dlock top` do, and that it goes on while the database is away.
#include "top_screen.hpp"

#include "screen.hpp"
#include "terminal.hpp"
#include "waiting.hpp"

#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace dlock::tools {
namespace {

constexpr int patience_ms = 80;  // with a statement under way, before this process leaves without its answer

// Looks at the table on a thread of its own, because the database may hang.
class Looker {
 public:
  struct Snapshot {
    std::vector<Holder> rows{};
    std::string trouble{};  // why the rows are old
    bool known = false, done = false;
    std::exception_ptr failure{};  // of the first look
  };

  explicit Looker(const TopQuestion& question) : question_(question) {
    if (ready_ < 0) throw std::runtime_error(std::strerror(errno));
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~Looker() {
    thread_ = {};
    ::close(ready_);
  }
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

  int ready() const { return ready_; }
  Snapshot snapshot() {
    std::uint64_t count = 0;
    static_cast<void>(::read(ready_, &count, sizeof count));
    const std::lock_guard guard(mutex_);
    return snapshot_;
  }
  void look_now() {
    const std::lock_guard guard(mutex_);
    asked_ = true;
    wake_.notify_all();
  }
  // False: it hangs.
  bool stop() {
    thread_.request_stop();
    std::unique_lock guard(mutex_);
    return ended_.wait_for(guard, std::chrono::milliseconds{patience_ms}, [&] { return gone_; });
  }

 private:
  void run(const std::stop_token& stop) {
    std::optional<Engine> engine;
    for (std::int64_t i = 0; !stop.stop_requested() && (!question_.times || i < *question_.times); ++i) {
      look(engine);
      std::unique_lock guard(mutex_);
      if (snapshot_.failure) break;
      wake_.wait_for(guard, stop, question_.delay, [&] { return asked_; });
      asked_ = false;
    }
    engine.reset();
    const std::lock_guard guard(mutex_);
    snapshot_.done = true;
    gone_ = true;
    notify();
    ended_.notify_all();
  }

  void look(std::optional<Engine>& engine) {
    std::vector<Holder> rows;
    std::string trouble;
    std::exception_ptr failure;
    try {
      if (!engine) engine.emplace(question_.url, question_.options);
      rows = with_holder(engine->list(question_.glob));
    } catch (const std::exception& error) {
      trouble = without_passwords(error.what());
      failure = std::current_exception();
    }
    const std::lock_guard guard(mutex_);
    if (failure && !snapshot_.known) snapshot_.failure = failure;
    snapshot_.trouble = printable(trouble);
    if (!failure) {
      snapshot_.rows = std::move(rows);
      snapshot_.known = true;
    }
    notify();
  }

  void notify() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(ready_, &one, sizeof one));
  }

  const TopQuestion question_;
  const int ready_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable ended_;
  Snapshot snapshot_;
  bool asked_ = false, gone_ = false;
  std::jthread thread_{};
};

// What is on the screen, and what a key makes of it.
class Desk {
 public:
  Desk(Screen& screen, Looker& looker, TopView view, std::string glob)
      : screen_(screen), looker_(looker), view_(std::move(view)), glob_(std::move(glob)) {}

  void take(Looker::Snapshot snapshot) { snapshot_ = std::move(snapshot); }

  void draw() {
    const auto rows = arranged(snapshot_.rows, view_);
    const auto room = screen_.rows_of_table();
    first_ = std::min(first_, rows.size() > room ? rows.size() - room : 0);
    Frame frame;
    frame.title =
        "dlock top  " + (snapshot_.known ? summary(rows) : "…") + (glob_ == "*" ? "" : "  of " + printable(glob_));
    for (std::size_t i = first_; i < std::min(rows.size(), first_ + room); ++i) {
      frame.rows.push_back(cells_of(rows[i]));
      frame.alarming.push_back(rows[i].state == State::expired);
    }
    frame.bottom = typing_ ? "filter: " + view_.filter + "_"
                   : !snapshot_.trouble.empty()
                       ? "old: " + snapshot_.trouble
                       : fmt::format("q quit  sorted by {}{}  n o t h l w r  / filter{}",
                                     titles()[static_cast<std::size_t>(view_.by)], view_.reversed ? " reversed" : "",
                                     view_.filter.empty() ? "" : ": " + view_.filter + " (Esc: all)");
    screen_.draw(frame);
  }

  // False: the end was wanted.
  bool heed(const Pressed& pressed) {
    if (typing_) {
      type(pressed);
      return true;
    }
    const auto page = std::max<std::size_t>(screen_.rows_of_table(), 1);
    switch (pressed.key) {
      case Key::up: first_ -= std::min<std::size_t>(first_, 1); break;
      case Key::down: ++first_; break;
      case Key::page_up: first_ -= std::min(first_, page); break;
      case Key::page_down: first_ += page; break;
      case Key::home: first_ = 0; break;
      case Key::end: first_ = snapshot_.rows.size(); break;
      case Key::escape: view_.filter.clear(); break;
      case Key::text: return letter(pressed.text);
      case Key::enter:
      case Key::erase:
      case Key::none: break;
    }
    return true;
  }

 private:
  void type(const Pressed& pressed) {
    auto& filter = view_.filter;
    if (pressed.key == Key::text) filter += pressed.text;
    if (pressed.key == Key::erase && !filter.empty()) {
      while (filter.size() > 1 && (static_cast<unsigned char>(filter.back()) & 0xC0) == 0x80) filter.pop_back();
      filter.pop_back();
    }
    if (pressed.key == Key::escape) filter.clear();
    typing_ = pressed.key != Key::enter && pressed.key != Key::escape;
    first_ = 0;
  }

  bool letter(const std::string& text) {
    constexpr std::string_view keys =
        "nothlw";  // in the order of the columns: name, holder (owner), token, held, left, waiters
    if (text == "q") return false;
    if (text == "r") view_.reversed = !view_.reversed;
    if (text == " ") looker_.look_now();
    if (text == "/") typing_ = true;
    if (text.size() == 1)
      if (const auto at = keys.find(text.front()); at != std::string_view::npos) view_.by = static_cast<Column>(at);
    return true;
  }

  Screen& screen_;
  Looker& looker_;
  TopView view_;
  const std::string glob_;
  Looker::Snapshot snapshot_;
  std::size_t first_ = 0;
  bool typing_ = false;
};

// The signal that ends it all, or 0.
int heed_signals(const Signals& signals, Screen& screen, bool writable, bool& resized) {
  signalfd_siginfo info{};
  while (::read(signals.descriptor(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGHUP || number == SIGINT || number == SIGTERM || number == SIGQUIT) return number;
    if (number == SIGWINCH) resized = true;
    if (number == SIGTSTP && writable) {
      screen.leave();
      run::stop_this_process(run::Stop::alone);
      screen.come_back();
    }
  }
  return 0;
}

}  // namespace

int show_on_screen(const TopQuestion& question, const TopView& view, const Console& console) {
  const Signals signals;
  std::optional<Screen> screen(std::in_place, console.colors());
  Looker looker(question);
  Desk desk(*screen, looker, view, question.glob);
  int ended_by = 0;
  bool resized = false;
  std::exception_ptr failure;
  for (bool open = true; open;) {
    // A terminal may take nothing, after ^S: then only what ends it is heeded.
    pollfd terminal{STDOUT_FILENO, POLLOUT, 0};
    const bool drawn = ::poll(&terminal, 1, 0) > 0;
    if (drawn && std::exchange(resized, false)) screen->fit();
    if (drawn) desk.draw();
    if (drawn) terminal.fd = -1;
    std::array<pollfd, 4> sources{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals.descriptor(), POLLIN, 0},
                                  pollfd{looker.ready(), POLLIN, 0}, terminal};
    ::poll(sources.data(), sources.size(), -1);
    ended_by = heed_signals(signals, *screen, drawn, resized);
    if (ended_by == 0 && (sources[0].revents & (POLLHUP | POLLERR)) != 0)
      ended_by = SIGHUP;  // nobody is there any more
    if (ended_by != 0) break;
    for (auto pressed = screen->pressed(); open && pressed.key != Key::none; pressed = screen->pressed())
      open = desk.heed(pressed);
    auto snapshot = looker.snapshot();
    failure = snapshot.failure;
    open = open && !failure && !snapshot.done;
    desk.take(std::move(snapshot));
  }
  const int code = ended_by != 0 ? 128 + ended_by : number(Exit::ok);
  const bool hangs = !looker.stop();
  signals.restore(ended_by);
  screen.reset();
  if (hangs) ::_exit(code);
  if (ended_by == 0 && failure) std::rethrow_exception(failure);
  return code;
}

}  // namespace dlock::tools

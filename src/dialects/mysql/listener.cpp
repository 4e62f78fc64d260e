// How to wait for a holder's signal without ever missing one, and for one engine at a time: the one
// that holds the most of what is waited for.
#include "listener.hpp"

#include "dialects/interrupt.hpp"
#include "faults.hpp"
#include "signal.hpp"
#include "types/mutant.hpp"
#include "types/process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

namespace dlock::dialects::mysql {
namespace {

// How long one statement waits, so that the listener can turn to another engine; in whole seconds, since MySQL rounds.
constexpr int at_once_s = 1;
// The answer to such a statement is overdue then: the server or the network is gone.
constexpr std::chrono::seconds longest_silence{10};
// A lock that is free is had in less, or in a few round trips.
constexpr BootClock::duration longest_answer = std::chrono::milliseconds{200};
constexpr int longest_answer_in_trips = 3;
// Before it is looked whether an engine that has never notified has, and the first time was missed.
constexpr BootClock::duration shortest_pause = std::chrono::milliseconds{20}, longest_pause = std::chrono::seconds{1};
constexpr std::size_t most_remembered = 100;

class NamedLockListener final : public Listener {
 public:
  NamedLockListener(std::unique_ptr<ServerConnection> connection, std::string user, std::string table,
                    BootClock::duration round_trip)
      : user_(std::move(user)),
        table_(std::move(table)),
        patience_(std::max(longest_answer, longest_answer_in_trips * round_trip)),
        connection_(std::move(connection)) {}
  ~NamedLockListener() override {
    if (fork_guard_.forked()) static_cast<void>(connection_.release());  // it is the parent's
    // The server has no answer yet, and the farewell must not wait for it.
    else if (asked_) ::shutdown(mysql_get_socket(connection_->native()), SHUT_RDWR);
  }
  NamedLockListener(const NamedLockListener&) = delete;
  NamedLockListener& operator=(const NamedLockListener&) = delete;

  Notification wait(std::span<const AwaitedLock> awaited, Deadline until) override;

  bool hears(const AwaitedLock& awaited) const override {
    return asked_ && engine_of(awaited.holder) == asked_->engine && blocked(*asked_);
  }

  void interrupt() noexcept override { interrupt_.raise(); }

 private:
  struct Asked {
    std::string engine, sql;
    int number = 0;
    Instant since{};
    bool reading = false;  // the query is done, its rows are being read
    int status = 0;        // what the client library waits for
    int result = 0;
    MYSQL_RES* rows = nullptr;
  };
  // What a statement has shown of an engine.
  struct Shown {
    std::string engine;
    int number = 0;          // the signal that was waited for
    bool free = false;       // it was not held, or has been freed
    std::optional<int> now;  // the signal that is held now
  };

  void ask(std::string_view engine);
  // Whether the statement can be believed to wait: the engine's signal is known, or would have been shown free by now.
  bool blocked(const Asked& asked) const {
    return numbers_.find(asked.engine) != numbers_.end() || later(asked.since, patience_) < BootClock::now();
  }
  // Goes on with the statement until it needs the network again; what it has shown once it is through.
  std::optional<Shown> proceed();
  short events() const noexcept;
  [[noreturn]] void fail(Cause cause, const std::string& text);
  // Keeps what was shown in mind. True: a release of that engine may have been missed otherwise.
  bool remember(const Shown& shown);

  const ForkGuard fork_guard_;
  const std::string user_, table_;
  const BootClock::duration patience_;
  Interrupt interrupt_;
  std::unique_ptr<ServerConnection> connection_;
  std::optional<Asked> asked_;
  std::map<std::string, int, std::less<>> numbers_;  // the signal each engine held when it was last heard of
};

void NamedLockListener::fail(Cause cause, const std::string& text) {
  throw Failure(cause, "MySQL: the connection that listens for releases is lost: " + text);
}

void NamedLockListener::ask(std::string_view engine) {
  const auto known = numbers_.find(engine);
  const int number = known == numbers_.end() ? 0 : known->second;
  const auto name = [&](int of) { return signal_name(engine, table_, of); };
  auto& asked = asked_.emplace(Asked{});
  asked.engine = engine;
  asked.number = number;
  asked.sql =
      fmt::format("SELECT GET_LOCK({}, {}), RELEASE_LOCK({}), COALESCE(", name(number), at_once_s, name(number));
  // The next one first: others who have waited for this one may be about to have it for a moment.
  for (int i = 1; i <= signals; ++i) {
    const int other = (number + i) % signals;
    asked.sql += fmt::format("IS_USED_LOCK({}) * 0 + {}{}", name(other), other, i < signals ? ", " : ")");
  }
  asked.since = BootClock::now();
  asked.status = mysql_real_query_start(&asked.result, connection_->native(), asked.sql.data(), asked.sql.size());
}

std::optional<NamedLockListener::Shown> NamedLockListener::proceed() {
  auto* const from = connection_->native();
  auto& asked = *asked_;
  const auto failed = [&] { return failure_of(mysql_errno(from), mysql_error(from), user_, false); };
  if (asked.status != 0) {
    pollfd source{mysql_get_socket(from), events(), 0};
    if (::poll(&source, 1, 0) <= 0) return std::nullopt;
    asked.status = asked.reading ? mysql_store_result_cont(&asked.rows, from, asked.status)
                                 : mysql_real_query_cont(&asked.result, from, asked.status);
  }
  if (asked.status == 0 && !asked.reading) {
    if (asked.result != 0) throw failed();
    asked.reading = true;
    asked.status = mysql_store_result_start(&asked.rows, from);
  }
  if (asked.status != 0) return std::nullopt;
  const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> rows(asked.rows, &mysql_free_result);
  MYSQL_ROW row = rows ? mysql_fetch_row(rows.get()) : nullptr;
  if (row == nullptr) throw failed();
  if (row[0] == nullptr) fail(Cause::disconnected, "a named lock could not be waited for");
  Shown shown{asked.engine, asked.number, std::string_view(row[0]) == "1", std::nullopt};
  if (row[2] != nullptr) shown.now = std::atoi(row[2]);
  asked_.reset();
  return shown;
}

short NamedLockListener::events() const noexcept {
  short events = 0;
  if ((asked_->status & MYSQL_WAIT_READ) != 0) events |= POLLIN;
  if ((asked_->status & MYSQL_WAIT_WRITE) != 0) events |= POLLOUT;
  if ((asked_->status & MYSQL_WAIT_EXCEPT) != 0) events |= POLLPRI;
  return events;
}

bool NamedLockListener::remember(const Shown& shown) {
  if (shown.free && !shown.now) return numbers_.erase(shown.engine) > 0;  // its process has ended, or its connection
  if (numbers_.size() >= most_remembered) numbers_.clear();
  numbers_[shown.engine] = shown.free ? *shown.now : shown.number;
  return shown.free;
}

// The engine in most of the holders; empty: none of them is known.
std::string_view busiest(std::span<const AwaitedLock> awaited) {
  std::map<std::string_view, int> counts;
  std::string_view most;
  for (const auto& one : awaited)
    if (const auto engine = engine_of(one.holder); !engine.empty() && ++counts[engine] > counts[most]) most = engine;
  return most;
}

Notification NamedLockListener::wait(std::span<const AwaitedLock> awaited, Deadline until) {
  const auto engine = busiest(awaited);
  const auto of = [&](std::string_view notifier) {
    Notification heard;
    for (const auto& one : awaited)
      if (engine_of(one.holder) == notifier) heard.names.push_back({one.name, {}});
    return heard;
  };
  auto ask_again = Instant::min();  // an engine without a signal gets one when it first notifies
  auto pause = shortest_pause;
  for (;;) {
    if (!asked_ && !engine.empty() && BootClock::now() >= ask_again) ask(engine);
    if (!asked_) {
      const auto next = engine.empty() ? until : until.no_later_than(ask_again);
      if (interrupt_.wait(-1, 0, next) == Interrupt::Ended::interrupted) return {};
      if (until.passed()) return {};
      continue;
    }
    while (asked_) {
      const bool waited = blocked(*asked_);
      if (const auto shown = proceed()) {
        if (shown->free && !shown->now && shown->engine == engine)
          ask_again = later(BootClock::now(), std::exchange(pause, std::min(2 * pause, longest_pause)));
        // Who was told that this engine is heard, and was not, must look.
        const bool told = remember(*shown) || (shown->free && waited);
        if (!told) break;
        auto heard = of(shown->engine);
        // Who has just seen it hold what it has freed since is not among the awaited yet, or as somebody else's.
        heard.everything = heard.empty() && !planted("unawaited_unheard");
        if (!heard.empty()) return heard;
        break;
      }
      const auto next = until.no_later_than(later(asked_->since, longest_silence));
      const auto ended = interrupt_.wait(mysql_get_socket(connection_->native()), events(), next);
      if (ended == Interrupt::Ended::ready) continue;
      if (ended == Interrupt::Ended::interrupted || until.passed()) return {};
      fail(Cause::timed_out, "no answer in time");
    }
    if (!asked_ && until.passed()) return {};
  }
}

}  // namespace

std::unique_ptr<Listener> open_listener(const Server& server, const TableNames& names, Deadline deadline) {
  auto connection = std::make_unique<ServerConnection>(server, SessionUse{}, deadline);
  // Named locks belong to one server: in a cluster, those who notify may be on another one.
  if (connection->in_cluster()) return nullptr;
  const auto begun = BootClock::now();
  make_lasting(*connection, deadline);
  const auto round_trip = BootClock::now() - begun;
  return std::make_unique<NamedLockListener>(std::move(connection), server.user, names.channel(), round_trip);
}

}  // namespace dlock::dialects::mysql

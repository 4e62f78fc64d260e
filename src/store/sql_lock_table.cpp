// Which named statement answers which question, and how its answer reads; what is looked at before a table is used; how
// long a connection may take to open; and when a server that was reached anew is asked for its weaknesses.
#include "store/sql_lock_table.hpp"

#include "dialects/mutants.hpp"
#include "migrate/assessment.hpp"
#include "store/combining.hpp"
#include "store/holder_rows.hpp"
#include "store/holders.hpp"
#include "store/in_the_way.hpp"
#include "store/installation.hpp"
#include "store/lock_history.hpp"
#include "store/lock_statements.hpp"
#include "store/pool.hpp"
#include "store/release_notice.hpp"
#include "store/renewals.hpp"
#include "store/sql_caller_transaction.hpp"
#include "store/sql_reaper_table.hpp"
#include "store/sql_waiter_table.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/pause.hpp"
#include "types/retry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>

namespace dlock::store {
namespace {

using dialects::Statement;

class SqlLockTable final : public LockTable {
  template <class Work>
  auto on_connection(const Deadline& deadline, Work work, Pool::Opening opening = Pool::Opening::at_once)
      -> decltype(work(std::declval<dialects::Connection&>(), deadline)) {
    return pool_.borrow(deadline, opening).use(deadline, std::move(work));
  }

  template <class Read>
  auto asked(const Statement& statement, std::initializer_list<Argument> arguments, Deadline deadline, Read read) {
    return on_connection(deadline, [&](dialects::Connection& connection, const Deadline& promptly) {
      return read(connection.run(statement, {arguments.begin(), arguments.size()}, promptly));
    });
  }

  // The same for what reads or writes many rows, which takes its time.
  template <class Read>
  auto scanned(const Statement& statement, std::initializer_list<Argument> arguments, Deadline deadline, Read read) {
    return on_connection(deadline, [&](dialects::Connection& connection, const Deadline&) {
      return read(connection.run(statement, {arguments.begin(), arguments.size()}, deadline));
    });
  }

  std::int64_t affected(const Statement& statement, std::initializer_list<Argument> arguments, Deadline deadline) {
    return asked(statement, arguments, deadline, [](const Answer& answer) { return answer.affected; });
  }

  // Of a statement that frees a row.
  bool freed(const Statement& statement, std::initializer_list<Argument> arguments, Deadline deadline) {
    return asked(statement, arguments, deadline, [this](const Answer& answer) {
      release_notice_->heed(answer);
      return answer.affected > 0;
    });
  }

 public:
  SqlLockTable(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
               const TableOptions& options)
      : dialect_(dialect),
        connector_(std::move(connector)),
        connect_timeout_(options.connect_timeout),
        pool_([this](Deadline deadline) { return connector_->connect(to_connect(deadline)); }, options.connections) {
    const auto deadline = later(BootClock::now(), options.connect_timeout);
    auto connection = connector_->connect(deadline);
    const auto begun = BootClock::now();
    const auto default_schema = names_.schema = connection->default_schema(deadline);
    const auto round_trip = BootClock::now() - begun;
    if (!options.schema.empty()) names_.schema = options.schema;
    names_.lock = options.table;
    names_.history = options.history_table.empty() ? options.table + "_schema_history" : options.history_table;
    in_cluster_ = !connection->position(deadline).empty();  // first: what is looked at then is up to date
    lock_wait_ = connection->lock_wait();
    const auto text = dialects::with_planted(dialect_.texts().lock_sql, dialect_.name());
    statements_ = dialects::Statements(text, names_, dialect_.traits().marker,
                                       [this](std::string_view identifier) { return dialect_.quote(identifier); });
    ask_ = std::make_unique<LockStatements>(statements_);
    const auto on_one = [this](const Deadline& until, const auto& work) {
      on_connection(until, [&](dialects::Connection& peer, const Deadline& promptly) {
        work(peer, promptly);
        return true;
      });
    };
    waiting_.emplace(statements_, on_one);
    history_.emplace(statements_, migrate::named(names_, default_schema), on_one);
    in_the_way_.emplace(statements_, names_,
                        [this](Deadline until, const auto& work) { return on_connection(until, work); });
    release_notice_.emplace(connector_->release_signal(names_, options.engine));
    reaping_.emplace(statements_, dialect_.traits().removal_pace, *release_notice_, on_one);
    holders_.emplace(statements_, on_one, [this] { release_notice_->ask(); });
    combining_.emplace(statements_, pool_, *release_notice_, options.combine);
    unless_locked(deadline, [&] { migrate::check_compatible(*connection, dialect_, names_, deadline); });
    pool_.adopt(std::move(connection), round_trip);
    home_.emplace(statements_, on_one, fmt::format("{} of {}", migrate::shown(names_), connector_->target()),
                  options.connect_timeout);
    unless_locked(deadline, [&] {
      home_->read();
      if (options.history) history_->check(deadline);
    });
  }

  Granted acquire(const AcquireRequest& ask, Deadline deadline) override {
    return ask.mode == Mode::exclusive ? combining_->acquire(ask, deadline) : holders_->add(ask, deadline);
  }
  Left leave(const LeaseKey& key, Deadline deadline) override {
    return key.mode == Mode::exclusive ? Left{combining_->release(key, deadline)} : holders_->drop(key, deadline);
  }

  std::vector<std::optional<Granted>> acquire_together(std::span<const AcquireRequest> asks,
                                                       Deadline deadline) override {
    return combining_->acquire_together(asks, deadline);
  }
  std::vector<std::optional<bool>> release_together(std::span<const LeaseKey> keys, Deadline deadline) override {
    return combining_->release_together(keys, deadline);
  }

  void withdraw(std::string_view name, std::string_view owner, Deadline deadline, Mode mode, Token kept) override {
    if (mode != Mode::exclusive) return holders_->withdraw(name, owner, kept, deadline);
    freed(ask_->withdraw, {name, owner}, deadline);
  }

  // The exclusive leases in one statement, and those of several in another.
  std::vector<Renewal> renew(std::span<const LeaseKey> keys, Deadline deadline) override {
    return renew_each(keys, {[&](auto plain) { return renew_plain(plain, deadline); },
                             [&](auto shared) { return holders_->renew(shared, deadline); }});
  }

  Renewal extend(const LeaseKey& key, Duration lease, Duration at_least, Deadline deadline) override {
    if (key.mode != Mode::exclusive) return holders_->extend(key, lease, std::max(at_least, Duration{}), deadline);
    return asked(ask_->extend, {key.name, key.owner, number(key.token), lease.count(), at_least.count()}, deadline,
                 renewed_one);
  }

  bool update_metadata(const LeaseKey& key, std::string_view metadata, Keep keep, Deadline deadline) override {
    if (key.mode != Mode::exclusive) return holders_->update_metadata(key, metadata, keep, deadline);
    const std::int64_t kept = keep == Keep::for_next ? 1 : 0;
    return affected(ask_->update_metadata, {key.name, key.owner, number(key.token), metadata, kept}, deadline) > 0;
  }

  // Who has the grant may not know its mode.
  std::optional<Mode> adopt(const LeaseKey& from, const AcquireRequest& to, Deadline deadline) override {
    if (from.mode != Mode::exclusive) return holders_->adopt(from, to, deadline);
    if (affected(ask_->adopt,
                 {from.name, from.owner, number(from.token), to.owner, to.node, to.label, to.actor, to.lease.count(),
                  to.metadata},
                 deadline) > 0)
      return Mode::exclusive;
    return std::nullopt;
  }

  std::optional<Token> downgrade(const LeaseKey& from, std::string_view new_owner, Deadline deadline) override {
    if (planted("downgrade_with_gap")) {
      static_cast<void>(leave(from, deadline));
      delay(std::chrono::milliseconds{20});
      const Name name(from.name);
      AcquireRequest ask{name, new_owner, {}, {}, {}, from.lease, {}, {}};
      ask.mode = Mode::shared;
      return acquire(ask, deadline).token;
    }
    return holders_->downgrade(from, new_owner, deadline);
  }
  std::optional<Token> upgrade(const LeaseKey& from, std::string_view new_owner, Deadline deadline) override {
    return holders_->upgrade(from, new_owner, deadline);
  }

  bool force_release(std::string_view name, Token seen, std::string_view reason, Deadline deadline) override {
    const auto gate = holders_->gate(name, seen, deadline);
    const bool done = freed(ask_->force_release, {name, number(seen), reason}, deadline);
    if (done && gate) holders_->drop(name, *gate, deadline);
    return done;
  }

  Busy busy(std::string_view name, Deadline deadline) override {
    return asked(ask_->busy, {name}, deadline, [](const Answer& answer) {
      if (answer.rows() == 0) return Busy::no;
      return answer.integer(0, 0) == 2 ? Busy::lingers : Busy::yes;
    });
  }
  bool lingering(bool tell, Deadline deadline) override {
    if (tell) affected(ask_->tell_lingering, {}, deadline);
    return tell || asked(ask_->lingering, {}, deadline, [](const Answer& answer) { return answer.rows() != 0; });
  }
  std::vector<LeaseStatus> lease_status(std::span<const LeaseKey> keys, Deadline deadline) override {
    return combining_->lease_status(keys, deadline);
  }

  std::optional<std::size_t> first_busy(std::span<const std::string_view> names, Deadline deadline) override {
    return combining_->first_busy(names, deadline);
  }
  Availability look(std::string_view name, std::int64_t ticket, Deadline deadline) override {
    return asked(ask_->look, {name, ticket}, deadline, [](const Answer& answer) {
      return answer.rows() == 0 ? Availability{true, {}} : availability_of(answer);
    });
  }
  Availability look_for(const AcquireRequest& ask, Deadline deadline) override {
    return ask.mode == Mode::exclusive ? look(ask.name.text(), ask.ticket, deadline) : holders_->look(ask, deadline);
  }

  RowAvailability row_availability(std::string_view name, Deadline deadline) override {
    return asked(ask_->row_availability, {name}, deadline, [](const Answer& answer) {
      if (answer.rows() == 0) throw no_floor();
      return RowAvailability{answer.integer(0, 0) != 0, answer.integer(0, 1) != 0, Duration{answer.integer(0, 2)},
                             Token{answer.integer(0, 3)}};
    });
  }

  void make(std::string_view name, Deadline deadline) override { affected(ask_->make, {name}, deadline); }

  Blocked blocked(std::string_view name, Deadline deadline) override {
    return in_the_way_->blocked(
        name, false, [&] { return look(name, 0, deadline).free; }, deadline);
  }
  Blocked blocked_for(const AcquireRequest& ask, Deadline deadline) override {
    const auto looks_free = [&] {
      if (planted("sharer_kept_out_by_gate")) return look(ask.name.text(), 0, deadline).free;
      return look_for(ask, deadline).free;
    };
    return in_the_way_->blocked(ask.name.text(), ask.mode != Mode::exclusive, looks_free, deadline);
  }
  std::string position(Deadline deadline) override {
    if (!in_cluster_) return {};
    return on_connection(
        deadline, [](dialects::Connection& connection, const Deadline& until) { return connection.position(until); });
  }

  std::unique_ptr<CallerTransaction> caller_transaction(const TransactionRef& transaction) override {
    return store::caller_transaction(dialect_, statements_, names_, *home_, transaction);
  }

  std::string fence_sql(const LeaseKey& key) const override {
    return fence_text(dialect_, statements_, home_->installation(), key, FenceSender::another);
  }

  std::optional<Duration> lease_of_holder(const LeaseKey& key, Deadline deadline) override {
    return holders_->lease_of(key, deadline);
  }
  std::optional<Holder> inspect(std::string_view name, Deadline deadline) override {
    return asked(ask_->inspect, {name}, deadline, [](const Answer& answer) -> std::optional<Holder> {
      if (answer.rows() == 0) return std::nullopt;
      return holder_of(answer, 0);
    });
  }

  std::vector<Holder> list(std::string_view prefix, Deadline deadline) override {
    return scanned(ask_->list, {prefix}, deadline, [](const Answer& answer) {
      std::vector<Holder> holders;
      holders.reserve(answer.rows());
      for (std::size_t row = 0; row < answer.rows(); ++row) holders.push_back(holder_of(answer, row));
      return holders;
    });
  }

  Token floor(Deadline deadline) override { return asked(ask_->floor, {}, deadline, floor_of); }

  std::vector<HistoryEntry> history(std::string_view name, std::size_t limit, Deadline deadline) override {
    return history_->of(name, limit, deadline);
  }
  bool keeps_history(Deadline deadline) override { return history_->kept(deadline); }

  std::unique_ptr<dialects::Listener> open_listener(Deadline deadline) override {
    return connector_->listener(names_, to_connect(deadline));
  }

  WaiterTable& waiting() noexcept override { return *waiting_; }
  ReaperTable& reaping() noexcept override { return *reaping_; }
  // It may be another server now. To ask in vain spoils a connection that a request needed: then not again for a while.
  void on_reconnect(Reconnected hook) override {
    const auto ask_from = std::make_shared<std::atomic<Instant>>(Instant{});
    pool_.on_reconnect([hook = std::move(hook), ask_from](dialects::Connection& connection, const Deadline& until) {
      hook([&]() -> std::optional<std::vector<std::string>> {
        try {
          if (BootClock::now() >= ask_from->load()) return connection.weaknesses(until);
        } catch (const Failure&) { ask_from->store(later(BootClock::now(), std::chrono::minutes{1})); }
        return std::nullopt;
      });
    });
  }

  std::vector<std::string> weaknesses(Deadline deadline) override {
    return on_connection(
        deadline, [&](dialects::Connection& connection, const Deadline&) { return connection.weaknesses(deadline); });
  }

  void drain(const Deadline& deadline) override { pool_.drain(deadline); }
  Duration smallest_margin() const noexcept override { return dialect_.traits().smallest_margin; }
  Duration answer_time() const noexcept override { return pool_.answer_time(lock_wait_); }
  Duration round_trip() const noexcept override { return pool_.round_trip(); }
  bool heard_by_holder() const noexcept override { return dialect_.traits().heard_by_holder; }
  Traffic traffic() const override { return combining_->traffic(); }

 private:
  Deadline to_connect(Deadline deadline) const {
    return deadline.no_later_than(later(BootClock::now(), connect_timeout_));
  }

  std::string in_the_way() const {
    const auto time = std::min<Duration>(connect_timeout_, std::chrono::seconds{1} + 2 * lock_wait_);
    try {
      return in_the_way_->said_of_tables(later(BootClock::now(), time));
    } catch (const Failure&) { return {}; }
  }

  // Looks at tables that may be locked as a whole, while one is altered or dumped, say: again as long as there is time
  // for it; then it is said what is in the way.
  void unless_locked(const Deadline& deadline, const std::function<void()>& look) {
    constexpr Duration pause = std::chrono::milliseconds{50};
    bool locked = false;
    try {
      dlock::retry(look, [&](const Failure& failure) {
        if (failure.cause() != Cause::locked) return false;
        locked = true;
        const auto again = later(BootClock::now(), pause);
        // A table is waited for about half as long as a row at the most; a look that is cut off is no harm.
        return later(again, lock_wait_ / 2) < deadline.at() && !pause_until(again, deadline.stop());
      });
    } catch (const Failure& failure) {
      // The last look may have had no time left.
      const bool is_it = failure.cause() == Cause::locked || (locked && failure.cause() == Cause::timed_out);
      if (!is_it || planted("locked_at_opening_unnamed")) throw;
      const auto said = in_the_way();
      if (said.empty()) throw;
      throw Failure(Cause::locked, fmt::format("the table {} cannot be looked at: {}", migrate::shown(names_), said),
                    failure.code());
    }
  }

  std::vector<Renewal> renew_plain(std::span<const LeaseKey> keys, Deadline deadline) {
    const auto rows = renewal_arguments(keys);
    return on_connection(
        deadline,
        [&](dialects::Connection& connection, const Deadline&) {
          return renewed_many(keys, connection.run_rows(ask_->renew, rows, 4, deadline));
        },
        Pool::Opening::if_need_be);
  }

  const dialects::Dialect& dialect_;
  const std::unique_ptr<dialects::Connector> connector_;
  const Duration connect_timeout_;
  bool in_cluster_ = false;
  Duration lock_wait_{};
  dialects::TableNames names_;
  dialects::Statements statements_;
  std::unique_ptr<const LockStatements> ask_;
  std::optional<const Holders> holders_;
  std::optional<InTheWay> in_the_way_;
  std::optional<SqlWaiterTable> waiting_;
  std::optional<SqlReaperTable> reaping_;
  std::optional<const LockHistory> history_;
  std::optional<ReleaseNotice> release_notice_;
  std::optional<Home> home_;
  Pool pool_;  // its connections go before what they are used by
  std::optional<Combining> combining_;
};

}  // namespace

std::unique_ptr<LockTable> open_lock_table(const dialects::Dialect& dialect,
                                           std::unique_ptr<dialects::Connector> connector,
                                           const TableOptions& options) {
  return std::make_unique<SqlLockTable>(dialect, std::move(connector), options);
}

}  // namespace dlock::store

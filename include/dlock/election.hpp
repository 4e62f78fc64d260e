// Elects one leader among those who campaign for a name, and tells everybody who it is.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/engine.hpp>
#include <dlock/export.hpp>
#include <dlock/holder.hpp>
#include <dlock/lock.hpp>
#include <dlock/options.hpp>
#include <dlock/token.hpp>
#include <dlock/transaction.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// One term in office: from the grant of the lock until it is lost, or given up. A copy is the same term.
// Threads: all members from any, also at the same time, each transaction on one thread.
// Owns: a share of what is known of the term. A copy that is kept keeps nobody in office, and what it shares of the
// engine lives as long as it does, as with a Lock.
class DLOCK_EXPORT Term {
 public:
  struct State;
  explicit Term(std::shared_ptr<State> state) noexcept;  // the election's

  // The name that was campaigned for.
  const std::string& name() const noexcept;
  // The fencing token: larger than that of every earlier term of this name, whoever's.
  Token token() const noexcept;

  // Set when the term ends: lost (mostly by a thread of the engine, also while on_elected runs; what the database has
  // refused when the engine has looked why), resigned or stopped (on the thread that does so). What is registered on it
  // is called there: who blocks delays others of the same term and the next campaign; on the election's thread all.
  std::stop_token stop_token() const noexcept;

  // Whether the term lasts, computed from the clock here and now: right at once after a pause, before any thread could
  // set the stop token.
  bool valid() const noexcept;
  // How much longer the term can be trusted without another renewal; zero when it is over.
  Duration remaining() const noexcept;
  // Throws Error{lost} unless valid().
  void check() const;
  // Why it was lost; empty while it lasts, and for one that was given up.
  std::optional<Loss> loss() const noexcept;

  // As Lock::fence and Lock::with_fence: what is committed in the transaction was written by the leader. A term that
  // was resigned or stopped can be fenced until on_deposed has returned, so that work may finish what it has begun:
  // nobody else is elected before.
  void fence(TransactionRef transaction, const FenceOptions& options = {}) const;
  void with_fence(TransactionRef transaction, const std::function<void()>& work,
                  const FenceOptions& options = {}) const;

  friend bool operator==(const Term& one, const Term& other) noexcept { return one.state_ == other.state_; }

 private:
  std::shared_ptr<State> state_;
};

// How a candidate campaigns, and what it is told. The callbacks run on the election's own thread, one after another;
// they may begin before the constructor has returned. What they throw goes to on_error, and no further.
struct ElectionOptions {
  // Of the lock behind the office: lease, label, metadata, fairness, max_hold (a term lasts no longer). Its lease is
  // how long it takes at most until the next leader follows one that died. Terms are renewed, and entered by nobody:
  // LockOptions::renew stays true, LockOptions::mode exclusive, and LockOptions::reentrance unset or none.
  // LockOptions::job is current in the callbacks.
  // A term never lingers (EngineOptions::linger). With at_least nobody is elected sooner after its grant, and
  // delay_after_loss comes on top of the lease.
  LockOptions lock{};
  // The term has begun. May be the work itself, and return when the term's stop token is set; or start the work, and
  // return. Whichever it does, the term goes on until it is lost or resigned. One that throws has begun nothing: the
  // term is resigned, unless it was lost, before on_error hears of it.
  std::function<void(const Term&)> on_elected{};
  // The term is over, and on_elected has returned. Called once after each on_elected, before the next campaign begins,
  // and, unless the term was lost, before anybody else can be elected.
  std::function<void()> on_deposed{};
  // A campaign has failed, and is begun again after a pause (then mostly a dlock::Error, whose fault() tells why:
  // schema, permission), or a callback threw. A database that cannot be reached is no failure: the engine asks again by
  // itself, and its observers hear of it (Event::Kind::retried).
  std::function<void(const std::exception&)> on_error{};
  // After a resignation, or a term that ended by max_hold, it campaigns again only when this has passed: others who
  // wait have looked meanwhile (EngineOptions::polling.longest).
  SaturatingDuration resign_pause = std::chrono::seconds{1};
  // Between campaigns that failed: at most so long, jittered, and shorter in the beginning.
  SaturatingDuration retry_pause = std::chrono::seconds{1};
};

// A candidate for a name: it campaigns from its construction on until it is stopped or destroyed, is in office for a
// term, and campaigns again. Among all candidates of all processes one is in office at a time: as long as it is
// trusted, nobody else is elected.
// Threads: all members from any. Owns: a thread (signals blocked) and a share of the engine, which may go before it.
// Its callbacks must not wait for what waits for them; they may call all members, and destroy it. What is registered on
// a term's stop token may resign, but neither stop nor destroy it; resigning returns at once there, unless the token
// was set before: then it waits, as from anywhere else.
// Fails: as each member says; what fails in the background goes to on_error, and ends nothing. After fork() the child
// leads nothing and its calls throw misuse, its destroying does nothing.
class DLOCK_EXPORT Election {
 public:
  // Fails: misuse (a bad name or option), unavailable (the system has no thread to give). Nothing is sent here.
  Election(const Engine& engine, std::string_view name, ElectionOptions options = {});
  // As stop(). Called within a callback it returns at once, and the thread ends later: after on_elected on_deposed is
  // still called. If its share of the engine is the last one, the engine ends with it.
  ~Election();
  Election(const Election&) = delete;
  Election& operator=(const Election&) = delete;

  // Whether this candidate is in office, by the clock here and now: never true when the lease can no longer be trusted,
  // right at once after a pause (SIGSTOP, suspend). Costs a mutex and a look at the clock, and no statement.
  bool is_leader() const noexcept;

  // The term that is going on. Empty: it is not in office. Fails: misuse (after fork()).
  std::optional<Term> term() const;

  // Gives up the office: sets the stop token, waits until on_elected and on_deposed have returned, and releases the
  // lock; renewed until then, so that nobody else begins before this one has ended. Within a callback of the election
  // it only sets the stop token, and the rest follows when the callback returns. Returns when others can be elected, at
  // most timeouts.release after on_deposed; this candidate campaigns again after ElectionOptions::resign_pause. When it
  // is not in office it does nothing, but wait for the end of a term that was lost.
  // Fails: misuse (after fork()).
  void resign();

  // Resigns, and campaigns no more. Never throws. Takes as long as callbacks under way, and at most timeouts.release,
  // also where the database does not answer; within a callback it returns at once. A second call does nothing, but wait
  // likewise.
  void stop() noexcept;

  // Who is in office, here or elsewhere, as the table says (one statement): see leader_of.
  // Fails: as Engine::inspect.
  std::optional<Holder> leader() const;

  const std::string& name() const noexcept;

 private:
  struct State;
  struct Handle;
  std::shared_ptr<State> here() const;  // throws misuse after fork()
  std::unique_ptr<Handle> handle_;
};

// Who is in office under that name, for those who campaign and for those who do not: one statement. Empty: nobody, as
// far as the database knows now; who has lost the office without knowing it (it was paused, or cut off) is none.
// Fails: as Engine::inspect.
DLOCK_EXPORT std::optional<Holder> leader_of(Engine& engine, std::string_view name);

struct LeaderObserverOptions {
  // It looks so often, ±25 %, with one read each time, whatever waits or is released; more often while nobody leads,
  // and when the leader's lease ends. So a change is told at most 5/4 of this, and the time of a statement, after it
  // happened. Terms that begin and end between two looks are not told. In a cluster whose servers all take writes a
  // look may show what was before the last one.
  SaturatingDuration every = std::chrono::seconds{1};
  // A look has failed, and is repeated; or the callback threw. The leader that was told last may be another by now.
  std::function<void(const std::exception&)> on_error{};
};

// Tells who leads, and each change of it, for as long as it exists; no candidate itself.
// Threads: any; its callbacks run on its own thread (signals blocked), one after another, and may destroy it.
// Owns: the callbacks, its thread and a share of the engine, which may go before it.
class DLOCK_EXPORT LeaderObserver {
 public:
  // `told`: called with the leader, or with nothing where there is none: first with what is so at the beginning, and
  // then with each other term (another token), or the end of one. What it throws goes to on_error.
  // Fails: misuse (a bad name or option, an empty callback), unavailable (the system has no thread to give).
  LeaderObserver(const Engine& engine, std::string_view name, std::function<void(const std::optional<Holder>&)> told,
                 LeaderObserverOptions options = {});
  // No callback begins from now on; waits for one that is under way, unless it is called within it, and for a look at
  // most timeouts.request. Does nothing in a process made by fork().
  ~LeaderObserver();
  LeaderObserver(const LeaderObserver&) = delete;
  LeaderObserver& operator=(const LeaderObserver&) = delete;

 private:
  struct State;
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace v0
}  // namespace dlock

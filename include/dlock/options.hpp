// What can be chosen: per lock, and per engine.
#pragma once

#include <dlock/credentials.hpp>
#include <dlock/duration.hpp>
#include <dlock/event.hpp>
#include <dlock/export.hpp>
#include <dlock/job.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// Who may enter a lock that is held already. Its entries share the token, and the lock is free when the last one has
// left. Those of a thread share the grant: its owner, and what was chosen for it (label, metadata, at-least time,
// renewal). Those of a node have a lease each, with an owner of its own and what was chosen for it.
enum class Reentrance {
  thread,  // the thread that was granted it, or the job where one is given (LockOptions::job), on whatever thread;
           // through the same engine: no round trip, at most one to refresh the lease
  node,    // whoever has the same EngineOptions::node and asks for `node` too, also in another process
  none,    // nobody
};

// Who is first among those who wait for a name. A try that does not wait is busy while anybody queues. Who waits
// barging and finds a queue joins it, of the barging ones of one engine the first in its line: the others of that line
// come behind whoever has a ticket by then.
enum class Fairness {
  barging,  // whoever is quickest: the fastest for all together
  fifo,     // in the order in which they draw a ticket each, across processes: one more write, once a first try was in
            // vain, so that of two calls within some milliseconds the later one may be first
};

// How many may hold a name at one time. Those of one mode share it; who asks in another one waits until all are gone.
enum class Mode {
  exclusive,  // one
  shared,     // any number, as readers do. Who waits for them exclusively comes before readers that come later
  permits,    // as many as there are permits for, as in a semaphore: see Semaphore
  node,       // the entries of one node: what Reentrance::node asks for. It is told (Holder::mode), and not chosen
};

DLOCK_EXPORT std::string_view to_string(Reentrance reentrance) noexcept;
DLOCK_EXPORT std::string_view to_string(Fairness fairness) noexcept;
DLOCK_EXPORT std::string_view to_string(Mode mode) noexcept;

// How one lock is to be held. What is unset is the engine's default.
struct LockOptions {
  // With Reentrance::thread a thread that holds the name exclusively enters that when it asks for it shared; one that
  // holds it shared and asks for it exclusively is misuse, since two of them would wait for each other: see
  // Lock::try_upgrade. Only what is asked for exclusively can be a node's (Reentrance::node), or a transaction's.
  Mode mode = Mode::exclusive;
  std::int64_t permits = 1;  // how many are taken, with Mode::permits
  std::int64_t limit = 0;    // how many there are, with Mode::permits: what this asker goes by, whatever others do
  // Longer than its margin, to 10 years, which is until_released; renewed automatically from 300 ms up.
  std::optional<SaturatingDuration> lease{};
  // The lock stays closed this long after the grant, even if released or crashed; 0 = not. Lock::extend can make it
  // longer. With Mode::shared it is closed to who asks exclusively, with Mode::permits the permit stays taken.
  SaturatingDuration at_least{};
  // Renewal stops so early that the lease is over, by the database's clock, at most this long after the grant; 0 =
  // never. The lock is then held for at least max_hold less one lease. Cuts the engine's default lease short; a lease
  // given here must not be longer, and Lock::extend must not go beyond.
  SaturatingDuration max_hold{};
  // After a lease that ended without a release (its holder has crashed, hangs or cannot be reached) nobody is granted
  // the name for so long, so that what it had sent can come to its end: for what cannot be fenced. 0 = not. Whoever
  // lets go opens the name at once, also late, and so does Engine::force_release. Others see the lease end when the
  // name opens. Not with until_released.
  SaturatingDuration delay_after_loss{};
  std::optional<SaturatingDuration> renew_every{};  // unset: a third of the lease; until_released: 10 s
  bool renew = true;  // false: nobody renews it; it ends with its lease or by Lock::extend
  std::optional<Reentrance> reentrance{};
  std::optional<Fairness> fairness{};
  // On whose behalf: `{.job = "order 4711"}`. Empty: the job that is current for the calling thread (Job::Scope). If
  // there is none, with Reentrance::thread the thread is the job; otherwise each grant is one of its own, and in no
  // deadlock.
  Job job{};
  std::optional<std::string> label{};  // for people, at most 255 bytes of UTF-8
  std::string metadata{};              // for people, at most 4096 bytes of UTF-8
};

// How an engine behaves. Durations must not be negative. In the order in which one comes to need them: most programs
// name a label at most.
struct EngineOptions {
  // How locks are held, where LockOptions says nothing else.
  SaturatingDuration lease = std::chrono::seconds{30};
  Reentrance reentrance = Reentrance::thread;
  Fairness fairness = Fairness::barging;

  // Who this is.
  std::string node{};           // stable, human name of this replica; empty: the host name
  bool node_exclusive = false;  // with Reentrance::node: what another engine of the same node holds is replaced, not
                                // joined: a new token, and its renewals are refused, and what was left of its lease
                                // or delay keeps nobody out any more. For one engine a node only
  std::string label{};          // for people; empty: host:pid

  // At most; opened when needed; more where many threads lock at one time. On MySQL and MariaDB one more of a process
  // for a moment, where a server is silent in the middle of a request.
  unsigned connections = 2;

  // How long calls may take.
  struct Timeouts {
    // Of opening an engine, which waits for tables that are locked as a whole, too, and a connection of one later on.
    // Longer where a server wakes up first.
    SaturatingDuration connect = std::chrono::seconds{10};
    // Of one call that does not wait, and of one renewal. Shorter where a late answer is worth nothing.
    SaturatingDuration request = std::chrono::seconds{5};
    // Of a release; then the engine tries on by itself. Longer where a program ends right after it, on a slow network.
    SaturatingDuration release = std::chrono::seconds{1};
  };
  Timeouts timeouts{};

  // A waiter looks again after the first, and then ever less often, but at least as often as the longest, ±25 %,
  // whatever wakes it besides.
  struct Polling {
    // Shorter where nothing wakes waiters (`listen` is false).
    SaturatingDuration first = std::chrono::milliseconds{20};
    // Longer to spare a database with very many waiters. Who listens looks every 7.5 s all the same: its mark on the
    // row has to be renewed, or nobody would tell it of a release.
    SaturatingDuration longest = std::chrono::milliseconds{500};
  };
  Polling polling{};
  bool listen = true;  // wake at releases by other processes (one connection while something waits)
  // A waiter that died blocks a queue at most for so long; 300 ms or more.
  SaturatingDuration ticket = std::chrono::seconds{10};
  // A lock goes from thread to thread inside this engine so often in one go by a statement, and for so long; then other
  // processes get their turn.
  struct HandOvers {
    unsigned in_a_row = 16;                                    // 0 where processes are to take turns
    SaturatingDuration time = std::chrono::milliseconds{100};  // longer where the work under a lock takes that long
    // For so long after the database was asked, a lock goes on in memory, without a statement, under tokens that its
    // row keeps for this process: the token that others see in the table is ahead of the holder's. Only from one holder
    // to another with the same lease and nothing else of its own (at_least, max_hold, label, job, metadata, a ticket),
    // and not after the grant was fenced, extended or named to others (Lock::owner, grant, fence_sql). 0: never. Nor
    // where a history is kept, which is looked at every second.
    SaturatingDuration local = std::chrono::milliseconds{10};
  };
  HandOvers hand_overs{};
  // What was released stays in its row for so long, so that this engine's threads are granted it again without a
  // statement: for a name that one process takes over and over. Another process that wants it is noticed within
  // milliseconds, and then gets it; who only tries waits up to 50 ms for that. Meanwhile the name counts as held, also
  // by a process that has crashed, until its lease is over. For no longer than a quarter of the lease, and for what can
  // be passed on in memory (see hand_overs.local). 0: never.
  SaturatingDuration linger{};
  // While all connections are busy, acquires of other threads wait and leave together in the next statement, at most so
  // many, each with an answer and a deadline of its own; releases likewise, and where commits are slow, on PostgreSQL
  // and MariaDB, in one commit with the acquires. 1 to 1000; 1 = each leaves alone.
  unsigned combine = 64;
  std::optional<SaturatingDuration> margin{};  // safety margin of trust; unset: lease/20, 1 ms (SQLite 3 ms) to 500 ms

  // How rows that nobody has used for long are removed.
  struct Reaper {
    // A thread of the engine reaps at this interval, ±25 %; 0: only Engine::reap does. For one process at least.
    SaturatingDuration every{};
    // It removes rows idle for longer; not below `grace`. Shorter where very many names are used once.
    SaturatingDuration retention = std::chrono::hours{24};
    // Between its two steps; the same for all users of a table. Longer where answers can be late by half of that.
    SaturatingDuration grace = std::chrono::seconds{60};
  };
  Reaper reaper{};
  // A history of the grants that have ended is kept in the database (dlock-migrate history), and what reaps here keeps
  // that many of its newest rows; 0: it leaves the history alone. Opening the engine is `schema` where none is kept.
  std::size_t history = 0;

  bool bound_idle = true;  // bound the idle time of transactions with a lock or a fence in them (see there)

  // Which table, and how it is talked to.
  std::string schema{};                 // of the table; empty: the connection's default
  std::string table = "resource_lock";  // [A-Za-z_][A-Za-z0-9_]{0,47}
  std::string history_table{};          // of dlock-migrate; empty: <table>_schema_history
  std::string application = "dlock";    // how connections introduce themselves to the server
  // False: nothing is prepared, which suits a pooler in transaction mode that is not recognised by itself. So does
  // prepared=off in the URL.
  bool prepared_statements = true;
  // Asked before connections are opened: a password that is rotated, or a token that lasts for minutes. It runs on a
  // thread of its own, where the program's signals are blocked, and once at a time for all who connect meanwhile; it
  // may block, and who waits for it waits no longer than its own deadline. What it throws is `unavailable`, with its
  // text, and it is asked again. It must not use the engine. The end of the engine, and an opening that fails, wait for
  // a call under way for up to timeouts.request. Misuse where the database has no users.
  std::function<Credentials()> credentials{};
  // Has a function run, on the thread or loop that the program works on:
  // `[&](auto work) { asio::post(context, work); }`. On it the handlers of asynchronous calls run. It must not run the
  // function before it returns, is called by threads of the engine, and should neither block nor throw: where it
  // throws, the answer is lost, and a Lock in it released. Empty: a thread of the engine runs them one after another.
  std::function<void(std::function<void()>)> executor{};
  // Called on a thread of its own, one event after another; exceptions are swallowed. However long it takes, it delays
  // no lost(), no renewal and no call. The end of the engine waits for a call under way, but not longer than
  // timeouts.request, unless it comes from within it. For as long as the engine; others come and go by Engine::observe.
  std::function<void(const Event&)> observer{};
};

}  // namespace v0
}  // namespace dlock

// This file knows who in this process waits for which name, and in what order.
#pragma once

#include "dialects/bell.hpp"
#include "engine/held.hpp"
#include "types/clock.hpp"
#include "types/name.hpp"

#include <dlock/options.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::engine {

// What somebody wants, as far as a releaser has to know it to hand over. Lives as long as either of them needs it.
struct Wish {
  Wish(Name the_name, LockOptions the_options, Held::Terms the_terms, std::string the_owner, std::string the_actor,
       JobRef the_job)
      : name(std::move(the_name)),
        options(std::move(the_options)),
        terms(the_terms),
        owner(std::move(the_owner)),
        actor(std::move(the_actor)),
        job(std::move(the_job)) {}

  Name name;
  LockOptions options;
  Held::Terms terms;
  std::string owner, actor;
  JobRef job;  // whose wish it is; empty: nobody's
};

// A line of waiters for each name. Only the head of a line talks to the database; the others sleep until they are the
// head, or are handed what they wait for. Observers wait for news of a name without wanting to be next.
// Threads: any.
class Lines {
 public:
  enum class Woken {
    rung,    // something may have changed
    head,    // the place is the head of its line now
    handed,  // it has been granted its wish
    time,
    stopped,
  };

  // `floor`: a head looks at least so often, whatever it was told.
  explicit Lines(Duration floor) : floor_(floor) {}

  class Place;
  using Seat = std::shared_ptr<Place>;

  // At the end of the line; with a ticket before all who have none or a later one. `takes`: a releaser may hand over.
  Seat join(std::shared_ptr<Wish> wish, std::int64_t ticket, bool takes);
  Seat observe(const std::string& name, std::string owner);
  // Gives a place a ticket, and with it its place in the line.
  void give_ticket(const Seat& seat, std::int64_t ticket);
  // The place's wish is asked for as `owner` from now on.
  void rename(const Seat& seat, const std::string& owner);
  // Who waits behind what was handed over was told so in passing, and need not look at once.
  struct Standing {
    bool head = false;
    bool quiet = false;       // it became the head because its name was granted in this process
    bool rung = false;        // by a release of its name
    bool yields = false;      // others are to have their turn first
    bool ask = false;         // its owner may have been granted the wish already: looking is not enough
    bool dead = false;        // its row in the waiters' table has expired
    std::int64_t ticket = 0;
  };
  // Begins a look at the world: what rings from now on wakes the next rest().
  Standing attend(const Seat& seat);
  // Until there is something to do for it, or `until`; until `deadline` while a releaser is about to hand over to it.
  Woken rest(const Seat& seat, Instant until, Instant deadline, const std::stop_token& stop);
  // What the place wishes, for whom it is reserved.
  static const Wish& wish(const Seat& seat);
  static std::int64_t ticket(const Seat& seat);
  // Gives the place up; `granted`: since it has its wish. What was handed to it meanwhile, or nothing.
  std::shared_ptr<Held> leave(const Seat& seat, bool granted = false);

  // Whether anybody may wait for the name, without a lock: never wrong for who joined before a release was asked for.
  bool anybody() const noexcept { return waiting_.load() > 0; }
  bool anybody(const std::string& name) const;

  // The head, if it sleeps and takes what it is handed: it stays where it is until settle(). Empty: nobody.
  Seat reserve(const std::string& name);
  // How it ended: with the grant, or without; `doubt`: perhaps with one. False: it has given up meanwhile, so that what
  // it was granted is nobody's.
  bool settle(const Seat& seat, std::shared_ptr<Held> grant, bool doubt = false);

  // A release in this process has ended, however it did: wakes who can take `name`, the head of its line, and observers.
  // `yields`: others are to have their turn first.
  void ring(std::string_view name, bool yields = false);
  // What was heard from elsewhere, and of this process's own doings. A head whom a ring is not for, or whose name was
  // granted in this process and not released, looks a little later, unless it rings again: who read that name may have
  // read it before it gave up, and a grant may have been lost.
  void hear(const dialects::Rung& rung);
  // Anything may have happened.
  void ring_all();

  // What heads and observers wait for, and whom they saw holding it.
  std::vector<dialects::Watched> watched() const;
  // Notes who holds what the place waits for. True: that is new.
  bool saw(const Seat& seat, std::string holder);
  // Notes whether what the line waits for could neither be had nor be seen to be held by anybody. So it is at first.
  void blocked(const Seat& seat, bool yes);
  bool blocked(const Seat& seat) const;

  // Places that have a row in the waiters' table. A row for people alone may last longer without being renewed than one
  // on which others depend.
  enum class RowKind { none, depended_on, for_people };
  void registered(const Seat& seat, RowKind kind);
  struct Row {
    Seat seat;
    std::string name, owner;
  };
  std::vector<Row> rows(RowKind kind) const;
  // The row has expired: its ticket is void. Until it has another one.
  void died(const Seat& seat);
  void revived(const Seat& seat);

 private:
  struct Line;
  void place(Line& line, const Seat& seat);
  // `quiet`: its name was granted in this process just now, and it is to look in so long. 0: at once.
  void promote(Line& line, Duration quiet);
  void remove(const Seat& seat, Duration quiet, bool granted);
  static void wake(Line& line, std::string_view owner, bool everything);

  const Duration floor_;
  mutable std::mutex mutex_;
  std::map<std::string, Line, std::less<>> lines_;  // guarded by mutex_
  std::atomic<std::size_t> waiting_{0};
};

struct Lines::Line {
  std::vector<Seat> queue;  // the first is the head
  std::vector<Seat> observers;
  bool granted = false;  // to one of this line, and no release of it was heard of
  bool blocked = true;   // nobody was seen who holds it, if anybody has looked at all
};

// One that waits. Guarded by the mutex of its Lines.
class Lines::Place {
  friend class Lines;
  enum class State { awake, asleep, reserved, handed, left };

  std::string name_, owner_;
  std::shared_ptr<Wish> wish_;  // empty: an observer
  Standing standing_;
  State state_ = State::awake;
  bool takes_ = false;
  bool rung_ = false, promoted_ = false, everything_ = false;
  RowKind row_ = RowKind::none;
  std::string holder_;
  std::shared_ptr<Held> grant_;
  Instant nudge_ = Instant::max();
  std::condition_variable_any changed_;
};

}  // namespace dlock::engine

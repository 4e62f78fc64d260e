// The state of one grant in this process: whose, how long it can be trusted, and how it ended.
#pragma once

#include "engine/job_ref.hpp"
#include "engine/lease/deadline_queue.hpp"
#include "engine/lease/renewal.hpp"
#include "store/lock_table.hpp"
#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/name.hpp"

#include <dlock/lock.hpp>
#include <dlock/options.hpp>
#include <dlock/waiter.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::engine {

// So many tokens at most are left to a process with one grant. A row's token is ahead of its holder's by no more.
constexpr std::uint32_t most_reserved = 4096;

// What a holder says of itself, for people. No label: it is its engine's.
struct Said {
  std::optional<std::string_view> label{};
  std::string_view job{};
};

// Since when somebody waits for a name, and the widest mode that one of them asks for.
struct WantedSince {
  Instant since{};
  Mode mode = Mode::exclusive;

  friend bool operator==(const WantedSince&, const WantedSince&) = default;
};

// Of several who wait.
std::optional<WantedSince> joined(const std::optional<WantedSince>& one,
                                  const std::optional<WantedSince>& other) noexcept;

// How long a grant is to last, and how it is kept.
struct LeaseTerms {
  // What its row is written with: the lease that was asked for, and behind it the time for which a lost lock stays
  // closed, in which nobody trusts it. So the margin and max_hold have that time in them, too.
  Duration lease{}, margin{};
  Duration renew_every{};  // 0: a third of the lease that was asked for
  Duration max_hold{};     // 0: none
  bool renew = true;
  Duration delay{};  // LockOptions::delay_after_loss

  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;

  Duration asked() const noexcept { return lease - delay; }

  // The lease that an attempt may ask for at `now`, where the first one was sent at `begun`.
  Duration left_of_lease(Instant begun, Instant now) const noexcept;
};

// Threads: any, except what belongs to the renewer and to the trust timer. There may be very many of them, so that what
// few grants need takes no room in the others.
class Lease {
 public:
  using ThreadId = std::uint64_t;

  // `sent`: the request that was answered. `begun`: the first that may have been granted, where that was another one.
  Lease(Name name, std::string_view owner, Token token, const LeaseTerms& terms, Instant sent,
        std::optional<Instant> begun = {});

  const std::string& name() const noexcept { return name_.text(); }
  const std::string& owner() const noexcept { return owner_; }
  Token token() const noexcept { return token_; }
  Mode mode() const noexcept { return mode_; }
  // Set before the grant is shared.
  void in_mode(Mode mode) noexcept { mode_ = mode; }
  // The token that its row has: where it is one of a range that was reserved for this process, the last of them.
  Token row_token() const noexcept { return Token{number(token_) + hand_over_state.reserved}; }
  // With the length that a renewal or a fence may give it now: its lease, within max_hold.
  store::LeaseKey key() const;
  // The same for whatever is asked about this very grant, beside its renewals and its release: that may take effect
  // late, so that the grant is pinned to its row. Of a grant that has ended it is nobody's, and refused.
  store::LeaseKey pinned_key() const;
  // From now on another owner has to stand in its row before it can be somebody else's.
  void pin() const noexcept { pinned_.store(true); }
  bool pinned() const noexcept { return pinned_.load(); }
  // It is somebody else's from now on, in the same row. False: it is pinned. Who pins it to name it to others looks
  // whether it was passed on before: then nothing names it any more.
  bool pass_on() noexcept {
    passed_on_.store(true);
    return !pinned();
  }
  bool was_passed_on() const noexcept { return passed_on_.load(); }
  // Whether it is to be renewed at all: shorter leases than some are over before a renewal could be confirmed.
  bool renewable() const noexcept { return renewable_.load(std::memory_order_acquire); }
  LeaseTerms terms() const;
  // The longest lease that was ever asked for: no row of this grant lasts for longer than that from now.
  Duration longest() const;

  // Trust.
  Instant trusted_until() const noexcept {
    return Instant{BootClock::duration{until_.load(std::memory_order_acquire)}};
  }
  // Once somebody was told that trust is over, it stays over, whatever answer comes later.
  bool valid(Instant now) const noexcept;
  Duration remaining(Instant now) const noexcept;
  // A request sent at `sent`, which made the row last `lease` from then on at least, was confirmed. Never moves the end
  // of trust back, and counts for no more than the present terms. False: too late, the grant has ended.
  // `overdue`: set to the time since the request was sent that had confirmed it before, if it was due long ago.
  bool confirmed(Instant sent, Duration lease, std::optional<Duration>* overdue = nullptr);
  // From now on it is trusted no more, whatever is answered to what was sent before.
  void trust_no_longer() noexcept;
  // Another length is going to be asked for. A shorter one is believed at once, whatever becomes of the request: trust
  // and terms are the shorter of both from here on. A longer one counts when it is confirmed. `at_least`: where it is
  // longer already, by another entry, it stays so, and that is asked for. Answers what is to be asked for.
  LeaseTerms ask_for(LeaseTerms terms, bool at_least = false);
  bool extended(Instant sent, const LeaseTerms& terms, bool at_least = false);
  Window renewal(Share share) const;
  // When the request was sent that has confirmed it last.
  Instant last_sent() const;

  // When the lease must be over; Instant::max() without max_hold. Counted from the first request that may have been
  // granted.
  Instant ends() const noexcept { return ends_; }
  // The longest lease that may be asked for at `now`; less a millisecond, for the way to the question.
  Duration room(Instant now) const;
  // After this no renewal may reach the database: the lease would be over too late.
  Instant last_renewal() const;
  // Nobody will renew it any more, for max_hold.
  void keep_no_longer() noexcept { final_.store(true, std::memory_order_release); }
  // What it is lost to when trust runs out.
  Loss running_out() const noexcept {
    return final_.load(std::memory_order_acquire) ? Loss::max_hold : Loss::unconfirmed;
  }

  // The end: lost, or let go by the holder; the first of them wins. True: it is lost, and this caller is to tell.
  bool lose(Loss loss) noexcept;
  bool let_go() noexcept;
  // True to the first who asks, once it is let go of or lost.
  bool first_to_count_end() noexcept { return !counted_.exchange(true, std::memory_order_relaxed); }
  bool ended() const noexcept { return end_.load(std::memory_order_acquire) != holding; }
  std::optional<Loss> loss() const noexcept;
  std::stop_token lost() const noexcept;
  // Runs the callbacks registered on lost(): only on a thread that may block.
  void signal_loss() noexcept;
  // The same where nobody has asked for lost(), so that there are none. False: somebody has; nothing was done.
  bool signal_unheard() noexcept;

  // Stopped together with lost(), on the same thread, until it is told no longer: for what holds several leases.
  void tell_also(const std::stop_source& other);
  void tell_no_longer(const std::stop_source& other) noexcept;

  // Whether somebody else waits for the name. Nothing of this is about trust.
  // What the database's last answer to a renewal, which has just come, said of it.
  void wanted_is(const std::optional<dlock::Wanted>& wanted) noexcept;
  std::optional<WantedSince> wanted_since() const noexcept;
  // Stopped when somebody was first seen to wait.
  std::stop_token asked() const noexcept;
  // Somebody is seen to wait. True: for the first time, and this caller is to see to it that asked() is signalled.
  bool ask() noexcept;
  // It could not be signalled: the next who sees somebody wait is to.
  void unask() noexcept;
  // Runs the callbacks registered on asked(): only on a thread that may block.
  void signal_asked() noexcept;

  // Those that guard what others note in a grant: the renewer's, and that of the ReentranceTable.
  static constexpr MutexKind renewer_mutex{}, reentrance_mutex{};

  // What the renewer notes about it.
  struct RenewalState {
    std::uint64_t round = 0;  // the last one that it was in
    unsigned pauses = 0;      // by so many callers: not to be renewed now
    bool watched = false;     // to be renewed
    bool in_round = false;    // a round under way will schedule it again
  } renewal_state GUARDED_BY(renewer_mutex);
  // Each is touched with the mutex of its deadline queue held.
  std::array<DeadlineQueue::Index, DeadlineQueue::kinds> heap_indexes{};
  bool warned = false;  // the renewer's thread's own: trust_low was told since the last confirmation

  // Some attempt at this grant got no answer, and may still take effect.
  std::atomic<bool> unanswered{false};
  bool unnamed = false;                     // its row may not name its job. Set before the grant is shared.
  std::atomic<bool> to_be_reopened{false};  // its at-least time is to end with it, and may not have been ended yet

 private:
  std::atomic<bool> adrift_{false};          // moved, and not used since; here these take no room
  mutable std::atomic<bool> pinned_{false};  // see pin()
  std::atomic<bool> passed_on_{false};       // in memory, or was about to be

 public:
  // How many Locks share this grant (none: it was let go of without being released; fewer: it was released for all of
  // them, and -1 less that is the Released), the thread or job that may enter it again, and the next one in its chain
  // of those that can be entered.
  int entries GUARDED_BY(reentrance_mutex) = 1;
  ThreadId actor GUARDED_BY(reentrance_mutex) = 0;
  std::shared_ptr<Lease> next_open GUARDED_BY(reentrance_mutex);

  // What its holder chose to say, which is nothing mostly, and takes no room then. Set before the grant is shared.
  void say(const LockOptions& options) {
    if (options.label || options.job) said_ = std::make_unique<const Words>(Words{options.label, options.job});
  }
  void say(const Lease& other) {
    if (other.said_) said_ = std::make_unique<const Words>(*other.said_);
  }
  Said said() const noexcept { return said_ ? Said{said_->label, said_->job.name()} : Said{}; }

  // Whose grant it is, for as long as it is held: that of the thread that took it. Once its Lock was moved nobody can
  // say, until a thread uses it, and then it is that thread's. Nothing of this is for grants that were nobody's from
  // the beginning, or a job's with a name, whose they stay.
  // `named`: whom its row names.
  void taken_by(const JobRef& job, const JobRef& named) noexcept;
  // Answers who held it until now. Empty: nobody, or it was moved before.
  JobRef moved() noexcept;
  // True: its row does not name that job.
  bool used_by(const JobRef& job) noexcept;
  bool adrift() const noexcept { return adrift_.load(std::memory_order_relaxed); }
  // It ends; answers whom its row names.
  JobRef belongs_to_nobody() noexcept;
  // What its row ought to say instead, if it is wrong; an empty job: nobody.
  std::optional<JobRef> wrong_row() const;
  void row_names(JobRef job) noexcept;
  // How it came from hand to hand in this process without having been free. Set before the grant is shared.
  struct HandOverState {
    unsigned times = 0;          // by a statement
    std::uint32_t reserved = 0;  // so many more tokens its row keeps for this process; then it names no job
    Instant since{};             // the first of these grants
  } hand_over_state;

 private:
  static constexpr int holding = -1, gone = -2;

  struct Words {
    std::optional<std::string> label;
    Job job;
  };

  // Of who is wanted, or has been asked for asked().
  struct Hint {
    std::optional<WantedSince> wanted{};
    std::stop_source asked{std::nostopstate};  // made when somebody asks for it
    bool told = false;
  };

  AnnotatedMutex& mutex() const noexcept;
  // Before and after what it depends on is changed.
  void count_away(int by) noexcept REQUIRES(mutex());
  Instant trust_from(Instant sent, Duration lease, Duration margin) const noexcept;
  void trust(Instant until) noexcept { until_.store(until.time_since_epoch().count(), std::memory_order_release); }
  Window window(Share share) const REQUIRES(mutex());
  // `from`: when the lease was asked for last.
  void settle_on(const LeaseTerms& terms, Instant from) noexcept REQUIRES(mutex());

  const Name name_;
  const std::string owner_;
  const Token token_;
  const Instant ends_;
  std::unique_ptr<const Words> said_{};
  LeaseTerms terms_ GUARDED_BY(mutex());
  Duration longest_ GUARDED_BY(mutex());
  Instant sent_ GUARDED_BY(mutex());
  mutable std::stop_source lost_ GUARDED_BY(mutex()){std::nostopstate};        // made when somebody asks for it
  std::unique_ptr<std::vector<std::stop_source>> others_ GUARDED_BY(mutex());  // see tell_also
  // Who used it last, and whom its row names; empty: nobody.
  JobRef job_ GUARDED_BY(mutex()), named_ GUARDED_BY(mutex());
  mutable std::unique_ptr<Hint> hint_ GUARDED_BY(mutex());
  bool signalled_ GUARDED_BY(mutex()) = false;

  Mode mode_ = Mode::exclusive;
  std::atomic<bool> renewable_, final_;
  std::atomic<bool> counted_{false};       // its end
  std::atomic<bool> told_{false};          // somebody took it upon himself to tell of the loss
  mutable std::atomic<int> end_{holding};  // or a Loss
  std::atomic<BootClock::rep> until_;
};

// Whether a grant on such terms may change hands in memory: its row says nothing that would be another one's then.
bool may_go_on_in_memory(const LockOptions& options, const LeaseTerms& terms) noexcept;

// Why trust ran out, for people.
inline const char* in_words(Loss running_out) {
  return running_out == Loss::max_hold ? "it was held as long as LockOptions::max_hold allows"
                                       : "trust ran out before a renewal was confirmed";
}

}  // namespace dlock::engine

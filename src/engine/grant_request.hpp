// What belongs to one request for a grant while it is asked for: as whom, in which mode, what of it is in doubt; and
// for how long a refusal still counts as an answer.
#pragma once

#include "engine/context.hpp"
#include "engine/session_id.hpp"
#include "types/owner.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace dlock::engine {

// Threads: one at a time. `name` and `options` have to outlive it.
struct GrantRequest {
  GrantRequest(const Context& context, const Name& the_name, const LockOptions& the_options, Reentrance reentrance)
      : name(the_name),
        options(the_options),
        terms(context.policy.terms_of(the_options)),
        fairness(the_options.fairness.value_or(context.options.fairness)),
        // Of other grants than a thread's nobody can tell whose job they are, unless it is said.
        mode(reentrance == Reentrance::node ? Mode::node : the_options.mode),
        by_job(reentrance == Reentrance::thread && the_options.job),
        job(reentrance == Reentrance::thread && !the_options.job ? job_of_this_thread() : JobRef{}),
        actor(actor_of(context)) {}

  // Whether somebody could wait for it: only then is it worth a row.
  bool may_hold_something() const { return job ? job->holds.load() > 0 : !options.job.empty(); }

  // Who is in line waits for the node to come out, and so is nobody to wait behind.
  bool enters_by_node(const Context& context) const {
    return mode == Mode::node && context.is_inside(name) && !planted("node_waits_behind");
  }

  SessionId actor_of(const Context& context) const {
    if (options.job) return {context.engine_id, id_of(options.job.name())};
    return {context.engine_id, job ? std::string_view{job->id} : std::string_view{owner}};
  }

  // That it is not free, or that its row could not be had.
  void refused(bool locked) noexcept {
    row_locked = refused_locked = locked;
    refused_at = BootClock::now();
  }
  // For who has no time to look once more: whether it was refused so lately that it is so still.
  bool was_refused(Instant now) const noexcept { return still_so(refused_at, now); }
  static bool still_so(Instant at, Instant now) noexcept {
    return at != Instant{} && now - at < std::chrono::seconds{1};
  }

  const Name& name;
  const LockOptions& options;
  const LeaseTerms terms;
  const Fairness fairness;
  LazyIdentity owner{};
  const Mode mode;
  const bool by_job;  // it may enter what another thread of its job is granted meanwhile
  const JobRef job;   // empty: nobody's, or that of a job with a name
  const SessionId actor;
  Instant called = BootClock::now();
  Instant first_sent = called;
  Instant begun = first_sent;                   // when the first attempt was sent that may have been granted
  std::int64_t ticket = 0;                      // 0: it has none
  Instant refused_at{};                         // when it last was
  bool refused_locked = false, silent = false;  // silent: time was up before the last answer came
  bool entered = false;                         // it has entered what its job holds, and needs no grant of its own
  bool freed = false;                           // somebody was heard to let go of it, just before the next attempt
  bool in_doubt = false;                        // it may have been granted what is in nobody's hands yet
  Doubt unanswered{};                           // so may it by an attempt that got no answer, now or later
  bool handed = false;                          // its row may be that of a hand-over, which names no job
  bool found_locked = false;  // it was given up since another transaction has the row locked, and nobody holds it
  bool row_locked = true;     // the last answer, if any: the row could not be had, and nobody was seen who holds it
};

}  // namespace dlock::engine

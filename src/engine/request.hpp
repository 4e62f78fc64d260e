// This file knows what belongs to one wish for a grant while it is asked for.
#pragma once

#include "engine/actor.hpp"
#include "engine/core.hpp"
#include "types/owner.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace dlock {
inline namespace v0 {

struct Core::Request {
  Request(const Core& core, const Name& the_name, const LockOptions& the_options, Reentrance reentrance)
      : name(the_name),
        options(the_options),
        terms(core.terms_of(the_options)),
        fairness(the_options.fairness.value_or(core.options_.fairness)),
        // Of other grants than a thread's nobody can tell whose job they are, unless it is said.
        job(reentrance == Reentrance::thread && the_options.job.empty() ? engine::job_of_this_thread()
                                                                                : engine::JobRef{}),
        actor(actor_of(core)) {}

  // Whether somebody could wait for it: only then is it worth a row.
  bool may_hold_something() const { return job ? job->holds.load() > 0 : !options.job.empty(); }

  engine::ActorName actor_of(const Core& core) const {
    if (!options.job.empty()) return {core.half_, engine::half_of(options.job)};
    return {core.half_, job ? std::string_view{job->half} : std::string_view{owner}};
  }

  const Name& name;
  const LockOptions& options;
  const engine::Held::Terms terms;
  const Fairness fairness;
  Identity owner{};
  const engine::JobRef job;    // empty: nobody's
  const engine::ActorName actor;
  std::string entry{};              // in node mode: the identity of this request's entry
  engine::Owners::Mark mark{};      // in node mode: what is held by `owner` is ours
  Instant first_sent = BootClock::now();
  Instant begun = first_sent;  // when the first attempt was sent that may have been granted
  std::int64_t ticket = 0;  // 0: it has none
  bool in_doubt = false;    // it may have been granted what is in nobody's hands yet
  bool unanswered = false;  // so may it by an attempt that got no answer, now or later
  bool row_locked = true;   // the last answer, if any: the row could not be had, and nobody was seen who holds it
};

}  // namespace v0
}  // namespace dlock

// Takes charge of grants made elsewhere, and renews those that nobody here has: which of them are refused, which lease
// the others get; and what it means to others of its job that one is detached.
#include "engine/lease/adopting.hpp"

#include "engine/on_behalf.hpp"
#include "engine/session_id.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock::engine {

std::shared_ptr<Lease> Adopter::adopt(const Name& name, const Grant& grant, const LockOptions& options) {
  auto held = take_over(name, grant, options);
  if (!held && !planted("late_adopter_told_as_dead")) forget(name, grant);
  return held;
}

std::shared_ptr<Lease> Adopter::take_over(const Name& name, const Grant& grant, const LockOptions& given) {
  const OnBehalf behalf(given);
  const auto& options = behalf.options();
  context_.ensure_running();
  const auto row = inspector_.inspect(name);
  if (!row || row->owner.empty()) return nullptr;
  // The row is that of all who hold it; of a node they have its token.
  const bool shared = row->mode == Mode::shared || row->mode == Mode::permits;
  if (!shared && row->token != grant.token) return nullptr;
  if (row->mode == Mode::node)
    throw Error(Fault::misuse,
                fmt::format("the lock {} (token {}) is shared by the entries of the node {}: it is not adopted, "
                            "but entered (Reentrance::node)",
                            in_quotes(name.text()), number(grant.token), in_quotes(row->node)));
  store::LeaseKey from{name.text(), grant.owner, grant.token};
  from.mode = row->mode;
  const auto before = adoptions_.take(name.text(), grant);
  auto heir = before.value_or(random_identity());
  if (!shared && row->owner != grant.owner && row->owner != heir) return nullptr;
  const auto terms = [&] {
    try {
      auto known = options;
      if (!known.lease) known.lease = lease_of(from, before ? std::string_view{heir} : std::string_view{}, *row);
      return context_.policy.terms_of(known);
    } catch (...) {
      if (before) adoptions_.note(name.text(), grant, heir);
      throw;
    }
  }();
  const SessionId actor(context_.engine_id, options.job ? id_of(options.job.name()) : heir);
  store::AcquireRequest to{name,
                           heir,
                           context_.options.node,
                           options.label ? std::string_view{*options.label} : context_.options.label,
                           actor.view(),
                           terms.lease,
                           {},
                           options.metadata};
  const auto begun = BootClock::now();
  Instant sent{};
  Doubt doubt = before.has_value();
  std::optional<Mode> adopted;
  try {
    adopted = context_.retry(context_.soon(), doubt, [&](Deadline deadline) {
      sent = BootClock::now();
      to.lease = terms.left_of_lease(begun, sent);
      return context_.table->adopt(from, to, deadline);
    });
  } catch (...) {
    if (doubt) adoptions_.note(name.text(), grant, std::move(heir));
    throw;
  }
  if (!adopted) return nullptr;
  if (planted("adopt_trusts_answer")) sent = BootClock::now();
  auto held = std::make_shared<Lease>(name, heir, grant.token, terms, sent, begun);
  held->in_mode(*adopted);
  held->say(options);
  if (planted("adopted_is_passed_on")) held->hand_over_state.reserved = 2;  // tokens that its row keeps for nobody
  context_.events->counters().adopted.add();
  context_.watch(held);
  return held;
}

void Adopter::forget(const Name& name, const Grant& grant) noexcept {
  store::LeaseKey key{name.text(), grant.owner, grant.token};
  key.mode = Mode::shared;
  try {
    context_.retry({later(BootClock::now(), context_.options.timeouts.release)},
                   [&](Deadline until) { return context_.table->release(key, until); });
  } catch (const std::exception&) {  // it is told of
  }
}

// The row of a name that several hold has the longest lease of them. `heir`: who may have it by now, or empty.
Duration Adopter::lease_of(store::LeaseKey key, std::string_view heir, const Holder& row) {
  if ((key.mode != Mode::shared && key.mode != Mode::permits) || planted("longest_lease_adopted")) return row.lease;
  for (const auto owner : {std::string_view{key.owner}, heir}) {
    if (owner.empty()) continue;
    key.owner = owner;
    const auto lease =
        context_.retry(context_.soon(), [&](Deadline until) { return context_.table->lease_of_holder(key, until); });
    if (lease) return *lease;
  }
  return row.lease;  // it is nobody's, which who asks is about to be told
}

bool Adopter::renew(const Name& name, const Grant& grant, std::optional<Duration> lease) {
  store::LeaseKey key{name.text(), grant.owner, grant.token};
  if (lease) {
    static_cast<void>(context_.policy.with_margin({*lease}));  // nobody could trust less
  } else {
    const auto row = inspector_.inspect(name);
    if (!row || (row->mode == Mode::exclusive && (row->token != grant.token || row->owner != grant.owner)))
      return false;
    key.mode = row->mode;
    lease = lease_of(key, {}, *row);
  }
  const auto renews = [&](Mode mode) {
    key.mode = mode;
    return context_.retry(context_.soon(), [&](Deadline until) {
      return context_.table->extend(key, *lease, {}, until);
    }) != store::Renewed::lost;
  };
  return renews(Mode::exclusive) || renews(Mode::shared);
}

void Adopter::detach(const std::shared_ptr<Lease>& held) {
  // Of a job others may be inside, on threads that work until they are told.
  const bool others = context_.entries.detach(held) > 1 && !held->said().job.empty();
  if (others && held->lose(Loss::refused))
    context_.events->emit_loss(held, "another thread of its job has detached it");
  // Its row goes on naming the job that has let go of it.
  if (const auto named = held->belongs_to_nobody()) named->add({context_.weak_from_this(), held, true});
  const bool names_its_job = !held->said().job.empty() && held->valid(BootClock::now());
  context_.tell_if_lost(held);
  context_.forget(held);
  late_attempts_.expect(*held);
  if (names_its_job && !planted("detached_stays_the_jobs")) name_nobody(*held);
  if (!planted("detach_wakes_nobody")) context_.queues->let_go_unheard(held->name());
}

// Its row says that it is no job's any more: who follows the waits of others through it would find a deadlock that is
// none.
void Adopter::name_nobody(const Lease& held) noexcept {
  try {
    const SessionId actor(context_.engine_id, held.owner());
    context_.retry({later(BootClock::now(), context_.options.timeouts.release)}, [&](Deadline until) {
      context_.table->waiting().rename(held.key(), actor.view(), until);
      return true;
    });
  } catch (const std::exception&) {  // until it is adopted, or ends, it counts as the job's
  }
}

}  // namespace dlock::engine

// Takes charge of grants made elsewhere, and renews those that nobody here has.
#include "engine/core.hpp"
#include "engine/faults.hpp"
#include "engine/on_behalf.hpp"
#include "engine/retry.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock {
inline namespace v0 {

using engine::Lease;

std::shared_ptr<Lease> Core::adopt(const Name& name, const Grant& grant, const LockOptions& given) {
  const engine::OnBehalf behalf(given);
  const auto& options = behalf.options();
  ensure_running();
  const auto row = inspect(name);
  if (!row || row->owner.empty()) return nullptr;
  // The row is that of all who hold it; of a node they have its token.
  const bool shared = row->mode == Mode::shared || row->mode == Mode::permits;
  if (!shared && row->token != grant.token) return nullptr;
  if (row->mode == Mode::node)
    throw Error(Fault::misuse,
                fmt::format("the lock {} (token {}) is shared by the entries of the node {}: it is not adopted, "
                            "but entered (Reentrance::node)",
                            in_quotes(name.text()), number(grant.token), in_quotes(row->node)));
  auto known = options;
  if (!known.lease) known.lease = row->lease;
  const auto terms = terms_of(known);
  const auto before = adoptions_.take(name.text(), grant);
  auto heir = before.value_or(random_identity());
  if (!shared && row->owner != grant.owner && row->owner != heir) return nullptr;
  store::LeaseKey from{name.text(), grant.owner, grant.token};
  from.mode = row->mode;
  const engine::SessionId actor(engine_id_, options.job ? engine::id_of(options.job.name()) : heir);
  store::AcquireRequest to{name,
                           heir,
                           options_.node,
                           options.label ? std::string_view{*options.label} : options_.label,
                           actor.view(),
                           terms.lease,
                           {},
                           options.metadata};
  const auto begun = BootClock::now();
  Instant sent{};
  bool in_doubt = before.has_value();
  std::optional<Mode> adopted;
  try {
    adopted = retry(soon(), {}, in_doubt, [&](Deadline deadline) {
      sent = BootClock::now();
      to.lease = terms.left_of_lease(begun, sent);
      return table_->adopt(from, to, deadline);
    });
  } catch (...) {
    if (in_doubt) adoptions_.note(name.text(), grant, std::move(heir));
    throw;
  }
  if (!adopted) return nullptr;
  if (planted("adopt_trusts_answer")) sent = BootClock::now();
  auto held = std::make_shared<Lease>(name, heir, grant.token, terms, sent, begun);
  held->in_mode(*adopted);
  held->say(options);
  events_->counters().adopted.add();
  watch(held);
  return held;
}

bool Core::renew(const Name& name, const Grant& grant, std::optional<Duration> lease) {
  if (lease) {
    static_cast<void>(with_margin({*lease}));  // nobody could trust less
  } else {
    const auto row = inspect(name);
    if (!row || (row->mode == Mode::exclusive && (row->token != grant.token || row->owner != grant.owner)))
      return false;
    lease = row->lease;
  }
  store::LeaseKey key{name.text(), grant.owner, grant.token};
  const auto renews = [&](Mode mode) {
    key.mode = mode;
    return retry(soon(), [&](Deadline until) { return table_->extend(key, *lease, {}, until); }) !=
           store::Renewed::lost;
  };
  return renews(Mode::exclusive) || renews(Mode::shared);
}

}  // namespace v0
}  // namespace dlock

// Puts right what rows say of whose grants they are.
#include "engine/wait/job_rows.hpp"

#include "engine/context.hpp"
#include "store/waiter_table.hpp"

#include <utility>

namespace dlock::engine {

void put_rows_right(const JobRef& job, const Deadline& until) {
  if (!job || !job->any_astray()) return;
  auto strays = job->take_strays();
  if (job->away.load() > 0)
    for (const auto& context : job->contexts())
      if (const auto alive = context.lock())
        for (auto& held : alive->entries.of_this_thread())
          if (held->wrong_row()) strays.push_back({alive, std::move(held)});
  try {
    for (; !strays.empty(); strays.pop_back()) {
      const auto& [context, held, detached] = strays.back();
      const auto wrong = held->wrong_row();
      const auto its_context = context.lock();
      if (!wrong || !its_context) continue;
      const SessionId actor(its_context->engine_id, *wrong ? std::string_view{(*wrong)->id} : held->owner());
      its_context->table->waiting().rename(detached ? held->key() : held->pinned_key(), actor.view(), until);
      held->row_names(*wrong);
      // It was moved on meanwhile, or the one who has it now has put the row right before this did it wrong.
      if (const auto now = held->wrong_row(); now && *now) (*now)->add(strays.back());
    }
  } catch (...) {
    for (auto& stray : strays) job->add(std::move(stray));
    throw;
  }
}

}  // namespace dlock::engine

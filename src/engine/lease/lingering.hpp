// Leases that stay in their rows after a release: those of this engine, and those of others that are in the way.
#pragma once

#include "engine/context.hpp"
#include "engine/grant_request.hpp"
#include "engine/lease/history_probe.hpp"
#include "engine/lease/late_attempts.hpp"
#include "engine/lease/release_request.hpp"
#include "engine/patience.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace dlock::engine {

// Threads: any. What lingers is the context's, whose thread frees it in time.
class Lingering {
 public:
  Lingering(Context& context, HistoryProbe& history, LateAttempts& late_attempts) noexcept
      : context_(context), history_(history), late_attempts_(late_attempts) {}

  // Whether anything may linger here.
  bool enabled() const noexcept { return context_.lingering != nullptr; }
  // Whether a lease of that name does.
  bool lingers(const std::string& name) const noexcept { return enabled() && context_.lingering->lingers(name); }

  // What was let go of stays in its row under the next token, which nobody has yet. Empty: it is still to be freed.
  std::optional<Released> linger(ReleaseRequest& request);

  // Empty: nothing lingers here any more that this request could be granted.
  std::shared_ptr<Lease> take(GrantRequest& request, const Deadline& deadline);
  // `options`: null where what lingers can only be freed.
  std::shared_ptr<Lease> take(const Name& name, const LockOptions* options, const LeaseTerms& terms, const JobRef& job,
                              Instant called, const Deadline& deadline);
  // Takes what lingers under that name, whatever becomes of it. Empty: nothing does.
  std::shared_ptr<Lease> take(const std::string& name) noexcept {
    return enabled() ? context_.lingering->take(name).lease : nullptr;
  }

  // Frees a row in which nobody holds anything; later, if that is not possible now: then it is false.
  bool let_go(const Lease& lingering, const Deadline& deadline) noexcept;
  // For what is asked of the table by its name, whoever holds it.
  void end(const std::string& name, const Deadline& deadline) noexcept;
  void end_all(Instant deadline) noexcept;

  // Whether a refusal is worth a second look, since leases linger in any engine on this table.
  void look(Duration time);
  // A name that was refused to one who does not wait may linger somewhere else. True: it is worth another attempt.
  bool await(const Name& name, const Patience& patience);

 private:
  std::shared_ptr<Lease> next_in_memory(const ReleaseRequest& request, const LeaseTerms& terms);
  std::shared_ptr<Lease> next_by_statement(ReleaseRequest& request, const LeaseTerms& terms);

  Context& context_;
  HistoryProbe& history_;
  LateAttempts& late_attempts_;
  std::atomic<BootClock::rep> looked_{0};  // when it was asked last whether anything lingers somewhere
};

}  // namespace dlock::engine

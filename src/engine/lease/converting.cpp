// Makes an exclusive lease one of several that share the name, and the only one of them exclusive again.
#include "engine/core.hpp"
#include "engine/retry.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>

namespace dlock {
inline namespace v0 {

using engine::Lease;

namespace {

class HeldBack {
 public:
  HeldBack(engine::LeaseRenewer& renewer, std::shared_ptr<Lease> held, Instant until)
      : renewer_(renewer), held_(std::move(held)) {
    renewer_.hold_back(held_, until);
  }
  ~HeldBack() { renewer_.resume(held_); }
  HeldBack(const HeldBack&) = delete;
  HeldBack& operator=(const HeldBack&) = delete;

 private:
  engine::LeaseRenewer& renewer_;
  const std::shared_ptr<Lease> held_;
};

}  // namespace

std::shared_ptr<Lease> Core::downgrade(const std::shared_ptr<Lease>& held) {
  check_convertible(*held, Mode::exclusive);
  return convert(held, Mode::shared);
}

// Two that wait for each other would do so for ever: only the one that is alone is made exclusive.
std::shared_ptr<Lease> Core::upgrade(const std::shared_ptr<Lease>& held) {
  check_convertible(*held, Mode::shared);
  return convert(held, Mode::exclusive);
}

void Core::check_convertible(const Lease& held, Mode from) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Fault::misuse,
                fmt::format("the lock {} (token {}) {}", in_quotes(held.name()), number(held.token()), why));
  };
  if (held.mode() != from)
    refuse(fmt::format("is held in mode {}, and only {} one can be made {}", to_string(held.mode()),
                       from == Mode::exclusive ? "an exclusive" : "a shared",
                       from == Mode::exclusive ? "shared" : "exclusive"));
  if (entries_.inside(held) != 1) refuse("has been entered more than once: leave the inner ones first");
}

// Under another owner and the next token, so that nothing of the old grant can be taken for the new one. Where nobody
// knows what became of it, it is lost: there may be others who hold the name by then. Of a writer that is true from the
// sending on, so that its trust ends before.
std::shared_ptr<Lease> Core::convert(const std::shared_ptr<Lease>& held, Mode to) {
  // A renewal that is under way would find that the old grant is no more.
  const HeldBack held_back(renewer_, held, soon());
  const std::string owner = random_identity();
  const auto terms = held->terms();
  std::optional<Instant> begun;  // max_hold goes on
  if (held->ends() != Instant::max()) begun = held->ends() - terms.max_hold;
  Instant sent{};
  bool unanswered = false;
  const bool trusted_no_longer = to == Mode::shared && !planted("writer_trusted_on");
  if (trusted_no_longer) held->trust_no_longer();
  std::optional<Token> token;
  try {
    token = retry(soon(), {}, unanswered, [&](Deadline until) {
      if (!unanswered) sent = BootClock::now();  // a repeat renews nothing
      auto key = held->pinned_key();
      key.lease =
          terms.left_of_lease(begun.value_or(sent), sent);  // what is trusted, whatever others ask for meanwhile
      return to == Mode::shared ? table_->downgrade(key, owner, until) : table_->upgrade(key, owner, until);
    });
    // An attempt without an answer may still do what this one was refused.
    if (!token && unanswered)
      throw Error(Fault::lost,
                  fmt::format("the lock {} (token {}) is lost: nobody answered when it was to be converted",
                              in_quotes(held->name()), number(held->token())));
  } catch (const Error&) {
    if (!(trusted_no_longer || unanswered) || planted("doubted_upgrade_kept")) throw;
    if (held->lose(Loss::unconfirmed)) events_->emit_loss(held, "nobody answered when it was to be converted");
    if (terms.delay > Duration{}) throw;  // it is lost, and not let go of: the name stays closed
    renewer_.free_later({held->name(), held->owner(), {}, false, held->longest(), held->mode()});
    renewer_.free_later({held->name(), owner, {}, false, held->longest(), to});
    throw;
  }
  if (!token) {
    if (to == Mode::exclusive) return nullptr;
    if (held->lose(Loss::refused)) events_->emit_loss(held, "it could not be converted: the lease is no longer ours");
    throw Error(Fault::lost, fmt::format("the lock {} (token {}) is lost: it could not be made shared",
                                         in_quotes(held->name()), number(held->token())));
  }
  auto next = std::make_shared<Lease>(Name(held->name()), owner, *token, terms, sent, begun);
  next->in_mode(to);
  next->say(*held);
  next->passed.since = sent;
  const bool was_open = entries_.opened(held);
  entries_.close(held);
  const auto job = held->belongs_to_nobody();
  forget(held);
  if (unanswered) next->unanswered = true;
  hold(next, job, sent);
  if (was_open) open_to_job(next);
  if (to == Mode::shared) queues_->wake_head(next->name());
  return next;
}

}  // namespace v0
}  // namespace dlock

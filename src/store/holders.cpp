// Which named statements let holders in and out, and how their answers read; for how long an owner is refused that gave
// up without an answer.
#include "store/holders.hpp"

#include "dialects/dialect.hpp"
#include "store/holder_rows.hpp"
#include "store/installation.hpp"
#include "store/renewals.hpp"
#include "types/clock.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"
#include "types/pause.hpp"
#include "types/retry.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

namespace dlock::store {
namespace {

// As long as the engine reckons with a late attempt.
constexpr Duration refused_for = std::chrono::hours{1};

constexpr Duration longest_clearing = std::chrono::seconds{5}, pause_of_clearing = std::chrono::milliseconds{10};

// What an answer says that is to be repeated.
std::int64_t proved(std::int64_t answer) {
  if (answer < 0) throw Failure(Cause::serialization, "a cluster has undone the transaction of a holder");
  return answer;
}

}  // namespace

Holders::Holders(const dialects::Statements& all, OnConnection on_connection, Notify notify)
    : add_holder_(all.at("add_holder", {"name", "owner", "gate", "node", "label", "actor", "lease", "at_least", "meta",
                                        "mode", "permits", "limit", "ticket", "alone"})),
      drop_holder_(all.at("drop_holder", {"name", "owner", "token", "refused"})),
      renew_holders_(all.at("renew_holders", {"name", "owner", "token", "lease"})),
      extend_holder_(all.at("extend_holder", {"name", "owner", "token", "lease", "at_least"})),
      update_holder_metadata_(all.at("update_holder_metadata", {"name", "owner", "token", "meta", "keep"})),
      adopt_holder_(
          all.at("adopt_holder", {"name", "owner", "token", "new_owner", "node", "label", "actor", "lease", "meta"})),
      look_to_join_(all.at("look_to_join", {"name", "owner", "mode", "node", "permits", "limit", "ticket"})),
      holder_lease_(all.at("holder_lease", {"name", "owner", "token"})),
      downgrade_(all.at("downgrade", {"name", "owner", "token", "new_owner", "gate", "lease"})),
      upgrade_(all.at("upgrade", {"name", "owner", "token", "new_owner", "lease"})),
      gate_(all.at("gate", {"name", "token"})),
      drop_gate_(all.at("drop_gate", {"name", "gate", "seen_at"})),
      on_connection_(std::move(on_connection)),
      notify_(std::move(notify)) {}

void Holders::ask(const dialects::Statement& statement, std::span<const Argument> arguments, Deadline deadline,
                  const Read& read) const {
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& until) {
    read(connection.run(statement, arguments, until));
  });
}

Granted Holders::add(const AcquireRequest& ask, Deadline deadline) const {
  const Identity gate;
  const std::array<Argument, 14> arguments{std::string_view{ask.name.text()},
                                           ask.owner,
                                           std::string_view{gate},
                                           ask.node,
                                           ask.label,
                                           ask.actor,
                                           ask.lease.count(),
                                           ask.at_least.count(),
                                           ask.metadata,
                                           to_string(ask.mode),
                                           ask.permits,
                                           ask.limit,
                                           ask.ticket,
                                           std::int64_t{ask.alone ? 1 : 0}};
  Granted granted;
  try {
    this->ask(add_holder_, arguments, deadline, [&](const Answer& answer) {
      if (answer.rows() == 0) throw no_floor();
      const auto token = answer.integer(0, 0);
      if (token > 0) granted.token = Token{token};
      granted.row_locked = token < 0;
      if (answer.integer(0, 1) != 0) notify_();
    });
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::locked || failure.may_have_run()) throw;
    return {std::nullopt, true};
  }
  return granted;
}

Left Holders::drop(std::string_view name, std::string_view owner, std::int64_t token, Duration refused,
                   Deadline deadline) const {
  Left left;
  const std::array<Argument, 4> arguments{name, owner, token, refused.count()};
  ask(drop_holder_, arguments, deadline, [&](const Answer& answer) {
    if (answer.rows() == 0) return;  // there is no such name
    left = {proved(answer.integer(0, 0)) != 0, answer.integer(0, 2) != 0};
    if (answer.integer(0, 1) != 0) notify_();
  });
  return left;
}

Left Holders::drop(const LeaseKey& key, Deadline deadline) const {
  return drop(key.name, key.owner, number(key.token), {}, deadline);
}

void Holders::withdraw(std::string_view name, std::string_view owner, Token kept, Deadline deadline) const {
  drop(name, owner, -number(kept), refused_for, deadline);
}

std::optional<Holders::Gate> Holders::gate(std::string_view name, Token token, Deadline deadline) const {
  std::optional<Gate> gate;
  const std::array<Argument, 2> arguments{name, number(token)};
  ask(gate_, arguments, deadline, [&](const Answer& answer) {
    if (answer.rows() > 0) gate = {answer.text(0, 0), answer.integer(0, 1)};
  });
  return gate;
}

void Holders::drop(std::string_view name, const Gate& gate, Deadline deadline) const noexcept {
  const std::array<Argument, 3> arguments{name, std::string_view{gate.owner}, gate.seen_at};
  const auto until = deadline.no_later_than(later(BootClock::now(), longest_clearing));
  try {
    // A renewal under way keeps their rows locked for a moment.
    retry([&] { ask(drop_gate_, arguments, until, [](const Answer&) {}); },
          [&](const Failure& failure) {
            const bool passes = failure.cause() == Cause::locked || failure.cause() == Cause::deadlock ||
                                failure.cause() == Cause::serialization;
            if (!passes || planted("gate_dropped_once")) return false;
            const auto again = later(BootClock::now(), pause_of_clearing);
            return again < until.at() && !pause_until(again, until.stop());
          });
  } catch (...) {  // the name is free all the same; the reaper tells of them as of others
  }
}

std::vector<Renewal> Holders::renew(std::span<const LeaseKey> keys, Deadline deadline) const {
  const auto rows = renewal_arguments(keys);
  std::vector<Renewal> renewed;
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline&) {
    renewed = renewed_many(keys, connection.run_rows(renew_holders_, rows, 4, deadline));
  });
  return renewed;
}

Renewal Holders::extend(const LeaseKey& key, Duration lease, Duration at_least, Deadline deadline) const {
  Renewal renewed = Renewed::lost;
  const std::array<Argument, 5> arguments{key.name, key.owner, number(key.token), lease.count(), at_least.count()};
  ask(extend_holder_, arguments, deadline, [&](const Answer& answer) {
    if (answer.rows() > 0) renewed = {Renewed::yes, wanted_of(proved(answer.integer(0, 0)))};
  });
  return renewed;
}

bool Holders::update_metadata(const LeaseKey& key, std::string_view metadata, Keep keep, Deadline deadline) const {
  bool updated = false;
  const std::int64_t kept = keep == Keep::for_next ? 1 : 0;
  const std::array<Argument, 5> arguments{key.name, key.owner, number(key.token), metadata, kept};
  ask(update_holder_metadata_, arguments, deadline, [&](const Answer& answer) { updated = answer.affected > 0; });
  return updated;
}

std::optional<Mode> Holders::adopt(const LeaseKey& from, const AcquireRequest& to, Deadline deadline) const {
  std::optional<Mode> mode;
  const std::array<Argument, 9> arguments{from.name, from.owner, number(from.token), to.owner,   to.node,
                                          to.label,  to.actor,   to.lease.count(),   to.metadata};
  ask(adopt_holder_, arguments, deadline, [&](const Answer& answer) {
    if (answer.rows() > 0) mode = proved(answer.integer(0, 0)) > 0 ? Mode::permits : Mode::shared;
  });
  return mode;
}

std::optional<Duration> Holders::lease_of(const LeaseKey& key, Deadline deadline) const {
  std::optional<Duration> lease;
  const std::array<Argument, 3> arguments{key.name, key.owner, number(key.token)};
  ask(holder_lease_, arguments, deadline, [&](const Answer& answer) {
    if (answer.rows() > 0) lease = Duration{answer.integer(0, 0)};
  });
  return lease;
}

Availability Holders::look(const AcquireRequest& ask, Deadline deadline) const {
  Availability availability{true, {}};
  const std::array<Argument, 7> arguments{
      std::string_view{ask.name.text()}, ask.owner, to_string(ask.mode), ask.node, ask.permits, ask.limit, ask.ticket};
  this->ask(look_to_join_, arguments, deadline, [&](const Answer& answer) {
    if (answer.rows() > 0) availability = availability_of(answer);
  });
  return availability;
}

std::optional<Token> Holders::downgrade(const LeaseKey& from, std::string_view new_owner, Deadline deadline) const {
  std::optional<Token> token;
  const Identity gate;
  const std::array<Argument, 6> arguments{
      from.name, from.owner, number(from.token), new_owner, std::string_view{gate}, from.lease.count()};
  ask(downgrade_, arguments, deadline, [&](const Answer& answer) {
    if (answer.rows() > 0) token = Token{proved(answer.integer(0, 0))};
  });
  if (token) notify_();
  return token;
}

std::optional<Token> Holders::upgrade(const LeaseKey& from, std::string_view new_owner, Deadline deadline) const {
  std::optional<Token> token;
  const std::array<Argument, 5> arguments{from.name, from.owner, number(from.token), new_owner, from.lease.count()};
  ask(upgrade_, arguments, deadline, [&](const Answer& answer) {
    if (answer.rows() > 0) token = Token{proved(answer.integer(0, 0))};
  });
  return token;
}

}  // namespace dlock::store

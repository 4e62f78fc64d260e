// Which named statement answers which question about those who wait, how its answer reads, and which answers are not
// waited for when they are late.
#include "store/sql_waiter_table.hpp"

#include "store/holder_rows.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

namespace dlock::store {
namespace {

std::string_view word(Wait::Discipline discipline) {
  switch (discipline) {
    case Wait::Discipline::barging: return "barging";
    case Wait::Discipline::fifo: return "fifo";
    case Wait::Discipline::transaction: return "transaction";
  }
  throw std::logic_error("a mode of waiting that does not exist");
}

// As it is written: 0 is for ever.
std::int64_t patience(const Wait& wait) {
  return wait.patience ? std::max<std::int64_t>(1, wait.patience->count()) : 0;
}

}  // namespace

SqlWaiterTable::SqlWaiterTable(const dialects::Statements& all, OnConnection on_connection)
    : on_connection_(std::move(on_connection)),
      want_(all.at("want", {"name", "mark"})),
      unwant_(all.at("unwant", {"name"})),
      draw_ticket_(all.at("draw_ticket",
                          {"name", "owner", "node", "label", "actor", "mode", "wants", "waited", "ttl", "patience"})),
      add_(all.at("add_waiter",
                  {"name", "owner", "node", "label", "actor", "mode", "wants", "waited", "ttl", "patience"})),
      renew_waiters_(all.at("renew_waiters", {"name", "owner", "ttl"})),
      remove_(all.at("remove_waiter", {"name", "owner"})),
      dead_waiters_(all.at("dead_waiters", {"limit"})),
      forget_waiters_(all.at("forget_waiters", {"name", "owner"})),
      hand_over_(all.at("hand_over", {"name", "owner", "token", "new_owner", "node", "label", "actor", "lease",
                                      "at_least", "meta", "ticket", "tokens"})),
      rename_(all.at("rename", {"name", "owner", "token", "actor"})),
      rename_holder_(all.at("rename_holder", {"name", "owner", "token", "actor"})),
      chain_(all.at("chain", {"actor", "owner"})),
      waiters_(all.at("waiters", {"prefix"})),
      sharers_(all.at("sharers", {"prefix"})) {}

void SqlWaiterTable::ask(const dialects::Statement& statement, std::initializer_list<Argument> arguments,
                         Deadline deadline, const Read& read) const {
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& until) {
    read(connection.run(statement, {arguments.begin(), arguments.size()}, until));
  });
}

// A connection is worth more than the answer: what is late is not waited for, and read before the next request.
void SqlWaiterTable::post(const dialects::Statement& statement, std::initializer_list<Argument> arguments,
                          Deadline deadline) const {
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& until) {
    if (connection.post(statement, {arguments.begin(), arguments.size()}, until)) return;
    throw Failure(Cause::timed_out, "no answer in time to \"" + statement.name + "\"", {}, true);
  });
}

void SqlWaiterTable::want(std::string_view name, Duration mark, Deadline deadline) {
  post(want_, {name, mark.count()}, deadline);
}

void SqlWaiterTable::unwant(std::string_view name, Deadline deadline) { post(unwant_, {name}, deadline); }

std::int64_t SqlWaiterTable::draw_ticket(const Wait& wait, Deadline deadline) {
  std::int64_t ticket = 0;
  ask(draw_ticket_,
      {wait.name, wait.owner, wait.node, wait.label, wait.actor, word(wait.discipline), to_string(wait.wants),
       wait.waited.count(), wait.ttl.count(), patience(wait)},
      deadline, [&](const Answer& answer) {
        if (answer.rows() > 0) ticket = answer.integer(0, 0);
      });
  if (ticket < 0)
    throw Failure(
        Cause::serialization,
        "no ticket was drawn: a cluster has undone the transaction, or the ticket was over before its answer");
  if (ticket == 0)
    throw Failure(Cause::schema,
                  "no ticket was drawn: the floor row of the lock table is missing; run \"dlock-migrate repair\"");
  return ticket;
}

void SqlWaiterTable::add(const Wait& wait, Deadline deadline) {
  post(add_,
       {wait.name, wait.owner, wait.node, wait.label, wait.actor, word(wait.discipline), to_string(wait.wants),
        wait.waited.count(), wait.ttl.count(), patience(wait)},
       deadline);
}

std::vector<bool> SqlWaiterTable::renew_waiters(std::span<const WaiterKey> keys, Duration ttl, Deadline deadline) {
  if (keys.empty()) return {};
  std::vector<Argument> rows;
  rows.reserve(keys.size() * 3);
  for (const auto& key : keys) {
    rows.emplace_back(key.name);
    rows.emplace_back(key.owner);
    rows.emplace_back(ttl.count());
  }
  std::unordered_set<std::string> living;  // by owner, which has one length, and name
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline&) {
    const Answer& answer = connection.run_rows(renew_waiters_, rows, 3, deadline);
    for (std::size_t row = 0; row < answer.rows(); ++row) living.insert(answer.text(row, 0));
  });
  std::vector<bool> renewed;
  renewed.reserve(keys.size());
  for (const auto& key : keys) renewed.push_back(living.contains(std::string(key.owner).append(key.name)));
  return renewed;
}

void SqlWaiterTable::remove(std::string_view name, std::string_view owner, Deadline deadline) {
  post(remove_, {name, owner}, deadline);
}

std::size_t SqlWaiterTable::forget_waiters(std::size_t limit, Deadline deadline) {
  std::size_t forgotten = 0;
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline&) {
    std::vector<std::string> dead;
    {
      const Argument most = static_cast<std::int64_t>(limit);
      const Answer& answer = connection.run(dead_waiters_, {&most, 1}, deadline);
      for (std::size_t row = 0; row < answer.rows(); ++row) {
        dead.push_back(answer.text(row, 0));
        dead.push_back(answer.text(row, 1));
      }
    }
    if (dead.empty()) return;
    const std::vector<Argument> rows(dead.begin(), dead.end());
    forgotten = static_cast<std::size_t>(connection.run_rows(forget_waiters_, rows, 2, deadline).affected);
  });
  return forgotten;
}

bool SqlWaiterTable::hand_over(const LeaseKey& from, const AcquireRequest& to, std::int64_t tokens, Deadline deadline) {
  bool handed = false;
  ask(hand_over_,
      {from.name, from.owner, number(from.token), to.owner, to.node, to.label, to.actor, to.lease.count(),
       to.at_least.count(), to.metadata, to.ticket, tokens},
      deadline, [&](const Answer& answer) { handed = answer.affected > 0; });
  return handed;
}

void SqlWaiterTable::rename(const LeaseKey& key, std::string_view actor, Deadline deadline) {
  ask(key.mode == Mode::exclusive ? rename_ : rename_holder_, {key.name, key.owner, number(key.token), actor}, deadline,
      [](const Answer&) {});
}

std::vector<WaitEdge> SqlWaiterTable::chain(std::string_view actor, std::string_view owner, Deadline deadline) {
  std::vector<WaitEdge> edges;
  ask(chain_, {actor, owner}, deadline, [&](const Answer& answer) {
    for (std::size_t row = 0; row < answer.rows(); ++row)
      edges.push_back({answer.text(row, 0), answer.text(row, 1), answer.text(row, 2), answer.integer(row, 3),
                       answer.integer(row, 4), answer.text(row, 5), answer.text(row, 6), answer.text(row, 7),
                       Token{answer.integer(row, 8)}, answer.text(row, 9)});
  });
  return edges;
}

std::vector<Waiter> SqlWaiterTable::waiters(std::string_view prefix, Deadline deadline) {
  std::vector<Waiter> found;
  ask(waiters_, {prefix}, deadline, [&](const Answer& answer) {
    for (std::size_t row = 0; row < answer.rows(); ++row) {
      Waiter waiter;
      waiter.name = answer.text(row, 0);
      waiter.owner = answer.text(row, 1);
      waiter.actor = answer.text(row, 2);
      waiter.node = answer.text(row, 3);
      waiter.label = answer.text(row, 4);
      waiter.in_transaction = answer.text(row, 5) == word(Wait::Discipline::transaction);
      waiter.ticket = answer.integer(row, 6);
      waiter.waited = Duration{answer.integer(row, 7)};
      if (const auto left = answer.integer(row, 8); left >= 0) waiter.left = Duration{left};
      waiter.holder_node = answer.text(row, 9);
      waiter.holder_actor = answer.text(row, 10);
      waiter.holder_label = answer.text(row, 11);
      waiter.holder_token = Token{answer.integer(row, 12)};
      waiter.mode = mode_of(answer.text(row, 13));
      if (waiter.mode == Mode::node) waiter.mode = Mode::exclusive;
      found.push_back(std::move(waiter));
    }
  });
  return found;
}

std::vector<Sharer> SqlWaiterTable::sharers(std::string_view prefix, Deadline deadline) {
  std::vector<Sharer> found;
  ask(sharers_, {prefix}, deadline, [&](const Answer& answer) {
    for (std::size_t row = 0; row < answer.rows(); ++row)
      found.push_back({answer.text(row, 0), answer.text(row, 1), answer.text(row, 2), answer.text(row, 3),
                       answer.text(row, 4), Token{answer.integer(row, 5)}, answer.integer(row, 6),
                       Duration{answer.integer(row, 7)}, Duration{answer.integer(row, 8)}});
  });
  return found;
}

}  // namespace dlock::store

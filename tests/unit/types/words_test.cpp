// Every enumerator at dlock's face has a word of its own. Who adds one is stopped by the compiler here.
#include <dlock/dlock.hpp>
#include <dlock/schema.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <set>
#include <string>

namespace {

// Checks that all of them have different words, which are what `known` says. `known` is a switch without a default: an
// enumerator that is missing in it does not compile (-Werror=switch).
template <class Enum, class Known>
void check_words(Known known, std::initializer_list<Enum> all) {
  std::set<std::string> words;
  int value = 0;
  for (const auto each : all) {
    CHECK(static_cast<int>(each) == value++);  // none is left out in between
    CHECK(to_string(each) == known(each));
    words.emplace(to_string(each));
  }
  CHECK(words.size() == all.size());
  CHECK(known(static_cast<Enum>(value)) == std::string());  // nor after the last
}

}  // namespace

#define WORD(Enum, enumerator) \
  case Enum::enumerator: return #enumerator

TEST_CASE("every enumerator has its own name as its word") {
  using namespace dlock;
  check_words<Fault>(
      [](Fault fault) -> std::string {
        switch (fault) {
          WORD(Fault, unavailable);
          WORD(Fault, timeout);
          WORD(Fault, lost);
          WORD(Fault, deadlock);
          WORD(Fault, conflict);
          WORD(Fault, in_doubt);
          WORD(Fault, schema);
          WORD(Fault, permission);
          WORD(Fault, misuse);
        }
        return {};
      },
      {Fault::unavailable, Fault::timeout, Fault::lost, Fault::deadlock, Fault::conflict, Fault::in_doubt,
       Fault::schema, Fault::permission, Fault::misuse});
  check_words<Loss>(
      [](Loss loss) -> std::string {
        switch (loss) {
          WORD(Loss, refused);
          WORD(Loss, unconfirmed);
          WORD(Loss, forced);
          WORD(Loss, max_hold);
        }
        return {};
      },
      {Loss::refused, Loss::unconfirmed, Loss::forced, Loss::max_hold});
  check_words<Released>(
      [](Released released) -> std::string {
        switch (released) {
          WORD(Released, freed);
          WORD(Released, still_held);
          WORD(Released, was_lost);
          WORD(Released, unconfirmed);
        }
        return {};
      },
      {Released::freed, Released::still_held, Released::was_lost, Released::unconfirmed});
  check_words<Outcome>(
      [](Outcome outcome) -> std::string {
        switch (outcome) {
          WORD(Outcome, released);
          WORD(Outcome, expired);
          WORD(Outcome, forced);
          WORD(Outcome, taken_over);
        }
        return {};
      },
      {Outcome::released, Outcome::expired, Outcome::forced, Outcome::taken_over});
  check_words<Removal>(
      [](Removal removal) -> std::string {
        switch (removal) {
          WORD(Removal, removed);
          WORD(Removal, absent);
          WORD(Removal, in_use);
          WORD(Removal, wanted);
          WORD(Removal, stopped);
        }
        return {};
      },
      {Removal::removed, Removal::absent, Removal::in_use, Removal::wanted, Removal::stopped});
  check_words<State>(
      [](State state) -> std::string {
        switch (state) {
          WORD(State, free);
          WORD(State, held);
          WORD(State, closed);
          WORD(State, expired);
          WORD(State, locked);
        }
        return {};
      },
      {State::free, State::held, State::closed, State::expired, State::locked});
  check_words<Reentrance>(
      [](Reentrance reentrance) -> std::string {
        switch (reentrance) {
          WORD(Reentrance, thread);
          WORD(Reentrance, node);
          WORD(Reentrance, none);
        }
        return {};
      },
      {Reentrance::thread, Reentrance::node, Reentrance::none});
  check_words<Fairness>(
      [](Fairness fairness) -> std::string {
        switch (fairness) {
          WORD(Fairness, barging);
          WORD(Fairness, fifo);
        }
        return {};
      },
      {Fairness::barging, Fairness::fifo});
}

TEST_CASE("every kind of event, cause of a retry, phase, state and role has its own name as its word") {
  using namespace dlock;
  using Kind = Event::Kind;
  check_words<Kind>(
      [](Kind kind) -> std::string {
        switch (kind) {
          WORD(Kind, granted);
          WORD(Kind, released);
          WORD(Kind, lost);
          WORD(Kind, trust_low);
          WORD(Kind, retried);
          WORD(Kind, abandoned);
          WORD(Kind, reconnected);
          WORD(Kind, weak_durability);
          WORD(Kind, busy);
          WORD(Kind, timed_out);
          WORD(Kind, renewed_late);
          WORD(Kind, deadlock);
        }
        return {};
      },
      {Kind::granted, Kind::released, Kind::lost, Kind::trust_low, Kind::retried, Kind::abandoned, Kind::reconnected,
       Kind::weak_durability, Kind::busy, Kind::timed_out, Kind::renewed_late, Kind::deadlock});
  check_words<RetryCause>(
      [](RetryCause cause) -> std::string {
        switch (cause) {
          WORD(RetryCause, refused);
          WORD(RetryCause, disconnected);
          WORD(RetryCause, timed_out);
          WORD(RetryCause, locked);
          WORD(RetryCause, deadlock);
          WORD(RetryCause, serialization);
          WORD(RetryCause, read_only);
          WORD(RetryCause, stale_statement);
          WORD(RetryCause, conflict);
          WORD(RetryCause, other);
        }
        return {};
      },
      {RetryCause::refused, RetryCause::disconnected, RetryCause::timed_out, RetryCause::locked, RetryCause::deadlock,
       RetryCause::serialization, RetryCause::read_only, RetryCause::stale_statement, RetryCause::conflict,
       RetryCause::other});
  using Phase = ReapProgress::Phase;
  check_words<Phase>(
      [](Phase phase) -> std::string {
        switch (phase) {
          WORD(Phase, turn);
          WORD(Phase, settling);
          WORD(Phase, grace);
          WORD(Phase, removing);
        }
        return {};
      },
      {Phase::turn, Phase::settling, Phase::grace, Phase::removing});
  using schema::Role, schema::SchemaState;
  check_words<SchemaState>(
      [](SchemaState state) -> std::string {
        switch (state) {
          WORD(SchemaState, good);
          WORD(SchemaState, failed);
          WORD(SchemaState, pending);
          WORD(SchemaState, drift);
          WORD(SchemaState, interrupted);
          WORD(SchemaState, locked);
          WORD(SchemaState, incompatible);
          WORD(SchemaState, stopped);
        }
        return {};
      },
      {SchemaState::good, SchemaState::failed, SchemaState::pending, SchemaState::drift, SchemaState::interrupted,
       SchemaState::locked, SchemaState::incompatible, SchemaState::stopped});
  check_words<Role>(
      [](Role role) -> std::string {
        switch (role) {
          WORD(Role, migrator);
          WORD(Role, runtime);
          WORD(Role, read_only);
        }
        return {};
      },
      {Role::migrator, Role::runtime, Role::read_only});
}

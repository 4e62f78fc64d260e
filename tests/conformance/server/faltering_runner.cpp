// The promise that a fence through a runner that throws something of its own, before or after a statement was sent,
// stores nothing, and that what it has thrown comes through.
#include "support/caller.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What a driver throws when a deadline of its own is over, always in the same words.
struct Faltered : std::runtime_error {
  Faltered() : std::runtime_error("the driver's deadline is over") {}
};
struct FalteredInSilence {};

// The runner of `caller`, which throws in the place of some answers: of those from `first` on as many as `times`.
// `sent`: the statement was run all the same.
class Faltering {
 public:
  Faltering(Caller& caller, int first, int times, bool sent, bool tells)
      : inner_(caller.runner()), first_(first), times_(times), sent_(sent), tells_(tells) {}

  SqlRunner runner() {
    return {inner_.dialect, [this](std::string_view sql) {
              const int now = ++count_;
              if (now < first_ || now >= first_ + times_) return inner_.run(sql);
              faltered_ = true;
              if (sent_) inner_.run(sql);
              if (tells_) throw Faltered{};
              throw FalteredInSilence{};
            }};
  }
  bool faltered() const { return faltered_; }
  int times() const { return times_; }

 private:
  const SqlRunner inner_;
  const int first_, times_;
  const bool sent_, tells_;
  int count_ = 0;
  bool faltered_ = false;
};

enum class End { none, faltered, other };

End end_of(const std::function<void()>& call) {
  try {
    call();
    return End::none;
  } catch (const Faltered&) { return End::faltered; } catch (const FalteredInSilence&) {
    return End::faltered;
  } catch (const std::exception&) { return End::other; }
}

struct Scene {
  ServerDatabase database{};
  Engine engine = database->engine();
  Scene() { database->admin().run("CREATE TABLE app (n bigint)"); }

  long long stored() { return database->admin().number("SELECT count(*) FROM app"); }
  void empty() { database->admin().run("DELETE FROM app"); }
  // Calls it with runners that falter at each of the statements, until one does not.
  void each(const std::function<bool(Caller&, Faltering&)>& goes_on) {
    for (const bool sent : {false, true})
      for (const int times : {1, 2, 4})
        for (int first = 1; first < 40; ++first) {
          INFO("statement " << first << ", " << times << " times, sent: " << sent);
          Caller caller(database.server());
          Faltering faltering(caller, first, times, sent, first % 2 == 0);
          if (!goes_on(caller, faltering)) break;
        }
  }
};

}  // namespace

TEST_CASE(
    "a fence whose runner falters at any of its statements stores nothing, and throws what the runner has thrown") {
  Scene scene;
  for (const bool lost : {false, true}) {
    INFO("lost: " << lost);
    auto lock = scene.engine.lock(lost ? "lost" : "held", {.lease = 10min, .renew = false});
    if (lost) free_by_force(scene.engine, "lost");
    scene.each([&](Caller& caller, Faltering& faltering) {
      caller.begin(scene.database.server().beginnings().front());
      caller.run("INSERT INTO app VALUES (1)");
      caller.run("SAVEPOINT mine");
      const auto runner = faltering.runner();
      const auto end = end_of([&] { lock.fence(runner); });
      CHECK((end == End::faltered || (lost ? end == End::other : end == End::none && !faltering.faltered())));
      caller.run_anyway("ROLLBACK TO SAVEPOINT mine");
      caller.run_anyway("INSERT INTO app VALUES (2)");
      caller.run_anyway("COMMIT");
      CHECK(scene.stored() == (end == End::none ? 2 : 0));
      scene.empty();
      return faltering.faltered();
    });
  }
}

TEST_CASE("a connection on which nothing is open stays as it was, wherever its runner falters") {
  Scene scene;
  auto lock = scene.engine.lock("job", {.lease = 10min, .renew = false});
  scene.each([&](Caller& caller, Faltering& faltering) {
    const auto runner = faltering.runner();
    CHECK(end_of([&] { lock.fence(runner); }) != End::none);
    caller.run("INSERT INTO app VALUES (1)");
    CHECK(scene.stored() == 1);
    scene.empty();
    return faltering.faltered();
  });
}

TEST_CASE("with_fence whose runner falters at any of its statements stores all or nothing, and throws that") {
  Scene scene;
  auto lock = scene.engine.lock("job", {.lease = 10min, .renew = false});
  scene.each([&](Caller& caller, Faltering& faltering) {
    const auto runner = faltering.runner();
    const auto end = end_of([&] { lock.with_fence(runner, [&] { caller.run("INSERT INTO app VALUES (1)"); }); });
    // To what falters as often as it is asked there is no answer.
    CHECK((end == (faltering.faltered() ? End::faltered : End::none) || faltering.times() == 4));
    const auto stored = scene.stored();
    if (end == End::none) CHECK(stored == 1);
    caller.run_anyway("ROLLBACK");
    caller.run_anyway("COMMIT");
    CHECK(scene.stored() == stored);
    CHECK(stored <= 1);
    scene.empty();
    return faltering.faltered();
  });
}

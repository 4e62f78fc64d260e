// The promise that a role without a right learns which one it lacks.
#include "support/database.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;

namespace {

void check_names_the_right(const Thrown& thrown, std::string_view right) {
  CHECK_MESSAGE(thrown.fault == Fault::permission, thrown.text);
  CHECK_MESSAGE(thrown.names(right), thrown.text);
  CHECK_MESSAGE(thrown.names("resource_lock"), thrown.text);
  CHECK_FALSE(thrown.names("of_a_role"));  // its password
  CHECK(thrown.text.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("a role that may not read is told when its engine opens") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({});
  check_names_the_right(thrown_by([&] { Engine engine(url); }), "SELECT");
}

TEST_CASE("a role that may only read can look, and is told what it lacks when it asks for a lock") {
  ServerDatabase database;
  auto holder = database->engine();
  const auto lock = holder.try_lock("job");
  Engine engine(database.server().url_of_role({"SELECT"}));
  CHECK(engine.inspect("job")->token == lock->token());
  CHECK(engine.list().size() == 1);
  check_names_the_right(thrown_by([&] { engine.try_lock("job"); }), "INSERT");
  check_names_the_right(thrown_by([&] { engine.force_release("job", lock->token()); }), "UPDATE");
}

TEST_CASE("a role that may not update is told so") {
  ServerDatabase database;
  Engine engine(database.server().url_of_role({"SELECT", "INSERT"}));
  check_names_the_right(thrown_by([&] { engine.try_lock("job"); }), "UPDATE");
}

TEST_CASE("to lock, renew and release a role needs no more than SELECT, INSERT and UPDATE, and DELETE to reap") {
  ServerDatabase database;
  Engine engine(database.server().url_of_role({"SELECT", "INSERT", "UPDATE"}),
                {.timeouts = {.release = std::chrono::seconds{10} * slowness()},
                 .reaper = {.retention = Duration{1}, .grace = Duration{1}}});
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  lock->extend(std::chrono::seconds{10});
  CHECK(lock->release() == Released::freed);
  database->admin().make_idle_for_days("job");
  engine.reap();
  check_names_the_right(thrown_by([&] { engine.reap(); }), "DELETE");
}

TEST_CASE("a wrong password is an error that does not repeat it") {
  ServerDatabase database;
  auto url = database.server().url_of_role({"SELECT"});
  url.replace(url.find("of_a_role"), 9, "not_it_at_all");
  const auto thrown = thrown_by([&] { Engine engine(url); });
  CHECK((thrown.fault == Fault::permission || thrown.fault == Fault::misuse));
  CHECK_FALSE(thrown.names("not_it_at_all"));
}

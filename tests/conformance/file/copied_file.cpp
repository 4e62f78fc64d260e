// A copy of the file has the identity of its original, and is another database all the same.
#include "support/caller.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

using namespace dlock;
using namespace dlock::test;

namespace {

std::string path_of(const TestDatabase& test_database) {
  const auto url = test_database.url();
  return url.substr(url.find(':') + 1);
}

}  // namespace

TEST_CASE("a connection to a copy of the file is misuse, while another name of the file is the same one") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("a");
  const auto copy = opener().test_database();
  database.admin().run("VACUUM INTO '" + path_of(*copy) + "'");
  REQUIRE(Admin(*copy).owner("a") == lock.owner());
  Caller caller(*copy);
  caller.run("BEGIN IMMEDIATE");
  const auto fenced = thrown_by([&] { lock.fence(caller.native()); });
  CHECK(fenced.fault == Fault::misuse);
  CHECK_MESSAGE(fenced.names(path_of(*copy)), fenced.text);
  CHECK_MESSAGE(fenced.names(path_of(database.test_database())), fenced.text);
  caller.run("ROLLBACK");
  caller.run("BEGIN IMMEDIATE");
  CHECK(thrown_by([&] { engine.try_lock_in(caller.native(), "b"); }).fault == Fault::misuse);
  caller.run("ROLLBACK");
  CHECK_FALSE(Admin(*copy).exists("b"));
  bool worked = false;
  const auto begun = thrown_by([&] { lock.with_fence(caller.native(), [&] { worked = true; }); });
  CHECK(begun.fault == Fault::misuse);
  CHECK_MESSAGE(begun.names(path_of(*copy)), begun.text);
  CHECK_FALSE(worked);
  caller.run("BEGIN");  // none was left open
  caller.run("ROLLBACK");
  free_by_force(engine, "a");

  const auto link = path_of(database.test_database()) + ".link";
  REQUIRE(::symlink(path_of(database.test_database()).c_str(), link.c_str()) == 0);
  Engine through_link("sqlite:" + link);
  auto again = through_link.lock("a");
  Caller direct(database.test_database());
  direct.run("BEGIN IMMEDIATE");
  again.fence(direct.native());
  CHECK(through_link.try_lock_in(direct.native(), "c"));
  direct.run("COMMIT");
}

TEST_CASE("a copy that has an identity of its own is told from its original through a runner too") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("a");
  const auto copy = opener().test_database();
  database.admin().run("VACUUM INTO '" + path_of(*copy) + "'");
  Admin(*copy).run("UPDATE resource_lock SET meta = lower(hex(randomblob(16))) WHERE name = ''");
  const auto row = Admin(*copy).row("a");
  for (const auto& beginning : copy->beginnings()) {
    INFO(beginning.name);
    Caller caller(*copy);
    caller.begin(beginning);
    const auto fenced = thrown_by([&] { lock.fence(caller.runner()); });
    CHECK(fenced.fault == Fault::misuse);
    CHECK_MESSAGE(fenced.names("another database"), fenced.text);
    caller.run("ROLLBACK");
    caller.begin(beginning);
    CHECK(thrown_by([&] { engine.try_lock_in(caller.runner(), "b"); }).fault == Fault::misuse);
    caller.run("ROLLBACK");
    CHECK(Admin(*copy).row("a") == row);
  }
  CHECK(lock.valid());
}

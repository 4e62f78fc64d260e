// The promise that a name service that does not answer holds nobody up beyond a deadline.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/measured.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Answer {
  std::string word;
  std::chrono::milliseconds took{};
};

Answer ask(Child& process, const std::string& line) {
  process.tell(line);
  std::istringstream words(process.line().value_or("ended 0"));
  Answer answer;
  long took = 0;
  words >> answer.word >> took;
  answer.took = std::chrono::milliseconds{took};
  return answer;
}

}  // namespace

TEST_CASE("while no name is found a try ends with its deadline, a release and a destructor with release_timeout") {
  ServerDatabase database;
  const auto request_timeout = 2s * slowness();
  Child process(hampered(database.server().url_at({"localhost", database.server().address().port}), request_timeout));
  REQUIRE(ask(process, "open").word == "open");
  for (const char* name : {"try a long", "try b long", "try c"}) REQUIRE(ask(process, name).word == "granted");
  REQUIRE(ask(process, "names no").word == "ok");
  database.server().disconnect_everybody();
  const auto released = ask(process, "release a");
  CHECK(released.word == "unconfirmed");
  CHECK(released.took < 1s + 2s * slowness());
  const auto dropped = ask(process, "drop b");
  CHECK(dropped.word == "dropped");
  CHECK(dropped.took < 1s + 2s * slowness());
  const Stopwatch time;
  CHECK(ask(process, "try d").word == "unavailable:");
  CHECK(time.elapsed() < request_timeout + 2s * slowness());
  REQUIRE(ask(process, "names yes").word == "ok");
  // What could not be freed in time is freed by the engine.
  auto other = database->engine();
  CHECK(eventually([&] { return other.try_lock("a").has_value() && other.try_lock("b").has_value(); }));
  CHECK(eventually([&] { return ask(process, "try d").word == "granted"; }));
  for (const char* release : {"release d", "release c"}) {
    const auto late = ask(process, release).word;
    CHECK((late == "freed" || late == "unconfirmed" || late == "was_lost" || late == "was"));
  }
  CHECK(eventually([&] { return database->admin().held() == 0; }));
}

TEST_CASE("a stop ends a call that waits for a name to be found") {
  ServerDatabase database;
  Child process(hampered(database.server().url_at({"localhost", database.server().address().port}), 20s));
  REQUIRE(ask(process, "open").word == "open");
  check_prompt("a name is looked up", [&] {
    CHECK(ask(process, "names no").word == "ok");
    database.server().disconnect_everybody();
    const auto stopped = ask(process, "stop job");
    CHECK(stopped.word == "stopped");
    CHECK(ask(process, "names yes").word == "ok");
    return std::chrono::microseconds{stopped.took.count()};
  });
}

TEST_CASE("whoever opens a connection looks up no name, a server's that is checked neither") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->test_database());
  const Address door{"localhost", database.server().address().port};
  const auto& test_database = database.server();
  for (const auto& url :
       {test_database.url_preferring_tls_at(door), test_database.url_verified_at(door, server->authority())}) {
    Child process(hampered(url, 5s * slowness()));
    REQUIRE(ask(process, "open patient").word == "open");
    CHECK(ask(process, "try job long").word == "granted");
    CHECK(ask(process, "release job").word == "freed");
    CHECK(ask(process, "lookups").word == "0");
  }
}

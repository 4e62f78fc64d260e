// The promise that a connection which is gone ends no program, whatever the program does with SIGPIPE.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What the process answers; how it has ended, if it has.
std::string ask(Child& process, const std::string& line) {
  process.tell(line);
  const auto answer = process.line();
  return answer ? *answer : "it has ended: " + process.wait().text();
}

// Its connections end while they are idle, and while they are used.
void outlives_its_connections(ServerDatabase& database, Proxy& proxy, const std::string& url) {
  Child process(hampered(url, 20s));
  REQUIRE(ask(process, "open") == "open");
  for (int i = 0; i < 5; ++i) {
    const auto name = "job" + std::to_string(i);
    auto answer = ask(process, "try " + name);
    REQUIRE_MESSAGE(answer == "granted", answer);
    proxy.cut();
    answer = ask(process, "release " + name);
    REQUIRE_MESSAGE((answer.starts_with("freed") || answer.starts_with("unconfirmed")), answer);
    CHECK(eventually([&] { return database->admin().owner(name).empty(); }));
  }
  CHECK(ask(process, "signals") == "same");
}

}  // namespace

TEST_CASE("a program that leaves SIGPIPE as it is outlives its connections") {
  ServerDatabase database;
  Proxy proxy(database.server());
  outlives_its_connections(database, proxy, database.server().url_at(proxy.address()));
}

TEST_CASE("a program that leaves SIGPIPE as it is outlives its connections over TLS") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->test_database());
  Proxy proxy(database.server());
  outlives_its_connections(database, proxy, database.server().url_with_tls_at(proxy.address()));
}

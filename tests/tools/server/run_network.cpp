// The promise that a command is dead before its lease is over, whatever became of the network.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"
#include "tools/command.hpp"
#include "tools/processes.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Network {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Engine engine = database->engine();  // another client, whose network is well

  Child run(std::chrono::milliseconds ttl, const std::string& script, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments{"run", "--ttl", words(ttl)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"job", "--", "sh", "-c", script});
    return dlock_at(database.server().url_at(proxy.address()), arguments);
  }
  // With as much time as there can be for the command to heed the signal.
  Child run_that_is_told(std::chrono::milliseconds ttl, const std::string& script) {
    return run(ttl, script, {"--renew-every", words(ttl / 10), "-k", words(ttl / 2)});
  }

  // Waits for a renewal that was made after this call, and whose answer has come back.
  void renewal() {
    const auto end = database->admin().expires_at("job");
    REQUIRE(eventually([&] { return database->admin().expires_at("job") > end; }));
    const auto left = engine.inspect("job")->left;
    REQUIRE(eventually([&] { return engine.inspect("job")->left < left - 100ms; }));
  }
};

void dies_before_its_lease(Network& network, void (Proxy::*cut)()) {
  auto child =
      network.run_that_is_told(4s * slowness(), "trap 'echo told' TERM; echo $$; while :; do sleep 0.05; done");
  const auto command = static_cast<pid_t>(std::stol(child.line().value_or("0")));
  REQUIRE(command > 0);
  network.renewal();
  (network.proxy.*cut)();
  // A warning that it is not being renewed, or that it cannot be any more: whichever comes first.
  std::string first;
  for (auto line = child.line(); line; line = child.line()) {
    first += *line + '\n';
    if (line->find("be renewed") != std::string::npos || line->find("being renewed") != std::string::npos) break;
  }
  CHECK_FALSE(outlives_its_lease(network.engine, command));
  MESSAGE("the lease had " << network.engine.inspect("job")->left.count() << " us left");
  const auto ran = finish(child);
  CHECK(ran.code == 79);
  // The signal is sent before the message is printed, so either may have been read already.
  const auto said = first + ran.out;
  CHECK_MESSAGE(said.find("told") != std::string::npos, said);
  CHECK_MESSAGE(said.find("cannot be renewed") != std::string::npos, said);
  network.proxy.refuse();
  free_by_force(network.engine, "job");
}

}  // namespace

TEST_CASE("a network that swallows everything: the command is told, then killed before the lease is over") {
  Network network;
  dies_before_its_lease(network, &Proxy::black_hole);
}

TEST_CASE("a network that refuses everything: the command is told, then killed before the lease is over") {
  Network network;
  dies_before_its_lease(network, &Proxy::refuse);
}

TEST_CASE("a network that comes back before the soft deadline is no reason to tell the command anything") {
  Network network;
  const auto ttl = 4s * slowness();
  auto child = network.run(ttl, "trap 'echo told' TERM; echo $$; read line; exit 3", {"-k", "500ms"});
  REQUIRE(child.line());
  network.renewal();
  network.proxy.refuse();
  REQUIRE(eventually([&] { return network.engine.inspect("job")->left < ttl * 23 / 40; }));
  network.proxy.pass();
  network.renewal();
  child.tell("go");
  const auto ran = finish(child);
  CHECK(ran.code == 3);
  CHECK_MESSAGE(!ran.says("told"), ran.out);
}

TEST_CASE("a command that heeds the lost-signal ends before it is killed, and the run still ends with 79") {
  Network network;
  auto child =
      network.run_that_is_told(4s * slowness(), "trap 'echo told; exit 0' TERM; echo $$; while :; do sleep 0.02; done");
  REQUIRE(child.line());
  network.proxy.refuse();
  const auto ran = finish(child);
  CHECK(ran.code == 79);
  CHECK_MESSAGE(ran.says("told"), ran.out);
  free_by_force(network.engine, "job");
}

TEST_CASE(
    "a network that is cut while the command ends: its own exit status, and a warning that the lease has to run out") {
  Network network;
  auto child = network.run(30s, "echo $$; read line; exit 3");
  REQUIRE(child.line());
  network.proxy.black_hole();
  child.tell("go");
  const auto ran = finish(child);
  CHECK(ran.code == 3);
  CHECK_MESSAGE(ran.says("could not be confirmed"), ran.out);
  network.proxy.refuse();
  free_by_force(network.engine, "job");
}

TEST_CASE("a signal ends the wait for a database that does not answer") {
  Network network;
  network.proxy.black_hole();
  auto child = network.run(4s * slowness(), "echo started");
  REQUIRE(eventually([&] { return network.proxy.connections() > 0; }));
  const Stopwatch time;
  child.signal(SIGTERM);
  const auto ran = finish(child);
  MESSAGE("left after " << time.elapsed().count() << " us");
  CHECK(ran.code == 128 + SIGTERM);
  CHECK(time.elapsed() < 2s * slowness());
  CHECK_MESSAGE(!ran.says("started"), ran.out);
}

// What dlock-migrate shows on a terminal, and only there: colours, and that it is still at it.
#include "migrate.hpp"
#include "support/database.hpp"
#include "support/pty.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;

namespace {

constexpr std::string_view escape = "\x1b[";

struct Shown {
  ExitStatus code = exited(0);
  std::string text;
  bool has(std::string_view word) const { return text.find(word) != std::string::npos; }
};

Shown on_terminal(std::vector<std::string> arguments, const std::vector<std::string>& environment) {
  arguments.insert(arguments.begin(), migrate_tool());
  Pty pty(arguments, environment);
  Shown shown;
  shown.code = pty.wait();
  shown.text = pty.screen();
  return shown;
}

}  // namespace

TEST_CASE("colours are for terminals, unless somebody does not want them") {
  Database database;
  const std::vector<std::string> status{"status", "-u", database.url()},
      wrong{"up", "-u", database.url(), "--to", "900"};
  const std::vector<std::string> plain{"TERM=xterm", "NO_COLOR="};
  const auto colored = on_terminal(status, plain);
  CHECK(colored.code == 0);
  CHECK_MESSAGE(colored.has("\x1b[32mapplied"), colored.text);
  const auto error = on_terminal(wrong, plain);
  CHECK(error.code == 2);
  CHECK_MESSAGE(error.has("\x1b[1;31merror\x1b[0m"), error.text);

  auto refusing = status;
  refusing.emplace_back("--no-color");
  CHECK_FALSE(on_terminal(refusing, plain).has(escape));
  for (const auto& command : {status, wrong}) {
    CHECK_FALSE(on_terminal(command, {"TERM=xterm", "NO_COLOR=1"}).has(escape));
    CHECK_FALSE(on_terminal(command, {"TERM=dumb", "NO_COLOR="}).has(escape));
    CHECK_FALSE(migrate(command, plain).says(escape));  // a pipe
  }
}

TEST_CASE(
    "an up that takes longer than a second shows on a terminal that it is still at it, and wipes that at the end") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  REQUIRE(schema::up(test_database->url(), {}, 1).state == schema::SchemaState::good);
  Admin other(*test_database);
  other.block("");
  Pty pty({migrate_tool(), "up", "-u", test_database->url(), "--ddl-lock-timeout", "10m", "--lock-timeout", "10m"},
          {"TERM=xterm"});
  CHECK_MESSAGE(pty.shows("\r\x1b[Kdlock-migrate: | "), pty.screen());
  CHECK(pty.shows("\r\x1b[Kdlock-migrate: / "));  // it moves
  other.unblock();
  CHECK(pty.wait() == 0);
  const auto wiped = pty.screen().rfind("\r\x1b[K");
  REQUIRE(wiped != std::string::npos);
  CHECK_MESSAGE(pty.screen().substr(wiped + 4).starts_with("version 2 "), pty.screen());
}

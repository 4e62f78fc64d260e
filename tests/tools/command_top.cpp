// The promise that the table of locks stays true on a screen, and leaves the terminal as it was.
#include "command.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "support/pty.hpp"
#include "support/vt52.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <functional>
#include <string>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Top in a shell at a terminal, as a person would start it.
struct Screen {
  explicit Screen(const Database& database, const std::string& arguments = "")
      : pty({"/bin/sh", "-c",
             "trap : INT; export TERM=vt52 LC_ALL=C.UTF-8; before=$(stty -g); sh -c 'echo pid-$$-; exec \"$0\" top -d "
             "100ms " +
                 arguments +
                 "' \"$0\"; code=$?; [ \"$before\" = \"$(stty -g)\" ] && same=yes; printf '\\ncode-%s-same-%s\\n' "
                 "$code $same",
             path::tool("dlock")},
            {"DLOCK_URL=" + database.url()}) {}

  // On the screen as it stands, at some moment from now on.
  bool shows(const std::function<bool(const Vt52&)>& state) {
    const bool shown = pty.until([&](const std::string& everything) {
      terminal.read(everything);
      return state(terminal);
    });
    if (!shown) MESSAGE(terminal.text());
    return shown;
  }
  bool shows(std::string_view text) {
    return shows([&](const Vt52& now) { return now.has(text); });
  }
  bool line_begins(std::size_t row, std::string_view text) {
    return shows([&, row](const Vt52& now) { return now.line(row).starts_with(text); });
  }
  void ends(int code) {
    CHECK(shows("code-" + std::to_string(code) + "-same-yes"));
    CHECK(pty.wait() == 0);
  }

  Pty pty;
  Vt52 terminal{24, 80};
};

}  // namespace

TEST_CASE("the table follows what is taken and given back; q ends it") {
  Database database;
  auto engine = database.engine();
  Screen screen(database);
  REQUIRE(screen.shows("0 held, 0 expired"));
  auto lock = engine.try_lock("nightly", {.lease = 1h, .label = "web3"});
  REQUIRE(lock);
  CHECK(screen.shows("1 held"));
  CHECK(screen.shows("nightly"));
  CHECK(screen.shows("web3-"));
  CHECK(screen.line_begins(1, "NAME "));
  for (const auto* title : {"HOLDER", "TOKEN", "HELD", "LEFT", "WAITERS"}) CHECK(screen.shows(title));
  const auto token = std::to_string(number(lock->token()));
  CHECK(screen.shows([&](const Vt52& now) { return now.line(2).find(token) != std::string::npos; }));
  database.admin().expire("nightly");
  CHECK(screen.shows("0 held, 1 expired"));
  free_by_force(engine, "nightly");
  CHECK(screen.shows([](const Vt52& now) { return !now.has("nightly") && now.has("0 held, 0 expired"); }));
  screen.pty.type("q");
  screen.ends(0);
}

TEST_CASE("a signal ends it also where the terminal takes nothing, and the terminal is as it was") {
  Database database;
  auto engine = database.engine();
  Screen screen(database);
  REQUIRE(screen.shows("0 held, 0 expired"));
  const auto& said = screen.pty.screen();
  const auto at = said.find("pid-") + 4;
  const auto pid = static_cast<pid_t>(std::stol(said.substr(at, said.find('-', at) - at)));
  screen.pty.type("\x13");  // ^S
  auto lock = engine.try_lock("news", {.lease = 1h});
  std::this_thread::sleep_for(500ms * slowness());  // now it has something to draw
  REQUIRE(::kill(pid, SIGTERM) == 0);
  CHECK(eventually([&] { return ::kill(pid, 0) != 0; }));
  screen.pty.type("\x11");
  screen.ends(128 + SIGTERM);
}

TEST_CASE("a name that several hold is one row: who came last and how many more, and of permits how many are taken") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  Screen screen(database);
  auto first = engine.try_lock("books", {.mode = Mode::shared, .lease = 1h, .label = "ada"});
  auto second = engine.try_lock("books", {.mode = Mode::shared, .lease = 1h, .label = "bob"});
  auto permit = engine.try_lock("gpu", {.mode = Mode::permits, .permits = 2, .limit = 3, .lease = 1h, .label = "eve"});
  REQUIRE((first && second && permit));
  CHECK(screen.shows("2 held"));
  CHECK(screen.shows("bob and 1 more"));
  CHECK(screen.shows("2 of 3: eve"));
  CHECK(second->release() == Released::freed);
  CHECK(screen.shows([](const Vt52& now) { return !now.has("and 1 more") && now.has("books"); }));
  screen.pty.type("q");
  screen.ends(0);
}

TEST_CASE("rows are sorted by the keys, and filtered as one types") {
  Database database;
  auto engine = database.engine();
  auto b = engine.try_lock("b-first", {.lease = 1h, .label = "zoe"});
  REQUIRE(engine.try_lock("a-second"));  // so that its second token is the largest
  auto a = engine.try_lock("a-second", {.lease = 2h, .label = "yan"});
  auto c = engine.try_lock("c-third", {.lease = 3h, .label = "xia"});
  REQUIRE((a && b && c));
  Screen screen(database);
  CHECK(screen.shows([](const Vt52& now) {
    return now.line(2).starts_with("a-second") && now.line(3).starts_with("b-first") &&
           now.line(4).starts_with("c-third");
  }));
  screen.pty.type("r");
  CHECK(screen.line_begins(2, "c-third"));
  screen.pty.type("t");
  CHECK(screen.shows(
      [](const Vt52& now) { return now.line(2).starts_with("a-second") && now.line(3).starts_with("b-first"); }));
  screen.pty.type("r");
  CHECK(screen.line_begins(2, "b-first"));
  screen.pty.type("o");
  CHECK(screen.line_begins(2, "c-third"));
  screen.pty.type("l");
  CHECK(screen.line_begins(2, "b-first"));
  screen.pty.type("/seco");
  CHECK(screen.shows([](const Vt52& now) { return now.line(2).starts_with("a-second") && now.line(3).empty(); }));
  CHECK(screen.shows("filter: seco"));
  screen.pty.type("\x7f\x7f\x7f\x7fxi");  // a part of a holder
  CHECK(screen.line_begins(2, "c-third"));
  screen.pty.type("\n");
  CHECK(screen.shows("filter: xi (Esc: all)"));
  screen.pty.type("\x1b");
  CHECK(screen.line_begins(2, "b-first"));
  screen.pty.type("q");
  screen.ends(0);
}

TEST_CASE("a terminal that changes its size is filled anew") {
  Database database;
  auto engine = database.engine();
  std::vector<Lock> locks;
  for (int i = 10; i < 20; ++i) locks.push_back(engine.lock("row-" + std::to_string(i)));
  Screen screen(database);
  REQUIRE(screen.shows("row-19"));
  screen.pty.resize(8, 50);
  screen.terminal.resize(8, 50);
  CHECK(screen.shows([](const Vt52& now) {
    return now.line(7).starts_with("q quit") && now.line(6).starts_with("row-14") && !now.has("row-15");
  }));
  screen.pty.type(
      "\x1b"
      "B");  // a step down
  CHECK(screen.line_begins(6, "row-15"));
  screen.pty.resize(30, 90);
  screen.terminal.resize(30, 90);
  CHECK(screen.shows([](const Vt52& now) {
    return now.line(2).starts_with("row-10") && now.line(11).starts_with("row-19") &&
           now.line(29).starts_with("q quit");
  }));
  screen.pty.type("q");
  screen.ends(0);
}

TEST_CASE("^C ends the table with 130 and leaves the terminal as it was; so it does if there is no table to look at") {
  Database database;
  Screen screen(database);
  REQUIRE(screen.shows("q quit"));
  screen.pty.type("\x03");
  screen.ends(130);
  Screen nowhere(database, "--table nowhere");
  CHECK(nowhere.pty.shows("dlock-migrate"));
  CHECK(nowhere.pty.shows("code-7-same-yes"));
  Screen limited(database, "-n 2");
  limited.ends(0);
}

TEST_CASE("^Z stops the table with the terminal as it was, and fg draws it anew, as things are then") {
  Database database;
  auto engine = database.engine();
  // A shell that leaves the terminal's modes to its commands.
  Pty pty({"/bin/dash", "-i"}, {"DLOCK_URL=" + database.url(), "PS1=ready> ", "ENV=", "TERM=vt52", "LC_ALL=C.UTF-8"});
  REQUIRE(pty.shows("ready> "));
  pty.type("before=$(stty -g); same() { test \"$before\" = \"$(stty -g)\" && echo same-$1; }\n");
  REQUIRE(pty.shows("ready> "));
  pty.type(path::tool("dlock") + " top -d 100ms\n");
  REQUIRE(pty.shows("q quit"));
  pty.type("\x1a");
  REQUIRE(pty.shows("Stopped"));
  REQUIRE(pty.shows("ready> "));
  pty.type("same stopped\n");
  CHECK(pty.shows("same-stopped"));
  auto lock = engine.try_lock("meanwhile");
  REQUIRE(lock);
  REQUIRE(pty.shows("ready> "));
  const auto before = pty.screen().size();
  pty.type("fg\n");
  Vt52 terminal{24, 80};
  CHECK(pty.until([&](const std::string& everything) {
    terminal.read(everything.substr(before));  // goes on where it was
    return terminal.line(1).starts_with("NAME ") && terminal.line(2).starts_with("meanwhile") &&
           terminal.line(23).starts_with("q quit");
  }));
  pty.type("q");
  REQUIRE(pty.shows("ready> "));
  pty.type("same $?-ended\n");
  CHECK(pty.shows("same-0-ended"));
  pty.type("exit 0\n");
  CHECK(pty.wait() == 0);
}

TEST_CASE("without a terminal one table is printed after the other, read only") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("nightly", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  const auto row = database.admin().row("nightly");
  const auto text = dlock_tool(database.url(), {"top", "-n", "2", "-d", "100ms"});
  CHECK(text.code == 0);
  CHECK(text.lines() == 6);
  CHECK_MESSAGE(text.says("1 held, 0 expired"), text.out);
  CHECK_FALSE(text.says("\x1b"));
  const auto none = dlock_tool(database.url(), {"top", "other*", "-b", "-n", "1"});
  CHECK(none.lines() == 2);
  const auto json = dlock_tool(database.url(), {"top", "-n", "1", "--format", "json"});
  CHECK(Json::parse(json.out)["locks"][0]["name"] == "nightly");
  CHECK(database.admin().row("nightly") == row);
  auto endless = dlock_at(database.url(), {"top", "-d", "100ms"});
  REQUIRE(endless.line());
  endless.signal(SIGTERM);
  CHECK(finish(endless).code == 128 + SIGTERM);
}

TEST_CASE("wrong arguments of top are named") {
  Database database;
  const auto refused = [&](std::vector<std::string> arguments, const std::string& word) {
    arguments.insert(arguments.begin(), "top");
    const auto ran = dlock_tool(database.url(), arguments);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(ran.says(word), ran.out);
  };
  refused({"-d", "50ms"}, "--delay \"50ms\" is out of range");
  refused({"-d", "2 s"}, "--delay \"2 s\"");
  refused({"-n", "0"}, "--times \"0\"");
  refused({"--sort", "colour"}, "--sort \"colour\"");
  CHECK(dlock_tool(database.url(), {"top", "-b", "-n", "1", "--table", "nowhere"}).code == 7);
}

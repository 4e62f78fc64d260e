// The promise that a full-screen program under a lock is used as it would be without one.
#include "command.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/paths.hpp"
#include "support/pty.hpp"
#include "support/vt52.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>

using namespace dlock;
using namespace dlock::test;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A shell at a terminal, and what stands on its screen.
struct Desk {
  explicit Desk(const Database& database)
      : pty({"/bin/bash", "--norc", "--noprofile", "--noediting", "-i"},
            {"DLOCK_URL=" + database.url(), "DLOCK_NAME=", "DLOCK_OWNER=", "DLOCK_OWNERS=", "PS1=ready> ",
             "ENV=", "HISTFILE=", "TERM=vt52", "LC_ALL=C.UTF-8", "VIMINIT=", "EXINIT="}) {
    pty.resize(24, 80);
    REQUIRE(pty.shows("ready> "));
  }
  // On the screen as it stands, at some moment from now on; what a shell prints there is not a picture of lines.
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

  Pty pty;
  Vt52 terminal{24, 80};
};

}  // namespace

TEST_CASE(
    "an editor reads what is typed, ^C does not end it, ^Z stops it and fg shows it again, with a lock as without") {
  for (const auto& lock : {std::string(), path::tool("dlock") + " run job -- "}) {
    CAPTURE(lock);
    Database database;
    const TemporaryFolder folder;
    const auto path = folder.path() + "/text";
    std::ofstream(path) << "a line\n";
    Desk desk(database);
    desk.pty.type(lock + "vi -N -u NONE -i NONE -n " + path + "\n");
    REQUIRE(desk.shows("a line"));
    CHECK(database.admin().held() == (lock.empty() ? 0 : 1));
    desk.pty.type("ione, ");
    CHECK(desk.shows("one, a line"));
    REQUIRE(desk.shows("-- INSERT --"));
    desk.pty.type("\x03");  // ends the typing
    REQUIRE(desk.shows([&](const Vt52& now) { return !now.has("-- INSERT --"); }));
    // An editor drops what it has not read yet when it is interrupted: what is typed too early is typed again.
    bool written = false;
    for (int i = 0; i < 30 && !written; ++i) {
      desk.pty.type("\x1b:w\r");
      written = eventually([&] { return content(path) == "one, a line\n"; }, std::chrono::seconds{1});
    }
    CHECK(written);

    desk.pty.type("\x1a");
    REQUIRE(desk.pty.shows("Stopped"));
    desk.pty.type("echo the-shell-$((40 + 2))\n");
    REQUIRE(desk.pty.shows("the-shell-42"));
    desk.pty.type("fg\n");
    REQUIRE(desk.shows([&](const Vt52& now) { return now.line(0) == "one, a line" && now.line(1) == "~"; }));
    desk.pty.type("0itwo, \x1b");
    CHECK(desk.shows("two, one, a line"));
    desk.pty.type(":wq\r");
    CHECK(eventually([&] { return content(path) == "two, one, a line\n"; }));
    CHECK(eventually([&] { return database.admin().held() == 0; }));
    desk.pty.type("echo code-$?\n");
    CHECK(desk.pty.shows("code-0"));
    desk.pty.type("exit 0\n");
    CHECK(desk.pty.wait() == 0);
  }
}

// This tree keeps the rules, and each rule notices when it is broken.
#include "architecture/rules.hpp"
#include "support/paths.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dlock::architecture;

namespace {

const Tree& everything() {
  static const Tree tree = read_tree(
      dlock::test::path::source(), {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "README.md", "cmake", "docs",
                                    "examples", "include", "migrations", "schema", "src", "tests", "tools"});
  return tree;
}

const Tree& without_laws() {  // these name what they forbid
  static const Tree tree = [] {
    auto copy = everything();
    std::erase_if(copy, [](const Source& source) { return source.in("tests/architecture/"); });
    return copy;
  }();
  return tree;
}

void check_none(const Breaches& breaches) {
  for (const auto& breach : breaches) FAIL_CHECK(breach);
}

}  // namespace

TEST_CASE("the tree is there") {
  CHECK(everything().size() > 60);
  for (const std::string_view path :
       {"src/dialects/dialect.hpp", "include/dlock/engine.hpp", "cmake/DlockDialects.cmake"})
    CHECK_MESSAGE(
        std::any_of(everything().begin(), everything().end(), [&](const Source& s) { return s.path == path; }), path);
}

TEST_CASE("arrows between the rooms go down only") {
  check_none(arrows(everything()));
  CHECK(arrows({{"src/types/name.cpp", "#include \"store/pool.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"src/store/pool.cpp", "  #  include \"engine/core.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"src/engine/core.cpp", "#include \"api/open.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"src/engine/core.cpp", "#include \"../api/open.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"src/engine/core.cpp", "#include \"tools/shared/usage.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"src/store/table.cpp", "#include \"dialects/one/connection.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"src/dialects/one/a.cpp", "#include \"dialects/other/a.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"src/dialects/one/a.cpp",
                 "#include \"dialects/dialect.hpp\"\n#include \"b.hpp\"\n#include <fmt/format.h>\n"},
                {"src/dialects/one/b.hpp", "#include \"types/url.hpp\"\n#include <dlock/error.hpp>\n"}})
            .empty());
}

TEST_CASE("tools know the public headers only") {
  CHECK(arrows({{"tools/dlock/run.cpp", "#include \"engine/core.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"tools/dlock/run.cpp", "#include \"src/engine/core.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"tools/dlock/run.cpp", "#include \"dialects/statement.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"tools/benchmark/pair.cpp", "#include \"dialects/dialect.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"tools/benchmark/pair.cpp", "#include \"tools/shared/usage.hpp\"\n"}}).empty());
  CHECK(arrows({{"tools/benchmark/peers/one.cpp", "#include \"dialects/statement.hpp\"\n"}}).empty());
  CHECK(arrows({{"tools/benchmark/peers/one.cpp", "#include \"dialects/one/server.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"tools/benchmark/peers/one.cpp", "#include \"store/pool.hpp\"\n"}}).size() == 1);
}

TEST_CASE("public headers know the standard library and each other only") {
  CHECK(arrows({{"include/dlock/lock.hpp", "#include \"engine/core.hpp\"\n"}}).size() == 1);
  CHECK(arrows({{"include/dlock/lock.hpp", "#include <fmt/format.h>\n"}}).size() == 1);
  CHECK(arrows({{"include/dlock/lock.hpp", "#include <libpq-fe.h>\n"}}).size() == 1);
  CHECK(arrows({{"include/dlock/lock.hpp", "#include <dlock/token.hpp>\n#include <string>\n"}}).empty());
  CHECK(arrows({{"include/dlock/libpq.hpp", "#include <libpq-fe.h>\n"}}).empty());
  CHECK(arrows({{"include/dlock/coroutine.hpp", "#include <asio/post.hpp>\n"}}).size() == 1);
  CHECK(arrows({{"include/dlock/asio.hpp", "#include <asio/post.hpp>\n"}}).empty());
}

TEST_CASE("the headers that take seconds are included by one file of a program") {
  check_none(costly_headers(everything()));
  CHECK(costly_headers({{"tools/dlock/run.hpp", "#include <CLI/CLI.hpp>\n"}}).size() == 1);
  CHECK(costly_headers({{"tools/shared/console.hpp", "#include <nlohmann/json_fwd.hpp>\n"}}).size() == 1);
  CHECK(costly_headers({{"tests/tools/bench.cpp", "#include <nlohmann/json.hpp>\n"}}).size() == 1);
  CHECK(costly_headers({{"tools/shared/json.cpp", "#include <CLI/CLI.hpp>\n"}}).size() == 1);
  CHECK(costly_headers({{"tools/shared/parser.cpp", "#include <CLI/CLI.hpp>\n"},
                        {"tests/support/json.cpp", "#include \"support/json.hpp\"\n#include <nlohmann/json.hpp>\n"}})
            .empty());
}

TEST_CASE("databases are named in their own folders only") {
  check_none(vendors(everything()));
  CHECK(vendors({{"src/store/pool.cpp", "PGconn* connection;\n"}}).size() == 1);
  CHECK(vendors({{"src/store/pool.cpp", "PQfinish(c);\n"}}).size() == 1);
  CHECK(vendors({{"src/engine/core.cpp", "if (dialect == Dialect::MySql) {}\n"}}).size() == 1);
  CHECK(vendors({{"src/engine/core.cpp", "if (name == \"sqlite\") {}\n"}}).size() == 1);
  CHECK(vendors({{"src/api/open.cpp", "#include <sqlite3.h>\n"}}).size() == 1);
  CHECK(vendors({{"src/api/open.cpp", "#include \"dialects/sqlite/file.hpp\"\n"}}).size() == 1);
  CHECK(vendors({{"tools/dlock/run.cpp", "soci::session session;\n"}}).size() == 1);
  CHECK(vendors({{"src/CMakeLists.txt", "target_link_libraries(dlock PRIVATE PostgreSQL::PostgreSQL)\n"}}).size() == 1);
  CHECK(vendors({{"cmake/New.cmake", "set(names \"mariadb\")\n"}}).size() == 1);
  CHECK(vendors({{"src/store/pool.cpp", "// on SQLite it waits\n/* PostgreSQL */ int x = 1'000;\n"},
                 {"src/dialects/mysql/connection.cpp", "mysql_init(nullptr);\n"},
                 {"include/dlock/asio.hpp", "#include <asio/associated_executor.hpp>\n"},
                 {"src/CMakeLists.txt", "# PostgreSQL\n"}})
            .empty());
  // An example for people is allowed where it is listed, only there, and only as long as it is there.
  CHECK(vendors({{"src/types/url.cpp", "refuse(\"; write for example sqlite:app.db\");\n"}}).empty());
  CHECK(vendors({{"src/types/url.cpp", "refuse(\"; write for example sqlite:app.db or mysql:\");\n"}}).size() == 1);
  CHECK(vendors({{"src/types/url.cpp", "refuse(\"\");\n"}}).size() == 1);
  CHECK(vendors({{"src/types/row.cpp", "refuse(\"; write for example sqlite:app.db\");\n"}}).size() == 1);
}

TEST_CASE("SQL is in .sql files") {
  check_none(glued_sql(everything()));
  CHECK(glued_sql({{"src/store/table.cpp", "run(\"SELECT token FROM \" + table);\n"}}).size() == 1);
  CHECK(glued_sql({{"src/store/table.cpp", "run(\"SELECT 1\");\n"}}).size() == 1);
  CHECK(glued_sql({{"src/store/table.cpp", "run(\"select token \"\n    \"from t\");\n"}}).size() == 1);
  CHECK(glued_sql({{"src/store/table.cpp", "run(R\"(UPDATE t\n SET a = 1)\");\n"}}).size() == 1);
  CHECK(glued_sql({{"tools/dlock/run.cpp", "run(\"insert into t values (1)\");\n"}}).size() == 1);
  CHECK(glued_sql({{"src/dialects/one/connection.cpp", "run(\"DELETE FROM t\");\n"}}).size() == 1);
  CHECK(glued_sql({{"src/dialects/one/connection.cpp", "run(\"SELECT a FROM t\");\n"}}).size() == 1);
  CHECK(glued_sql({{"src/dialects/one/connection.cpp", "run(\"SELECT a FROM pg_catalog.t\");\n"}}).empty());
  CHECK(glued_sql({{"src/store/table.cpp", "run(\"SELECT a FROM pg_catalog.t\");\n"}}).size() == 1);
  CHECK(glued_sql({{"src/dialects/statement.cpp", "run(\"SELECT 1\");\n"}}).size() == 1);
  CHECK(glued_sql({{"src/dialects/one/connection.cpp", "run(\"SET a = 1\"); run(\"SELECT current_schema()\");\n"},
                   {"src/store/table.cpp",
                    "// SELECT a FROM t\nsay(\"select one of these; update it\", \"needs SELECT, or SELECT\");\n"}})
            .empty());
}

TEST_CASE("nothing is escaped by the client library") {
  check_none(forbidden_calls(without_laws()));
  CHECK(forbidden_calls({{"src/dialects/mysql/a.cpp", "mysql_real_escape_string(c, to, from, n);\n"}}).size() == 1);
  CHECK(forbidden_calls({{"src/dialects/mysql/a.cpp", "// no mysql_real_escape_string\n"}}).empty());
}

TEST_CASE("names are the field's words") {
  check_none(retired_words(everything()));
  CHECK(retired_words({{"src/engine/core.cpp", "class Usher;\n"}}).size() == 1);
  CHECK(retired_words({{"src/store/visit.hpp", "class Visit;\n"}}).size() == 1);
  CHECK(retired_words({{"src/engine/lease/lease.hpp", "struct Terms {};\n"}}).size() == 1);
  CHECK(retired_words({{"src/engine/lease/lease.hpp", "struct LeaseTerms {};  // Terms of a grant\n"}}).empty());
  CHECK(retired_words({{"src/engine/core.cpp", "// whom the keeper renews\n"}}).size() == 1);
  CHECK(retired_words({{"src/store/convoy.hpp", "class Batch;\n"}}).size() == 1);
  CHECK(retired_words({{"docs/design.md", "A bell rings.\n"}}).size() == 1);
  CHECK(retired_words({{"src/engine/core.cpp", "// This file knows how to lock.\n"}}).size() == 1);
  CHECK(retired_words({{"src/engine/core.cpp", "class LeaseRenewer; int label = 0;  // housekeeping\n"}}).empty());
}

TEST_CASE("the rooms that decide about time read no wall clock and do not sleep") {
  check_none(clocks(everything()));
  CHECK(clocks({{"src/engine/lease/lease_renewer.cpp", "auto t = std::chrono::system_clock::now();\n"}}).size() == 1);
  CHECK(clocks({{"src/engine/lease/lease_renewer.cpp", "auto t = std::time(nullptr);\n"}}).size() == 1);
  CHECK(clocks({{"src/store/pool.cpp", "clock_gettime(CLOCK_REALTIME, &t);\n"}}).size() == 1);
  CHECK(clocks({{"src/store/pool.cpp", "std::this_thread::sleep_for(1ms);\n"}}).size() == 1);
  CHECK(clocks({{"src/store/pool.cpp", "::usleep(5);\n"}}).size() == 1);
  CHECK(clocks({{"src/engine/lease/trust.hpp", "auto t = std::chrono::steady_clock::now();\n"}}).size() == 1);
  CHECK(clocks({{"src/types/clock.hpp", "clock_gettime(CLOCK_MONOTONIC_RAW, &t);\n"}}).size() == 1);
  CHECK(clocks({{"src/api/engine.cpp", "BootClock::ahead += 5;\n"}}).size() == 1);
  CHECK(clocks({{"src/types/clock.hpp", "clock_gettime(CLOCK_REALTIME, &t);\n"},
                {"src/store/pool.cpp", "// system_clock\nint sleep = 1; auto time = later();\n"}})
            .empty());
}

TEST_CASE("the library's threads are started in one place") {
  check_none(threads(everything()));
  CHECK(threads({{"src/engine/reaper.cpp", "std::thread thread([] {});\n"}}).size() == 1);
  CHECK(threads({{"src/engine/reaper.hpp", "std::jthread thread_;\n"}}).size() == 1);
  CHECK(threads({{"src/store/pool.cpp", "auto call = std::async(std::launch::async, work);\n"}}).size() == 1);
  CHECK(threads({{"src/store/pool.cpp", "::pthread_create(&thread, nullptr, run, nullptr);\n"}}).size() == 1);
  CHECK(threads({{"src/types/thread.hpp", "std::thread thread_;\n"},
                 {"src/engine/reaper.hpp", "// no std::thread\nstd::thread::id id = std::this_thread::get_id();\n"}})
            .empty());
}

TEST_CASE("all dialects answer the same questions") {
  check_none(statements(everything()));
  const Source one{"src/dialects/a/lock.sql", "-- name: look(name)\nSELECT 1;\n-- name: floor()\nSELECT 2;\n"};
  CHECK(statements(
            {one, {"src/dialects/b/lock.sql", "-- name: look(name) -> x\nSELECT 1;\n-- name: floor( )\nSELECT 2;\n"}})
            .empty());
  CHECK(statements({one, {"src/dialects/b/lock.sql", "-- name: look(name)\nSELECT 1;\n"}}).size() == 1);
  CHECK(statements({one, {"src/dialects/b/lock.sql", one.text + "-- name: more()\nSELECT 3;\n"}}).size() == 1);
  CHECK(statements(
            {one, {"src/dialects/b/lock.sql", "-- name: look(name, now)\nSELECT 1;\n-- name: floor()\nSELECT 2;\n"}})
            .size() == 1);
  const std::string shorter = "-- name: acquire_free(name)\nSELECT 4;\n";
  CHECK(statements({one, {"src/dialects/b/lock.sql", one.text + shorter}}).empty());
  CHECK(statements({{"src/dialects/a/lock.sql", one.text + shorter}, {"src/dialects/b/lock.sql", one.text}}).empty());
}

TEST_CASE("the dialect of MySQL and MariaDB keeps to what both understand") {
  const std::string header = "-- name: look(name)\n-- RETURNING is not used\n";
  CHECK(statements({{"src/dialects/mysql/lock.sql", header + "SELECT 'it''s';\n"}}).empty());
  CHECK(statements({{"src/dialects/mysql/lock.sql", header + "DELETE FROM t RETURNING a;\n"}}).size() == 1);
  CHECK(statements({{"src/dialects/mysql/lock.sql", header + "set  statement max_statement_time=1 FOR SELECT 1;\n"}})
            .size() == 1);
}

TEST_CASE("what MySQL was interrupted in decides nothing") {
  const auto found = [](const std::string& sql) {
    return statements({{"src/dialects/mysql/lock.sql", "-- name: look(name)\n" + sql}}).size();
  };
  CHECK(found("SELECT a,\n (SELECT MAX(b) FROM u) INTO @x, @y FROM t;\n") == 1);
  CHECK(found("SET @x = 1, @y = (SELECT MAX(b) FROM u);\n") == 1);
  CHECK(found("SELECT (SELECT MAX(b) FROM u);\nSELECT a, MAX(b) INTO @x, @y FROM t JOIN u GROUP BY a;\n") == 0);
}

TEST_CASE("a file begins with a sentence that says what it is") {
  check_none(first_comments(everything()));
  CHECK(first_comments({{"src/a.cpp", "#include <string>\n// Counts what is there.\n"}}).size() == 1);
  CHECK(first_comments({{"src/a.cpp", "// Helpers.\n"}}).size() == 1);
  CHECK(first_comments({{"src/a.sql", ""}}).size() == 1);
  CHECK(first_comments({{"src/a.cpp", "// Counts what is there.\n"},
                        {"src/b.sql", "-- Statements on the table.\n"},
                        {"cmake/c.cmake", "# Finds the libraries it needs.\n"},
                        {"README.md", "# dlock\n"}})
            .empty());
}

TEST_CASE("planted faults are listed, their tests are there, and so is what they replace") {
  check_none(mutants(everything()));
  const Source code{"src/engine/core.cpp", "if (planted(\"late\")) wait();\n"};
  const Source list{"tests/mutants/list", "# name\nlate | - | unit/a.cpp | it is in time, always\n"};
  const Source test{"tests/unit/a.cpp", "TEST_CASE(\"it is in time, always\") {}\n"};
  CHECK(mutants({code, list, test}).empty());
  CHECK(mutants({code, test}).size() == 1);
  CHECK(mutants({code, list, {test.path, "TEST_CASE(\"it is in time\") {}\n"}}).size() == 1);
  CHECK(mutants({code, {list.path, "late | -\n"}}).empty());
  CHECK(mutants({code, {list.path, "late | - | unit/a.cpp | it is *\n"}, test}).empty());
  CHECK(mutants({code, {list.path, list.text + "never | -\n"}, test}).size() == 1);
  CHECK(mutants({code, {list.path, list.text + "late | - | unit/a.cpp\n"}, test}).size() == 1);
  CHECK(mutants({{code.path, code.text + "x = planted(\"early\") ? 1 : 2;\n"}, list, test}).size() == 1);
  const Source lock{"src/dialects/a/lock.sql", "-- name: look(name)\nSELECT 1\n  AND 2;\n-- name: take()\nSELECT 3;\n"};
  const Source sql{"tests/mutants/a.sql", "-- mutant: blind\n-- statement: look\n-- from:\n  AND 2\n-- to:\n"};
  const Source blind{list.path, list.text + "blind | a\n"};
  CHECK(mutants({code, blind, test, lock, sql}).empty());
  CHECK(mutants({code, blind, test, {lock.path, "-- name: look(name)\nSELECT 1;\n  AND 2\n"}, sql}).empty());
  CHECK(mutants({code, blind, test, {lock.path, "-- name: look(name)\nSELECT 1;\n-- name: x()\n  AND 2\n"}, sql})
            .size() == 1);
  CHECK(mutants({code, {list.path, list.text + "blind | b\n"}, test, lock, sql}).size() == 1);
  CHECK(mutants({code, list, test, lock, sql}).size() == 1);
}

TEST_CASE("files are small") {
  check_none(lengths(everything(), 400));
  CHECK(lengths({{"src/a.cpp", "\n\n\n"}}, 2).size() == 1);
  CHECK(lengths({{"src/a.cpp", "\n\n"}}, 2).empty());
}

TEST_CASE("no line is wider than 120 columns, but for literals") {
  check_none(widths(everything(), 120));
  CHECK(widths({{"src/a.cpp", "// 45678\n\n// 4567\n// äö67\n"}}, 7).size() == 1);
  CHECK(widths({{"src/a.cpp", "f(\"45678\");\n"}}, 7).empty());
}

TEST_CASE("code, comments and literals are told apart") {
  const auto parts =
      parts_of_cpp("a = \"b // c\" \"d\"; // e \"f\"\n/* g */ char h = '\"'; n = 1'000; s = R\"x(i)\" j)x\"; k");
  REQUIRE(parts.literals.size() == 2);
  CHECK(parts.literals[0].text == "b // cd");
  CHECK(parts.literals[1].text == "i)\" j");
  CHECK(parts.literals[1].line == 2);
  for (const char hidden : {'b', 'c', 'd', 'e', 'f', 'g', 'i', 'j'})
    CHECK(parts.code.find(std::string(" ") + hidden + " ") == std::string::npos);
  CHECK(parts.code.find("n = 1'000") != std::string::npos);
  CHECK(parts.code.ends_with("k"));
}

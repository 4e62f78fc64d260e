// What only SQLite's connections can get wrong: URLs, waiting for the file, and what is left behind.
#include "dialects/dialect.hpp"
#include "refusal.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

namespace dlock::dialects::sqlite {
const Dialect& dialect() noexcept;
}

using namespace dlock;
using namespace dlock::dialects;
using namespace std::chrono_literals;
using dlock::test::refusal;
using dlock::test::says;

namespace {

namespace fs = std::filesystem;

const Dialect& dialect() { return dialects::sqlite::dialect(); }

// A folder of its own, with one database of one small table.
struct Bench {
  const fs::path folder = [] {
    std::string name = (fs::temp_directory_path() / "dlock-unit-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    return fs::path(name);
  }();
  const std::string path = folder / "app.db";
  sqlite3* other = nullptr;  // another program

  Bench() {
    REQUIRE(sqlite3_open(path.c_str(), &other) == SQLITE_OK);
    run("CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER NOT NULL)");
  }
  ~Bench() {
    sqlite3_close_v2(other);
    fs::remove_all(folder);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run(const char* sql) { REQUIRE(sqlite3_exec(other, sql, nullptr, nullptr, nullptr) == SQLITE_OK); }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::unique_ptr<Connection> connect(const std::string& options = {}) const { return open(path + options); }
  static std::unique_ptr<Connection> open(const std::string& where, bool create = false) {
    ConnectOptions options;
    options.create = create;
    return dialect().connector(Url::parse("sqlite:" + where), options)->connect(soon());
  }
  static Deadline soon() { return later(BootClock::now(), 20s); }
};

const Statements& statements() {
  static const Statements all(
      "-- name: put(k, n)\nINSERT INTO t VALUES (:k, :n) RETURNING n;\n"
      "-- name: add(k, n)\nUPDATE t SET n = n + :n WHERE k = :k;\n"
      "-- name: all()\nSELECT k, n FROM t ORDER BY k;\n"
      "-- name: absent()\nSELECT 1 FROM nowhere;\n"
      "-- name: synchronous()\nSELECT synchronous FROM pragma_synchronous;\n",
      {}, dialect().traits().marker, [](std::string_view name) { return dialect().quote(name); });
  return all;
}

const Answer& put(Connection& connection, std::string_view key, std::int64_t n, Deadline deadline = Bench::soon()) {
  const std::array<Argument, 2> arguments{key, n};
  return connection.run(statements().at("put", {"k", "n"}), arguments, deadline);
}

std::size_t rows(Connection& connection) {
  return connection.run(statements().at("all", {}), {}, Bench::soon()).rows();
}

template <class Call>
Failure failure(Call call) {
  try {
    call();
  } catch (const Failure& thrown) { return thrown; }
  FAIL_CHECK("did not fail");
  return {Cause::rejected, ""};
}

}  // namespace

// The statements tell the time by a double: every millisecond has to come out as itself.
TEST_CASE("the clock of the statements is exact to the millisecond") {
  const std::string_view sql = dialect().texts().lock_sql;
  const auto header = sql.find("-- fragment: now\n");
  REQUIRE(header != sql.npos);
  const auto begin = sql.find("\n(", header) + 1;
  std::string clock(sql.substr(begin, sql.find('\n', begin) - begin));
  std::size_t uses = 0;
  for (auto at = clock.find("'now'"); at != clock.npos; at = clock.find("'now'", at), ++uses)
    clock.replace(at, 5, "i / 1000.0, 'unixepoch'");
  REQUIRE(uses > 0);

  const Bench bench;
  // Every millisecond of a minute in each of some years to come, and some of all that there are.
  for (const char* const times :
       {"SELECT 1796083200000, 1", "SELECT 1956528000000, 1", "SELECT 4102444800000, 1", "SELECT 1, 1690000333"}) {
    const Statements at(fmt::format("-- name: wrong()\nWITH RECURSIVE start(first, step) AS ({}), "
                                    "t(i, n) AS (SELECT first, 0 FROM start UNION ALL "
                                    "SELECT i + step, n + 1 FROM t, start WHERE n < 60000) "
                                    "SELECT count(*), sum({} <> i * 1000) FROM t;\n",
                                    times, clock),
                        {}, dialect().traits().marker, [](std::string_view name) { return dialect().quote(name); });
    const auto connection = bench.connect();
    const auto& answer = connection->run(at.at("wrong", {}), {}, Bench::soon());
    CHECK(answer.integer(0, 0) == 60001);
    CHECK(answer.integer(0, 1) == 0);
  }
}

TEST_CASE("a URL names a file of this host, with known options") {
  const auto refused = [](const std::string& url) {
    return refusal([&] { dialect().connector(Url::parse("sqlite:" + url), {}); });
  };
  CHECK(says(refused(""), "names no file"));
  CHECK(says(refused("///"), "names no file"));
  CHECK(says(refused(":memory:"), "memory"));
  CHECK(says(refused("file:a?mode=memory"), "memory"));
  CHECK(says(refused("//host/app.db"), "\"host\""));
  CHECK(says(refused("app.db?cache=shared"), "\"cache\""));
  CHECK(says(refused("app.db?synchronous=some"), "off, normal, full, extra"));
  CHECK(says(refused("app.db?mode=rwc"), "rw, ro"));
}

TEST_CASE("a relative path means the folder in which the URL was read") {
  const auto target = dialect().connector(Url::parse("sqlite:app.db"), {})->target();
  CHECK(target == "sqlite:" + (fs::current_path() / "app.db").string());
}

TEST_CASE("a file is made only where that was asked for") {
  const Bench bench;
  const auto path = (bench.folder / "new.db").string();
  const auto missing = failure([&] { Bench::open(path); });
  CHECK(missing.cause() == Cause::schema);
  CHECK(says(missing.what(), "dlock-migrate up"));
  CHECK_FALSE(fs::exists(path));
  CHECK_NOTHROW(Bench::open(path, true));
  CHECK(fs::exists(path));
  CHECK(failure([&] { Bench::open((bench.folder / "no/new.db").string(), true); }).cause() == Cause::refused);
  CHECK(says(failure([&] { Bench::open(bench.folder.string()); }).what(), "is a folder"));
}

TEST_CASE("looking leaves a file as it is, writing puts it into WAL mode") {
  const Bench bench;
  const auto before = bench.bytes();
  const auto connection = bench.connect();
  CHECK(rows(*connection) == 0);
  CHECK(failure([&] { connection->run(statements().at("absent", {}), {}, Bench::soon()); }).cause() == Cause::schema);
  CHECK(bench.bytes() == before);
  CHECK(put(*connection, "a", 1).integer(0, 0) == 1);
  CHECK(fs::exists(bench.path + "-wal"));
  CHECK(connection->weaknesses(Bench::soon()).empty());
}

TEST_CASE("what is answered is committed, and affected rows are counted") {
  const Bench bench;
  const auto connection = bench.connect(), second = bench.connect();
  CHECK(put(*connection, "a", 1).affected == 1);
  CHECK(rows(*second) == 1);
  const std::array<Argument, 2> nobody{std::string_view("b"), std::int64_t{1}};
  CHECK(connection->run(statements().at("add", {"k", "n"}), nobody, Bench::soon()).affected == 0);
  CHECK(connection->run(statements().at("all", {}), {}, Bench::soon()).affected == 0);
}

TEST_CASE("a busy file is waited for until the deadline, and nothing is left half done") {
  Bench bench;
  const auto connection = bench.connect();
  put(*connection, "a", 1);
  bench.run("BEGIN IMMEDIATE");
  const auto begin = BootClock::now();
  CHECK(failure([&] { put(*connection, "b", 1, later(begin, 50ms)); }).cause() == Cause::locked);
  CHECK(BootClock::now() - begin >= 50ms);
  CHECK(connection->usable());
  CHECK(rows(*connection) == 1);  // readers go on
  auto waiting = std::async(std::launch::async, [&] { return put(*connection, "b", 2).rows(); });
  CHECK(waiting.wait_for(20ms) == std::future_status::timeout);
  bench.run("COMMIT");
  CHECK(waiting.get() == 1);
}

TEST_CASE("an attempt is made also after the deadline") {
  const Bench bench;
  const auto connection = bench.connect();
  CHECK(put(*connection, "a", 1, BootClock::now() - 1s).rows() == 1);
}

TEST_CASE("many rows are one transaction: all of them, or none") {
  const Bench bench;
  const auto connection = bench.connect();
  const auto& statement = statements().at("put", {"k", "n"});
  const std::vector<Argument> good{std::string_view("a"), std::int64_t{1}, std::string_view("b"), std::int64_t{2}};
  const auto& answer = connection->run_rows(statement, good, 2, Bench::soon());
  CHECK(answer.rows() == 2);
  CHECK(answer.affected == 2);
  const std::vector<Argument> bad{std::string_view("c"), std::int64_t{1}, std::string_view("a"), std::int64_t{2}};
  CHECK(failure([&] { connection->run_rows(statement, bad, 2, Bench::soon()); }).cause() == Cause::rejected);
  CHECK(connection->usable());
  CHECK(rows(*connection) == 2);
  CHECK(connection->run_rows(statement, {}, 2, Bench::soon()).rows() == 0);
}

TEST_CASE("a statement that takes too long is ended") {
  const Bench bench;
  const auto connection = bench.connect();
  const auto ended = failure([&] {
    connection->script("WITH RECURSIVE x (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM x) SELECT count(*) FROM x",
                       later(BootClock::now(), 50ms));
  });
  CHECK(ended.cause() == Cause::timed_out);
  CHECK_FALSE(connection->usable());
}

TEST_CASE("a file that was replaced is not written to any more") {
  const Bench bench;
  const auto connection = bench.connect();
  put(*connection, "a", 1);
  fs::rename(bench.path, bench.path + ".old");
  // It is looked for once a millisecond.
  const auto refused = failure([&] {
    for (;;) rows(*connection);
  });
  CHECK(refused.cause() == Cause::disconnected);
  CHECK(failure([&] { put(*connection, "b", 1); }).cause() == Cause::disconnected);
  CHECK_FALSE(connection->usable());
}

TEST_CASE("a connection that may only read refuses to write, and says why") {
  const Bench bench;
  const auto connection = bench.connect("?mode=ro");
  CHECK(rows(*connection) == 0);
  const auto refused = failure([&] { put(*connection, "a", 1); });
  CHECK(refused.cause() == Cause::permission);
  CHECK(says(refused.what(), "mode=ro"));
}

TEST_CASE("forgetful settings are told") {
  const Bench bench;
  const auto found = bench.connect("?synchronous=Normal")->weaknesses(Bench::soon());
  REQUIRE(found.size() == 1);
  CHECK(says(found.front(), "synchronous=NORMAL"));
  CHECK(bench.connect("?synchronous=extra")->weaknesses(Bench::soon()).empty());
}

TEST_CASE("the file is written as the URL says") {
  const Bench bench;
  const std::pair<const char*, long long> ways[] = {{"", 2},
                                                    {"?synchronous=full", 2},
                                                    {"?synchronous=extra", 3},
                                                    {"?synchronous=normal", 1},
                                                    {"?synchronous=off", 0}};
  for (const auto& [options, synchronous] : ways) {
    INFO(options);
    const auto connection = bench.connect(options);
    CHECK(connection->run(statements().at("synchronous", {}), {}, Bench::soon()).integer(0, 0) == synchronous);
  }
}

TEST_CASE("what is no database, or stores text as UTF-16, is refused") {
  const Bench bench;
  const auto text = (bench.folder / "text").string();
  std::ofstream(text) << std::string(5000, 'x');
  CHECK(failure([&] { Bench::open(text); }).cause() == Cause::rejected);
  const auto wide = (bench.folder / "wide.db").string();
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(wide.c_str(), &db) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, "PRAGMA encoding='UTF-16'; CREATE TABLE t (a)", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
  CHECK(says(failure([&] { Bench::open(wide); }).what(), "UTF-16"));
}

// The promises of single words: near ones, durations, ages, names, and what is kept out of messages.
#include "tools/shared/suggestion.hpp"
#include "tools/shared/usage.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>

using namespace dlock;
using namespace dlock::tools;
using namespace std::chrono_literals;

TEST_CASE("the distance of two words is counted in letters put in, taken out, replaced or exchanged") {
  CHECK(distance("list", "list") == 0);
  CHECK(distance("lsit", "list") == 1);
  CHECK(distance("lit", "list") == 1);
  CHECK(distance("lisst", "list") == 1);
  CHECK(distance("lost", "list") == 1);
  CHECK(distance("", "list") == 4);
  CHECK(distance("abc", "xyz") == 3);
}

TEST_CASE("only what is near is suggested, and what was begun") {
  using Words = std::vector<std::string>;
  const Words known{"run", "list", "release", "renew", "reap"};
  CHECK(nearest("relase", known) == Words{"release"});
  CHECK(nearest("rel", known) == Words{"release"});
  CHECK(nearest("re", known) == Words{"release", "renew", "reap"});
  CHECK(nearest("x", known).empty());
  CHECK(nearest("", known).empty());
  CHECK(nearest("nothing-like-it", known).empty());
  CHECK(nearest("-z", {"-a", "-b", "--zzz"}).empty());
}

TEST_CASE(
    "nothing is shown that a terminal would obey: control characters of one byte and of two, and what turns a line") {
  for (const std::string_view control : {"\x1b", "\x7f", "\n", "\xc2\x80", "\xc2\x9b", "\xc2\x9f", "\xd8\x9c",
                                         "\xe2\x80\x8f", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"}) {
    std::string shown = "a";
    for (const char c : control) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    const auto text = "a" + std::string(control) + "b";
    CHECK(printable(text) == shown + "b");
    CHECK(in_quotes(text) == '"' + shown + "b\"");
  }
  for (const std::string text : {"\xc2\xa0", "É", "\xd8\x9b", "\xe2\x80\xa6", "\xe2\x81\xa5", "\xe2"})
    CHECK(printable(text) == text);
}

TEST_CASE("durations are read as people write them") {
  const auto read = [](std::string_view text) { return parse_duration("--ttl", text); };
  CHECK(read("500ms") == 500ms);
  CHECK(read("30") == 30s);
  CHECK(read("1.5") == 1500ms);
  CHECK(read(".5s") == 500ms);
  CHECK(read("5m") == 5min);
  CHECK(read("2h") == 2h);
  CHECK(read("1d") == 24h);
  CHECK(read("0") == 0s);
  CHECK(read("1h30m") == 90min);
  CHECK(read("3m12s") == 192s);
  CHECK(read("2d4h") == 52h);
  for (const auto* wrong :
       {"", "s", "5x", "-1s", "1e3", "1..5s", "5 s", "1s1m", "1m1m", "1m5", "1.5m30s", "ms5", "5S", ".", "0x5"})
    CHECK_THROWS_AS(read(wrong), UsageError);
  CHECK_THROWS_AS(read("99999999999999999999d"), UsageError);
}

TEST_CASE("what is shown of a duration can be read again") {
  for (const Duration duration :
       {Duration{0}, Duration{7}, Duration{250ms}, Duration{8200ms}, Duration{192s}, Duration{90min}, Duration{52h}})
    CHECK_MESSAGE(parse_duration("--ttl", shown(duration)) == duration, shown(duration));
  CHECK(shown(8200ms) == "8.2s");
  CHECK(shown(192s) == "3m12s");
  CHECK(shown(52h) == "2d4h");
  CHECK(shown(-1500ms) == "-1.5s");
  CHECK(shown(Duration::min()).starts_with("-106751991d"));
}

TEST_CASE("no password is left in a text") {
  CHECK(without_passwords("cannot open postgresql://u:secret@h:5/db now") ==
        "cannot open postgresql://u:***@h:5/db now");
  CHECK(without_passwords("a://u:p@h and b://v:q@i") == "a://u:***@h and b://v:***@i");
  CHECK(without_passwords("postgresql://h/db?user=u&password=secret&x=1") ==
        "postgresql://h/db?user=u&password=***&x=1");
  CHECK(without_passwords("sslpassword=secret password=more") == "sslpassword=*** password=***");
  CHECK(without_passwords("mysql://u:a/b@c@h/db") == "mysql://u:***@h/db");
  CHECK(without_passwords("postgresql://u@h:5/db, sqlite:app.db, 12:30, a@b") ==
        "postgresql://u@h:5/db, sqlite:app.db, 12:30, a@b");
  CHECK(without_passwords("Server=h;Pwd=s3cret;Database=d") == "Server=h;Pwd=***;Database=d");
  CHECK(without_passwords("host=h password='s3 cret' dbname=d") == "host=h password=*** dbname=d");
  CHECK(without_passwords("PGPASSWORD=s3cret psql, client_secret=\"s3cret") ==
        "PGPASSWORD=*** psql, client_secret=***");
  CHECK(in_quotes("postgresql://u:" + std::string(100, 's') + "@h/db") == "\"postgresql://u:***@h/db\"");
}

// The promises of a command line that is put together and parsed.
#include "tools/shared/parser.hpp"
#include "tools/shared/command_line.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using namespace dlock::tools;

namespace {

using Words = std::vector<std::string>;

// A tool with an option of each kind, and what was given for them.
struct Sample {
  Sample() {
    tool.add_option("-u,--url", "URL", url, "where");
    const auto& quiet_flag = tool.add_flag("-q,--quiet", quiet, "say little");
    tool.add_flag("-v,--verbose", verbose, "say more").excludes = &quiet_flag;
    tool.add_version_flag("--version", "tool 1.2", "print the version");
    take.add_argument("NAME", name).required = true;
    take.add_option("--ttl", "D", ttl, "how long").required = true;
    take.add_option("--meta", "K=V", metadata, "more");
    list.add_argument("GLOB", glob, "which");
    several.add_argument("NAME", names).required = true;
    several.add_flag("-n,--now", now, "at once");
  }

  std::optional<std::string> url;
  bool quiet = false, verbose = false;
  std::string name, ttl, glob = "*";
  std::vector<std::string> metadata;
  Command tool{"tool", "does things"};
  Command& take = tool.add_command("take", "takes it");
  Command& list = tool.add_command("list", "lists them");
  Words names;
  bool now = false;
  Command& several = tool.add_command("several", "takes some");
};

}  // namespace

TEST_CASE("what is given is stored, and what is left out stays as it was") {
  Sample sample;
  const auto parsed = parse(sample.tool, {"take", "job", "--ttl", "5m", "-u", "", "--meta", "a=b", "--meta", "c=d"});
  CHECK(parsed.as == Parsed::As::order);
  CHECK(sample.tool.chosen() == &sample.take);
  CHECK_FALSE(sample.list.parsed());
  CHECK(sample.name == "job");
  CHECK(sample.ttl == "5m");
  CHECK(sample.url == "");  // given, though empty
  CHECK(sample.metadata == Words{"a=b", "c=d"});
  CHECK(sample.glob == "*");
  Sample other;
  CHECK(parse(other.tool, {"-q", "list", "x*"}).as == Parsed::As::order);
  CHECK_FALSE(other.url.has_value());
  CHECK(other.quiet);
  CHECK(other.glob == "x*");
}

TEST_CASE("an argument that may be repeated has the words that no option takes, as they are and in their order") {
  for (const Words& names :
       {Words{"one"}, {"two", "one", "two"}, {"list", "take"}, {"[a,b]", "{}"}, {"{}"}, {"a,b", "", "-"}}) {
    Sample sample;
    auto words = names;
    words.insert(words.begin(), "several");
    words.insert(words.begin() + 2, {"-n", "--url", "here"});
    CHECK(parse(sample.tool, words).as == Parsed::As::order);
    CHECK(sample.names == names);
    CHECK(sample.now);
    CHECK(sample.url == "here");
  }
}

TEST_CASE("a word that looks like an option is none of them, and on a line that takes one the second is too many") {
  Sample sample;
  const auto unknown = parse(sample.tool, {"several", "one", "two", "--later"});
  CHECK(unknown.as == Parsed::As::with_unexpected);
  CHECK(unknown.unexpected == Words{"--later"});
  Sample none;
  CHECK(parse(none.tool, {"several", "-n"}).as == Parsed::As::refused);
  Sample once;
  auto& command = once.tool.add_command("once", "takes one");
  command.add_argument("NAME", once.names).once = true;
  const auto second = parse(once.tool, {"once", "one", "two"});
  CHECK(second.as == Parsed::As::with_unexpected);
  CHECK(second.unexpected == Words{"two"});
  CHECK(once.names == Words{"one"});
}

TEST_CASE("each time a value is given, it takes one word: the next one is something else") {
  Sample sample;
  const auto parsed = parse(sample.tool, {"take", "--ttl", "1", "--meta", "a=b", "job", "c=d"});
  CHECK(parsed.as == Parsed::As::with_unexpected);
  CHECK(parsed.unexpected == Words{"c=d"});
  CHECK(sample.tool.chosen() == &sample.take);
}

TEST_CASE("a page and the version are asked for before anything is missed") {
  Sample sample;
  CHECK(parse(sample.tool, {"take", "--help"}).as == Parsed::As::help_wanted);
  CHECK(sample.tool.chosen() == &sample.take);
  Sample other;
  const auto parsed = parse(other.tool, {"--version"});
  CHECK(parsed.as == Parsed::As::version_wanted);
  CHECK(parsed.text == "tool 1.2");
}

TEST_CASE("a line that lacks something is refused, and one with two options that exclude each other") {
  const std::vector<Words> lines{
      {"take", "job"}, {"take", "--ttl", "1"}, {"take", "job", "--ttl"}, {"list", "-q", "-v"}};
  for (const auto& words : lines) {
    Sample sample;
    const auto parsed = parse(sample.tool, words);
    CHECK(parsed.as == Parsed::As::refused);
    CHECK_FALSE(parsed.text.empty());
  }
  Sample sample;
  CHECK(parse(sample.tool, {}).as == Parsed::As::order);
  CHECK(sample.tool.chosen() == nullptr);
}

TEST_CASE("a hidden command is parsed like the others, and shown nowhere") {
  Sample sample;
  const auto& hidden = sample.tool.add_hidden_command("secret", "is not told");
  CHECK(sample.tool.shown_commands() == std::vector<const Command*>{&sample.take, &sample.list, &sample.several});
  CHECK(parse(sample.tool, {"secret"}).as == Parsed::As::order);
  CHECK(hidden.parsed());
  CHECK(hidden.full_name() == "tool secret");
  CHECK(&hidden.tool() == &sample.tool);
}

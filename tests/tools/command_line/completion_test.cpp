// The promise that each shell reads its completion and answers with what the parser knows.
#include "support/paths.hpp"
#include "support/pty.hpp"
#include "tools/command_line/tool.hpp"

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

using namespace dlock::test;

namespace {

const std::string share = path::share();

std::set<std::string> words_in(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

// What bash answers for a line whose last word is being typed.
std::set<std::string> in_bash(const std::string& name, const std::vector<std::string>& words) {
  std::vector<std::string> command{
      "/usr/bin/env",
      "bash",
      "--norc",
      "--noprofile",
      "-c",
      "set -u; source \"$0\" || exit 9; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); function=$(complete -p \"$1\"); "
      "function=${function#*-F }; ${function%% *}; printf '%s\\n' \"${COMPREPLY[@]-}\"",
      share + "/bash-completion/completions/" + name,
      name};
  command.insert(command.end(), words.begin(), words.end());
  const auto answer = ran(command);
  CHECK_MESSAGE(answer.code == 0, answer.out);
  return words_in(answer.out);
}

std::set<std::string> in_fish(const std::string& name, const std::string& line) {
  TemporaryFolder home;
  const auto answer =
      ran({"/usr/bin/env", "fish", "--no-config", "-c",
           "source $argv[1]; complete -C $argv[2] | string replace -r '\\t.*' ''; true",
           share + "/fish/vendor_completions.d/" + name + ".fish", line},
          "2>&1 </dev/null", {"HOME=" + home.path(), "XDG_CONFIG_HOME=" + home.path(), "XDG_DATA_HOME=" + home.path()});
  CHECK_MESSAGE(answer.code == 0, answer.out);
  return words_in(answer.out);
}

using Words = std::set<std::string>;

std::set<std::string> names_of(const Json& command, std::string_view prefix) {
  std::set<std::string> names;
  for (const auto& option : command["options"].elements())
    for (const auto& name : option["names"].elements())
      if (name.text().starts_with(prefix)) names.insert(name.text());
  return names;
}

std::set<std::string> both(std::set<std::string> some, const std::set<std::string>& others) {
  some.insert(others.begin(), others.end());
  return some;
}

Words all_commands(const Json& known) {
  Words words;
  for (const auto& command : known["commands"].elements()) words.insert(command["name"].text());
  return words;
}

}  // namespace

TEST_CASE("bash completes commands, options and their values") {
  for (const auto& name : tools) {
    const auto known = description(name);
    CHECK(in_bash(name, {""}) == all_commands(known));
    CHECK(in_bash(name, {"-u", "list", ""}) == all_commands(known));  // a value is no command
    for (const auto& command : known["commands"].elements())
      CHECK(in_bash(name, {command["name"].text(), "--"}) == both(names_of(known, "--"), names_of(command, "--")));
  }
  CHECK(in_bash("dlock", {"insp"}) == Words{"inspect"});
  CHECK(in_bash("dlock", {"list", "--state", ""}) == Words{"held", "free", "closed", "expired", "all"});
  CHECK(in_bash("dlock", {"list", "--state", "=", "f"}) == Words{"free"});
  CHECK(in_bash("dlock", {"list", "--state", "="}) == Words{"held", "free", "closed", "expired", "all"});
  CHECK(in_bash("dlock", {"--format", "j"}) == Words{"json"});
  CHECK(in_bash("dlock", {"run", "--password-file", share + "/ma"}) == Words{share + "/man"});
  CHECK(in_bash("dlock", {"run", "job", "--", "prin"}).contains("printf"));
  CHECK(in_bash("dlock", {"run", "one", "two", "--", "prin"}).contains("printf"));
  CHECK(in_bash("dlock", {"run", "job", "--", "cat", share + "/ma"}) == Words{share + "/man"});
  CHECK(in_bash("dlock", {"run", "--ttl", ""}).empty());
  CHECK(in_bash("dlock-migrate", {"sql", "--dialect", "sq"}) == Words{"sqlite"});
}

TEST_CASE("fish completes commands, options and their values") {
  const auto known = description("dlock");
  CHECK(in_fish("dlock", "dlock ") == all_commands(known));
  CHECK(in_fish("dlock", "dlock -u list ") == all_commands(known));
  CHECK(in_fish("dlock", "dlock insp") == Words{"inspect"});
  const auto options = in_fish("dlock", "dlock run --");
  for (const auto& command : known["commands"].elements())
    if (command["name"] == "run")
      for (const auto& name : both(names_of(known, "--"), names_of(command, "--")))
        CHECK_MESSAGE(options.contains(name), name);
  CHECK_FALSE(options.contains("--state"));
  CHECK(in_fish("dlock", "dlock list --state f") == Words{"free"});
  CHECK(in_fish("dlock", "dlock run --ttl ").empty());
  CHECK(in_fish("dlock", "dlock run job -- prin").contains("printf"));
  CHECK(in_fish("dlock", "dlock run one two -- prin").contains("printf"));
  CHECK(in_fish("dlock-migrate", "dlock-migrate sql --dialect sq") == Words{"sqlite"});
}

TEST_CASE("zsh completes commands, options and their values at a terminal") {
  TemporaryFolder home;
  std::ofstream(home.path() + "/.zshrc")
      << "fpath=(" << share << "/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D\n"
      << "unset zle_bracketed_paste; LISTMAX=0; zstyle ':completion:*' insert-tab false\n"
      << "dlock() { print -r -- \"<${(j:|:)@}>\" }; dlock-migrate() { dlock \"$@\" }\nPS1='ready> '\n";
  Pty terminal({"/usr/bin/env", "zsh", "-d", "-i"}, {"ZDOTDIR=" + home.path(), "HOME=" + home.path(), "TERM=dumb"});
  REQUIRE(terminal.shows("ready> "));
  struct {
    std::string typed, completed;
  } const cases[]{
      {"dlock insp\t\n", "<inspect>"},
      {"dlock run --nonb\t\n", "<run|--nonblock>"},
      {"dlock list --state fr\t\n", "<list|--state|free>"},
      {"dlock --forma\tj\t list --sta\tcl\t\n", "<--format=json|list|--state=closed>"},
      {"dlock run job -- printen\t\n", "<run|job|--|printenv>"},
      {"dlock run one two --nonb\t -- printen\t\n", "<run|one|two|--nonblock|--|printenv>"},
      {"dlock-migrate sql --dialect postg\t\n", "<sql|--dialect|postgresql>"},
  };
  for (const auto& [typed, completed] : cases) {
    terminal.type(typed);
    const bool shown = terminal.shows(completed);
    CHECK_MESSAGE(shown, completed << " is not on:\n" << terminal.screen());
    if (!shown) return;
    REQUIRE(terminal.shows("ready> "));
  }
  terminal.type("exit\n");
  CHECK(terminal.wait() == 0);
}

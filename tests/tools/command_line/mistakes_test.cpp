// The promise that who mistypes a command or an option is told what was probably meant.
#include "tools/command.hpp"
#include "tools/command_line/tool.hpp"

using namespace dlock::test;

namespace {

void check_refused(const std::string& name, const std::vector<std::string>& arguments, int code,
                   const std::string& word, const std::string& hint) {
  const auto refused = tool(name, arguments);
  CHECK_MESSAGE(refused.code == code, refused.out);
  CHECK_MESSAGE(refused.lines() == 1, refused.out);
  CHECK_MESSAGE(refused.says(word), refused.out);
  CHECK_MESSAGE(refused.says(hint), refused.out);
}

const std::vector<std::vector<std::string>> commands{
    {"list"},
    {"inspect", "job"},
    {"top", "-n", "1"},
    {"acquire", "-n", "job", "--ttl", "1m"},
    {"renew", "job", "--token", "1"},
    {"release", "job", "--token", "1"},
    {"release", "job", "--force", "--expect-token", "1", "--yes"},
    {"reap"},
    {"remove", "job"},
    {"run", "-n", "job", "--", "true"},
};

std::vector<std::string> with(std::vector<std::string> command, const std::vector<std::string>& more) {
  command.insert(command.begin() + 1, more.begin(), more.end());
  return command;
}

}  // namespace

TEST_CASE("a mistyped command is answered with the right one, and exit code 2") {
  check_refused("dlock", {"lsit"}, 2, "there is no command \"lsit\"", "did you mean list?");
  check_refused("dlock", {"aquire", "deploy"}, 2, "\"aquire\"", "did you mean acquire?");
  check_refused("dlock", {"rn", "job", "--", "true"}, 2, "\"rn\"", "did you mean run?");
  check_refused("dlock", {"re"}, 2, "\"re\"", "did you mean renew or release or reap?");
  check_refused("dlock", {"frobnicate"}, 2, "\"frobnicate\"", "see dlock --help");
  check_refused("dlock-migrate", {"chekc"}, 2, "\"chekc\"", "did you mean check?");
  check_refused("dlock-migrate", {"stauts"}, 2, "\"stauts\"", "did you mean status?");
  check_refused("dlock-bench", {"piar"}, 2, "there is no command \"piar\"", "did you mean pair?");
  CHECK_FALSE(tool("dlock", {"frobnicate"}).says("did you mean"));
}

TEST_CASE("a mistyped option is answered with the right one, and exit code 2, or 125 for a run") {
  check_refused("dlock", {"list", "--sate", "all"}, 2, "there is no option \"--sate\"",
                "did you mean --state? see dlock list --help");
  check_refused("dlock", {"list", "--sate=all"}, 2, "there is no option \"--sate\"", "did you mean --state?");
  check_refused("dlock", {"list", "--shcema", "s"}, 2, "--shcema", "did you mean --schema?");
  check_refused("dlock", {"run", "--non-block", "job", "--", "true"}, 125, "--non-block",
                "did you mean --nonblock? see dlock run --help");
  check_refused("dlock", {"run", "--max", "3s", "job", "--", "true"}, 125, "--max", "did you mean --max-runtime?");
  check_refused("dlock", {"run", "-x", "job", "--", "true"}, 125, "\"-x\"", "see dlock run --help");
  check_refused("dlock-migrate", {"up", "--ddl-lock-timout", "3s"}, 2, "--ddl-lock-timout",
                "did you mean --ddl-lock-timeout?");
  check_refused("dlock-migrate", {"up", "--tp", "3"}, 2, "--tp", "did you mean --to?");
}

TEST_CASE("who leaves something out is told what it is for, and where help is; who forgets -- is told of it") {
  for (const auto& name : tools) check_refused(name, {}, 2, "no command is given: write one of ", name + " --help");
  check_refused("dlock-migrate", {"up", "--to"}, 2, "--to needs a value: N", "see dlock-migrate up --help");
  check_refused("dlock-migrate", {"down"}, 2, "--to is required: go back to this version",
                "see dlock-migrate down --help");
  check_refused("dlock", {"renew", "job"}, 2, "--token is required: ", "see dlock renew --help");
  check_refused("dlock", {"inspect"}, 2, "NAME is required", "see dlock inspect --help");
  check_refused("dlock", {"run", "--", "true"}, 125, "NAME is required; see", "see dlock run --help");
  check_refused("dlock", {"run", "--lease"}, 125, "there is no option \"--lease\"", "see dlock run --help");
  check_refused("dlock", {"run", "--waite", "5s", "--", "true"}, 125, "there is no option \"--waite\"",
                "did you mean --wait?");
  check_refused("dlock-migrate", {"down", "--tp", "1"}, 2, "there is no option \"--tp\"", "did you mean --to?");
  check_refused("dlock", {"run", "job", "ls"}, 125, "\"ls\" is one word too many",
                "written after --, as in: dlock run [OPTIONS] NAME… -- COMMAND");
  check_refused("dlock", {"run", "job", "ls", "-l"}, 125, "\"ls\" is one word too many", "written after --");
}

TEST_CASE("a word too many is named, without a password in it") {
  check_refused("dlock", {"list", "a", "b"}, 2, "\"b\" is one word too many", "see dlock list --help");
  for (const std::string url :
       {"postgresql://u:s3cret@host/db", "postgresql://host/db?user=u&password=s3cret", "mysql://u:s3c/ret@host/db"}) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{url},
                                                      {"list", "a", url},
                                                      {"list", "--format", url},
                                                      {"run", "--ttl", url, "job", "--", "true"},
                                                      {"inspect", "-e", url, "job"},
                                                      {"--format", "json", url},
                                                      {"run", url, "job", "--", "true"}}) {
      const auto refused = tool("dlock", arguments);
      CHECK(refused.code != 0);
      CHECK_FALSE_MESSAGE(refused.says("s3c"), refused.out);
    }
  }
}

TEST_CASE("a wrong argument is exit code 2 of every command, and 125 of run; one line names it, and nothing is sent") {
  for (const auto& command : commands) {
    for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--no-such-option"},
                                                  {"--format", "xml"},
                                                  {"--table", "a;b"},
                                                  {"--connect-timeout", "soon"},
                                                  {"-u", ""},
                                                  {"-e", "NO_SUCH_VARIABLE"},
                                                  {"-q", "-v"}}) {
      const auto ran = dlock_tool("nonsense:", with(command, wrong));
      CHECK_MESSAGE(ran.code == (command[0] == "run" ? 125 : 2), command[0] << ": " << ran.out);
      CHECK_MESSAGE(ran.lines() == 1, command[0] << ": " << ran.out);
    }
    const auto ran = dlock_tool("nonsense:", command);
    CHECK_MESSAGE(ran.code == (command[0] == "run" ? 125 : 2), command[0] << ": " << ran.out);
  }
}

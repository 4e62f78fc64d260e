// The commands of the scripts under tests/servers.
#include "support/scripted_server.hpp"
#include "support/paths.hpp"

#include "support/keep.hpp"

#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace dlock::test {
namespace {

int servers = 0;  // that have ended, of this program

}  // namespace

ScriptedServer::ScriptedServer(std::string script, std::string variable, MakeDatabase make_database,
                               std::vector<std::string> environment)
    : script_(path::servers() + "/" + std::move(script)),
      variable_(std::move(variable)),
      make_database_(make_database),
      environment_(std::move(environment)) {
  start();
}

ScriptedServer::~ScriptedServer() {
  try {
    run({"stop", folder_.path()});
  } catch (const std::exception&) {  // whatever still runs is stopped by the script's watcher
  }
  std::error_code none;
  const auto log = "server-" + std::to_string(++servers) + ".log";
  if (keeps()) std::filesystem::copy_file(folder_.path() + "/log", place_to_keep(log), none);
}

std::string ScriptedServer::run(std::initializer_list<std::string> arguments) {
  std::vector<std::string> command{script_};
  command.insert(command.end(), arguments);
  auto environment = environment_;
  environment.insert(environment.end(), {"DLOCK_FAKETIME=+0s", "DLOCK_SERVER_OWNER_PID=" + std::to_string(::getpid())});
  Child child(command, environment);
  std::string url;
  while (const auto line = child.line())
    if (line->starts_with(variable_ + "=")) url = line->substr(variable_.size() + 1);
  if (const auto ended = child.wait(); ended != 0)
    throw std::runtime_error(script_ + " " + command.at(1) + " ended with " + ended.text());
  return url;
}

void ScriptedServer::start() { url_ = run({"start", folder_.path()}); }
void ScriptedServer::stop() { run({"signal", folder_.path(), "KILL"}); }
void ScriptedServer::step_clock(std::chrono::seconds offset) {
  const auto sign = offset < std::chrono::seconds{} ? "" : "+";
  run({"clock", folder_.path(), sign + std::to_string(offset.count()) + "s"});
}

}  // namespace dlock::test

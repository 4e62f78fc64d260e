// How a private server is run by its script under tests/servers.
#pragma once

#include "support/child.hpp"
#include "support/test_database.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlock::test {

// Threads: one at a time. Owns: the server and its folder.
class ScriptedServer final : public PrivateServer {
 public:
  using MakeDatabase = std::unique_ptr<ServerTestDatabase> (*)(const std::string& url);

  // `variable` is how the script's answer names the URL.
  // `environment`: what else the script is to know, as NAME=VALUE.
  ScriptedServer(std::string script, std::string variable, MakeDatabase make_database,
                 std::vector<std::string> environment = {});
  ~ScriptedServer() override;

  std::unique_ptr<ServerTestDatabase> test_database() override { return make_database_(url_); }
  std::string authority() const override { return folder_.path() + "/tls.crt"; }
  void step_clock(std::chrono::seconds offset) override;
  void stop() override;
  void start() override;
  void freeze() override { run({"signal", folder_.path(), "STOP"}); }
  void thaw() override { run({"signal", folder_.path(), "CONT"}); }

 private:
  std::string run(std::initializer_list<std::string> arguments);
  const std::string script_, variable_;
  const MakeDatabase make_database_;
  const std::vector<std::string> environment_;
  const TemporaryFolder folder_;
  std::string url_;
};

}  // namespace dlock::test

// The commands of a cluster's script.
#include "fault/suite/nodes.hpp"

#include "support/child.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace dlock::test {

std::optional<Nodes> Nodes::of_environment() {
  const char* text = std::getenv("DLOCK_TEST_CLUSTER");
  if (text == nullptr) return std::nullopt;
  Nodes nodes;
  std::istringstream words(text);
  words >> nodes.script_ >> nodes.folder_;
  for (std::string word; words >> word;) {
    const auto colon = word.rfind(':');
    nodes.addresses_.push_back({word.substr(0, colon), static_cast<std::uint16_t>(std::stoi(word.substr(colon + 1)))});
  }
  if (nodes.addresses_.empty()) throw std::runtime_error("DLOCK_TEST_CLUSTER must be SCRIPT DIR HOST:PORT …");
  return nodes;
}

void Nodes::signal(std::size_t node, const std::string& name) const {
  run({"signal", folder_, std::to_string(node + 1), name});
}

void Nodes::start() const { run({"start", folder_}); }

void Nodes::run(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), script_);
  Child child(arguments);
  while (child.line()) {}
  if (const auto ended = child.wait(); ended != 0)
    throw std::runtime_error(script_ + ' ' + arguments.at(1) + " ended with " + ended.text());
}

}  // namespace dlock::test

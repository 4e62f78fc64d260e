// How a command line is read out.
#include "tools/shared/description.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/help.hpp"
#include "tools/shared/json.hpp"

#include <dlock/version.hpp>

namespace dlock::tools {
namespace {

Json described(const Option& option) {
  return Json::object({{"names", option.names},
                       {"value", option.takes_value() ? Json(option.value) : Json()},
                       {"required", option.required},
                       {"repeatable", option.repeatable()},
                       {"group", option.group},
                       {"help", option.help}});
}

}  // namespace

Command& add_description_command(Command& tool) {
  auto& command = tool.add_hidden_command("describe-cli", "print this command line as JSON");
  command.set_footer(tool.footer());
  return command;
}

Json described(const Command& command) {
  auto arguments = Json::array(), options = Json::array(), commands = Json::array();
  for (const auto& argument : command.arguments())
    arguments.push_back(Json::object({{"name", argument.name()},
                                      {"required", argument.required},
                                      {"repeatable", argument.repeatable()},
                                      {"help", argument.help}}));
  for (const auto& option : command.options()) options.push_back(described(option));
  for (const auto* each : command.shown_commands()) commands.push_back(described(*each));
  return Json::object({{"name", command.name()},
                       {"full_name", command.full_name()},
                       {"version", DLOCK_VERSION},
                       {"description", command.description()},
                       {"usage", usage_of(command)},
                       {"arguments", std::move(arguments)},
                       {"options", std::move(options)},
                       {"commands", std::move(commands)},
                       {"footer", command.footer()},
                       {"manual", command.manual()}});
}

}  // namespace dlock::tools

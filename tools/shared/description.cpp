// This file knows how the parser is read out.
#include "tools/shared/description.hpp"

#include "tools/shared/help.hpp"

#include <dlock/version.hpp>

#include <nlohmann/json.hpp>

namespace dlock::tools {
namespace {

constexpr auto command_name = "describe-cli";

nlohmann::json described(const CLI::Option& option) {
  const bool value = takes_value(option);
  return {{"names", names_of(option)},
          {"value", value ? nlohmann::json(option.get_type_name()) : nlohmann::json(nullptr)},
          {"required", option.get_required()},
          {"repeatable", value && option.get_items_expected_max() > 1},
          {"group", option.get_group()},
          {"help", option.get_description()}};
}

}  // namespace

void add_description_command(CLI::App& app) {
  app.add_subcommand(command_name, "print this command line as JSON")->group("");
}

bool description_wanted(const CLI::App& app) { return app.got_subcommand(command_name); }

nlohmann::json described(const CLI::App& app) {
  auto arguments = nlohmann::json::array(), options = nlohmann::json::array(), commands = nlohmann::json::array();
  for (const auto* argument : arguments_of(app))
    arguments.push_back({{"name", argument->get_name(true)}, {"required", argument->get_required()}, {"help", argument->get_description()}});
  for (const auto* option : options_of(app)) options.push_back(described(*option));
  for (const auto* command : commands_of(app)) commands.push_back(described(*command));
  const auto text = HelpPage::text_of(app);
  return {{"name", app.get_name()},     {"full_name", full_name(app)},
          {"version", DLOCK_VERSION},   {"description", app.get_description()},
          {"usage", usage_of(app)},     {"arguments", std::move(arguments)},
          {"options", std::move(options)}, {"commands", std::move(commands)},
          {"footer", app.get_footer()}, {"manual", text.manual}};
}

}  // namespace dlock::tools

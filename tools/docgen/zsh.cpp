// The completion of zsh: specifications for _arguments.
#include "docgen.hpp"

#include <fmt/core.h>

namespace dlock::tools::docgen {
namespace {

constexpr auto text = R"(#compdef {tool}
# Completion of {tool} in zsh, made from its command line.
local curcontext=$curcontext state line ret=1
local -A opt_args
local -a common subcommands
common=(
{common})
subcommands=(
{commands})
{command_line}_arguments -C -s $common '(-): :->command' '(-)*:: :->argument' && ret=0
case $state in
  (command) _describe -t commands '{tool} command' subcommands && ret=0 ;;
  (argument)
    case $line[1] in
{cases}    esac
    ;;
esac
return ret
)";

// What follows "--" is completed like a line of its own.
constexpr auto command_line = R"(local dashes=${words[(i)--]}
if (( dashes < CURRENT )) && [[ -n ${(M)words[1,dashes]:#(TAKERS)} ]]; then
  shift $dashes words
  (( CURRENT -= dashes ))
  _normal
  return
fi
)";

std::string quoted(std::string part) { return replaced(std::move(part), "'", "'\\''"); }

std::string escaped(std::string part) {
  part = replaced(std::move(part), "\\", "\\\\");
  for (const char* special : {"[", "]", ":"}) part = replaced(std::move(part), special, std::string("\\") + special);
  return part;
}

// '(-n --nonblock)'{-n,--nonblock}'[help]:VALUE:action'
std::string specification(const Option& option) {
  std::vector<std::string> names, plain;
  for (const auto& name : option.names) {
    plain.push_back(name);
    names.push_back(name + (option.value ? (name.starts_with("--") ? "=" : "+") : ""));
  }
  std::string value;
  if (option.value) {
    const auto words = choices_of(option);
    const auto action = is_file(option) ? "_files" : words.empty() ? "" : "(" + joined(words, " ") + ")";
    value = fmt::format(":{}:{}", words.empty() ? escaped(*option.value) : "value", action);
  }
  const auto rest = quoted(fmt::format("[{}]{}", escaped(option.help), value));
  const auto before = option.repeatable ? "*" : names.size() == 1 ? "" : "(" + joined(plain, " ") + ")";
  if (names.size() == 1) return fmt::format("'{}{}{}'", before, names.front(), rest);
  return fmt::format("'{}'{{{}}}'{}'", before, joined(names, ","), rest);
}

}  // namespace

void add_zsh_completion(const Command& tool, Files& files) {
  std::string common, commands, cases;
  std::vector<std::string> takers;
  for (const auto& option : tool.options) common += "  " + specification(option) + "\n";
  for (const auto& command : tool.commands) {
    const auto& name = command.name;
    commands += fmt::format("  '{}'\n", quoted(name + ":" + replaced(command.description, ":", "\\:")));
    cases += "      (" + name + ")\n";
    if (takes_command(command)) takers.push_back(name);
    cases += "        _arguments -s $common";
    for (const auto& option : command.options)
      if (option.names.back() != "--help") cases += " \\\n          " + specification(option);
    int place = 0;
    for (const auto& argument : command.arguments)
      cases +=
          fmt::format(" \\\n          '{}:{}:_guard \"^-*\" {}'", argument.repeatable ? "*" : std::to_string(++place),
                      quoted(escaped(argument.name)), argument.name);
    cases += " && ret=0\n        ;;\n";
  }
  const auto& name = tool.name;
  files["zsh/site-functions/_" + name] = fmt::format(
      text, fmt::arg("tool", name), fmt::arg("common", common), fmt::arg("commands", commands),
      fmt::arg("cases", cases),
      fmt::arg("command_line", takers.empty() ? "" : replaced(command_line, "TAKERS", joined(takers, "|"))));
}

}  // namespace dlock::tools::docgen

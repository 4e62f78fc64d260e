// The completion of bash: a function that looks at the words of the line.
#include "docgen.hpp"

#include <fmt/core.h>

namespace dlock::tools::docgen {
namespace {

constexpr auto text = R"(# Completion of {tool} in bash, made from its command line.
{function}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} command='' option='' words='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    if [[ -n $option ]]; then
      # bash cuts --name=value into three words
      [[ $word == = ]] || option=''
      continue
    fi
    if [[ $word == -- ]]; then
      case $command in {takers}) ;; *) return ;; esac
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((i + 1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
      else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      fi
      return
    fi
    case $command:$word in
      {with_value}) option=$word ;;
      *:-*) ;;
      :*) command=$word ;;
    esac
  done
  if [[ -n $option ]]; then
    [[ $cur == = ]] && cur=''
    case $command:$option in
      {files})
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
{choices}      *) return ;;
    esac
  elif [[ $cur == -* ]]; then
    words='{common}'
    case $command in
{options}    esac
  elif [[ -z $command ]]; then
    words='{commands}'
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}}
complete -F {function} {tool}
)";

std::vector<std::string> names_of(const Command& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// Patterns COMMAND:OPTION of every option of the tool that is `wanted`.
template <class Wanted>
std::string patterns(const Command& tool, Wanted wanted) {
  std::vector<std::string> all;
  const auto add = [&](const Command& command, const std::string& prefix) {
    for (const auto& option : command.options)
      if (wanted(option))
        for (const auto& name : option.names) all.push_back(prefix + ":" + name);
  };
  add(tool, "*");
  for (const auto& command : tool.commands) add(command, command.name);
  return all.empty() ? "-" : joined(all, " | ");
}

}  // namespace

void add_bash_completion(const Command& tool, Files& files) {
  const auto& name = tool.name;
  std::string choices, options;
  std::vector<std::string> commands, takers;
  const auto add_choices = [&](const Command& command) {
    for (const auto& option : command.options)
      if (const auto words = choices_of(option); !words.empty())
        choices +=
            fmt::format("      {}) words='{}' ;;\n",
                        patterns(tool, [&](const Option& other) { return other == option; }), joined(words, " "));
  };
  add_choices(tool);
  for (const auto& command : tool.commands) {
    add_choices(command);
    commands.push_back(command.name);
    if (takes_command(command)) takers.push_back(command.name);
    options += fmt::format("      {}) words+=' {}' ;;\n", command.name, joined(names_of(command), " "));
  }
  files["bash-completion/completions/" + name] = fmt::format(
      text, fmt::arg("tool", name), fmt::arg("function", "_" + replaced(name, "-", "_")),
      fmt::arg("takers", takers.empty() ? "''" : joined(takers, " | ")),
      fmt::arg("with_value", patterns(tool, [](const Option& option) { return option.value.has_value(); })),
      fmt::arg("files", patterns(tool, is_file)), fmt::arg("choices", choices), fmt::arg("options", options),
      fmt::arg("common", joined(names_of(tool), " ")), fmt::arg("commands", joined(commands, " ")));
}

}  // namespace dlock::tools::docgen

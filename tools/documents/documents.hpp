// This file knows what is made from the description of a command line: manual pages and completions.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::tools::documents {

using Json = nlohmann::json;

// Path below share/ -> text.
using Files = std::map<std::string, std::string>;

// A page for the tool, and one for each of its commands.
void add_manual(const Json& tool, Files& files);
void add_bash_completion(const Json& tool, Files& files);
void add_zsh_completion(const Json& tool, Files& files);
void add_fish_completion(const Json& tool, Files& files);

// The words that an option takes, if its value is written "text|json"; else none.
std::vector<std::string> choices_of(const Json& option);
bool is_file(const Json& option);
bool takes_value(const Json& option);
// Whether a command line of its own follows "--".
bool takes_command(const Json& command);

std::vector<std::string> lines_of(std::string_view text);
std::string replaced(std::string text, std::string_view what, std::string_view by);
std::string joined(const std::vector<std::string>& words, std::string_view between);

}  // namespace dlock::tools::documents

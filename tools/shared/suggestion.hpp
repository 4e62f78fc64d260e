// This file knows which known word somebody meant who has mistyped it.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace dlock::tools {

// How many letters have to be put in, taken out, replaced or exchanged with their neighbour to come from one to the other.
std::size_t distance(std::string_view one, std::string_view other);

// Those of `known` that are nearest to `typed`, or that it begins, if any is near enough; at most three.
std::vector<std::string> nearest(std::string_view typed, const std::vector<std::string>& known);

struct Refusal {
  std::string message, hint;
};
// What is wrong with the words that the parser did not expect, after it has thrown ExtrasError.
Refusal explain_unexpected(const CLI::App& app);
// What is missing, after it has thrown another error that says `what`.
Refusal explain_incomplete(const CLI::App& app, const std::string& what);

}  // namespace dlock::tools

// This file knows the columns of a page.
#include "page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr std::size_t page_width = 80;

std::string wrapped(const std::string& text, std::size_t column, std::size_t indent) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find(' ', at), text.size());
    if (column + end - at > page_width) {
      while (result.ends_with(' ')) result.pop_back();
      result += "\n" + std::string(indent, ' ');
      column = indent;
    }
    result += text.substr(at, end - at) + " ";
    column += end - at + 1;
    at = end + 1;
  }
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

std::string name_of(const CLI::Option& option) {
  std::string name;
  for (const auto& letter : option.get_snames()) name += fmt::format("{}-{}", name.empty() ? "" : ", ", letter);
  for (const auto& word : option.get_lnames()) name += fmt::format("{}--{}", name.empty() ? "" : ", ", word);
  return option.get_items_expected_max() > 0 ? name + " " + option.get_type_name() : name;
}

class Page final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    auto text = wrapped(app->get_description(), 0, 0) + "\n";
    const auto scenarios = app->get_subcommands({});
    std::string of_all;
    for (const auto* option : app->get_options([](const CLI::Option* o) { return !o->get_group().empty(); })) {
      if (scenarios.empty() && option != app->get_help_ptr()) text += row(name_of(*option), option->get_description());
      if (!scenarios.empty()) of_all += (of_all.empty() ? "" : ", ") + name_of(*option);
    }
    for (const auto* scenario : scenarios) text += row(scenario->get_name(), scenario->get_description());
    if (!of_all.empty()) text += "Options of all: " + wrapped(of_all, 16, 2) + "\n";
    return text + app->get_footer() + "\n";
  }

 private:
  static std::string row(const std::string& name, const std::string& description) {
    constexpr std::size_t left = 22;
    return fmt::format("  {:<{}}", name, left - 2) + (name.size() > left - 3 ? "\n" + std::string(left, ' ') : "") +
           wrapped(description, left, left) + "\n";
  }
};

}  // namespace

void use_small_pages(CLI::App& app) { app.formatter(std::make_shared<Page>()); }

}  // namespace bench

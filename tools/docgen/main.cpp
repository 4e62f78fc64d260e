// How the documents of a tool are written: dlock-docgen FOLDER <DESCRIPTION.
#include "docgen.hpp"

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace dlock::tools::docgen {

std::vector<std::string> choices_of(const Option& option) {
  std::vector<std::string> words;
  const auto value = option.value.value_or("");
  if (value.find('|') == std::string::npos) return words;
  for (std::size_t at = 0; at <= value.size();) {
    const auto end = std::min(value.find('|', at), value.size());
    words.push_back(value.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

bool is_file(const Option& option) { return option.value == "FILE"; }

bool takes_command(const Command& command) {
  for (const auto& usage : command.usage)
    if (usage.find(" -- ") != std::string::npos) return true;
  return false;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string result;
  for (const auto& word : words) {
    if (&word != &words.front()) result += between;
    result += word;
  }
  return result;
}

}  // namespace dlock::tools::docgen

int main(int argc, char** argv) {
  using namespace dlock::tools::docgen;
  if (argc != 2) {
    std::cerr << "usage: dlock-docgen FOLDER <DESCRIPTION\n";
    return 2;
  }
  try {
    const auto tool = read_description(std::cin);
    Files files;
    add_manual(tool, files);
    add_bash_completion(tool, files);
    add_zsh_completion(tool, files);
    add_fish_completion(tool, files);
    for (const auto& [path, text] : files) {
      const auto whole = std::filesystem::path(argv[1]) / path;
      std::filesystem::create_directories(whole.parent_path());
      std::ofstream file(whole, std::ios::binary);
      file << text << std::flush;
      if (!file) throw std::runtime_error("cannot write " + whole.string());
    }
  } catch (const std::exception& error) {
    std::cerr << "dlock-docgen: " << error.what() << '\n';
    return 1;
  }
}

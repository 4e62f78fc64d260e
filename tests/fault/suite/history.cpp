// This file knows the words and fields of a line of a history.
#include "fault/suite/history.hpp"

#include <array>
#include <sstream>
#include <utility>

namespace dlock::test {
namespace {

constexpr std::array<std::pair<What, std::string_view>, 16> words{{
    {What::grant, "grant"},
    {What::busy, "busy"},
    {What::held, "held"},
    {What::loss, "loss"},
    {What::untold, "untold"},
    {What::twice, "twice"},
    {What::release, "release"},
    {What::intent, "intent"},
    {What::commit, "commit"},
    {What::refused, "refused"},
    {What::failed, "failed"},
    {What::doubt, "doubt"},
    {What::trouble, "trouble"},
    {What::step, "step"},
    {What::force, "force"},
    {What::fault, "fault"},
}};

}  // namespace

std::string_view to_string(What what) noexcept {
  for (const auto& [value, word] : words)
    if (value == what) return word;
  return "?";
}

std::string Record::line() const {
  auto told = text;
  for (auto& c : told)
    if (c == '\n') c = ' ';
  return std::to_string(at) + ' ' + std::string(to_string(what)) + ' ' + name + ' ' + std::to_string(token) + ' ' +
         std::to_string(time) + ' ' + told + '\n';
}

std::optional<Record> Record::parse(std::string_view line) {
  std::istringstream fields{std::string(line)};
  Record record;
  std::string word;
  if (!(fields >> record.at >> word >> record.name >> record.token >> record.time)) return std::nullopt;
  if (fields.get() != ' ') return std::nullopt;  // cut off
  std::getline(fields, record.text);
  for (const auto& [value, known] : words)
    if (word == known) {
      record.what = value;
      return record;
    }
  return std::nullopt;
}

}  // namespace dlock::test

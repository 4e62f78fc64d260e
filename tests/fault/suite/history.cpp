// The words and fields of a line of a history.
#include "fault/suite/history.hpp"

#include <array>
#include <cstdio>
#include <sstream>
#include <utility>

namespace dlock::test {
namespace {

constexpr std::array<std::pair<What, std::string_view>, 29> words{{
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
    {What::read, "read"},
    {What::work, "work"},
    {What::trouble, "trouble"},
    {What::longer, "longer"},
    {What::shorter, "shorter"},
    {What::adopted, "adopted"},
    {What::savepoint, "savepoint"},
    {What::slow_observer, "slow_observer"},
    {What::batch, "batch"},
    {What::ticket, "ticket"},
    {What::handed, "handed"},
    {What::lingered, "lingered"},
    {What::downgraded, "downgraded"},
    {What::upgraded, "upgraded"},
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

std::string Share::text() const {
  switch (mode) {
    case Mode::shared: return "shared";
    case Mode::permits: return "permits " + std::to_string(permits) + " of " + std::to_string(limit);
    case Mode::exclusive: break;
  }
  return {};
}

Share Share::parse(const std::string& text) {
  Share share;
  if (text == "shared") share.mode = Mode::shared;
  else if (std::sscanf(text.c_str(), "permits %lld of %lld", &share.permits, &share.limit) == 2)
    share.mode = Mode::permits;
  return share;
}

std::string Reading::text() const {
  return std::to_string(first.account) + ": " + std::to_string(first.balance) + ", " + std::to_string(second.account) +
         ": " + std::to_string(second.balance);
}

std::optional<Reading> Reading::parse(const std::string& text) {
  Reading reading;
  auto& [first, second] = reading;
  if (std::sscanf(text.c_str(), "%lld: %lld, %lld: %lld", &first.account, &first.balance, &second.account,
                  &second.balance) != 4)
    return std::nullopt;
  return reading;
}

}  // namespace dlock::test

// What is said between a benchmark and its engines: the names, the round, and what was timed.
#include "engines.hpp"

#include "clients.hpp"

#include <bit>
#include <chrono>

namespace bench {
namespace {

// The words: a client with the name of that number, and no more of them; then all are open. The round begins, ends,
// has a rate; then for each client the numbers of its records, each with their count before them.
constexpr char client = 'c', opened = 'o', begin = 'b', end = 'e', rate = 'r', offset = 'f', size = 's', number = 'n',
               last = 'l';

std::int64_t instant(Clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}
Clock::time_point point(std::int64_t instant) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(instant)));
}

void say(Line& line, const Record& record) {
  const auto numbers = record.numbers();
  line.say(size, static_cast<std::int64_t>(numbers.size()));
  for (const auto each : numbers) line.say(number, each);
}

Record hear_record(Line& line) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(line.hear(size).number));
  for (auto& each : numbers) each = line.hear(number).number;
  return Record::of(numbers);
}

void say(Line& line, const ThroughputRound& round) {
  line.say(begin, instant(round.from));
  line.say(end, instant(round.to));
  line.say(rate, std::bit_cast<std::int64_t>(round.rate));
}

ThroughputRound hear_round(Line& line) {
  ThroughputRound round;
  round.from = point(line.hear(begin).number);
  round.to = point(line.hear(end).number);
  round.rate = std::bit_cast<double>(line.hear(rate).number);
  return round;
}

// What one of the processes does, until it is killed.
void take_part(Line& line, const Contender& contender) {
  for (;;) {
    std::vector<std::string> names;
    std::vector<double> offsets;
    for (auto word = line.hear(); word.what == client; word = line.hear()) {
      std::string name;
      for (auto left = word.number; left > 0; --left) name += static_cast<char>(line.hear(number).number);
      names.push_back(std::move(name));
      offsets.push_back(std::bit_cast<double>(line.hear(offset).number));
    }
    const auto clients = contender.open(names);
    line.say(opened);
    std::vector<ThroughputRound> own(clients.size(), hear_round(line));
    for (std::size_t i = 0; i < own.size(); ++i) own[i].offset = offsets[i];
    for (const auto& times : run_clients(clients, own)) {
      say(line, times.acquire);
      say(line, times.release);
      say(line, times.pair);
      line.say(last, instant(times.last));
    }
  }
}

}  // namespace

Engines::Engines(const Field& field, std::size_t count) {
  const auto contender = dlock_contender(field);
  for (std::size_t i = 0; i < count; ++i) helpers_.emplace_back([=](Line& line) { take_part(line, contender); });
}

void Engines::open(const std::vector<std::string>& names) {
  offsets_ = rounds({}, names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto& line = helpers_[i % helpers_.size()].line();
    line.say(client, static_cast<std::int64_t>(names[i].size()));
    for (const char letter : names[i]) line.say(number, letter);
    line.say(offset, std::bit_cast<std::int64_t>(offsets_[i].offset));
  }
  for (auto& helper : helpers_) helper.line().say(opened);
  for (auto& helper : helpers_) helper.line().hear(opened);
}

std::vector<Times> Engines::run(const ThroughputRound& round) {
  for (auto& helper : helpers_) say(helper.line(), round);
  std::vector<Times> all;
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    auto& line = helpers_[i % helpers_.size()].line();
    Times times;
    times.acquire = hear_record(line);
    times.release = hear_record(line);
    times.pair = hear_record(line);
    times.last = point(line.hear(last).number);
    all.push_back(std::move(times));
  }
  return all;
}

}  // namespace bench

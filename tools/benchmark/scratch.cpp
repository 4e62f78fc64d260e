// How a measurement's own lock table is made, filled, and taken away.
#include "scratch.hpp"

#include <dlock/schema.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

namespace bench {
namespace {

constexpr auto prefix = "dlock-bench/row/";
constexpr std::int64_t portion = 10'000;

dlock::schema::Options options_for(const Target& target) {
  dlock::schema::Options options;
  options.schema = target.schema;
  options.table = target.table;
  options.timeouts.connect = target.connect_timeout;
  options.application = "dlock-bench";
  return options;
}

void must_be_good(const dlock::schema::Report& report) {
  if (report.state != dlock::schema::SchemaState::good)
    throw std::runtime_error(fmt::format("a table for the measurement: {}", report.message));
}

}  // namespace

Scratch::Scratch(const Target& target, const std::string& table) : target_(target) {
  target_.table = table;
  target_.history_table.clear();
  must_be_good(dlock::schema::down(target_.url, 0, options_for(target_), true));
  must_be_good(dlock::schema::up(target_.url, options_for(target_)));
}

Scratch::~Scratch() {
  try {
    static_cast<void>(dlock::schema::down(target_.url, 0, options_for(target_), true));
  } catch (const std::exception& error) {
    fmt::print(stderr, "dlock-bench: the table {} is left behind: {}\n", target_.table, error.what());
  }
}

void Scratch::fill(std::int64_t count, Progress& progress) {
  const auto peer = raw_peer(target_);
  for (std::int64_t first = 0; first < count; first += portion) {
    progress.say(fmt::format("{} of {} rows", first, count));
    peer->fill(prefix, first, std::min(portion, count - first));
  }
  peer->tidy();
}

std::string row_name(std::int64_t number) { return fmt::format("{}{:09}", prefix, number); }

}  // namespace bench

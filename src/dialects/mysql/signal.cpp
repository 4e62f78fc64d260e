// How the signals' names are made, and what a session needs that holds one or waits for one.
#include "signal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::dialects::mysql {

std::string signal_name(std::string_view engine, std::string_view table, int number) {
  return fmt::format("'dlock:{}:{}:{}'", engine, table, number % signals);
}

std::string_view engine_of(std::string_view actor) {
  const auto engine = actor.substr(0, 16);
  const bool valid = engine.size() == 16 && std::all_of(engine.begin(), engine.end(), [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                     });
  return valid ? engine : std::string_view{};
}

void make_lasting(ServerConnection& connection, Deadline deadline) {
  const bool mariadb = mariadb_connection(connection.native()) != 0;
  connection.script(
      fmt::format("SET SESSION wait_timeout = 31536000, {} = 0", mariadb ? "max_statement_time" : "max_execution_time"),
      deadline);
}

}  // namespace dlock::dialects::mysql

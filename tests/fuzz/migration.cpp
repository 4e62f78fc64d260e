// What is promised for every text of a migration: its steps, or a defect that is named.
#include "fuzz/targets.hpp"

#include "dialects/dialect.hpp"
#include "migrate/migrations.hpp"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dlock::fuzz {
namespace {

// A dialect that has nothing but migrations.
struct Roadworks final : dialects::Dialect {
  explicit Roadworks(std::vector<dialects::Migration> migrations_of_input)
      : Dialect({"fuzzed", {}, dialects::Marker::question, '"', {}, {1, 0}}, all),
        list(std::move(migrations_of_input)) {
    all.migrations = list;
  }
  std::unique_ptr<dialects::CallerConnection> caller_connection(const TransactionRef&,
                                                                const dialects::QuotedTable&) const override {
    return nullptr;
  }
  void append_literal(std::string&, const Argument&) const override {}
  std::unique_ptr<dialects::Connector> connector(const Url&, const dialects::ConnectOptions&) const override {
    return nullptr;
  }
  std::vector<dialects::Migration> list;
  dialects::Texts all{};
};

bool within(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void read_migrations(std::string_view up, std::string_view down) {
  const Roadworks dialect({{1, "begin", up, down}});
  try {
    for (const auto& migration : migrate::migrations_of(dialect)) {
      insist(!migration.checksum.empty() && !migration.up.empty());
      for (const auto& step : migration.up) insist(within(step.sql, up) && within(step.probe, up));
      for (const auto& step : migration.down) insist(within(step.sql, down) && within(step.probe, down));
      static_cast<void>(migrate::newer(migration.min_client, "0.1.0"));
    }
  } catch (const std::logic_error&) {}
}

void read_statements(std::string_view text, dialects::Marker marker) {
  const auto quote = [](std::string_view identifier) { return "\"" + std::string(identifier) + "\""; };
  try {
    const dialects::Statements statements(text, {"public"}, marker, quote);
    insist(statements.size() <= text.size());
  } catch (const std::logic_error&) {}
}

}  // namespace

// The way up, a line "===", and the way down.
void migration(std::string_view text) {
  constexpr std::string_view between = "\n===\n";
  const auto at = text.find(between);
  const auto up = text.substr(0, at);
  read_migrations(up, at == std::string_view::npos ? "-- step: all\nDROP a;" : text.substr(at + between.size()));
  read_statements(text, dialects::Marker::dollar);
  read_statements(text, dialects::Marker::question);
}

}  // namespace dlock::fuzz

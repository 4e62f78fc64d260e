// How migrations are cut into steps, and that those which are shipped keep the form.
#include "migrate/migrations.hpp"
#include "dialects/dialect.hpp"

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>

using namespace dlock;
using migrate::migrations_of;
using migrate::newer;

namespace {

// A dialect that has nothing but migrations.
struct Roadworks final : dialects::Dialect {
  explicit Roadworks(std::vector<dialects::Migration> migrations_of_test)
      : Dialect({"roadworks", {}, dialects::Marker::question, '"', {}, {1, 0}}, all),
        list(std::move(migrations_of_test)) {
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

constexpr std::string_view up =
    "-- For people.\n-- min_client: 0.2.0\n\n-- step: first\nCREATE a;\n-- probe: there\nSELECT 1;\n\n"
    "-- step: second\n-- a comment\nCREATE b (\n  c);\n";
constexpr std::string_view down = "-- step: all\nDROP a;";

}  // namespace

TEST_CASE("a migration is cut into its steps and probes") {
  const Roadworks dialect({{1, "begin", up, down}});
  const auto migrations = migrations_of(dialect);
  REQUIRE(migrations.size() == 1);
  CHECK(migrations[0].name == "begin");
  CHECK(migrations[0].min_client == "0.2.0");
  REQUIRE(migrations[0].up.size() == 2);
  CHECK(migrations[0].up[0].title == "first");
  CHECK(migrations[0].up[0].sql == "CREATE a;");
  CHECK(migrations[0].up[0].probe == "SELECT 1;");
  CHECK(migrations[0].up[1].sql == "-- a comment\nCREATE b (\n  c);");
  CHECK(migrations[0].up[1].probe.empty());
  REQUIRE(migrations[0].down.size() == 1);
  CHECK(migrations[0].down[0].sql == "DROP a;");
}

TEST_CASE("a migration that breaks the form is a defect") {
  const std::array<Roadworks, 5> broken{
      Roadworks({{2, "gap", up, down}}), Roadworks({{1, "no_client", "-- step: x\nA;", down}}),
      Roadworks({{1, "no_step", "-- min_client: 1\nA;", down}}),
      Roadworks({{1, "empty_step", "-- min_client: 1\n-- step: x\n", down}}),
      Roadworks({{1, "lost_probe", "-- min_client: 1\n-- probe: x\nA;\n-- step: x\nA;", down}})};
  for (const auto& dialect : broken) CHECK_THROWS_AS(migrations_of(dialect), std::logic_error);
}

TEST_CASE("the migrations of every dialect keep the form, and all dialects have the same versions") {
  std::vector<std::string> names;
  for (const auto* dialect : dialects::all()) {
    CAPTURE(dialect->name());
    const auto migrations = migrations_of(*dialect);
    CHECK_FALSE(migrations.empty());
    std::vector<std::string> theirs;
    for (const auto& migration : migrations) theirs.push_back(migration.name);
    if (names.empty()) names = theirs;
    CHECK(theirs == names);
    // Where a version is no transaction, every step must be able to say whether it is done.
    if (dialect->texts().migrator_sql.find("-- name: begin()") != std::string_view::npos) continue;
    for (const auto& migration : migrations) {
      for (const auto& step : migration.up) CHECK_FALSE(step.probe.empty());
      for (const auto& step : migration.down) CHECK_FALSE(step.probe.empty());
    }
  }
}

TEST_CASE("versions are compared as numbers") {
  CHECK(newer("0.10.0", "0.9.9"));
  CHECK(newer("1.0.0", "0.99.99"));
  CHECK(newer("1.0.1", "1.0"));
  CHECK_FALSE(newer("1.0", "1.0.0"));
  CHECK_FALSE(newer("0.1.0", "0.1.0"));
  CHECK_FALSE(newer("0.1.0", "0.2.0"));
  CHECK_FALSE(newer("", "0.0.1"));
}

// The calls of dlock::schema that change a database.
#include "api/migration.hpp"

#include <dlock/schema.hpp>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

Report report_of(const migrate::Migrated& migrated) {
  Report report;
  report.message = migrated.message;
  report.from = migrated.from;
  report.to = migrated.to;
  for (const auto& migration : migrated.done) report.versions.push_back(migration.version);
  report.plan = migrated.plan;
  report.restored = migrated.restored;
  return report;
}

}  // namespace

Report up(std::string_view url, const Options& options, std::optional<int> to) {
  auto opened = open(url, options, true);
  return reported([&] { return report_of(opened.migrator.up(to)); });
}

Report down(std::string_view url, int to, const Options& options, bool force) {
  auto opened = open(url, options, false);
  return reported([&] { return report_of(opened.migrator.down(to, force)); });
}

Report plan(std::string_view url, const Options& options, std::optional<int> to) {
  auto dry = options;
  dry.dry_run = true;
  return up(url, dry, to);
}

Report baseline(std::string_view url, int at, const Options& options) {
  auto opened = open(url, options, false);
  return reported([&] { return report_of(opened.migrator.baseline(at)); });
}

Report repair(std::string_view url, const Options& options) {
  auto opened = open(url, options, false);
  return reported([&] { return report_of(opened.migrator.repair()); });
}

Report mark_applied(std::string_view url, int version, const Options& options) {
  auto opened = open(url, options, false);
  return reported([&] { return report_of(opened.migrator.mark_applied(version)); });
}

Report discard(std::string_view url, int version, const Options& options) {
  auto opened = open(url, options, false);
  return reported([&] { return report_of(opened.migrator.discard(version)); });
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock

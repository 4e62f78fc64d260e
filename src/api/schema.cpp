// The calls of dlock::schema that change a database.
#include "api/migration.hpp"

#include <dlock/schema.hpp>

namespace dlock {
inline namespace v0 {
namespace schema {
Report up(std::string_view url, const Options& options, std::optional<int> to) {
  auto migrator = open(url, options, true);
  return reported([&] { return migrator.up(to); });
}

Report down(std::string_view url, int to, const Options& options, bool force) {
  auto migrator = open(url, options, false);
  return reported([&] { return migrator.down(to, force); });
}

Report plan(std::string_view url, const Options& options, std::optional<int> to) {
  auto dry = options;
  dry.dry_run = true;
  return up(url, dry, to);
}

Report baseline(std::string_view url, int at, const Options& options) {
  auto migrator = open(url, options, false);
  return reported([&] { return migrator.baseline(at); });
}

Report repair(std::string_view url, const Options& options) {
  auto migrator = open(url, options, false);
  return reported([&] { return migrator.repair(); });
}

Report mark_applied(std::string_view url, int version, const Options& options) {
  auto migrator = open(url, options, false);
  return reported([&] { return migrator.mark_applied(version); });
}

Report discard(std::string_view url, int version, const Options& options) {
  auto migrator = open(url, options, false);
  return reported([&] { return migrator.discard(version); });
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock

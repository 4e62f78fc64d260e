// How long what changes triggers may take, and how it is given up.
#include "migrate/trigger_change.hpp"

#include "dialects/mutants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace dlock::migrate {

TriggerStatements::TriggerStatements(const dialects::Dialect& dialect, std::string_view sql, std::string_view subject,
                                     dialects::WordFiller filler)
    : dialect_(dialect),
      subject_(subject),
      statements_(fmt::format("{}\n{}", dialect.texts().migrator_sql, dialects::with_planted(sql, dialect.name())),
                  dialect.traits().marker, std::move(filler)) {}

std::string TriggerStatements::needed() const {
  const auto grants = subject_ + "_grants";
  if (!has(grants)) return {};
  auto text = inserted(grants, "role", "the role") + ";";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "; needed: " + text;
}

std::string TriggerStatements::inserted(std::string_view name, std::string_view argument,
                                        std::string_view value) const {
  const Argument one = value;
  return with_literals(at(name, {argument}), {&one, 1},
                       [](std::string& sql, const Argument& text) { sql += std::get<std::string_view>(text); });
}

std::string TriggerStatements::printed(const std::string& statement) const {
  const auto print = subject_ + "_print";
  return has(print) ? inserted(print, "statement", statement) : statement;
}

TriggerChange::TriggerChange(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                             MigrateOptions options)
    : dialect_(dialect), options_(std::move(options)), connector_(std::move(connector)) {}

TriggerChange::~TriggerChange() = default;

bool TriggerChange::connect() {
  if (options_.stop.stop_requested()) throw MigrationError(Verdict::stopped, "stopped as asked");
  if (connected()) return false;
  connection_ = connector_->connect(later(BootClock::now(), options_.timeouts.connect));
  return true;
}

Deadline TriggerChange::ddl_deadline() const {
  return later(later(BootClock::now(), options_.timeouts.ddl_lock), std::chrono::seconds{30});
}

void TriggerChange::set_timeouts(const dialects::Statement& statement) {
  connection_->run(
      statement,
      std::initializer_list<Argument>{setting_of(options_.timeouts.ddl_lock), setting_of(options_.timeouts.statement)},
      soon());
}

void TriggerChange::give_back(const std::string& sql) noexcept {
  try {
    connection_->script(sql, soon());
  } catch (const std::exception&) { connection_.reset(); }
}

}  // namespace dlock::migrate

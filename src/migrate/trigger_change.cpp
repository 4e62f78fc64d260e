// How long what changes triggers may take, and how it is given up.
#include "migrate/trigger_change.hpp"

#include "types/annotated_mutex.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

namespace dlock::migrate {

TriggerChange::TriggerChange(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                             MigrateOptions options)
    : dialect_(dialect), options_(std::move(options)), connector_(std::move(connector)) {}

TriggerChange::~TriggerChange() = default;

bool TriggerChange::connect() {
  if (options_.stop.stop_requested()) throw MigrationError(MigrationError::Reason::stopped, "stopped as asked");
  if (connected()) return false;
  connection_ = connector_->connect(later(BootClock::now(), options_.connect_timeout));
  return true;
}

Deadline TriggerChange::ddl_deadline() const {
  return later(later(BootClock::now(), options_.ddl_lock_timeout), std::chrono::seconds{30});
}

void TriggerChange::set_timeouts(const dialects::Statement& statement) {
  connection_->run(
      statement,
      std::initializer_list<Argument>{setting_of(options_.ddl_lock_timeout), setting_of(options_.statement_timeout)},
      soon());
}

void TriggerChange::give_back(const std::string& sql) noexcept {
  try {
    connection_->script(sql, soon());
  } catch (const std::exception&) { connection_.reset(); }
}

void TriggerChange::pause(unsigned tries) const {
  AnnotatedMutex mutex;
  std::condition_variable_any never;
  UniqueMutexLock lock(mutex);
  never.wait_for(lock, options_.stop, std::chrono::milliseconds{100} * std::min(tries + 1, 20U), [] { return false; });
}

}  // namespace dlock::migrate

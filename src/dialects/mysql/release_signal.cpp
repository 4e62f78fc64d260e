// To notify is to take the next signal and to free the last one, in one statement.
#include "release_signal.hpp"

#include "signal.hpp"
#include "types/process.hpp"

#include <fmt/format.h>

namespace dlock::dialects::mysql {
namespace {

class NamedLockSignal final : public ReleaseSignal {
 public:
  NamedLockSignal(const Server& server, std::string_view engine, std::string table)
      : server_(server), engine_(engine), table_(std::move(table)) {}
  ~NamedLockSignal() override {
    if (fork_guard_.forked()) static_cast<void>(connection_.release());  // it is the parent's
  }
  NamedLockSignal(const NamedLockSignal&) = delete;
  NamedLockSignal& operator=(const NamedLockSignal&) = delete;

  // Nobody can have listened before there is a connection: the first notification only opens it.
  void send(Deadline deadline) override {
    if (useless_) return;
    if (!connection_) return open(deadline);
    try {
      const auto last = number_++;
      answered(fmt::format("SELECT GET_LOCK({}, 1), RELEASE_LOCK({})", name(number_), name(last)), deadline);
    } catch (...) {
      connection_.reset();
      throw;
    }
  }

 private:
  std::string name(int number) const { return signal_name(engine_, table_, number); }

  void answered(const std::string& sql, Deadline deadline) {
    const auto& answer = connection_->ask(sql, deadline);
    if (answer.is_null(0, 0) || answer.integer(0, 0) != 1)
      throw Failure(Cause::locked, "MySQL: somebody else holds the named lock that this engine notifies with");
  }

  void open(Deadline deadline) {
    auto connection = std::make_unique<ServerConnection>(server_, SessionUse{}, deadline);
    useless_ =
        connection->in_cluster();  // those who wait may be on another server, which knows no named lock of this one
    if (useless_) return;
    make_lasting(*connection, deadline);
    connection_ = std::move(connection);
    try {
      // Another one than before: the server may not have noticed yet that the last connection is gone.
      answered(fmt::format("SELECT GET_LOCK({}, 1)", name(++number_)), deadline);
    } catch (...) {
      connection_.reset();
      throw;
    }
  }

  const ForkGuard fork_guard_;
  const Server server_;
  const std::string engine_, table_;
  std::unique_ptr<ServerConnection> connection_;
  int number_ = 0;  // of the signal that is held
  bool useless_ = false;
};

}  // namespace

std::unique_ptr<ReleaseSignal> make_release_signal(const Server& server, std::string_view engine,
                                                   const std::string& table) {
  if (engine_of(engine).empty()) return nullptr;
  return std::make_unique<NamedLockSignal>(server, engine, table);
}

}  // namespace dlock::dialects::mysql

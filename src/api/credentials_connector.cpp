// Asks the program on a thread of its own, since it may hang, and connects as it says.
#include "api/credentials_connector.hpp"

#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <fmt/format.h>

#include <exception>
#include <system_error>
#include <utility>

namespace dlock::api {
namespace {

// Opens its connection at its first use, and would open it again as who was right then.
class AskingSignal final : public dialects::ReleaseSignal {
 public:
  AskingSignal(const CredentialsConnector& connector, dialects::TableNames names, std::string engine)
      : connector_(connector), names_(std::move(names)), engine_(std::move(engine)) {}

  void send(Deadline deadline) override {
    if (!signal_) signal_ = connector_.current(deadline)->release_signal(names_, engine_);
    try {
      signal_->send(deadline);
    } catch (const Failure& failure) {
      if (failure.cause() == Cause::permission) signal_.reset();
      throw;
    }
  }

 private:
  const CredentialsConnector& connector_;
  const dialects::TableNames names_;
  const std::string engine_;
  std::unique_ptr<ReleaseSignal> signal_;
};

// Client libraries would take what stands before the zero byte.
bool has_zero(const std::optional<std::string>& text) { return text && text->find('\0') != std::string::npos; }

}  // namespace

CredentialsConnector::CredentialsConnector(std::unique_ptr<const dialects::Connector> connector, AskCredentials ask,
                                           Duration patience)
    : connector_(std::move(connector)),
      ask_(std::make_shared<const AskCredentials>(std::move(ask))),
      patience_(patience) {}

CredentialsConnector::~CredentialsConnector() {
  if (call_ && !fork_guard_.forked() && !call_->is_this()) call_->await(later(BootClock::now(), patience_));
}

// One for all who ask while it runs, so that one that hangs takes no more than one thread.
std::shared_ptr<CredentialsConnector::Call> CredentialsConnector::call() const {
  const MutexLock guard(mutex_);
  if (call_ && !call_->over() && !planted("credentials_asked_by_each")) return call_;
  try {
    call_ = Call::start([ask = ask_]() -> Provided {
      try {
        return {(*ask)(), {}};
      } catch (const std::exception& error) { return {{}, error.what()}; } catch (...) {
        return {{}, "an exception that is no std::exception"};
      }
    });
  } catch (const std::system_error& error) {
    throw Failure(Cause::refused,
                  fmt::format("EngineOptions::credentials cannot be asked: no thread could be started: {}",
                              error.code().message()));
  }
  return call_;
}

std::shared_ptr<const dialects::Connector> CredentialsConnector::current(const Deadline& deadline) const {
  const auto asked = call();
  if (asked->is_this()) throw Failure(Cause::rejected, "EngineOptions::credentials calls the engine that waits for it");
  const auto* told = asked->await(
      planted("credentials_outlast_deadline") ? Deadline(later(deadline.at(), std::chrono::seconds{20})) : deadline);
  if (told == nullptr) throw Failure(Cause::refused, "EngineOptions::credentials did not return in time");
  if (told->trouble)
    throw Failure(Cause::refused, fmt::format("EngineOptions::credentials failed: {}", *told->trouble));
  if (has_zero(told->credentials.user) || has_zero(told->credentials.password))
    throw Failure(Cause::rejected, "EngineOptions::credentials: a user or a password must not have a zero byte in it");
  return connector_->as(planted("credentials_ignored") ? Credentials{} : told->credentials);
}

std::unique_ptr<dialects::Connection> CredentialsConnector::connect(Deadline deadline) const {
  return current(deadline)->connect(deadline);
}

std::unique_ptr<dialects::Canceller> CredentialsConnector::canceller(dialects::Connection& connection,
                                                                     Deadline deadline) const {
  return current(deadline)->canceller(connection, deadline);
}

std::unique_ptr<dialects::Listener> CredentialsConnector::listener(const dialects::TableNames& names,
                                                                   Deadline deadline) const {
  return current(deadline)->listener(names, deadline);
}

std::unique_ptr<dialects::ReleaseSignal> CredentialsConnector::release_signal(const dialects::TableNames& names,
                                                                              std::string_view engine) const {
  if (!connector_->release_signal(names, engine)) return nullptr;
  return std::make_unique<AskingSignal>(*this, names, std::string(engine));
}

}  // namespace dlock::api

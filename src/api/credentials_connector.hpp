// How EngineOptions::credentials comes before each connect.
#pragma once

#include "dialects/dialect.hpp"
#include "types/annotated_mutex.hpp"
#include "types/background_call.hpp"
#include "types/process.hpp"

#include <dlock/credentials.hpp>
#include <dlock/duration.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace dlock::api {

using AskCredentials = std::function<Credentials()>;

// Connects as the program says at that time. Threads: any. Owns: one thread at most, while the program is asked. Its
// end waits for that, for as long as `patience`.
// Fails: as `connector`; Failure{refused} where the program throws, or does not answer in time; Failure{rejected} where
// it calls its own engine, or answers what is no user or password.
class CredentialsConnector final : public dialects::Connector {
 public:
  // `connector`: to a database that has users.
  CredentialsConnector(std::unique_ptr<const dialects::Connector> connector, AskCredentials ask, Duration patience);
  ~CredentialsConnector() override;
  CredentialsConnector(const CredentialsConnector&) = delete;
  CredentialsConnector& operator=(const CredentialsConnector&) = delete;

  std::unique_ptr<dialects::Connection> connect(Deadline deadline) const override;
  std::unique_ptr<dialects::Canceller> canceller(dialects::Connection& connection, Deadline deadline) const override;
  std::unique_ptr<dialects::Listener> listener(const dialects::TableNames& names, Deadline deadline) const override;
  std::unique_ptr<dialects::ReleaseSignal> release_signal(const dialects::TableNames& names,
                                                          std::string_view engine) const override;
  const std::string& target() const noexcept override { return connector_->target(); }

  // The connector of who logs in now.
  std::shared_ptr<const dialects::Connector> current(const Deadline& deadline) const;

 private:
  // Trouble: why there are none.
  struct Provided {
    Credentials credentials{};
    std::optional<std::string> trouble{};
  };
  using Call = BackgroundCall<Provided>;
  std::shared_ptr<Call> call() const;

  const std::unique_ptr<const dialects::Connector> connector_;
  const std::shared_ptr<const AskCredentials> ask_;
  const Duration patience_;
  const ForkGuard fork_guard_;
  mutable AnnotatedMutex mutex_;
  mutable std::shared_ptr<Call> call_ GUARDED_BY(mutex_);  // the last one
};

}  // namespace dlock::api

// This file knows how EngineOptions::before_connect comes before each connect.
#pragma once

#include "dialects/dialect.hpp"
#include "types/background_call.hpp"
#include "types/process.hpp"

#include <dlock/duration.hpp>
#include <dlock/options.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace dlock::api {

// Connects by what the hook says. Threads: any. Owns: one thread at most, while the hook runs. Its end waits for that,
// for as long as `patience`.
// Fails: as the connector that the settings lead to; Failure{refused} where the hook throws, or does not return in time;
// Failure{rejected} where nothing good came of it.
class HookedConnector final : public dialects::Connector {
 public:
  using Hook = std::function<void(ConnectSettings&)>;

  // `url` leads to `dialect`.
  HookedConnector(const dialects::Dialect& dialect, std::string url, dialects::ConnectOptions options, Hook hook,
                  Duration patience);
  ~HookedConnector() override;
  HookedConnector(const HookedConnector&) = delete;
  HookedConnector& operator=(const HookedConnector&) = delete;

  std::unique_ptr<dialects::Connection> connect(Deadline deadline) const override;
  std::unique_ptr<dialects::Canceller> canceller(dialects::Connection& connection, Deadline deadline) const override;
  std::unique_ptr<dialects::Listener> listener(const dialects::TableNames& names, Deadline deadline) const override;
  std::unique_ptr<dialects::ReleaseSignal> release_signal(const dialects::TableNames& names,
                                                          std::string_view engine) const override;
  const std::string& target() const noexcept override { return as_given_->target(); }

  // The connector by what the hook says now.
  std::shared_ptr<const dialects::Connector> current(const Deadline& deadline) const;

 private:
  // Trouble: what the hook has thrown.
  struct Settled {
    ConnectSettings settings{};
    std::optional<std::string> trouble{};
  };
  using Call = BackgroundCall<Settled>;
  std::shared_ptr<Call> call() const;
  std::shared_ptr<const dialects::Connector> connector_for(const ConnectSettings& settings) const;

  const dialects::Dialect& dialect_;
  const std::string url_;
  const dialects::ConnectOptions options_;
  const Hook hook_;
  const Duration patience_;
  const std::unique_ptr<const dialects::Connector> as_given_;
  const ForkGuard fork_guard_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  mutable std::shared_ptr<Call> call_;  // the last one
  mutable ConnectSettings settings_{};  // what connector_ goes by; it has learned of its server
  mutable std::shared_ptr<const dialects::Connector> connector_;
};

}  // namespace dlock::api

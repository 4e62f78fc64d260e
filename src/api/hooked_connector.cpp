// Asks the hook on a thread of its own, since it may hang, and makes a connector of its answer.
#include "api/hooked_connector.hpp"

#include "api/open.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <exception>
#include <system_error>
#include <utility>

namespace dlock::api {
namespace {

// Opens its connection at its first use, and would open it again with what was right then.
class HookedSignal final : public dialects::ReleaseSignal {
 public:
  HookedSignal(const HookedConnector& connector, dialects::TableNames names, std::string engine)
      : connector_(connector), names_(std::move(names)), engine_(std::move(engine)) {}

  void send(Deadline deadline) override {
    if (!signal_) signal_ = connector_.current(deadline)->release_signal(names_, engine_);
    try {
      signal_->send(deadline);
    } catch (...) {
      signal_.reset();
      throw;
    }
  }

 private:
  const HookedConnector& connector_;
  const dialects::TableNames names_;
  const std::string engine_;
  std::unique_ptr<ReleaseSignal> signal_;
};

bool same(const ConnectSettings& a, const ConnectSettings& b) {
  return a.url == b.url && a.user == b.user && a.password == b.password;
}

}  // namespace

HookedConnector::HookedConnector(const dialects::Dialect& dialect, std::string url, dialects::ConnectOptions options,
                                 Hook hook, Duration patience)
    : dialect_(dialect),
      url_(std::move(url)),
      options_(std::move(options)),
      hook_(std::move(hook)),
      patience_(patience),
      as_given_(resolve(url_, options_).connector) {}

HookedConnector::~HookedConnector() {
  if (call_ && !fork_guard_.forked() && !call_->is_this()) call_->await(later(BootClock::now(), patience_));
}

// One for all who ask while it runs, so that one that hangs takes no more than one thread.
std::shared_ptr<HookedConnector::Call> HookedConnector::call() const {
  const std::lock_guard guard(mutex_);
  if (call_ && !call_->over() && !planted("hook_asked_by_each")) return call_;
  try {
    call_ = Call::start([hook = hook_, url = url_] {
      Settled settled{{url}};
      try {
        hook(settled.settings);
      } catch (const std::exception& error) { settled.trouble = error.what(); } catch (...) {
        settled.trouble = "an exception that is no std::exception";
      }
      return settled;
    });
  } catch (const std::system_error& error) {
    throw Failure(Cause::refused,
                  fmt::format("EngineOptions::before_connect cannot be called: no thread: {}", error.code().message()));
  }
  return call_;
}

std::shared_ptr<const dialects::Connector> HookedConnector::current(const Deadline& deadline) const {
  const auto asked = call();
  const auto* settled = asked->await(
      planted("hook_outlasts_deadline") ? Deadline(later(deadline.at(), std::chrono::seconds{20})) : deadline);
  if (settled == nullptr) throw Failure(Cause::refused, "EngineOptions::before_connect did not return in time");
  if (settled->trouble)
    throw Failure(Cause::refused, fmt::format("EngineOptions::before_connect failed: {}", *settled->trouble));
  return connector_for(settled->settings);
}

std::shared_ptr<const dialects::Connector> HookedConnector::connector_for(const ConnectSettings& settings) const {
  const std::lock_guard guard(mutex_);
  if (connector_ && (same(settings, settings_) || planted("settings_remembered"))) return connector_;
  try {
    auto resolved = resolve(settings, options_);
    if (&resolved.dialect != &dialect_)
      throw Failure(Cause::rejected,
                    fmt::format("EngineOptions::before_connect leads from {} to another kind of database: {}", target(),
                                resolved.connector->target()));
    connector_ = std::move(resolved.connector);
  } catch (const Error& error) {
    throw Failure(Cause::rejected, fmt::format("EngineOptions::before_connect: {}", error.what()));
  }
  settings_ = settings;
  return connector_;
}

std::unique_ptr<dialects::Connection> HookedConnector::connect(Deadline deadline) const {
  return current(deadline)->connect(deadline);
}

std::unique_ptr<dialects::Canceller> HookedConnector::canceller(dialects::Connection& connection,
                                                                Deadline deadline) const {
  return current(deadline)->canceller(connection, deadline);
}

std::unique_ptr<dialects::Listener> HookedConnector::listener(const dialects::TableNames& names,
                                                              Deadline deadline) const {
  return current(deadline)->listener(names, deadline);
}

std::unique_ptr<dialects::ReleaseSignal> HookedConnector::release_signal(const dialects::TableNames& names,
                                                                         std::string_view engine) const {
  if (!as_given_->release_signal(names, engine)) return nullptr;
  return std::make_unique<HookedSignal>(*this, names, std::string(engine));
}

}  // namespace dlock::api

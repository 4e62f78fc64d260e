// How the house is put together: url -> dialect -> store -> engine.
#pragma once

#include "api/credentials_connector.hpp"
#include "dialects/dialect.hpp"
#include "engine/core.hpp"

#include <dlock/grant.hpp>
#include <dlock/options.hpp>

#include <memory>
#include <string_view>

namespace dlock::api {

// Throws Error{misuse} that names the value and the rule.
void check(const EngineOptions& options);
void check(const LockOptions& options);
void check(const Grant& grant);
void check_reason(std::string_view what, std::string_view reason);
void check_lease(std::string_view what, Duration lease);
void check_time(std::string_view what, Duration time);  // not negative, and no longer than a lease may be
void check_metadata(std::string_view what, std::string_view metadata);
void check_positive(std::string_view what, Duration value);

// The dialect and the connector a URL leads to. Throws Error{misuse}.
struct ResolvedUrl {
  const dialects::Dialect& dialect;
  std::unique_ptr<dialects::Connector> connector;
};
ResolvedUrl resolve(std::string_view url, const dialects::ConnectOptions& options);
// With who logs in asked for before each connect, if there is somebody to ask; see CredentialsConnector.
ResolvedUrl resolve(std::string_view url, const dialects::ConnectOptions& options, AskCredentials credentials,
                    Duration patience);

// Opens the engine behind an Engine. Throws Error.
std::shared_ptr<Core> open(std::string_view url, EngineOptions options);

}  // namespace dlock::api

// The server that a URL means, in libpq's keywords.
#pragma once

#include "dialects/resolver.hpp"
#include "types/url.hpp"

#include <dlock/duration.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlock::dialects::postgresql {

// As for PQconnectStartParams: of a keyword that is there several times the last value counts.
using Keywords = std::vector<std::pair<std::string, std::string>>;

struct Server {
  Keywords keywords;                        // all but those of `places`
  std::vector<Keywords> places;             // at least one; several are tried one after another
  std::optional<Duration> connect_timeout;  // for each place: libpq leaves it to those who connect without blocking
  std::string password;                     // to hide it in messages
  std::string target;                       // the URL for messages
  std::shared_ptr<Resolver> resolver = std::make_shared<Resolver>();
  // Set by the first connection that finds what it has prepared gone: something lends its session to others.
  std::shared_ptr<std::atomic<bool>> lends_sessions = std::make_shared<std::atomic<bool>>(false);
};

// Throws Error{misuse} that names what is wrong with the URL or with libpq's environment variables and files.
// Everything libpq can check before it sends anything is checked.
Server server_of(const Url& url, const std::string& application);

}  // namespace dlock::dialects::postgresql

// The server that a URL means, in the words of MariaDB Connector/C.
#pragma once

#include "dialects/resolver.hpp"
#include "types/url.hpp"

#include <memory>
#include <string>

namespace dlock::dialects::mysql {

enum class Tls {
  disabled,   // never
  preferred,  // where the server offers it
  required,   // always, or no connection
  verified,   // always, with the server's certificate and name checked
};

// Empty texts are missing parts: they come from the [client] group of the option files.
struct Server {
  std::string host, user, password, database, socket;
  unsigned port = 0;
  Tls tls = Tls::preferred;
  std::string ssl_ca, ssl_cert, ssl_key;
  std::string target, application;
  std::shared_ptr<Resolver> resolver = std::make_shared<Resolver>();
};

// Throws Error{misuse} that names what is wrong with the URL.
Server server_of(const Url& url, const std::string& application);

}  // namespace dlock::dialects::mysql

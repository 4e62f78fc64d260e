// This file knows which server a URL means, in libpq's keywords.
#pragma once

#include "types/url.hpp"

#include <string>
#include <utility>
#include <vector>

namespace dlock::dialects::DLOCK_DIALECT {

struct Server {
  std::vector<std::pair<std::string, std::string>> keywords;  // as for PQconnectStartParams
  std::string user, password;                                 // for messages: to name, and to hide
  std::string target;
};

// Throws Error{misuse} that names what is wrong with the URL.
Server server_of(const Url& url, const std::string& application);

}  // namespace dlock::dialects::DLOCK_DIALECT

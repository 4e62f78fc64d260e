// Which file a URL means, and how it is to be opened.
#pragma once

#include "types/url.hpp"

#include <string>

namespace dlock::dialects::sqlite {

struct File {
  std::string path;  // absolute: a process may change its working folder while an engine is open
  std::string synchronous = "FULL";
  bool read_only = false;
};

// Throws Error{misuse} that names what is wrong with the URL. The file itself is not looked at.
File file_of(const Url& url);

// The kind of network file system the file is on, or empty.
std::string network_file_system(const std::string& path);

}  // namespace dlock::dialects::sqlite

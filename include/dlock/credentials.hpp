// What a program may say before a connection is opened.
#pragma once

#include <optional>
#include <string>

namespace dlock {
inline namespace v0 {

// Who logs in. Taken as they are: nothing is percent-encoded. What is unset is as the URL says.
struct Credentials {
  std::optional<std::string> user{}, password{};
};

}  // namespace v0
}  // namespace dlock

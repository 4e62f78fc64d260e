// The fencing token, which grows with each grant.
#pragma once

#include <cstdint>

namespace dlock {
inline namespace v0 {

// The number of a grant. For one name it only grows: through release, expiry, takeover, reaping, forced release and
// steps of any clock. Store it with data kept outside the database and refuse a write whose token is smaller than
// the last one seen. 0 is never a grant.
enum class Token : std::int64_t {};

// The token as a plain number, for a column or a log line.
constexpr std::int64_t number(Token token) noexcept { return static_cast<std::int64_t>(token); }

}  // namespace v0
}  // namespace dlock

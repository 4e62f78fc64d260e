// What an Error carries beside its text.
#include <dlock/error.hpp>

namespace dlock {
inline namespace v0 {

struct Error::Detail {
  Fault fault;
  std::string vendor_code;
};

Error::Error(Fault fault, const std::string& what, std::string vendor_code)
    : std::runtime_error(what), detail_(std::make_shared<const Detail>(Detail{fault, std::move(vendor_code)})) {}

Fault Error::fault() const noexcept { return detail_->fault; }
const std::string& Error::vendor_code() const noexcept { return detail_->vendor_code; }

std::string_view to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::unavailable: return "unavailable";
    case Fault::timeout: return "timeout";
    case Fault::lost: return "lost";
    case Fault::deadlock: return "deadlock";
    case Fault::conflict: return "conflict";
    case Fault::in_doubt: return "in_doubt";
    case Fault::schema: return "schema";
    case Fault::permission: return "permission";
    case Fault::misuse: return "misuse";
  }
  return "unknown";
}

}  // namespace v0
}  // namespace dlock

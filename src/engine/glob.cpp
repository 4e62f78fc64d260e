// Shell patterns are matched by the C library, in a locale of their own.
#include "engine/glob.hpp"

#include <fnmatch.h>

#include <locale.h>

namespace dlock::engine {
namespace {

// The locale of the calling thread, while this lives.
class Utf8 {
 public:
  Utf8() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
    if (utf8 != locale_t{}) before_ = ::uselocale(utf8);
  }
  Utf8(const Utf8&) = delete;
  Utf8& operator=(const Utf8&) = delete;
  ~Utf8() {
    if (before_ != locale_t{}) ::uselocale(before_);
  }

 private:
  locale_t before_{};
};

}  // namespace

bool matches(const std::string& glob, const std::string& name) {
  if (glob == "*") return true;
  const Utf8 characters;
  return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

}  // namespace dlock::engine

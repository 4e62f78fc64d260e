// How libFuzzer hands over its inputs: to the target that DLOCK_FUZZ names.
#include "fuzz/targets.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace {

using Target = void (*)(std::string_view);
Target chosen = nullptr;

Target target_named(std::string_view wanted) {
  using namespace dlock::fuzz;
  for (const auto& [known, target] : {std::pair<std::string_view, Target>{"url", url},
                                      {"duration", duration},
                                      {"name", name},
                                      {"migration", migration}})
    if (wanted == known) return target;
  return nullptr;
}

}  // namespace

namespace dlock::fuzz {

void insist(bool promise) noexcept {
  if (!promise) std::abort();
}

}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* wanted = std::getenv("DLOCK_FUZZ");
  chosen = target_named(wanted == nullptr ? "" : wanted);
  if (chosen != nullptr) return 0;
  std::fputs("DLOCK_FUZZ must be url, duration, name or migration\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen({reinterpret_cast<const char*>(data), size});
  return 0;
}

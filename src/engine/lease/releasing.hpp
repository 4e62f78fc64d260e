// What is noted of a lease while it is given back.
#pragma once

#include "engine/core.hpp"

#include <memory>

namespace dlock {
inline namespace v0 {

struct Core::Releasing {
  std::shared_ptr<engine::Lease> held;
  bool was_valid = false, was_lost = false;  // before it was let go of
  bool in_doubt = false;                     // an attempt to free it got no answer
};

}  // namespace v0
}  // namespace dlock

// This file knows how identities are made: from the operating system's entropy, and from nothing else.
#pragma once

#include <string>

namespace dlock {

// 128 random bits as 32 hexadecimal digits. Used for the owner of a grant and for the actor behind it.
std::string random_identity();

}  // namespace dlock

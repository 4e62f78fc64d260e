// How identities are made: from the operating system's entropy, and from nothing else.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace dlock {

// 128 random bits as 32 hexadecimal digits. Used for the owner of a grant and for the actor behind it.
class Identity {
 public:
  Identity();  // a new one

  operator std::string_view() const noexcept { return {digits_.data(), digits_.size()}; }
  friend bool operator==(const Identity& identity, std::string_view text) noexcept {
    return std::string_view{identity} == text;
  }
  std::string text() const { return {digits_.data(), digits_.size()}; }

 private:
  std::array<char, 32> digits_;
};

// One that is made when it is first asked for, since that takes a call to the system: who is told that a name is busy
// has no use for it. Threads: one at a time.
class LazyIdentity {
 public:
  LazyIdentity() = default;
  LazyIdentity(const LazyIdentity&) = delete;  // a copy would be another one
  LazyIdentity& operator=(LazyIdentity&&) = default;

  operator std::string_view() const { return made(); }
  friend bool operator==(const LazyIdentity& identity, std::string_view text) { return identity.made() == text; }
  std::string text() const { return made().text(); }

 private:
  const Identity& made() const {
    if (!identity_) identity_.emplace();
    return *identity_;
  }

  mutable std::optional<Identity> identity_;
};

// The same as a text.
inline std::string random_identity() { return Identity().text(); }

}  // namespace dlock

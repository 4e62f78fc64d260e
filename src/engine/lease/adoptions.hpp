// Remembers adoptions that got no answer, so that whoever asks for one again asks as the same new owner.
#pragma once

#include "types/annotated_mutex.hpp"

#include <dlock/grant.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dlock::engine {

// Threads: any.
class Adoptions {
 public:
  // `heir` may be the owner of the grant by now.
  void note(std::string name, Grant grant, std::string heir) {
    const MutexLock guard(mutex_);
    if (in_doubt_.size() >= most) in_doubt_.pop_front();
    in_doubt_.push_back({std::move(name), std::move(grant), std::move(heir)});
  }

  // As whom to ask for it again: one asker alone.
  std::optional<std::string> take(std::string_view name, const Grant& grant) {
    const MutexLock guard(mutex_);
    const auto found = std::find_if(in_doubt_.begin(), in_doubt_.end(), [&](const Adoption& adoption) {
      return adoption.name == name && adoption.grant == grant;
    });
    if (found == in_doubt_.end()) return std::nullopt;
    auto heir = std::move(found->heir);
    in_doubt_.erase(found);
    return heir;
  }

 private:
  struct Adoption {
    std::string name;
    Grant grant;
    std::string heir;
  };
  static constexpr std::size_t most = 1000;

  AnnotatedMutex mutex_;
  std::deque<Adoption> in_doubt_ GUARDED_BY(mutex_);
};

}  // namespace dlock::engine

// The threads of this process that wait where others see it, so that who reads of a deadlock finds them.
#pragma once

#include <string>
#include <string_view>

namespace dlock::engine {

// Threads: one. While it exists, whoever asks in this process is told who waits as its owner.
class KnownWaiter {
 public:
  KnownWaiter() = default;
  ~KnownWaiter();
  KnownWaiter(const KnownWaiter&) = delete;
  KnownWaiter& operator=(const KnownWaiter&) = delete;

  // The calling thread waits as `owner`, and no longer as another one. `job`: the name of its job, if there is one.
  void waits_as(const std::string& owner, std::string_view job);
  // The same where no thread waits for it.
  void waits_without_thread(const std::string& owner, std::string_view job);

 private:
  void is_known(const std::string& owner, std::string words);

  std::string owner_{};
};

// For people: job, thread and process of who waits as `owner`. Where it is none of this process, what its actor tells.
// Threads: any.
std::string known_of(std::string_view owner, std::string_view actor);

}  // namespace dlock::engine

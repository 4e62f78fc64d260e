// This file knows the job behind a grant, as far as this process can see it: the thread that asked.
//
// An actor is 32 hexadecimal digits: 16 of the engine, 16 of the job. Who holds and waits as the same job is told by the
// second half, so that two engines of a process see the same thread; who can be rung by the first.
#pragma once

#include "store/digest.hpp"
#include "types/owner.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace dlock::engine {

constexpr std::size_t half_of_actor = 16;

// One half of an actor.
inline std::string random_half() { return random_identity().substr(0, half_of_actor); }

// The half for a job that has a name.
inline std::string half_of(std::string_view job) { return store::sha256(job).substr(0, half_of_actor); }

// A thread that asks, and how many grants it holds through any engine of this process. Threads: any.
struct Job {
  const std::string half = random_half();  // not std::thread::id, which is used again for another thread
  std::atomic<int> holds{0};
};

inline const std::shared_ptr<Job>& job_of_this_thread() {
  thread_local const auto job = std::make_shared<Job>();
  return job;
}

class ActorName {
 public:
  ActorName(std::string_view engine, std::string_view job) {
    engine.copy(text_.data(), half_of_actor);
    job.copy(text_.data() + half_of_actor, half_of_actor);
  }
  std::string_view view() const noexcept { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 2 * half_of_actor> text_{};
};

}  // namespace dlock::engine

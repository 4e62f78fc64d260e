// How a table notifies without anybody waiting for it: on a thread of its own, which begins with the first
// release that somebody waits for.
#pragma once

#include "dialects/listener.hpp"
#include "types/row.hpp"

#include <memory>

namespace dlock::store {

// Threads: any. Owns: the release signal, and the thread.
class ReleaseNotice {
 public:
  // Null: there is nothing to send.
  explicit ReleaseNotice(std::unique_ptr<dialects::ReleaseSignal> release_signal);
  // What was asked for is still sent.
  ~ReleaseNotice();
  ReleaseNotice(const ReleaseNotice&) = delete;
  ReleaseNotice& operator=(const ReleaseNotice&) = delete;

  // Answers at once. Several that are asked for before one is sent are one. A failure to send is nobody's: those who
  // wait look by themselves, only later.
  void ask() noexcept;
  // The answer of a statement that frees a row: asks if it says that somebody waits for that.
  void heed(const Answer& answer) noexcept;

 private:
  struct Bench;
  const std::shared_ptr<Bench> bench_;
};

}  // namespace dlock::store

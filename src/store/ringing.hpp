// This file knows how a table rings without anybody waiting for it: on a thread of its own, which begins with the first
// release that somebody waits for.
#pragma once

#include "dialects/bell.hpp"
#include "types/process.hpp"
#include "types/row.hpp"
#include "types/thread.hpp"

#include <memory>

namespace dlock::store {

// Threads: any. Owns: the ringer, and the thread.
class Ringing {
 public:
  // Null: there is nothing to ring.
  explicit Ringing(std::unique_ptr<dialects::Ringer> ringer);
  // What was asked for is still rung.
  ~Ringing();
  Ringing(const Ringing&) = delete;
  Ringing& operator=(const Ringing&) = delete;

  // Answers at once. Several that are asked for before one is rung are one. A failure to ring is nobody's: those who wait
  // look by themselves, only later.
  void ask() noexcept;
  // The answer of a statement that frees a row: asks if it says that somebody waits for that.
  void heed(const Answer& answer) noexcept;

 private:
  struct Bench;
  const Birthplace birthplace_;
  const std::shared_ptr<Bench> bench_;
  Thread thread_;  // started under the bench's mutex
};

}  // namespace dlock::store

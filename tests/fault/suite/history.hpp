// How what happened in a run of the fault suite is written down, a line for each event.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

// Nanoseconds of CLOCK_BOOTTIME: one clock for all processes of a host, and the one that bounds trust.
using Nanoseconds = std::int64_t;

inline Nanoseconds boottime() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return Nanoseconds{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

enum class What {
  // A client's. `token` is the lease's.
  grant,    // the lock was granted; `time`: before it was asked for; `text`: the Share
  busy,     // it was not
  held,     // the lease was trusted without a gap from the grant until `time`
  loss,     // it was lost; `text` is the reason
  untold,   // it was lost, and lost() did not say so
  twice,    // two adopted the same grant
  release,  // it was released; `text` is what came of it; `time`: before it was asked for
  intent,   // a transfer is about to begin; `text` is its id. Nothing after it: nobody knows how it ended
  commit,   // the database acknowledged it
  refused,  // the fence refused it
  failed,   // it failed before its commit was sent
  doubt,    // its commit was sent, and never answered
  read,  // two accounts were read under the lock; `text` is the Reading. It was trusted until `time`; 0: it was fenced
  work,  // work that needs permits was done, and they were trusted until it was
  trouble,  // a call failed; `text` says how
  // What was done to the library by a client, and went as it should.
  longer,         // the lease was extended
  shorter,        // likewise, to less than it had
  adopted,        // two adopted the same grant, and one has it
  savepoint,      // the fence of a transfer was taken behind a savepoint
  slow_observer,  // an observer was longer about an event than a lease lasts
  batch,          // statements carried several requests; `text` says how many have
  ticket,         // the lock was granted to one who was seen in the queue with a ticket
  handed,         // the lock was granted next to one who waited for it in the process that let go of it
  lingered,       // the lock was granted from its row that the process had kept when it let go of it
  downgraded,     // who held the lock alone shares it
  upgraded,       // who shared the lock holds it alone
  // The tormentor's, from `time` to `at`.
  step,   // the database's clock was stepped
  force,  // the lease was released by force
  fault,  // something else was done; `text` is what
};

std::string_view to_string(What what) noexcept;

// One event. A line of it is written by one call, before anything that depends on it: what a killed process has
// acknowledged is in its history, and what it may have done is there as an intent.
struct Record {
  Nanoseconds at = 0;
  What what{};
  std::string name = "-";  // of the lock, without blanks
  long long token = 0;
  Nanoseconds time = 0;
  std::string text{};
  std::string who{};  // whose history it is in: not part of the line

  std::string line() const;  // with its end
  // Empty: not a whole line of a history.
  static std::optional<Record> parse(std::string_view line);
};

// How a grant is held, as `text` of its record says: "" alone, "shared" with others, or "permits 2 of 3".
struct Share {
  enum class Mode { exclusive, shared, permits } mode = Mode::exclusive;
  long long permits = 0, limit = 0;

  std::string text() const;
  static Share parse(const std::string& text);
};

// What was read, as `text` of its record says: "1: 98, 2: 102", two accounts with their balances.
struct Reading {
  struct Entry {
    long long account = 0, balance = 0;
  };
  Entry first, second;

  std::string text() const;
  // Empty: not a reading.
  static std::optional<Reading> parse(const std::string& text);
};

using History = std::vector<Record>;

}  // namespace dlock::test

// The ledger of the demo: which tick was run, by whom, under which token.
#pragma once

#include <dlock/token.hpp>

#include <soci/soci.h>

#include <string>
#include <string_view>

namespace demo {

struct Summary {
  int ticks = 0, runs = 0, duplicates = 0, refused = 0;
};

// The application's own tables in the application's own database, through the application's own session.
// Threads: one at a time.
class Ledger {
 public:
  explicit Ledger(std::string_view url);

  void create_afresh();
  bool has(int tick);
  // Writes a run in one transaction with the check of its token. False: refused, since a newer token has written
  // before; the refusal is noted down.
  bool write(int tick, const std::string& replica, dlock::Token token);
  Summary summary();

 private:
  void begin();
  long long count(const std::string& query);
  soci::session sql_;
  bool one_writer_ = false;  // begin with a write lock: a read that becomes a write may be refused there
};

}  // namespace demo

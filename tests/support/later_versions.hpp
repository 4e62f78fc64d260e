// Versions 2 and 3 of the table, as a later dlock may have them: what upgrades, ways back and refusals are tested with.
//
// They are made from the text of version 1, and are the same for every database. Version 2 adds two columns to the lock
// table, and shows the first of them (`added`) in the view; version 3 adds one more column.
#pragma once

namespace dlock::test {

// While one is there, this process knows versions 1 to 3, and so does each dlock-migrate that it starts.
// Threads: made and destroyed while no other one uses the library.
class LaterVersions {
 public:
  LaterVersions() noexcept;
  LaterVersions(const LaterVersions&) = delete;
  LaterVersions& operator=(const LaterVersions&) = delete;
  ~LaterVersions();

  static bool known() noexcept;
};

}  // namespace dlock::test

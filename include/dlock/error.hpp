// How dlock says that something is broken. A busy lock is no error: it is an empty optional.
#pragma once

#include <dlock/export.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// What went wrong, as far as a caller can act on it.
enum class Fault {
  unavailable,  // the database cannot be reached, or cannot be written to now
  timeout,     // no connection or no answer inside the deadline, and nothing was granted; or nobody holds the name, and
               // something keeps its table from being written: the text says what
  lost,        // the lease is no longer the caller's
  deadlock,    // the wait was given up to break a cycle of waiters
  conflict,    // roll back and run the transaction again
  in_doubt,    // it was asked, no answer came, and nobody could be asked again; what was granted ends with its lease
  schema,      // the table is missing, incomplete, too old or too new; the message names the command to run
  permission,  // the role lacks a right; the message names it
  misuse,      // the arguments or the set-up are wrong; asking again cannot help
};

// The fault's name, as in the enumeration.
DLOCK_EXPORT std::string_view to_string(Fault fault) noexcept;

// The only exception type of this library.
// Threads: immutable; copies may be read from any thread. Never carries a password.
class DLOCK_EXPORT Error : public std::runtime_error {
 public:
  // `vendor_code` is the database's own code (an SQLSTATE, an error number), empty where it has none.
  Error(Fault fault, const std::string& what, std::string vendor_code = {});

  Fault fault() const noexcept;
  const std::string& vendor_code() const noexcept;

 private:
  struct Detail;
  std::shared_ptr<const Detail> detail_;
};

}  // namespace v0
}  // namespace dlock

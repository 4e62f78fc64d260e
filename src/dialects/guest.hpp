// This file knows what can be done on a connection that belongs to a caller, inside the transaction open on it.
#pragma once

#include "types/failure.hpp"

#include <dlock/duration.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::dialects {

// The first row of a result, as text; NULL is an empty optional, and a result without rows an empty row. A statement
// without a result answers one field: the number of rows it changed.
using TextRow = std::vector<std::optional<std::string>>;

// Runs one statement on the caller's connection and reads its result to the end. A native one throws Failure; what a
// caller's own throws goes through.
using Send = std::function<TextRow(std::string_view sql)>;

// Threads: the caller's. Owns: nothing. Whatever happens, the caller's transaction is not committed here, is not left,
// and its connection keeps its settings, unless a member says otherwise.
// Fails: members throw Failure. There are no deadlines: the connection waits as its owner has set it up to.
class Guest {
 public:
  virtual ~Guest() = default;

  // Throws Failure{rejected} unless a transaction is open in which statements can be run.
  virtual void check() = 0;

  virtual TextRow run(std::string_view sql) = 0;

  // Runs a statement that locks a row if it can be had at once, and answers no row if not. What such an attempt has
  // locked in vain is let go of, where the database can do that.
  virtual TextRow attempt(std::string_view sql) = 0;

  // Runs the fence, waiting at most about `wait` for its row. False: refused.
  virtual bool fence(std::string_view sql, Duration wait) = 0;

  // Whether the transaction cannot see rows that were made after its snapshot.
  virtual bool blind_to_new_rows() = 0;

  // Whether the transaction, as it stands, keeps everybody else from writing.
  virtual bool writes_alone() = 0;

  // From here on the server ends the transaction if its client is silent for longer than this; nothing where it cannot
  // be said for the transaction alone.
  virtual void bound_idle(Duration bound) = 0;

  // After this nothing that was done in the transaction can be committed.
  virtual void doom() noexcept = 0;

  // For transactions that are begun and ended here. commit() throws Failure{serialization} if the transaction had ended
  // before, or was refused; with may_have_run() nobody knows.
  virtual void begin(Duration wait) = 0;
  virtual void commit() = 0;
  virtual void roll_back() noexcept = 0;
};

}  // namespace dlock::dialects

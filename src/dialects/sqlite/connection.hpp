// One open SQLite database.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/prepared_texts.hpp"
#include "file.hpp"
#include "handle.hpp"
#include "patience.hpp"
#include "write_queue.hpp"

#include <memory>
#include <string>

namespace dlock::dialects::sqlite {

class FileConnection final : public Connection {
 public:
  // Throws Failure.
  FileConnection(const File& file, bool create, Deadline deadline);

  const Answer& run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) override;
  const Answer& run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                         Deadline deadline) override;
  void script(std::string_view sql, Deadline deadline) override;
  std::string default_schema(Deadline deadline) override;
  std::vector<std::string> weaknesses(Deadline deadline) override;
  bool usable() const noexcept override { return usable_; }
  bool can_stall() const noexcept override { return false; }
  // Whoever writes has the whole file, for as long as its disk takes.
  Duration lock_wait() const noexcept override { return std::chrono::milliseconds{500}; }
  std::string server() const override;

  // Ends the statement under way, also where it waits for the file. Threads: any.
  void interrupt() noexcept;

 private:
  // What every call begins with.
  void begin(Deadline deadline);
  [[noreturn]] void fail(int code);
  Prepared prepare(std::string_view sql, unsigned flags, std::string_view* rest);
  sqlite3_stmt* prepared(const Statement& statement);
  // `markers`: those of the statement's markers that `to` has.
  void bind(sqlite3_stmt* to, std::span<const std::size_t> markers, const Statement& statement,
            std::span<const Argument> arguments);
  void run_packet(const Statement& statement, std::span<const Argument> rows, std::size_t columns);
  void run_pieces(const Statement& statement, std::span<const Argument> arguments);
  // A statement of several, and which of all their markers are its.
  struct Piece {
    Prepared prepared;
    std::size_t first_marker = 0, markers = 0;
  };
  const std::vector<Piece>& pieces(const Statement& statement);
  // Steps to the end: a statement whose rows are not all read is not committed.
  void step_through(sqlite3_stmt* statement);
  void read_row(sqlite3_stmt* statement);
  // Before every write, until it is committed. In a transaction that others began there is none: who has the turn waits
  // for it as for that of another process.
  WriteQueue::Turn turn_to_write();
  bool in_transaction() const noexcept;
  void control(Prepared& statement, const char* sql);
  void roll_back() noexcept;

  const File file_;
  BusyPatience patience_;
  Handle db_;
  PreparedTexts<Prepared> prepared_;
  PreparedTexts<std::vector<Piece>> packets_;
  Prepared begin_, commit_, rollback_;
  Answer answer_;
  std::shared_ptr<WriteQueue> write_queue_;  // none before the first write
  Instant next_look_ = Instant::min();       // whether the file is still where it was
  bool wal_made_ = false;
  bool usable_ = true;
};

}  // namespace dlock::dialects::sqlite

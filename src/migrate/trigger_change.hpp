// What making triggers and taking them away have in common: a connection, one transaction where the database has that
// for them, and a pause before it is tried again.
#pragma once

#include "dialects/dialect.hpp"
#include "migrate/migration_lock.hpp"
#include "migrate/migrator.hpp"
#include "types/clock.hpp"
#include "types/pause.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dlock::migrate {

// What a call has done, or would do.
struct Change {
  bool changed = false;
  std::string message;  // one sentence
  std::string script;   // the statements, for the database's own client
};

// The statements of a dialect that make triggers, with the names filled in. Threads: any.
class TriggerStatements {
 public:
  bool has(std::string_view name) const noexcept { return statements_.has(name); }
  const dialects::Statement& at(std::string_view name, std::initializer_list<std::string_view> arguments) const {
    return statements_.at(name, arguments);
  }
  const std::string& text(std::string_view name) const { return at(name, {}).sql; }
  // The rights for it, to be added to a refusal: "; needed: …", or nothing.
  std::string needed() const;

 protected:
  // `subject`: what the names of its own statements begin with.
  TriggerStatements(const dialects::Dialect& dialect, std::string_view sql, std::string_view subject,
                    dialects::WordFiller filler);
  // The statement with one argument, which goes in as it is.
  std::string inserted(std::string_view name, std::string_view argument, std::string_view value) const;
  // As it is written down: a client may have to be told where a statement ends.
  std::string printed(const std::string& statement) const;

  const dialects::Dialect& dialect_;

 private:
  const std::string subject_;
  const dialects::Statements statements_;
};

// Threads: one at a time. Owns: its connection. Of the options it heeds what bounds time, and `stop`.
class TriggerChange {
 protected:
  using Send = std::function<void(const std::string& sql)>;

  TriggerChange(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                MigrateOptions options);
  ~TriggerChange();

  // Throws MigrationError when it is to stop. True: the connection is a new one.
  bool connect();
  bool connected() const { return connection_ && connection_->usable(); }
  void pause(unsigned tries) const {
    pause_until(later(BootClock::now(), std::chrono::milliseconds{100} * std::min(tries + 1, 20U)), options_.stop);
  }
  Deadline ddl_deadline() const;

  // `work(send, undo)`: undo is the statement that gives back what is held, where the database has no transaction for
  // it. An open transaction and a table that is held end with the connection, if not before.
  template <class Statements, class Work>
  void in_transaction(const Statements& statements, Work work) {
    const Send send = [this, deadline = ddl_deadline()](const std::string& sql) { connection_->script(sql, deadline); };
    std::string undo;
    try {
      if (statements.has("begin")) {
        connection_->script(statements.text("begin"), later(BootClock::now(), options_.timeouts.ddl_lock));
        undo = statements.text("rollback");
      }
      if (statements.has("set_timeouts")) set_timeouts(statements.at("set_timeouts", {"lock_ms", "statement_ms"}));
      work(send, undo);
      if (statements.has("commit")) send(statements.text("commit"));
      else if (!undo.empty()) send(undo);
    } catch (const Failure&) {
      if (!undo.empty() && connection_->usable()) give_back(undo);
      throw;
    }
  }

  const dialects::Dialect& dialect_;
  const MigrateOptions options_;
  std::unique_ptr<dialects::Connection> connection_;

 private:
  void set_timeouts(const dialects::Statement& statement);
  void give_back(const std::string& sql) noexcept;

  const std::unique_ptr<dialects::Connector> connector_;
};

}  // namespace dlock::migrate

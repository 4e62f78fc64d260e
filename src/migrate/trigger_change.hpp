// How a database is given triggers, and how they are taken away.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/statement.hpp"

#include <dlock/guard.hpp>
#include <dlock/schema.hpp>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

// The statements of a dialect that make triggers, with the names filled in. Threads: any.
class TriggerStatements {
 public:
  virtual ~TriggerStatements() = default;
  bool has(std::string_view name) const noexcept { return statements_.has(name); }
  const dialects::Statement& at(std::string_view name, std::initializer_list<std::string_view> arguments) const {
    return statements_.at(name, arguments);
  }
  const std::string& text(std::string_view name) const { return at(name, {}).sql; }
  // Nothing where this database needs no such statement.
  std::string text_if_any(std::string_view name) const { return has(name) ? text(name) : std::string(); }
  // The rights for it, to be added to a refusal: "; needed: …", or nothing.
  std::string needed() const;
  // The statements that make the triggers where there may be some already, or take them away, for the database's own
  // client.
  virtual std::string script(bool made) const = 0;

 protected:
  // `subject`: what the names of its own statements begin with.
  TriggerStatements(const dialects::Dialect& dialect, std::string_view sql, std::string_view subject,
                    const dialects::WordFiller& filler);
  TriggerStatements(TriggerStatements&&) = default;
  // As one transaction, where the database has that for them.
  std::string written(std::string_view purpose, const std::vector<std::string>& statements) const;
  // As it is written down: a client may have to be told where a statement ends.
  std::string printed(const std::string& statement) const;

 private:
  const dialects::Dialect& dialect_;
  const std::string subject_;
  const dialects::Statements statements_;
};

// Makes triggers or takes them away: looks, sends, and looks again where that failed.
// Threads: one at a time. Owns: its connection, opened at the first call. Of the options it heeds what bounds time,
// `dry_run`, `stop` and `observer`.
// Fails: MigrationError when it is stopped; Failure for the rest. Every call may be repeated after any failure.
class TriggerChange {
 public:
  TriggerChange(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                schema::Options options);
  virtual ~TriggerChange();

  schema::GuardReport bring(bool made);

 protected:
  using Send = std::function<void(const std::string& sql)>;

  virtual const TriggerStatements& statements() const = 0;
  // Connects, and makes the statements for what the connection leads to.
  virtual void open() = 0;
  // Throws where it cannot be made, or taken away.
  virtual void check(bool made) = 0;
  // Whether there is nothing left to do, as far as it sees now.
  virtual bool settled(bool made) = 0;
  // False: nothing was left to do.
  virtual bool replace(bool made) = 0;
  // What has been done, or why nothing was to be done.
  virtual std::string told(bool made, bool changed) const = 0;
  // What is missing now that replacing has failed; `looked`: as settled() found it after that.
  virtual std::string gap(bool looked) const;

  // Throws MigrationError when it is to stop. True: the connection is a new one.
  bool connect();
  bool connected() const { return connection_ && connection_->usable(); }
  const Answer& ask(std::string_view name, std::initializer_list<std::string_view> header,
                    std::initializer_list<Argument> arguments);
  Deadline ddl_deadline() const;
  // `work(send, undo)`: undo is the statement that gives back what is held, where the database has no transaction for
  // it. An open transaction and a table that is held end with the connection, if not before.
  void in_transaction(const std::function<void(const Send& send, std::string& undo)>& work);

  const dialects::Dialect& dialect_;
  const schema::Options options_;
  std::unique_ptr<dialects::Connection> connection_;

 private:
  bool try_to_replace(bool made);

  const std::unique_ptr<dialects::Connector> connector_;
};

}  // namespace dlock::migrate

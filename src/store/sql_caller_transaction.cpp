// What is asked in a caller's transaction, how the answers read, and that it leads to this installation; whether a
// transaction that the database has undone is the one that was fenced; and the text that Lock::fence_sql answers.
#include "store/sql_caller_transaction.hpp"

#include "types/mutant.hpp"
#include "types/name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace dlock::store {
namespace {

using dialects::Statement;
using dialects::TextRow;

std::int64_t number_in(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Token token_in(const TextRow& row) {
  const std::string text = row.front().value_or("");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value <= 0)
    throw Failure(Cause::rejected,
                  fmt::format("the statement that takes the lock answered {}, which is no token", in_quotes(text)));
  return Token{value};
}

// The caller's connection leads elsewhere.
class Elsewhere : public Failure {
 public:
  explicit Elsewhere(const std::string& text) : Failure(Cause::rejected, text) {}
};

class SqlCallerTransaction final : public CallerTransaction {
 public:
  SqlCallerTransaction(const dialects::Dialect& dialect, const dialects::Statements& statements, Home& home,
                       std::unique_ptr<dialects::CallerConnection> connection)
      : dialect_(dialect), statements_(statements), home_(home), connection_(std::move(connection)) {}

  void check(bool spoils) override {
    try {
      connection_->check();
      check_place();
    } catch (const dialects::NothingToSpoil& nothing) { nothing.rethrow(); } catch (...) {
      if (spoils && !planted("unchecked_stays")) spoil();
      throw;
    }
  }

  std::optional<Token> take(const TakeRequest& ask) override {
    TextRow row;
    table_locked_ = false;
    try {
      if (!connection_->asks_by_itself()) compare(false);
      row = connection_->attempt(text(statements_.at("take", {"name", "floor", "installation"}),
                                      {ask.name, number(ask.floor), std::string_view{home_.installation().identity}}),
                                 ask.idle_bound);
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::locked) rethrow_unless_elsewhere();
      table_locked_ = true;  // nor could anything else be asked of it at once
      return std::nullopt;
    } catch (...) { rethrow_unless_elsewhere(); }
    if (row.empty()) {
      compare(true);
      return std::nullopt;
    }
    here_ = true;
    const auto token = token_in(row);
    const Argument owner = ask.owner ? Argument{*ask.owner} : Argument{nullptr};
    connection_->run(
        text(statements_.at("taken", {"name", "token", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
             {ask.name, number(token), owner, ask.node, ask.label, ask.actor, ask.lease.count(), ask.at_least.count(),
              ask.metadata}));
    return token;
  }

  bool table_locked() const override { return table_locked_; }

  bool sees(std::string_view name) override {
    if (table_locked_ || !connection_->blind_to_new_rows()) return true;
    try {
      return !connection_->attempt_to_read(text(statements_.at("sees", {"name"}), {name})).empty();
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::locked) throw;
      return true;  // not to be seen at once: it is as busy as any
    }
  }

  bool catch_up(std::string_view position, Duration wait) override {
    if (connection_->catch_up(position, wait)) return true;
    compare(false);  // what is no server of the cluster never gets there
    return false;
  }
  bool counts_by_own_clock() override { return connection_->counts_by_own_clock(); }
  bool tries_once() override { return connection_->tries_once(); }
  bool writes_alone() override { return connection_->writes_alone(); }
  Duration keep_alive() override { return connection_->keep_alive(); }
  void confirm() override {
    try {
      compare(false);
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::locked) throw;  // what answers that is there
    }
  }

  bool fence(const LeaseKey& key, Duration wait, std::optional<Duration> idle_bound) override {
    const auto installation = home_.installation();
    bool written = false;
    try {
      written = connection_->fence(fence_text(dialect_, statements_, installation, key), wait, idle_bound);
    } catch (...) { rethrow_unless_elsewhere(); }
    if (written && (key.mode == Mode::exclusive || fence_row(key))) return note(key);
    if (written) return false;
    throw_if_elsewhere();
    if (home_.installation().identity != installation.identity) throw made_anew();
    return false;
  }

  void doom() noexcept override { connection_->doom(end_session()); }
  void spoil() noexcept override { connection_->spoil(end_session()); }
  void begin(Duration wait) override {
    fenced_.reset();
    // A copy of a database has its identity, and its fence would be proved.
    if (connection_->asks_by_itself() && !planted("copy_unseen")) check_place();
    connection_->begin(wait);
    begun_ = true;
  }
  void commit() override { connection_->commit(); }
  bool undo() noexcept override {
    using Undone = dialects::CallerConnection::Undone;
    const auto undone = connection_->undo();
    return undone == Undone::to_the_fence || (undone == Undone::by_the_database && fence_is_undone());
  }
  bool roll_back() noexcept override { return connection_->roll_back(); }

 private:
  std::string text(const Statement& statement, std::initializer_list<Argument> arguments) const {
    return dialects::with_literals(
        statement, {arguments.begin(), arguments.size()},
        [this](std::string& sql, const Argument& argument) { dialect_.append_literal(sql, argument); });
  }

  dialects::EndSession end_session() {
    return [this](std::string_view session) { home_.end_session(session); };
  }

  void check_place() {
    if (connection_->is_at(home_.installation().place) == false) compare(false);
  }

  // Where one statement cannot write both, the gate was proved, and nobody comes in or goes until the transaction ends.
  bool fence_row(const LeaseKey& key) {
    if (!statements_.has("fence_holder_row")) return true;
    const auto row = connection_->run(text(statements_.at("fence_holder_row", {"name", "owner", "token", "lease"}),
                                           {key.name, key.owner, number(key.token), key.lease.count()}));
    return !row.empty() && row.front() == "1";
  }

  // Where the database undoes whole transactions, and does not say which: what the first fence has moved in its row.
  bool note(const LeaseKey& key) {
    if (!begun_ || fenced_ || !statements_.has("fenced")) return true;
    const auto* name = key.mode == Mode::exclusive ? "fenced" : "fenced_holder";
    fenced_ = text(statements_.at(name, {"name", "owner", "token"}), {key.name, key.owner, number(key.token)});
    const auto row = connection_->look(*fenced_);
    if (!row || row->empty() || !row->front()) return false;
    moved_ = number_in(*row->front());
    return true;
  }

  // A row that is the lease's no more lets no fence through again.
  bool fence_is_undone() noexcept {
    try {
      if (!fenced_) return false;
      // Nothing is open: it sees what is committed, and waits for no row, such as one that another fence has locked.
      const auto row = connection_->attempt(*fenced_, std::nullopt);
      return planted("undone_on_trust") || row.empty() || !row.front() || number_in(*row.front()) < moved_;
    } catch (...) { return false; }
  }

  // The statement has named an installation that was ours before.
  static Failure made_anew() { return {Cause::serialization, "the floor row of the lock table was made anew"}; }

  [[noreturn]] void elsewhere(std::string_view which) const {
    throw Elsewhere(
        fmt::format("the connection that was handed over leads to another database, {}; the lock table is {} "
                    "(installation {}), and both must be in the same one",
                    which, home_.name(), home_.installation().identity));
  }

  // Throws Elsewhere unless the caller's connection leads to the database that the lock table is in, or nobody can
  // tell. `reads`: also if what the transaction reads later is older for it; then our own knowledge is up to date after
  // it.
  void compare(bool reads) {
    for (bool again = false; !here_; again = true) {
      const auto ours = home_.installation();
      const auto at = connection_->is_at(ours.place);
      if (at == true && !(reads && connection_->asks_by_itself())) {
        here_ = true;
        return;
      }
      // What we know of it may be from before the server was started again, or the file moved.
      if (!again && at != true && (at == false || !connection_->asks_by_itself())) {
        home_.read();
        continue;
      }
      if (at == false) elsewhere(connection_->where());
      const auto row = asked(reads);
      if (!row) return;
      if (row->size() < 3) elsewhere(fmt::format("{}, which has no floor row", connection_->where()));
      here_ = at == true || (*row)[0] == ours.identity;
      if ((*row)[0] == ours.identity) return;
      if (again && !here_)
        elsewhere(fmt::format("{} (installation {})", (*row)[2].value_or(""), (*row)[0].value_or("")));
      home_.read();
    }
  }

  std::optional<TextRow> asked(bool reads) {
    const auto& sql = statements_.at("installation", {}).sql;
    try {
      return reads ? connection_->attempt_to_read(sql) : connection_->look(sql);
    } catch (const dialects::OtherDatabase& other) {
      home_.read();  // or the table is missing for us too
      elsewhere(other.what());
    } catch (const Failure& failure) {
      if (failure.cause() == Cause::schema || (failure.cause() == Cause::permission && !connection_->asks_by_itself()))
        elsewhere(fmt::format("{}, whose lock table cannot be read ({})", connection_->where(), failure.what()));
      throw;
    } catch (...) {
      if (connection_->lacks_table())
        elsewhere(fmt::format("{}, whose lock table cannot be read", connection_->where()));
      throw;
    }
  }

  // Nothing else that goes wrong on the way is thrown: it is about to be told what went wrong first.
  void throw_if_elsewhere() {
    try {
      compare(true);
    } catch (const Elsewhere&) { throw; } catch (...) {
    }
  }

  // What needs the lock table has failed, and is being handled: finds out whether that was for want of the right one.
  [[noreturn]] void rethrow_unless_elsewhere() {
    try {
      throw;
    } catch (const dialects::OtherDatabase& other) {
      const auto before = home_.installation().identity;
      home_.read();
      if (home_.installation().identity == before) elsewhere(other.what());
      throw made_anew();
    } catch (const Failure& failure) {
      if (failure.cause() == Cause::schema && !here_) {
        home_.read();  // or the table is missing for us too
        elsewhere(fmt::format("{} ({})", connection_->where(), failure.what()));
      }
      if (failure.cause() == Cause::permission) throw_if_elsewhere();
      throw;
    } catch (...) {
      throw_if_elsewhere();
      throw;
    }
  }

  const dialects::Dialect& dialect_;
  const dialects::Statements& statements_;
  Home& home_;
  const std::unique_ptr<dialects::CallerConnection> connection_;
  std::optional<std::string> fenced_{};  // the question what the first fence has moved, and to where
  std::int64_t moved_ = 0;
  bool begun_ = false;
  bool here_ = false;          // known to be in the right database
  bool table_locked_ = false;  // the last attempt found the whole table locked by another session
};

}  // namespace

std::unique_ptr<CallerTransaction> caller_transaction(const dialects::Dialect& dialect,
                                                      const dialects::Statements& statements,
                                                      const dialects::TableNames& names, Home& home,
                                                      const TransactionRef& transaction) {
  const auto schemes = dialect.traits().schemes;
  if (transaction.dialect() != dialect.name() &&
      std::find(schemes.begin(), schemes.end(), transaction.dialect()) == schemes.end())
    throw Failure(Cause::rejected,
                  fmt::format("the transaction is one of {}, and the lock table is in {}: both must be in the "
                              "same database",
                              in_quotes(transaction.dialect()), in_quotes(dialect.name())));
  if (transaction.native() == nullptr && (transaction.runner() == nullptr || !transaction.runner()->run))
    throw Failure(Cause::rejected, "the transaction that was handed over has no connection");
  return std::make_unique<SqlCallerTransaction>(
      dialect, statements, home,
      dialect.caller_connection(transaction, {dialect.quote(names.schema), dialect.quote(names.lock)}));
}

std::string fence_text(const dialects::Dialect& dialect, const dialects::Statements& statements,
                       const Installation& installation, const LeaseKey& key, FenceSender sender) {
  const auto append = [&](std::string& sql, const Argument& argument) { dialect.append_literal(sql, argument); };
  const Argument arguments[] = {key.name, key.owner, number(key.token), key.lease.count(),
                                std::string_view{installation.identity}};
  const bool apart = sender == FenceSender::another && statements.has("fence_holder_text");
  const auto* name = key.mode == Mode::exclusive ? "fence" : apart ? "fence_holder_text" : "fence_holder";
  return dialects::with_literals(statements.at(name, {"name", "owner", "token", "lease", "installation"}), arguments,
                                 append);
}

}  // namespace dlock::store

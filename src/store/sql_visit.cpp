// This file knows which named statements a visit puts, and how their first rows read.
#include "store/sql_visit.hpp"

#include "types/name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace dlock::store {
namespace {

using dialects::Statement;
using dialects::TextRow;

Token token_in(const TextRow& row) {
  const std::string text = row.front().value_or("");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value <= 0)
    throw Failure(Cause::rejected, fmt::format("the statement that takes the lock answered {}, which is no token", in_quotes(text)));
  return Token{value};
}

class SqlVisit final : public Visit {
 public:
  SqlVisit(const dialects::Dialect& dialect, const dialects::Statements& statements, std::unique_ptr<dialects::Guest> guest)
      : dialect_(dialect), statements_(statements), guest_(std::move(guest)) {}

  void check() override { guest_->check(); }

  std::optional<Token> take(const TakeAsk& ask) override {
    const Argument owner = ask.owner ? Argument{*ask.owner} : Argument{nullptr};
    const auto row = guest_->attempt(text(
        statements_.at("take", {"name", "floor", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
        {ask.name, number(ask.floor), owner, ask.node, ask.label, ask.actor, ask.lease.count(), ask.at_least.count(), ask.metadata}));
    if (row.empty()) return std::nullopt;
    const auto token = token_in(row);
    guest_->run(text(
        statements_.at("taken", {"name", "token", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
        {ask.name, number(token), owner, ask.node, ask.label, ask.actor, ask.lease.count(), ask.at_least.count(), ask.metadata}));
    return token;
  }

  bool sees(std::string_view name) override {
    if (!guest_->blind_to_new_rows()) return true;
    return !guest_->run(text(statements_.at("sees", {"name"}), {name})).empty();
  }

  bool writes_alone() override { return guest_->writes_alone(); }
  bool fence(const Claim& claim, Duration wait) override {
    return guest_->fence(fence_text(dialect_, statements_, claim), wait);
  }
  void bound_idle(Duration bound) override { guest_->bound_idle(bound); }
  void doom() noexcept override { guest_->doom(); }
  void begin(Duration wait) override { guest_->begin(wait); }
  void commit() override { guest_->commit(); }
  void roll_back() noexcept override { guest_->roll_back(); }

 private:
  std::string text(const Statement& statement, std::initializer_list<Argument> arguments) const {
    return dialects::with_literals(statement, {arguments.begin(), arguments.size()},
                                   [this](std::string& sql, const Argument& argument) { dialect_.append_literal(sql, argument); });
  }

  const dialects::Dialect& dialect_;
  const dialects::Statements& statements_;
  const std::unique_ptr<dialects::Guest> guest_;
};

}  // namespace

std::unique_ptr<Visit> visit(const dialects::Dialect& dialect, const dialects::Statements& statements,
                             const TransactionRef& transaction) {
  const auto schemes = dialect.schemes();
  if (transaction.dialect() != dialect.name() && std::find(schemes.begin(), schemes.end(), transaction.dialect()) == schemes.end())
    throw Failure(Cause::rejected, fmt::format("the transaction is one of {}, and the lock table is in {}: both must be in the "
                                               "same database",
                                               in_quotes(transaction.dialect()), in_quotes(dialect.name())));
  if (transaction.native() == nullptr && (transaction.runner() == nullptr || !transaction.runner()->run))
    throw Failure(Cause::rejected, "the transaction that was handed over has no connection");
  return std::make_unique<SqlVisit>(dialect, statements, dialect.guest(transaction));
}

std::string fence_text(const dialects::Dialect& dialect, const dialects::Statements& statements, const Claim& claim) {
  const Argument arguments[] = {claim.name, claim.owner, number(claim.token)};
  return dialects::with_literals(statements.at("fence", {"name", "owner", "token"}), arguments,
                                 [&](std::string& sql, const Argument& argument) { dialect.append_literal(sql, argument); });
}

}  // namespace dlock::store

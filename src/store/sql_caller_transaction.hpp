// How the questions in a caller's transaction are put: as text, since the connection is not ours to prepare on.
#pragma once

#include "dialects/dialect.hpp"
#include "store/caller_transaction.hpp"
#include "store/installation.hpp"

#include <memory>
#include <string>

namespace dlock::store {

// `statements` is the dialect's lock.sql; it and `home` outlive it. Throws Failure{rejected} for a transaction of
// another dialect.
std::unique_ptr<CallerTransaction> caller_transaction(const dialects::Dialect& dialect,
                                                      const dialects::Statements& statements,
                                                      const dialects::TableNames& names, Home& home,
                                                      const TransactionRef& transaction);

// Who sends the text of a fence: another driver takes a change of exactly one row for the proof.
enum class FenceSender { caller, another };

// The fence as one statement of text.
std::string fence_text(const dialects::Dialect& dialect, const dialects::Statements& statements,
                       const Installation& installation, const LeaseKey& key, FenceSender sender = FenceSender::caller);

}  // namespace dlock::store

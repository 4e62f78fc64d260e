// This file knows which sessions of MySQL and MariaDB a transaction must not be trusted to.
#include "guest.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace dlock;
using dlock::dialects::TextRow;
using dlock::dialects::DLOCK_DIALECT::TransactionGuest;

TEST_CASE("a server that undoes whole transactions when a wait is over is refused before anything is locked") {
  std::vector<std::string> sent;
  std::string setting = "1";
  TransactionGuest guest([&](std::string_view sql) {
    sent.emplace_back(sql);
    return TextRow{setting};
  });
  try {
    guest.check();
    FAIL("it was accepted");
  } catch (const Failure& failure) {
    CHECK(failure.cause() == Cause::rejected);
    CHECK(std::string_view(failure.what()).find("innodb_rollback_on_timeout") != std::string_view::npos);
  }
  setting = "0";
  CHECK_NOTHROW(guest.check());
  CHECK(sent == std::vector<std::string>{"SELECT @@innodb_rollback_on_timeout", "SELECT @@innodb_rollback_on_timeout"});
}

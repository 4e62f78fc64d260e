// Which failure of a test says only that an answer was late: an error of dlock that the test did not
// expect, and that speaks of time or of the way to the database. The runner asks such a test three times more,
// alone.
#include "support/main.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>

namespace dlock::test {
namespace {

bool is_late(Fault fault) { return fault == Fault::unavailable || fault == Fault::timeout || fault == Fault::in_doubt; }

thread_local bool last_was_late = false;
std::atomic<int> late = 0, others = 0;

void count() { ++(last_was_late ? late : others); }

// Stays among the framework's translators, which are asked for the text of an exception. Another type is another's.
doctest::String text_of(const Error& error) {
  last_was_late = is_late(error.fault());
  return error.what();
}

doctest::String text_of_others(const std::exception& error) {
  last_was_late = false;
  return error.what();
}

const int translates = doctest::registerExceptionTranslator(text_of);
const int translates_others = doctest::registerExceptionTranslator(text_of_others);

struct Listener final : doctest::IReporter {
  explicit Listener(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException& thrown) override {
    if (thrown.is_crash) last_was_late = false;
    count();
  }
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& data) override {
    if (!data.m_failed) return;
    const bool is_plain = (data.m_at & doctest::assertType::is_normal) != 0;
    if (!data.m_threw || !is_plain) last_was_late = false;  // what expects an error has got another one
    count();
  }
  void log_message(const doctest::MessageData& data) override {
    if ((data.m_severity & doctest::assertType::is_warn) == 0) ++others;
  }
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

DOCTEST_REGISTER_LISTENER("lateness", 1, Listener);

// tools/test looks for this line.
const Afterwards tell{[] {
  if (late > 0 && others == 0) std::puts("late answers, and nothing else");
}};

}  // namespace
}  // namespace dlock::test

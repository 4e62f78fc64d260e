// This file knows how a test program starts. All of them share it, because the test framework is slow to compile.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/main.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <vector>

namespace {

std::vector<int (*)()>& preconditions() {
  static std::vector<int (*)()> list;
  return list;
}

std::vector<void (*)()>& tidying() {
  static std::vector<void (*)()> list;
  return list;
}

unsigned tests_run = 0;

// Counts, so that a filter that matches nothing is no success.
struct Count final : doctest::IReporter {
  explicit Count(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override { tests_run = 1; }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override { tests_run += stats.numTestCasesPassingFilters; }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

}  // namespace

DOCTEST_REGISTER_LISTENER("count", 1, Count);

namespace dlock::test {

Precondition::Precondition(int (*met)()) { preconditions().push_back(met); }
Afterwards::Afterwards(void (*tidy)()) { tidying().push_back(tidy); }

}  // namespace dlock::test

int main(int argc, char** argv) {
  for (const auto met : preconditions())
    if (const int code = met(); code != 0) return code;
  doctest::Context context(argc, argv);
  const int code = context.run();
  for (const auto tidy : tidying()) tidy();
  if (context.shouldExit() || code != 0) return code;
  if (tests_run == 0) {
    std::fputs("no test case matches the filters\n", stderr);
    return 1;
  }
  return 0;
}

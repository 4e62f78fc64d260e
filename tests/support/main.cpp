// How a test program starts. All of them share it, because the test framework is slow to compile.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/main.hpp"

#include <doctest/doctest.h>

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
const char* volatile test_case = "none";

void say(const char* text) noexcept {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// What a test that does not end was doing, before it is ended from outside: its case, where its main thread is, and
// which children it has.
void say_where(int) {
  say("\nthis takes too long; the test case: ");
  say(test_case);
  say("\nits main thread:\n");
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  say("its children:");
  char children[256] = {};
  const int file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (file >= 0 && ::read(file, children, sizeof children - 1) > 0) say(children);
  if (file >= 0) ::close(file);
  say("\n");
}

// DLOCK_TEST_TIMEOUT: the seconds after which the runner ends this program.
void watch_time() {
  const char* const timeout = std::getenv("DLOCK_TEST_TIMEOUT");
  const int seconds = timeout == nullptr ? 0 : std::atoi(timeout);
  constexpr int notice = 15;
  if (seconds <= notice) return;
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads what it needs
  struct sigaction action {};
  action.sa_handler = say_where;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  ::alarm(static_cast<unsigned>(seconds - notice));
}

// Counts, so that a filter that matches nothing is no success.
struct Count final : doctest::IReporter {
  explicit Count(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override { tests_run = 1; }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override { tests_run += stats.numTestCasesPassingFilters; }
  void test_case_start(const doctest::TestCaseData& started) override { test_case = started.m_name; }
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
  watch_time();
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

// How jobs are named and compared, and which one is current.
#include "refusal.hpp"

#include <dlock/job.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <thread>

using dlock::Job;

namespace {

template <class Call>
void check_refused(Call call, std::initializer_list<const char*> words) {
  const auto text = dlock::test::refusal(call);
  for (const auto* word : words) CHECK_MESSAGE(dlock::test::says(text, word), text);
}

// DLOCK_JOB, for as long as this exists.
class Environment {
 public:
  explicit Environment(const char* value) {
    if (const char* before = std::getenv("DLOCK_JOB")) before_ = before;
    set(value);
  }
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const char* value) {
    if (value == nullptr) ::unsetenv("DLOCK_JOB");
    else ::setenv("DLOCK_JOB", value, 1);
  }
  std::optional<std::string> before_{};
};

}  // namespace

TEST_CASE("jobs are the same by their names, and no job is one as well") {
  const Job job("order 1"), copy = job;
  const std::string name = "order 1";
  CHECK(job == Job(name));
  CHECK(job == copy);
  CHECK(job == "order 1");
  CHECK(job != Job("order 2"));
  CHECK(job.name() == "order 1");
  CHECK(job);
  CHECK(Job().empty());
  CHECK(Job() == Job(""));
  CHECK(Job("").empty());
  CHECK(Job() != job);
}

TEST_CASE("a unique job is no other's, and says of what kind it is") {
  const auto one = Job::unique(), other = Job::unique("import");
  CHECK(one.name().size() == 32);
  CHECK(other.name().substr(0, 7) == "import/");
  CHECK(Job::unique("import") != other);
  CHECK(Job::unique(std::string(222, 'x')).name().size() == 255);
}

TEST_CASE("a name that is no job's is refused, with the name and the rule") {
  check_refused([] { Job(std::string(256, 'x')); }, {"the job \"xxx", "256 bytes", "255"});
  check_refused([] { Job("\xFF"); }, {"the job \"\\xff\"", "UTF-8"});
  check_refused([] { Job(std::string_view("a\0b", 3)); }, {"the job \"a\\x00b\"", "NUL"});
  check_refused([] { static_cast<void>(Job::unique(std::string(223, 'x'))); }, {"256 bytes"});
  CHECK(Job(std::string(255, 'x')).name().size() == 255);
}

TEST_CASE("a job goes to a child by its environment, and is read only when asked for") {
  CHECK(Job("order 1").environment() == "DLOCK_JOB=order 1");
  CHECK(Job().environment() == "DLOCK_JOB=");
  const Environment set("order 1");
  CHECK(Job::current().empty());
  CHECK(Job::from_environment() == "order 1");
  const Environment empty("");
  CHECK(Job::from_environment().empty());
  const Environment unset(nullptr);
  CHECK(Job::from_environment().empty());
  const Environment wrong("\xFF");
  check_refused([] { static_cast<void>(Job::from_environment()); }, {"DLOCK_JOB \"\\xff\"", "UTF-8"});
}

TEST_CASE("scopes nest, and where one ends the one around it is current again") {
  CHECK(Job::current().empty());
  {
    const Job::Scope outer("outer");
    CHECK(Job::current() == "outer");
    {
      const Job::Scope inner("inner");
      CHECK(Job::current() == "inner");
      const Job::Scope nobody{Job()};
      CHECK(Job::current().empty());
      const Job::Scope innermost("innermost");
      CHECK(Job::current() == "innermost");
    }
    CHECK(Job::current() == "outer");
    std::jthread([] { CHECK(Job::current().empty()); }).join();
    CHECK_THROWS([] {
      const Job::Scope inner("inner");
      throw 1;
    }());
    CHECK(Job::current() == "outer");
  }
  CHECK(Job::current().empty());
}

TEST_CASE("a scope that ends out of turn, or on another thread, ends, and leaves the others as they are") {
  auto outer = std::make_unique<Job::Scope>("outer");
  auto inner = std::make_unique<Job::Scope>("inner");
  outer.reset();
  CHECK(Job::current() == "inner");
  inner.reset();
  CHECK(Job::current().empty());

  auto mine = std::make_unique<Job::Scope>("mine");
  std::jthread([&] {
    const Job::Scope theirs("theirs");
    mine.reset();
    CHECK(Job::current() == "theirs");
  }).join();
  CHECK(Job::current().empty());
}

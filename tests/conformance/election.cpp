// The promise that of those who campaign for a name one leads at a time, for a term with a beginning and an end.
#include "support/caller.hpp"
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What one candidate was told, in order. Made before its election.
class Diary {
 public:
  // Campaigns under a lease that no busy machine loses, and comes back when the test is over.
  ElectionOptions options(const LockOptions& lock = renewed_often(), Duration resign_pause = 1h) {
    ElectionOptions chosen;
    chosen.lock = lock;
    chosen.resign_pause = resign_pause;
    chosen.on_elected = [this](const Term& term) { elected(term); };
    chosen.on_deposed = [this] { deposed(); };
    chosen.on_error = [this](const std::exception& failure) { failed(failure); };
    return chosen;
  }

  void elected(const Term& term) {
    const std::lock_guard guard(mutex_);
    CHECK_FALSE(in_office_);
    if (!tokens_.empty()) CHECK(term.token() > tokens_.back());
    in_office_ = true;
    tokens_.push_back(term.token());
  }
  void deposed() {
    const std::lock_guard guard(mutex_);
    CHECK(in_office_);
    in_office_ = false;
    ++depositions_;
  }
  void failed(const std::exception& failure) {
    const std::lock_guard guard(mutex_);
    errors_.emplace_back(failure.what());
  }

  std::vector<Token> tokens() const {
    const std::lock_guard guard(mutex_);
    return tokens_;
  }
  std::size_t terms() const { return tokens().size(); }
  std::size_t depositions() const {
    const std::lock_guard guard(mutex_);
    return depositions_;
  }
  std::vector<std::string> errors() const {
    const std::lock_guard guard(mutex_);
    return errors_;
  }

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  bool in_office_ = false;
  std::vector<Token> tokens_{};
  std::size_t depositions_ = 0;
  std::vector<std::string> errors_{};
};

bool leads(const Election& election) {
  return eventually([&] { return election.is_leader(); });
}

void await_stop(const Term& term) {
  CHECK(eventually([&] { return term.stop_token().stop_requested(); }));
}

// The end of a term, from a call on: a release, and whatever a busy machine takes.
Duration soon() { return 3s * slowness(); }

}  // namespace

TEST_CASE(
    "of many candidates in several engines one leads; when it resigns another one follows, under a larger token") {
  Database database;
  std::list<Diary> diaries;
  std::vector<Engine> engines;
  std::list<Election> candidates;
  for (int i = 0; i < 3; ++i) engines.push_back(database.engine());
  for (int i = 0; i < 6; ++i) {
    auto& diary = diaries.emplace_back();
    candidates.emplace_back(engines[static_cast<std::size_t>(i) % 3], "job", diary.options());
  }
  const auto leader = [&] {
    return std::ranges::find_if(candidates, [](const auto& each) { return each.is_leader(); });
  };
  Token last{};
  for (int term = 0; term < 6; ++term) {
    REQUIRE(eventually([&] { return leader() != candidates.end(); }));
    CHECK(std::ranges::count_if(candidates, [](const auto& each) { return each.is_leader(); }) == 1);
    const auto now = leader();
    const auto its_term = now->term();
    REQUIRE(its_term);
    CHECK(its_term->token() > last);
    last = its_term->token();
    CHECK(its_term->name() == "job");
    CHECK(engines.front().inspect("job")->token == last);
    now->resign();
    CHECK_FALSE(now->is_leader());
    CHECK_FALSE(now->term());
    CHECK_FALSE(its_term->valid());
  }
  for (const auto& diary : diaries) {
    CHECK(diary.terms() == 1);  // who has resigned lets the others come first
    CHECK(diary.depositions() == 1);
    CHECK(diary.errors().empty());
  }
}

TEST_CASE("two candidates never lead at the same time, whether terms end by themselves or are resigned") {
  Database database;
  Diary one, two;
  auto engine = database.engine(), other = database.engine();
  const auto hold = 400ms * slowness();
  const LockOptions brief{.lease = hold, .max_hold = hold};
  Election first(engine, "job", one.options(brief, 5ms)), second(other, "job", two.options(brief, 5ms));
  // Who led before and after another one was seen to lead, in one term, led at the same time.
  const auto both = [](const Election& a, const Election& b) {
    const auto before = a.term();
    return before && b.is_leader() && before->valid();
  };
  const auto terms = [&] { return one.terms() + two.terms(); };
  std::size_t resigned = 0;
  CHECK(eventually([&] {
    CHECK_FALSE(both(first, second));
    CHECK_FALSE(both(second, first));
    if (const auto seen = terms(); seen > resigned + 1) {
      resigned = seen;
      (first.is_leader() ? first : second).resign();
    }
    return terms() >= 8;
  }));
}

TEST_CASE("a leader that was killed is followed when its lease is over") {
  Database database;
  Diary diary;
  auto engine = database.engine();
  const auto lease = 3s * slowness();
  Child dies(worker({"hold", database.url(), "job", std::to_string(std::chrono::milliseconds(lease).count()), "0"}));
  const auto token = dies.line();
  REQUIRE(token);
  Election election(engine, "job", diary.options());
  CHECK_FALSE(election.is_leader());
  CHECK_FALSE(election.term());
  CHECK(election.leader()->token == Token{std::stoll(*token)});
  dies.signal(SIGKILL);
  dies.wait();
  const Stopwatch watch;
  REQUIRE(leads(election));
  CHECK(watch.elapsed() < lease + soon());
  CHECK(number(election.term()->token()) > std::stoll(*token));
}

TEST_CASE("who was paused for longer than its lease does not lead when it goes on, before any thread could say so") {
  Database database;
  Diary diary;
  auto engine = database.engine();
  {
    Election election(engine, "job", diary.options({.lease = 1h}));
    REQUIRE(leads(election));
    const auto term = election.term();
    REQUIRE(term);
    CHECK(term->remaining() > 30min);
    BootClock::ahead += std::chrono::nanoseconds(1h).count();
    CHECK_FALSE(election.is_leader());
    CHECK_FALSE(election.term());
    CHECK_FALSE(term->valid());
    CHECK(term->remaining() == 0s);
    CHECK(thrown_by([&] { term->check(); }).fault == Fault::lost);
    CHECK(term->loss() == Loss::unconfirmed);
  }
  free_by_force(engine, "job");
}

TEST_CASE("a lost term sets its stop token while on_elected runs; on_deposed follows, and then the next term") {
  Database database;
  Diary diary;
  auto engine = database.engine(), other = database.engine();
  auto options = diary.options();
  std::atomic<int> working{0};
  std::atomic<bool> end{false};
  options.on_elected = [&](const Term& term) {
    diary.elected(term);
    ++working;
    eventually([&] { return term.stop_token().stop_requested() || end; });
    CHECK(diary.depositions() + 1 == diary.terms());
    --working;
  };
  options.on_deposed = [&] {
    CHECK(working == 0);
    diary.deposed();
  };
  Election election(engine, "job", options);
  for (std::size_t term = 1; term <= 3; ++term) {
    REQUIRE(eventually([&] { return working == 1 && diary.terms() == term; }));
    const auto now = election.term();
    REQUIRE(now);
    CHECK(other.force_release("job", now->token()));
    REQUIRE(eventually([&] { return now->stop_token().stop_requested(); }));
    CHECK_FALSE(now->valid());
    CHECK((now->loss() == Loss::forced || now->loss() == Loss::refused));  // it knows why for a second
    REQUIRE(eventually([&] { return diary.depositions() == term; }));
  }
  end = true;
}

TEST_CASE("whoever resigns ends its term before anybody else begins one") {
  Database database;
  Diary one, two;
  auto engine = database.engine(), other = database.engine();
  auto options = one.options();
  std::atomic<bool> worked{false}, deposed{false};
  options.on_elected = [&](const Term& term) {
    one.elected(term);
    await_stop(term);
    worked = true;
  };
  std::optional<Election> first, second;
  options.on_deposed = [&] {
    CHECK(worked);
    CHECK_FALSE(first->is_leader());
    CHECK_FALSE(eventually([&] { return second->is_leader(); }, 200ms * slowness()));
    one.deposed();
    deposed = true;
  };
  first.emplace(engine, "job", options);
  REQUIRE(eventually([&] { return first->is_leader(); }));
  auto next = two.options();
  next.on_elected = [&](const Term& term) {
    CHECK(deposed);
    two.elected(term);
  };
  second.emplace(other, "job", next);
  second->resign();  // it is not in office
  CHECK(first->is_leader());
  const auto term = first->term();
  first->resign();
  CHECK(deposed);
  CHECK(term->stop_token().stop_requested());
  CHECK_FALSE(term->loss());
  CHECK(thrown_by([&] { term->check(); }).names("no longer held"));
  REQUIRE(leads(*second));
  CHECK(second->term()->token() > term->token());
  CHECK(one.terms() == 1);
  second.reset();
  first.reset();
}

TEST_CASE("who has resigned campaigns again after the pause, and not before") {
  Database database;
  Diary diary;
  auto engine = database.engine();
  const auto pause = 300ms * slowness();
  Election election(engine, "job", diary.options(renewed_often(), pause));
  REQUIRE(leads(election));
  const Stopwatch watch;
  election.resign();
  REQUIRE(leads(election));
  CHECK(watch.elapsed() >= pause);
  CHECK(eventually([&] { return diary.terms() == 2; }));
}

TEST_CASE("callbacks may ask, resign, stop and destroy their election") {
  Database database;
  const auto threads = count_threads();
  {
    auto engine = database.engine();
    Diary diary;
    auto options = diary.options(renewed_often(), 1ms);
    std::optional<Election> election;
    std::mutex mutex;  // held until the election is where it is to be
    options.on_elected = [&](const Term& term) {
      diary.elected(term);
      { const std::lock_guard there(mutex); }
      CHECK(election->is_leader());
      CHECK(election->term() == term);
      CHECK(election->leader()->token == term.token());
      election->resign();
      CHECK_FALSE(election->is_leader());
      CHECK(term.stop_token().stop_requested());
      if (diary.terms() == 2) election->stop();
    };
    std::atomic<bool> destroyed{false};
    options.on_deposed = [&] {
      diary.deposed();
      election->resign();
      if (diary.terms() < 2) return;
      election.reset();
      destroyed = true;
    };
    {
      const std::lock_guard guard(mutex);
      election.emplace(engine, "job", options);
    }
    CHECK(eventually([&] { return destroyed.load(); }));
    CHECK(diary.depositions() == 2);
    CHECK(eventually([&] { return database.admin().held() == 0; }));
  }
  CHECK(eventually([&] { return count_threads() <= threads; }));
}

TEST_CASE("what callbacks throw is reported, and ends nothing; an on_elected that throws resigns its term") {
  Database database;
  Diary diary;
  auto engine = database.engine();
  auto options = diary.options(renewed_often(), 1ms);
  options.on_elected = [&](const Term& term) {
    diary.elected(term);
    if (diary.terms() == 1) throw std::runtime_error("first");
    if (diary.terms() == 2) throw 2;
  };
  options.on_deposed = [&] {
    diary.deposed();
    throw std::runtime_error("deposed");
  };
  options.on_error = [&](const std::exception& failure) {
    diary.failed(failure);
    throw std::runtime_error("reported");
  };
  Election election(engine, "job", options);
  REQUIRE(eventually([&] { return diary.terms() == 3; }));
  CHECK(election.is_leader());
  CHECK(diary.depositions() == 2);
  const auto errors = diary.errors();
  REQUIRE(errors.size() == 4);
  CHECK(errors[0] == "first");
  CHECK(errors[1] == "deposed");
  CHECK(errors[2].find("on_elected of the election \"job\"") != std::string::npos);
  CHECK(errors[3] == "deposed");
}

TEST_CASE("a campaign that fails is reported, and begun again until it succeeds") {
  Database database;
  Diary diary;
  auto engine = database.engine();
  database.admin().run("ALTER TABLE resource_lock RENAME TO elsewhere");
  std::atomic<bool> schema{true};
  auto options = diary.options();
  options.retry_pause = 20ms;
  options.on_error = [&](const std::exception& failure) {
    const auto* const error = dynamic_cast<const Error*>(&failure);
    if (error == nullptr || error->fault() != Fault::schema) schema = false;
    diary.failed(failure);
  };
  Election election(engine, "job", options);
  CHECK(eventually([&] { return diary.errors().size() >= 3; }));
  database.admin().run("ALTER TABLE elsewhere RENAME TO resource_lock");
  CHECK(leads(election));
  CHECK(schema);
  CHECK(eventually([&] { return diary.terms() == 1; }));
}

TEST_CASE("a destroyed election ends its term in time, and others follow at once") {
  Database database;
  Diary one, two;
  auto engine = database.engine(), other = database.engine();
  auto options = one.options();
  options.on_elected = [&](const Term& term) {
    one.elected(term);
    await_stop(term);
  };
  std::optional<Election> election(std::in_place, engine, "job", options);
  REQUIRE(leads(*election));
  const auto term = election->term();
  Election follows(other, "job", two.options());
  {
    const Stopwatch watch;
    election.reset();
    CHECK(watch.elapsed() < 1s * slowness() + soon());
  }
  CHECK(one.depositions() == 1);
  REQUIRE(leads(follows));
  REQUIRE(term);
  CHECK_FALSE(term->valid());  // a view is kept; the term is over
  CHECK(term->token() < follows.term()->token());
}

TEST_CASE("an election is stopped at once while it campaigns, and is never elected then") {
  Database database;
  Diary diary;
  auto engine = database.engine(), other = database.engine();
  auto lock = other.try_lock("job", {.lease = 10min});
  REQUIRE(lock);
  Election election(engine, "job", diary.options());
  REQUIRE(eventually([&] { return engine.stats().waiting.size() == 1; }));
  const Stopwatch watch;
  election.stop();
  CHECK(watch.elapsed() < soon());
  election.stop();
  lock->release();
  CHECK_FALSE(election.is_leader());
  CHECK_FALSE(election.term());
  CHECK_FALSE(election.leader());
  election.resign();
  CHECK(diary.terms() == 0);
  CHECK(diary.depositions() == 0);
}

TEST_CASE("a term proves itself in a transaction, also while on_deposed runs, and not when it was lost") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  Diary diary;
  auto engine = database.engine({.timeouts = {.request = time_in_vain()}});
  auto options = diary.options({.lease = 10min}, 1ms);
  Caller caller(database.test_database());
  const auto beginning = database.test_database().beginnings().front();
  const auto write = [&](const Term& term) {
    caller.begin(beginning);
    try {
      term.fence(caller.native());
      caller.run("INSERT INTO app VALUES (1)");
      caller.run("COMMIT");
    } catch (const Error&) {
      try {
        caller.run("ROLLBACK");
      } catch (const std::exception&) {  // it was made impossible to commit, and with it the connection
      }
      throw;
    }
  };
  std::optional<Term> term;
  options.on_elected = [&](const Term& now) {
    diary.elected(now);
    term = now;
    if (diary.terms() == 1) write(now);
  };
  options.on_deposed = [&] {
    if (diary.terms() == 1) write(*term);
    else CHECK(thrown_by([&] { write(*term); }).fault == Fault::lost);
    diary.deposed();
  };
  Election election(engine, "job", options);
  REQUIRE(eventually([&] { return diary.terms() == 1; }));
  election.resign();
  CHECK(diary.errors().empty());
  CHECK(database.admin().number("SELECT count(*) FROM app") == 2);
  REQUIRE(eventually([&] { return diary.terms() == 2; }));
  auto other = database.engine();
  CHECK(other.force_release("job", diary.tokens().back()));
  election.stop();  // it does not know yet that it was deposed: its fence does
  CHECK(diary.depositions() == 2);
  CHECK(database.admin().number("SELECT count(*) FROM app") == 2);
}

TEST_CASE("an election outlives the handle it was made with, and its threads end with it") {
  Database database;
  const auto threads = count_threads();
  {
    Diary diary;
    std::optional<Engine> engine(database.engine());
    Election election(*engine, "job", diary.options());
    engine.reset();
    REQUIRE(leads(election));
    CHECK(election.leader()->token == election.term()->token());
  }
  CHECK(database.admin().held() == 0);
  CHECK(eventually([&] { return count_threads() <= threads; }));
}

TEST_CASE("an election with a bad name or option is refused with the value and the rule") {
  Database database;
  auto engine = database.engine();
  const auto refused = [&](std::string_view name, const ElectionOptions& options, std::string_view word) {
    const auto thrown = thrown_by([&] { Election(engine, name, options); });
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
    CHECK_MESSAGE(thrown.names(word), thrown.text);
  };
  refused("", {}, "empty");
  refused(std::string(300, 'x'), {}, "300");
  refused("job", {.lock = {.lease = 0s}}, "lease 0 us");
  refused("job", {.lock = {.lease = 1s, .renew_every = 1s}}, "renew_every 1000000 us");
  refused("job", {.lock = {.lease = 2s, .max_hold = 1s}}, "lease 2000000 us");
  refused("job", {.lock = {.renew = false}}, "LockOptions::renew");
  refused("job", {.lock = {.mode = Mode::shared}}, "not shared");
  refused("job", {.lock = {.reentrance = Reentrance::node}}, "not node");
  refused("job", {.resign_pause = -1s}, "resign_pause -1000000 us");
  refused("job", {.retry_pause = 0s}, "retry_pause 0 us");
  CHECK(database.admin().held() == 0);
  auto strict = database.engine({.lease = 20ms, .margin = 20ms});
  CHECK(thrown_by([&] { Election(strict, "job"); }).names("20000 us"));
  CHECK(thrown_by([&] { leader_of(engine, ""); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { LeaderObserver(engine, "", [](const auto&) {}); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { LeaderObserver(engine, "job", {}); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { LeaderObserver(engine, "job", [](const auto&) {}, {.every = 0s}); }).names("every 0 us"));
}

TEST_CASE("who is no candidate is told who leads, each change once, and when nobody does") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  std::mutex mutex;
  std::vector<Token> told;  // guarded by mutex; 0: nobody leads
  std::atomic<int> errors{0};
  const auto seen = [&] {
    const std::lock_guard guard(mutex);
    return told;
  };
  const auto tell = [&](const std::optional<Holder>& leader) {
    const std::lock_guard guard(mutex);
    told.push_back(leader ? leader->token : Token{});
    if (leader) CHECK(leader->metadata == "tcp://a");
    throw std::runtime_error("told");
  };
  const auto told_last = [&](std::size_t count, Token token) {
    return eventually([&] { return seen().size() == count; }) && seen().back() == token;
  };
  const auto failed = [&](const std::exception& failure) {
    CHECK(failure.what() == std::string("told"));
    ++errors;
  };
  CHECK_FALSE(leader_of(other, "job"));
  const LeaderObserver observer(other, "job", tell, {.every = 20ms, .on_error = failed});
  REQUIRE(told_last(1, Token{}));
  Diary diary;
  auto options = diary.options({.lease = 10min, .metadata = "tcp://a"}, 1ms);
  Election election(engine, "job", options);
  REQUIRE(leads(election));
  const auto first = election.term()->token();
  REQUIRE(told_last(2, first));
  // Several looks later, and nothing has changed.
  CHECK_FALSE(eventually([&] { return seen().size() > 2; }, 200ms));
  CHECK(leader_of(other, "job")->token == first);
  election.stop();
  REQUIRE(told_last(3, Token{}));
  CHECK(eventually([&] { return errors == 3; }));
}

TEST_CASE("the observer of a leader may be destroyed in its callback, and tells nothing when it was destroyed") {
  const auto threads = count_threads();
  Database database;
  std::mutex mutex;  // held until the observer is where it is to be
  std::atomic<int> told{0};
  {
    auto engine = database.engine();
    std::optional<LeaderObserver> observer;
    {
      const std::lock_guard guard(mutex);
      observer.emplace(
          engine, "job",
          [&](const auto&) {
            { const std::lock_guard there(mutex); }
            observer.reset();
            ++told;
          },
          LeaderObserverOptions{.every = 1ms});
    }
    CHECK(eventually([&] { return told == 1; }));
    const auto lock = engine.try_lock("job");
    CHECK_FALSE(eventually([&] { return told > 1; }, 50ms));
  }
  CHECK(eventually([&] { return count_threads() <= threads; }));  // its own has ended as well
}

TEST_CASE("who waits in resign() is not disturbed by a callback that destroys the election") {
  Database database;
  const auto threads = count_threads();
  for (int round = 0; round < 10; ++round) {
    auto engine = database.engine();
    std::optional<Election> election;
    std::mutex mutex;  // held until the election is where it is to be
    std::atomic<bool> destroyed{false};
    Diary diary;
    auto options = diary.options({}, 1ms);
    options.on_deposed = [&] {
      { const std::lock_guard there(mutex); }
      election.reset();
      destroyed = true;
    };
    {
      const std::lock_guard guard(mutex);
      election.emplace(engine, "job", options);
    }
    REQUIRE(leads(*election));
    if (round % 2 == 0) election->resign();
    else election->stop();
    CHECK(eventually([&] { return destroyed.load(); }));
  }
  CHECK(eventually([&] { return count_threads() <= threads; }));
}

TEST_CASE("what is registered on a term's stop token may resign, also while on_elected waits for it") {
  Database database;
  auto engine = database.engine();
  Diary diary;
  std::optional<Election> election;
  std::mutex mutex;  // held until the election is where it is to be
  std::atomic<int> resigned{0};
  auto options = diary.options(renewed_often(), 1ms);
  options.on_elected = [&](const Term& term) {
    { const std::lock_guard there(mutex); }
    const std::stop_callback resigns(term.stop_token(), [&] {
      election->resign();
      ++resigned;
    });
    diary.elected(term);
    eventually([&] { return term.stop_token().stop_requested(); });
  };
  {
    const std::lock_guard guard(mutex);
    election.emplace(engine, "job", options);
  }
  REQUIRE(eventually([&] { return diary.terms() == 1; }));
  election->resign();
  CHECK(resigned == 1);
  REQUIRE(eventually([&] { return diary.terms() == 2; }));
  free_by_force(engine, "job");  // and a loss
  CHECK(eventually([&] { return resigned == 2; }));
  election->stop();  // who resigns in a third term finds it there
  election.reset();
}

TEST_CASE("whoever hears that on_elected threw finds the term over already") {
  Database database;
  Diary diary;
  auto engine = database.engine();
  auto options = diary.options();
  std::optional<Term> term;  // of the election's thread, which writes and reads it
  std::stop_token stop;
  options.on_elected = [&](const Term& now) {
    diary.elected(now);
    term = now;
    stop = now.stop_token();
    throw std::runtime_error("began nothing");
  };
  options.on_error = [&](const std::exception& failure) {
    CHECK(stop.stop_requested());
    CHECK((term && !term->valid()));
    diary.failed(failure);
  };
  Election election(engine, "job", options);
  REQUIRE(eventually([&] { return diary.depositions() == 1; }));
  CHECK(diary.errors() == std::vector<std::string>{"began nothing"});
}

TEST_CASE("where locks linger nobody is taken for the leader once the last one has resigned") {
  Database database;
  Diary diary;
  auto engine = database.engine({.linger = 10min}), other = database.engine();
  Election election(engine, "job", diary.options({.lease = 1h}));
  REQUIRE(leads(election));
  CHECK(leader_of(other, "job"));
  election.resign();
  CHECK_FALSE(leader_of(other, "job"));
  CHECK(database.admin().held() == 0);
}

TEST_CASE("what blocks on the stop token of a term that is resigned keeps its candidate from the next campaign") {
  Database database;
  Diary diary;
  auto engine = database.engine();
  std::atomic<bool> go_on{false};
  std::optional<std::stop_callback<std::function<void()>>> blocks;
  auto options = diary.options(renewed_often(), 1ms);
  options.on_elected = [&](const Term& term) {
    if (diary.terms() == 0) blocks.emplace(term.stop_token(), [&] { eventually([&] { return go_on.load(); }); });
    diary.elected(term);
  };
  std::optional<Election> election(std::in_place, engine, "job", options);
  REQUIRE(eventually([&] { return diary.terms() == 1; }));
  {
    const std::jthread resigns([&] { election->resign(); });
    CHECK(eventually([&] { return diary.depositions() == 1 && database.admin().held() == 0; }));
    CHECK_FALSE(eventually([&] { return diary.terms() > 1; }, 200ms * slowness()));
    go_on = true;
  }
  CHECK(eventually([&] { return diary.terms() == 2; }));
  election.reset();
  blocks.reset();
}

TEST_CASE("a term that was lost is not resigned: the next campaign begins at once") {
  Database database;
  Diary diary;
  auto engine = database.engine();
  auto options = diary.options({.lease = 1h});
  options.on_elected = [&](const Term& term) {
    diary.elected(term);
    if (diary.terms() > 1) return;
    BootClock::ahead += std::chrono::nanoseconds(1h).count();
    term.check();
  };
  Election election(engine, "job", options);
  CHECK(eventually([&] { return diary.terms() == 2; }));
  CHECK(diary.depositions() == 1);
}

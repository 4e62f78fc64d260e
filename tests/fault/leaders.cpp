// What becomes of an office whose leader is killed, or stopped for longer than its lease: another one follows in time,
// and no two of them trust at once, by what each of them has noted itself.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// A time in which a term was trusted without a gap: it was valid after its beginning and before its end.
struct Trusted {
  long long pid = 0, token = 0, begun = 0, ended = 0;
};

// A term is trusted from its grant until it is over, and then never again.
std::vector<Trusted> trusted_in(const std::string& path) {
  std::map<std::pair<long long, long long>, Trusted> terms;
  std::ifstream ledger(path);
  for (long long pid = 0, token = 0, before = 0, after = 0; ledger >> pid >> token >> before >> after;) {
    auto& term = terms.try_emplace({pid, token}, Trusted{pid, token, after, before}).first->second;
    term.begun = std::min(term.begun, after);
    term.ended = std::max(term.ended, before);
  }
  std::vector<Trusted> all;
  for (const auto& [key, term] : terms) all.push_back(term);
  std::ranges::sort(all, {}, &Trusted::token);
  return all;
}

struct Candidates {
  Database database{};
  TemporaryFolder folder{};
  const std::string ledger = folder.path() + "/ledger";
  const std::chrono::milliseconds lease = 3000ms * slowness();
  Engine engine = database.engine();
  std::vector<std::unique_ptr<Child>> children{};

  void campaign(int many) {
    for (int i = 0; i < many; ++i) {
      children.push_back(
          std::make_unique<Child>(worker({"lead", database.url(), "office", std::to_string(lease.count()), ledger})));
      REQUIRE(children.back()->line() == "campaigns");
    }
  }
  // Who is in office, and has noted it; the last one excepted. Null: nobody yet.
  Child* leader(const Child* but = nullptr) {
    const auto row = leader_of(engine, "office");
    if (!row) return nullptr;
    for (const auto& child : children) {
      if (child.get() == but || std::to_string(child->pid()) != row->label) continue;
      const auto terms = trusted_in(ledger);
      const auto noted = [&](const Trusted& term) {
        return term.pid == child->pid() && term.token == number(row->token);
      };
      if (std::ranges::any_of(terms, noted)) return child.get();
    }
    return nullptr;
  }
  Child* await_leader(const Child* but = nullptr) {
    Child* found = nullptr;
    REQUIRE(eventually([&] { return (found = leader(but)) != nullptr; }, 2 * far_longer()));
    return found;
  }
  // Not inside a write of its own: on a database with one writer it would stop everybody (see pause.cpp).
  void await_renewal() {
    const auto end = database.admin().expires_at("office");
    REQUIRE(eventually([&] { return database.admin().expires_at("office") > end; }));
  }
  void end(Child& child) {
    child.tell("end");
    CHECK(child.wait() == 0);
  }

  // However they ended.
  void check_that_no_two_trusted_at_once(std::size_t at_least) {
    const auto terms = trusted_in(ledger);
    CHECK(terms.size() >= at_least);
    std::set<long long> tokens;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      INFO("token " << terms[i].token << " of " << terms[i].pid);
      CHECK(tokens.insert(terms[i].token).second);
      if (i > 0) CHECK(terms[i].begun > terms[i - 1].ended);
    }
  }
};

}  // namespace

TEST_CASE("a leader that was killed is followed when its lease is over, again and again, and no two trust at once") {
  Candidates office;
  office.campaign(3);
  Child* leader = office.await_leader();
  for (int round = 0; round < 2; ++round) {
    office.await_renewal();
    const Stopwatch time;
    leader->signal(SIGKILL);
    CHECK(leader->wait() == killed_by(SIGKILL));
    const auto over = office.database.admin().expires_at("office");
    Child* const next = office.await_leader(leader);
    const auto elected = office.database.admin().acquired_at("office");
    CHECK(elected >= over);
    CHECK(elected <= over + 1s * slowness());  // by the database's own clock
    MESSAGE("followed after " << time.elapsed().count() << " us");
    CHECK(time.elapsed() < office.lease + 2s * slowness());
    leader = next;
  }
  office.end(*leader);
  CHECK(eventually([&] { return office.database.admin().held() == 0; }));
  office.check_that_no_two_trusted_at_once(3);
}

TEST_CASE(
    "a leader that was stopped for longer than its lease is followed, and when it goes on it leads no more, until it "
    "is "
    "elected anew") {
  Candidates office;
  office.campaign(2);
  Child* leader = office.await_leader();
  for (int round = 0; round < 2; ++round) {
    office.await_renewal();
    const Stopwatch time;
    leader->signal(SIGSTOP);
    Child* const next = office.await_leader(leader);
    MESSAGE("followed after " << time.elapsed().count() << " us");
    CHECK(time.elapsed() < office.lease + 2s * slowness());
    const auto before = leader_of(office.engine, "office");
    leader->tell("check");  // waits in the pipe for its first instruction
    leader->signal(SIGCONT);
    CHECK(leader->line() == "follows");
    next->tell("check");
    CHECK(next->line() == "leads");
    const auto after = leader_of(office.engine, "office");
    REQUIRE((before && after));
    CHECK(after->token == before->token);
    leader = next;
  }
  for (auto& child : office.children) office.end(*child);
  CHECK(eventually([&] { return office.database.admin().held() == 0; }));
  office.check_that_no_two_trusted_at_once(3);
}

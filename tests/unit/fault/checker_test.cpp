// This file knows that the checker of the fault suite finds every breach of a rule, and nothing where there is none.
#include "fault/suite/checker.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dlock::test;

namespace {

Record record(const char* who, Nanoseconds at, What what, long long token, Nanoseconds time, std::string text = {}) {
  return {at, what, "till", token, time, std::move(text), who};
}

// Two holders after each other, the second twice: the first was paused past its lease, and its late write was refused.
struct Run {
  History history{
      record("a", 10, What::grant, 1, 5),          record("a", 11, What::intent, 1, 0, "a-1"),
      record("a", 20, What::commit, 1, 0, "a-1"),  record("a", 30, What::held, 1, 30),
      record("b", 50, What::grant, 2, 8),          record("b", 51, What::intent, 2, 0, "b-1"),
      record("a", 52, What::intent, 1, 0, "a-2"),  record("b", 53, What::commit, 2, 0, "b-1"),
      record("a", 54, What::refused, 1, 0, "a-2"), record("a", 55, What::loss, 1, 0, "unconfirmed"),
      record("b", 60, What::held, 2, 60),          record("b", 61, What::release, 2, 60, "freed"),
      record("b", 70, What::grant, 3, 62),         record("b", 71, What::intent, 3, 0, "b-2"),
      record("b", 75, What::failed, 3, 0, "b-2"),  record("b", 76, What::intent, 3, 0, "b-3"),
      record("b", 80, What::doubt, 3, 0, "b-3"),   record("b", 90, What::held, 3, 85),
  };
  Books books{{{"a-1", "till", 1, 1, 100, 200, 7}, {"b-1", "till", 2, 2, 200, 100, 3}},
              {{100, 50, 46}, {200, 50, 54}},
              {{"till", 3}}};

  Record& first(What what, const char* who) {
    return *std::find_if(history.begin(), history.end(),
                         [&](const Record& r) { return r.what == what && r.who == who; });
  }

  // The rules that are broken, each once.
  std::vector<Rule> broken() const {
    std::vector<Rule> rules;
    for (const auto& violation : violations(history, books)) rules.push_back(violation.rule);
    std::sort(rules.begin(), rules.end());
    rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
    return rules;
  }
  bool breaks(Rule rule) const { return broken() == std::vector{rule}; }
};

}  // namespace

TEST_CASE("a history in which everything is right breaks no rule") {
  Run run;
  CHECK(run.broken().empty());
  // What is in doubt may have been committed as well.
  run.books.transfers.push_back({"b-3", "till", 3, 3, 100, 200, 6});
  run.books.accounts = {{100, 50, 40}, {200, 50, 60}};
  CHECK(run.broken().empty());
  CHECK(violations({}, {}).empty());
}

TEST_CASE("two grants with one token are found") {
  Run run;
  run.history.push_back(record("c", 200, What::grant, 3, 61));
  CHECK(run.breaks(Rule::token_repeated));
}

TEST_CASE("a token that is smaller than one granted before is found, and one granted meanwhile is not") {
  Run run;
  run.books.tokens["till"] = 9;
  run.history.push_back(record("c", 120, What::grant, 9, 110));
  run.history.push_back(record("d", 140, What::grant, 8, 119));
  CHECK(run.broken().empty());
  run.history.back().time = 121;
  CHECK(run.breaks(Rule::token_fell));
}

TEST_CASE("tokens of different names have nothing to do with each other") {
  Run run;
  run.books.tokens["other"] = 1;
  auto other = record("c", 40, What::grant, 1, 35);
  other.name = "other";
  run.history.push_back(other);
  CHECK(run.broken().empty());
}

TEST_CASE("two that trust their leases at the same moment are found") {
  Run run;
  run.first(What::held, "a").time = 51;
  CHECK(run.breaks(Rule::trust_overlapped));
  run.first(What::held, "a").time = 50;
  CHECK(run.broken().empty());
}

TEST_CASE("an overlap is found across a holder in between who trusted his lease for a shorter time") {
  Run run;
  run.first(What::held, "a").time = 75;
  const auto all = violations(run.history, run.books);
  CHECK(all.size() == 2);
}

TEST_CASE("a lease that was over when its holder heard of it overlaps with nobody") {
  Run run;
  run.books.tokens["till"] = 4;
  run.history.push_back(record("c", 82, What::grant, 4, 40));
  CHECK_FALSE(run.breaks(Rule::trust_overlapped));
}

TEST_CASE("who was released by force, or lived through a step of the clock, may have trusted too long") {
  Run forced;
  forced.first(What::held, "a").time = 55;
  forced.history.push_back(record("tormentor", 45, What::force, 1, 40));
  CHECK(forced.broken().empty());
  forced.history.back().token = 2;
  CHECK(forced.breaks(Rule::trust_overlapped));

  Run stepped;
  stepped.first(What::held, "a").time = 55;
  stepped.history.push_back(record("tormentor", 21, What::step, 0, 19));
  CHECK(stepped.broken().empty());
  stepped.history.back() = record("tormentor", 70, What::step, 0, 56);
  CHECK(stepped.breaks(Rule::trust_overlapped));
}

TEST_CASE("a commit under an older token after one under a newer token is found, by the order in the books") {
  Run run;
  std::swap(run.books.transfers[0].seq, run.books.transfers[1].seq);
  CHECK(run.breaks(Rule::stale_commit));
  // Neither force nor a stepped clock is an excuse.
  run.history.push_back(record("tormentor", 45, What::force, 1, 40));
  run.history.push_back(record("tormentor", 21, What::step, 0, 19));
  CHECK(run.breaks(Rule::stale_commit));
}

TEST_CASE("an acknowledged transfer that is not in the books is found") {
  Run run;
  run.books.transfers.erase(run.books.transfers.begin());
  run.books.accounts = {{100, 50, 53}, {200, 50, 47}};
  CHECK(run.breaks(Rule::commit_missing));
}

TEST_CASE("a transfer that was refused, or failed, or was begun by nobody, is found in the books") {
  for (const std::string id : {"a-2", "b-2", "c-1"}) {
    Run run;
    const auto token = id == "a-2" ? 1 : 3;
    // As the database would have it if it had been the first of all.
    run.books.transfers[0].seq = 2;
    run.books.transfers[1].seq = 3;
    run.books.transfers.push_back({id, "till", token == 1 ? 1 : 4, token, 100, 200, 6});
    run.books.accounts = {{100, 50, 40}, {200, 50, 60}};
    CHECK_MESSAGE(run.breaks(Rule::commit_unaccounted), id);
  }
}

TEST_CASE("a transfer under another token than the one it was begun with is found") {
  Run run;
  run.books.transfers[1].token = 3;
  CHECK(run.breaks(Rule::commit_unaccounted));
}

TEST_CASE("a grant that the lock table has forgotten is found") {
  Run run;
  run.books.tokens["till"] = 2;
  CHECK(run.breaks(Rule::grant_forgotten));
  run.books.tokens.clear();
  CHECK(run.breaks(Rule::grant_forgotten));
}

TEST_CASE("a lost update is found by the sums, also where the total is right") {
  Run run;
  run.books.accounts = {{100, 50, 43}, {200, 50, 57}};
  CHECK(run.breaks(Rule::sums_wrong));
  run.books.accounts = {{100, 50, 46}, {200, 50, 55}};
  CHECK(run.breaks(Rule::sums_wrong));
}

TEST_CASE("things that happened are counted") {
  const auto counted = counts(Run().history);
  CHECK(counted.at(What::grant) == 3);
  CHECK(counted.at(What::commit) == 2);
  CHECK(counted.at(What::refused) == 1);
  CHECK(counted.at(What::loss) == 1);
  CHECK_FALSE(counted.contains(What::busy));
}

TEST_CASE("a loss that was not told, and a grant that two have adopted, are breaches by themselves") {
  Run run;
  run.history.push_back(record("a", 56, What::untold, 1, 0));
  CHECK(run.breaks(Rule::loss_untold));
  run.history.back() = record("b", 62, What::twice, 2, 0);
  CHECK(run.breaks(Rule::adopted_twice));
}

// The checker of the fault suite finds every breach of a rule, and nothing where there is none.
#include "fault/suite/checker.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dlock::test;

namespace {

Record record(const char* who, Nanoseconds at, What what, long long token, Nanoseconds time, std::string text = {}) {
  return {at, what, "till", token, time, std::move(text), who};
}

struct Judged {
  History history;
  Books books;

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

// Two holders after each other, the second twice: the first was paused past its lease, and its late write was refused.
struct Run : Judged {
  Run()
      : Judged{{
                   record("a", 10, What::grant, 1, 5),
                   record("a", 11, What::intent, 1, 0, "a-1"),
                   record("a", 20, What::commit, 1, 0, "a-1"),
                   record("a", 30, What::held, 1, 30),
                   record("b", 50, What::grant, 2, 8),
                   record("b", 51, What::intent, 2, 0, "b-1"),
                   record("a", 52, What::intent, 1, 0, "a-2"),
                   record("b", 53, What::commit, 2, 0, "b-1"),
                   record("a", 54, What::refused, 1, 0, "a-2"),
                   record("a", 55, What::loss, 1, 0, "unconfirmed"),
                   record("b", 60, What::held, 2, 60),
                   record("b", 61, What::release, 2, 60, "freed"),
                   record("b", 70, What::grant, 3, 62),
                   record("b", 71, What::intent, 3, 0, "b-2"),
                   record("b", 75, What::failed, 3, 0, "b-2"),
                   record("b", 76, What::intent, 3, 0, "b-3"),
                   record("b", 80, What::doubt, 3, 0, "b-3"),
                   record("b", 90, What::held, 3, 85),
               },
               {{{"a-1", "till", 1, 1, 100, 200, 7}, {"b-1", "till", 2, 2, 200, 100, 3}},
                {{100, 50, 46}, {200, 50, 54}},
                {{"till", 3}}}} {}
};

// Two readers beside each other, then a writer that becomes a reader, beside whom another one reads by a fence.
struct ReadersRun : Judged {
  ReadersRun()
      : Judged{{
                   record("a", 10, What::grant, 1, 5, "shared"),
                   record("b", 12, What::grant, 2, 6, "shared"),
                   record("a", 20, What::read, 1, 19, "100: 46, 200: 54"),
                   record("b", 30, What::held, 2, 28),
                   record("c", 40, What::grant, 3, 8),
                   record("c", 41, What::intent, 3, 0, "c-1"),
                   record("c", 42, What::commit, 3, 0, "c-1"),
                   record("c", 50, What::held, 3, 45),
                   record("c", 52, What::grant, 4, 46, "shared"),
                   record("d", 53, What::grant, 5, 44, "shared"),
                   record("d", 60, What::read, 5, 0, "100: 45, 200: 55"),
                   record("c", 70, What::held, 4, 70),
                   record("d", 71, What::held, 5, 70),
               },
               {{{"c-1", "till", 1, 3, 100, 200, 1}}, {{100, 46, 45}, {200, 54, 55}}, {{"till", 5}}}} {}
};

// The second has two of three permits, and after it the third.
struct PermitsRun : Judged {
  PermitsRun()
      : Judged{{
                   record("a", 10, What::grant, 1, 5, "permits 1 of 3"),
                   record("b", 11, What::grant, 2, 6, "permits 2 of 3"),
                   record("b", 30, What::held, 2, 30),
                   record("c", 32, What::grant, 3, 25, "permits 2 of 3"),
                   record("a", 50, What::held, 1, 50),
                   record("c", 60, What::held, 3, 55),
               },
               {{}, {}, {{"till", 3}}}} {}
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

TEST_CASE("readers beside each other, a writer that becomes one, and permits up to the limit break no rule") {
  CHECK(ReadersRun().broken().empty());
  CHECK(PermitsRun().broken().empty());
}

TEST_CASE("a read that does not balance is found, whether it was trusted or fenced") {
  for (const char* who : {"a", "d"}) {
    ReadersRun run;
    run.first(What::read, who).text = "100: 46, 200: 55";
    CHECK_MESSAGE(run.breaks(Rule::read_unbalanced), who);
  }
  ReadersRun run;
  run.first(What::read, "a").text = "100: 46";
  CHECK(run.breaks(Rule::read_unbalanced));
}

TEST_CASE("who was released by force together with others may have read too long, but not by a fence") {
  ReadersRun run;
  run.first(What::read, "a").text = "100: 45, 200: 54";
  run.history.push_back(record("tormentor", 21, What::force, 2, 18));
  CHECK(run.broken().empty());
  run.first(What::force, "tormentor").time = 20;  // when it was no longer trusted
  CHECK(run.breaks(Rule::read_unbalanced));
  run.history.back() = record("tormentor", 61, What::force, 5, 52);
  CHECK(run.breaks(Rule::read_unbalanced));
  run.first(What::read, "a").text = "100: 46, 200: 54";
  run.first(What::read, "d").text = "100: 46, 200: 55";
  CHECK(run.breaks(Rule::read_unbalanced));
}

TEST_CASE("a reader beside a writer is found, whoever of them was first") {
  ReadersRun run;
  run.first(What::held, "b").time = 41;
  CHECK(run.breaks(Rule::trust_overlapped));
  run = {};
  run.first(What::held, "c").time = 54;
  CHECK(run.breaks(Rule::trust_overlapped));
}

TEST_CASE("a reader that has been trusted until it read is found beside a writer") {
  ReadersRun run;
  run.first(What::read, "a").time = 41;
  CHECK(run.breaks(Rule::trust_overlapped));
}

TEST_CASE("a permit too many is found, and those that were released by force together are not") {
  PermitsRun run;
  run.first(What::held, "b").time = 33;
  CHECK(run.breaks(Rule::too_many_permits));
  run.history.push_back(record("tormentor", 31, What::force, 2, 12));
  CHECK(run.broken().empty());
  run = {};
  run.first(What::grant, "a").text = "permits 2 of 3";
  CHECK(run.breaks(Rule::too_many_permits));
}

TEST_CASE("a single grant of more permits than there are is found") {
  PermitsRun run;
  run.first(What::grant, "c").text = "permits 4 of 3";
  CHECK(run.breaks(Rule::too_many_permits));
}

TEST_CASE("equal tokens are found among those who share a name, and a reader's that fell behind a writer's") {
  PermitsRun permits;
  permits.first(What::grant, "b").token = permits.first(What::held, "b").token = 1;
  CHECK(permits.breaks(Rule::token_repeated));

  ReadersRun equal;
  equal.first(What::grant, "b").token = equal.first(What::held, "b").token = 3;
  CHECK(equal.breaks(Rule::token_repeated));

  ReadersRun fell;
  fell.books.tokens["till"] = 9;
  for (auto& record : fell.history)
    if (record.who == "b") record.token = 9;
  fell.first(What::grant, "c").time = 31;
  CHECK(fell.breaks(Rule::token_fell));
}

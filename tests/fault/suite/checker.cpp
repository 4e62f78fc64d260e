// How a history is proved right, or wrong.
#include "fault/suite/checker.hpp"

#include <algorithm>
#include <ostream>
#include <tuple>
#include <utility>

namespace dlock::test {
namespace {

// A lease from the view of its holder.
struct Lease {
  std::string who;
  long long token = 0;
  Nanoseconds asked = 0, granted = 0;
  Nanoseconds trusted_until = 0;  // before `granted`: it was over when its holder heard of it
  bool excused = false;           // forced, or the clock was stepped
  Share share{};
};

using Leases = std::map<std::string, std::vector<Lease>>;  // by name, in the order of tokens

struct Span {
  Nanoseconds from, to;
};

std::string shown(const Lease& lease) {
  const auto share = lease.share.text();
  return lease.who + " (token " + std::to_string(lease.token) + (share.empty() ? "" : ", ") + share + ", asked " +
         std::to_string(lease.asked) + ", granted " + std::to_string(lease.granted) + ", trusted until " +
         std::to_string(lease.trusted_until) + ")";
}

// All who share a name have smaller tokens than the one it was forced under.
bool was_forced(const Lease& lease, const Record& force) {
  if (lease.share.mode == Share::Mode::exclusive) return lease.token == force.token;
  return lease.token <= force.token && std::max(lease.granted, lease.trusted_until) >= force.time;
}

Leases leases_of(const History& history) {
  std::vector<Span> steps;
  std::vector<const Record*> forced;
  std::map<std::tuple<std::string, std::string, long long>, Nanoseconds> trusted;
  for (const auto& record : history) {
    if (record.what == What::step) steps.push_back({record.time, record.at});
    if (record.what == What::force) forced.push_back(&record);
    if (record.what == What::held || record.what == What::read) {
      auto& until = trusted[{record.who, record.name, record.token}];
      until = std::max(until, record.time);
    }
  }
  Leases leases;
  for (const auto& record : history) {
    if (record.what != What::grant) continue;
    Lease lease{record.who, record.token, record.time, record.at, 0, false, Share::parse(record.text)};
    if (const auto found = trusted.find({record.who, record.name, record.token}); found != trusted.end())
      lease.trusted_until = found->second;
    for (const auto* force : forced)
      lease.excused = lease.excused || (force->name == record.name && was_forced(lease, *force));
    for (const auto& step : steps)
      lease.excused =
          lease.excused || (step.from <= std::max(lease.granted, lease.trusted_until) && step.to >= lease.asked);
    leases[record.name].push_back(std::move(lease));
  }
  for (auto& [name, list] : leases)
    std::stable_sort(list.begin(), list.end(), [](const Lease& a, const Lease& b) { return a.token < b.token; });
  return leases;
}

void check_tokens(const Leases& leases, std::vector<Violation>& found) {
  for (const auto& [name, list] : leases) {
    for (std::size_t i = 1; i < list.size(); ++i)
      if (list[i - 1].token == list[i].token)
        found.push_back({Rule::token_repeated, name + ": " + shown(list[i - 1]) + " and " + shown(list[i])});
    // Of all that have a larger token, the one that was answered first.
    const Lease* first = nullptr;
    for (auto lease = list.rbegin(); lease != list.rend(); ++lease) {
      if (first != nullptr && first->granted < lease->asked && first->token > lease->token)
        found.push_back({Rule::token_fell, name + ": " + shown(*first) + ", and after it " + shown(*lease)});
      if (first == nullptr || lease->granted < first->granted) first = &*lease;
    }
  }
}

// One violation at most of each rule.
void check_beside(const std::string& name, const Lease& lease, const std::vector<const Lease*>& inside,
                  std::vector<Violation>& found) {
  const Lease* stranger = nullptr;
  long long permits = lease.share.permits;
  std::string all = shown(lease);
  for (const auto* other : inside) {
    if (other->share.mode != lease.share.mode || lease.share.mode == Share::Mode::exclusive) {
      if (stranger == nullptr || other->trusted_until > stranger->trusted_until) stranger = other;
    } else {
      permits += other->share.permits;
      all += " and " + shown(*other);
    }
  }
  if (stranger != nullptr)
    found.push_back({Rule::trust_overlapped, name + ": " + shown(*stranger) + " and " + shown(lease)});
  if (lease.share.mode == Share::Mode::permits && permits > lease.share.limit)
    found.push_back({Rule::too_many_permits, name + ": " + std::to_string(permits) + " permits: " + all});
}

void check_trust(const Leases& leases, std::vector<Violation>& found) {
  for (const auto& [name, unordered] : leases) {
    auto list = unordered;
    std::stable_sort(list.begin(), list.end(), [](const Lease& a, const Lease& b) { return a.granted < b.granted; });
    std::vector<const Lease*> inside;  // when the next one is granted
    for (const auto& lease : list) {
      if (lease.trusted_until < lease.granted) continue;
      std::erase_if(inside, [&](const Lease* other) { return other->trusted_until <= lease.granted; });
      check_beside(name, lease, inside, found);
      if (!lease.excused) inside.push_back(&lease);
    }
  }
}

void check_order(const Books& books, std::vector<Violation>& found) {
  std::map<std::string, std::vector<const Transfer*>> by_name;
  for (const auto& transfer : books.transfers) by_name[transfer.name].push_back(&transfer);
  for (auto& [name, list] : by_name) {
    std::sort(list.begin(), list.end(), [](const Transfer* a, const Transfer* b) { return a->seq < b->seq; });
    const Transfer* newest = nullptr;
    for (const auto* transfer : list) {
      if (newest != nullptr && transfer->token < newest->token)
        found.push_back({Rule::stale_commit,
                         name + ": transfer " + transfer->id + " (" + std::to_string(transfer->seq) +
                             "th) under token " + std::to_string(transfer->token) + " after " + newest->id + " (" +
                             std::to_string(newest->seq) + "th) under token " + std::to_string(newest->token)});
      if (newest == nullptr || transfer->token > newest->token) newest = transfer;
    }
  }
}

void check_acknowledged(const History& history, const Books& books, std::vector<Violation>& found) {
  std::map<std::string, const Transfer*> stored;
  for (const auto& transfer : books.transfers) stored.emplace(transfer.id, &transfer);
  std::map<std::string, const Record*> begun, over;
  for (const auto& record : history) {
    if (record.what == What::intent) begun.emplace(record.text, &record);
    if (record.what == What::commit && !stored.contains(record.text))
      found.push_back({Rule::commit_missing, "transfer " + record.text + " of " + record.who});
    if (record.what == What::refused || record.what == What::failed) over.emplace(record.text, &record);
  }
  for (const auto& [id, transfer] : stored) {
    const auto intent = begun.find(id);
    if (intent == begun.end() || intent->second->token != transfer->token || intent->second->name != transfer->name)
      found.push_back({Rule::commit_unaccounted, "transfer " + id + " under token " + std::to_string(transfer->token) +
                                                     " of " + transfer->name + ": nobody began it"});
    if (const auto end = over.find(id); end != over.end())
      found.push_back({Rule::commit_unaccounted, "transfer " + id + " is in the books although it was " +
                                                     std::string(to_string(end->second->what)) + " (" +
                                                     end->second->who + ")"});
  }
}

void check_grants(const Leases& leases, const Books& books, std::vector<Violation>& found) {
  for (const auto& [name, list] : leases) {
    const auto row = books.tokens.find(name);
    const auto token = row == books.tokens.end() ? 0 : row->second;
    if (list.back().token > token)
      found.push_back(
          {Rule::grant_forgotten, name + ": " + shown(list.back()) + ", and the table says " + std::to_string(token)});
  }
}

// What a client has seen that must not be.
void check_seen(const History& history, std::vector<Violation>& found) {
  for (const auto& record : history) {
    const auto grant = record.name + ": token " + std::to_string(record.token) + " of " + record.who;
    if (record.what == What::untold) found.push_back({Rule::loss_untold, grant});
    if (record.what == What::twice) found.push_back({Rule::adopted_twice, grant});
  }
}

void check_sums(const Books& books, std::vector<Violation>& found) {
  std::map<long long, long long> expected;
  long long beginning = 0, total = 0;
  for (const auto& account : books.accounts) expected[account.id] += account.opening;
  for (const auto& transfer : books.transfers) {
    expected[transfer.source] -= transfer.amount;
    expected[transfer.target] += transfer.amount;
  }
  for (const auto& account : books.accounts) {
    beginning += account.opening;
    total += account.balance;
    if (account.balance != expected[account.id])
      found.push_back({Rule::sums_wrong, "account " + std::to_string(account.id) + " has " +
                                             std::to_string(account.balance) + ", its transfers make " +
                                             std::to_string(expected[account.id])});
  }
  if (total != beginning)
    found.push_back({Rule::sums_wrong, "all accounts together have " + std::to_string(total) + " instead of " +
                                           std::to_string(beginning)});
}

void check_reads(const History& history, const Leases& leases, const Books& books, std::vector<Violation>& found) {
  std::map<long long, long long> before;
  for (const auto& account : books.accounts) before[account.id] = account.opening;
  const auto excused = [&](const Record& read) {
    const auto list = leases.find(read.name);
    return list != leases.end() && read.time != 0 &&
           std::any_of(list->second.begin(), list->second.end(), [&](const Lease& lease) {
             return lease.who == read.who && lease.token == read.token && lease.excused;
           });
  };
  for (const auto& record : history) {
    if (record.what != What::read) continue;
    const auto reading = Reading::parse(record.text);
    if (reading && (reading->first.balance + reading->second.balance ==
                        before[reading->first.account] + before[reading->second.account] ||
                    excused(record)))
      continue;
    found.push_back({Rule::read_unbalanced, record.name + ": " + record.text + (record.time == 0 ? ", fenced" : "") +
                                                ", under token " + std::to_string(record.token) + " of " + record.who +
                                                ", at " + std::to_string(record.at)});
  }
}

}  // namespace

std::string_view to_string(Rule rule) noexcept {
  switch (rule) {
    case Rule::token_repeated: return "token_repeated";
    case Rule::token_fell: return "token_fell";
    case Rule::trust_overlapped: return "trust_overlapped";
    case Rule::too_many_permits: return "too_many_permits";
    case Rule::stale_commit: return "stale_commit";
    case Rule::commit_missing: return "commit_missing";
    case Rule::commit_unaccounted: return "commit_unaccounted";
    case Rule::grant_forgotten: return "grant_forgotten";
    case Rule::loss_untold: return "loss_untold";
    case Rule::adopted_twice: return "adopted_twice";
    case Rule::sums_wrong: return "sums_wrong";
    case Rule::read_unbalanced: return "read_unbalanced";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, const Violation& violation) {
  return out << to_string(violation.rule) << ": " << violation.text;
}

std::vector<Violation> violations(const History& history, const Books& books) {
  std::vector<Violation> found;
  const auto leases = leases_of(history);
  check_tokens(leases, found);
  check_trust(leases, found);
  check_order(books, found);
  check_acknowledged(history, books, found);
  check_grants(leases, books, found);
  check_seen(history, found);
  check_sums(books, found);
  check_reads(history, leases, books, found);
  return found;
}

std::map<What, std::size_t> counts(const History& history) {
  std::map<What, std::size_t> counted;
  for (const auto& record : history) ++counted[record.what];
  return counted;
}

}  // namespace dlock::test

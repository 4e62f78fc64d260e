// When a lease that lingers is freed, and how often the table is asked whether somebody wants it; how many may linger,
// and for how long a name that was wanted may not.
#include "engine/lease/lingering_leases.hpp"

#include "types/mutant.hpp"
#include "types/worker.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

// So often the table is asked.
constexpr Duration every = std::chrono::milliseconds{10};
// What was not looked at for so long is believed no more: somebody may want it by now.
constexpr Duration stale = std::chrono::milliseconds{50};
// A lease that is in use for longer is let go of by a statement, and not asked about any more.
constexpr Duration in_use = std::chrono::milliseconds{100};
// A name that somebody else has wanted does not linger for so long.
constexpr Duration unwelcome = std::chrono::seconds{1};
// So many names at most: each of them is asked about.
constexpr std::size_t most = 256;
// Its thread stays for so long after something was welcome: a statement is on its way by which it comes.
constexpr Duration awake = std::chrono::seconds{1};
// Where a statement takes long, a look does as well.
constexpr int trips_of_a_look = 3, trips_of_freeing = 8;
constexpr Duration longest_freeing = std::chrono::milliseconds{250};
// What could not be freed is tried again after so long.
constexpr Duration until_again = std::chrono::milliseconds{100};

}  // namespace

struct LingeringLeases::State : Worker {
  struct LingeringLease {
    std::string owner;
    Token row_token{};
    std::shared_ptr<Lease> idle;  // null: somebody holds it
    Instant touched, looked;      // used last; found last that nobody else wants it
    Instant until;                // for so long it may be idle
  };
  using Entries = std::map<std::string, LingeringLease, std::less<>>;

  State(std::shared_ptr<store::LockTable> the_table, std::shared_ptr<WaitQueues> the_queues, Duration linger_for,
        Duration timeout)
      : table(std::move(the_table)), queues(std::move(the_queues)), linger(linger_for), request_timeout(timeout) {}

  const std::shared_ptr<store::LockTable> table;
  const std::shared_ptr<WaitQueues> queues;
  const Duration linger, request_timeout;
  Entries entries GUARDED_BY(mutex);
  std::map<std::string, Instant, std::less<>> unwelcome_until GUARDED_BY(mutex);
  std::vector<std::shared_ptr<Lease>> to_free GUARDED_BY(mutex);
  Instant free_again GUARDED_BY(mutex) = Instant::min();  // not before
  Instant awake_until GUARDED_BY(mutex) = Instant::min();

  static Instant worn_at(const Lease& lease) { return later(lease.last_sent(), longest(lease.terms())); }

  // Of the row that it has.
  Entries::iterator find(const Lease& lease) REQUIRES(mutex) {
    const auto entry = entries.find(lease.name());
    const bool same =
        entry != entries.end() && entry->second.owner == lease.owner() && entry->second.row_token == lease.row_token();
    return same ? entry : entries.end();
  }

  Entries::iterator end_of(Entries::iterator entry) REQUIRES(mutex) {
    if (entry->second.idle) to_free.push_back(std::move(entry->second.idle));
    return entries.erase(entry);
  }

  // What is still to be asked about; the rest is taken out.
  std::vector<std::shared_ptr<Lease>> sort_out(Instant now,
                                               std::vector<std::pair<std::string, LingeringLease>>& asked) {
    const MutexLock guard(mutex);
    for (auto entry = entries.begin(); entry != entries.end();) {
      const auto& one = entry->second;
      const bool over = one.idle ? now >= one.until && !planted("lingers_for_ever") : now - one.touched >= in_use;
      if (over || closing) {
        entry = end_of(entry);
        continue;
      }
      asked.emplace_back(entry->first,
                         LingeringLease{one.owner, one.row_token, nullptr, one.touched, one.looked, one.until});
      ++entry;
    }
    for (auto each = unwelcome_until.begin(); each != unwelcome_until.end();)
      each = now >= each->second ? unwelcome_until.erase(each) : std::next(each);
    return take_to_free(now);
  }

  std::vector<std::shared_ptr<Lease>> take_to_free(Instant now) REQUIRES(mutex) {
    if (now < free_again && !closing) return {};
    return std::exchange(to_free, {});
  }

  void look(const std::vector<std::pair<std::string, LingeringLease>>& asked) {
    if (asked.empty()) return;
    std::vector<store::LeaseKey> keys;
    keys.reserve(asked.size());
    for (const auto& [name, entry] : asked) keys.push_back({name, entry.owner, entry.row_token});
    const auto sent = BootClock::now();
    const auto statuses = table->lease_status(keys, later(sent, request_timeout));
    const MutexLock guard(mutex);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto& [name, was] = asked[i];
      const auto entry = entries.find(name);
      if (entry == entries.end() || entry->second.owner != was.owner || entry->second.row_token != was.row_token)
        continue;
      if (statuses[i] == store::LeaseStatus::unwanted || planted("lingering_deaf")) {
        entry->second.looked = sent;
        continue;
      }
      if (statuses[i] == store::LeaseStatus::wanted) unwelcome_until.insert_or_assign(name, later(sent, unwelcome));
      end_of(entry);
    }
  }

  // As far as it goes; what is left is tried again.
  void free(std::vector<std::shared_ptr<Lease>> leases, Instant until) {
    if (leases.empty()) return;
    const auto before = [](const auto& one, const auto& other) { return one->name() < other->name(); };
    std::sort(leases.begin(), leases.end(), before);
    std::vector<store::LeaseKey> keys;
    keys.reserve(leases.size());
    for (const auto& lease : leases) keys.push_back(lease->key());
    const bool twice = std::adjacent_find(keys.begin(), keys.end(), [](const auto& one, const auto& other) {
                         return one.name == other.name;
                       }) != keys.end();
    std::vector<std::optional<bool>> freed(keys.size());
    try {
      if (keys.size() > 1 && !twice) freed = table->release_together(keys, until);
    } catch (const std::exception&) {  // each is asked for alone
    }
    for (std::size_t i = 0; i < keys.size(); ++i) try {
        if (!freed[i]) freed[i] = table->release(keys[i], until);
      } catch (const std::exception&) {  // what is not freed ends with its lease at the latest
      }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (freed[i]) {
        queues->wake_head(leases[i]->name());
      } else if (leases[i]->trusted_until() > BootClock::now()) {
        const MutexLock guard(mutex);
        to_free.push_back(std::move(leases[i]));
        free_again = later(BootClock::now(), until_again);
      }
    }
  }

  // False: there is nothing to do any more.
  bool round() {
    std::vector<std::pair<std::string, LingeringLease>> asked;
    const auto now = BootClock::now();
    auto leases = sort_out(now, asked);
    free(std::move(leases), later(now, a_moment()));
    try {
      look(asked);
    } catch (const Failure&) {  // what is not looked at is believed no more
    }
    leases.clear();
    {
      const MutexLock guard(mutex);
      leases = take_to_free(BootClock::now());
    }
    free(std::move(leases), later(BootClock::now(), a_moment()));
    UniqueMutexLock guard(mutex);
    const bool idle = entries.empty();
    const auto again = later(BootClock::now(), idle ? until_again : every);
    while (!closing && (!idle || entries.empty()) && BootClock::now() < again) wait(guard, again);
    if (!closing && (!entries.empty() || !to_free.empty() || BootClock::now() < awake_until)) return true;
    if (!closing) running = false;
    return false;
  }

  void run() override {
    for (bool goes_on = true; goes_on;) try {
        goes_on = round();
      } catch (const std::exception&) {  // out of memory: what lingers is believed no more until there is some
        goes_on = !is_closing();
        pause(until_again);
      }
    if (!is_closing()) return;
    std::vector<std::pair<std::string, LingeringLease>> none;
    free(sort_out(BootClock::now(), none), ends_within(request_timeout));
  }

  // A row that is locked must not keep the others from being looked at.
  Duration a_moment() const {
    return std::min(request_timeout, std::max<Duration>(longest_freeing, trips_of_freeing * table->round_trip()));
  }

  bool fresh(const LingeringLease& entry, Instant now) const {
    return now - entry.looked < std::max<Duration>(stale, every + trips_of_a_look * table->round_trip());
  }
};

LingeringLeases::LingeringLeases(std::shared_ptr<store::LockTable> table, std::shared_ptr<WaitQueues> queues,
                                 Duration linger, Duration request_timeout)
    : state_(std::make_shared<State>(std::move(table), std::move(queues), linger, request_timeout)) {}

LingeringLeases::~LingeringLeases() { state_->finish(); }

bool LingeringLeases::welcome(const std::string& name) noexcept {
  const MutexLock guard(state_->mutex);
  if (state_->closing || state_->entries.size() >= most) return false;
  const auto wanted = state_->unwelcome_until.find(name);
  const auto now = BootClock::now();
  if (wanted != state_->unwelcome_until.end() && now < wanted->second) return false;
  state_->awake_until = later(now, awake);
  return state_->try_start();
}

bool LingeringLeases::goes_on(const Lease& held) noexcept {
  const auto now = BootClock::now();
  if (now >= State::worn_at(held)) return false;
  const MutexLock guard(state_->mutex);
  const auto entry = state_->find(held);
  return !state_->closing && entry != state_->entries.end() && state_->fresh(entry->second, now);
}

bool LingeringLeases::keep(const std::shared_ptr<Lease>& idle, bool written) {
  const auto now = BootClock::now();
  const auto until = std::min(later(now, state_->linger), State::worn_at(*idle));
  const MutexLock guard(state_->mutex);
  if (state_->closing || !state_->running) return false;
  if (written) {
    state_->entries.insert_or_assign(
        idle->name(), State::LingeringLease{idle->owner(), idle->row_token(), idle, now, idle->last_sent(), until});
    state_->changed.notify_all();
    return true;
  }
  const auto entry = state_->find(*idle);
  if (entry == state_->entries.end()) return false;
  auto& one = entry->second;
  one.idle = idle;
  one.touched = now;
  one.until = until;
  return true;
}

bool LingeringLeases::lingers(const std::string& name) const noexcept {
  const MutexLock guard(state_->mutex);
  const auto entry = state_->entries.find(name);
  return entry != state_->entries.end() && entry->second.idle;
}

LingeringLeases::Taken LingeringLeases::take(const std::string& name) noexcept {
  const MutexLock guard(state_->mutex);
  const auto entry = state_->entries.find(name);
  if (entry == state_->entries.end() || !entry->second.idle) return {};
  const auto now = BootClock::now();
  auto& one = entry->second;
  one.touched = now;
  const bool fresh = state_->fresh(one, now) && now < State::worn_at(*one.idle);
  return {std::exchange(one.idle, nullptr), fresh};
}

void LingeringLeases::forget(const std::string& name) noexcept {
  const MutexLock guard(state_->mutex);
  const auto entry = state_->entries.find(name);
  if (entry != state_->entries.end() && !entry->second.idle) state_->entries.erase(entry);
}

std::vector<std::shared_ptr<Lease>> LingeringLeases::take_all() {
  std::vector<std::shared_ptr<Lease>> all;
  const MutexLock guard(state_->mutex);
  all.reserve(state_->entries.size());
  for (auto& [name, entry] : state_->entries)
    if (entry.idle) all.push_back(std::move(entry.idle));
  state_->entries.clear();
  return all;
}

void LingeringLeases::close(Instant until) noexcept { state_->close(until); }

Duration LingeringLeases::longest(const LeaseTerms& terms) noexcept {
  const auto quarter = (terms.lease - terms.margin) / 4;
  return terms.renew_every > Duration{} ? std::min(quarter, terms.renew_every / 2) : quarter;
}

}  // namespace dlock::engine

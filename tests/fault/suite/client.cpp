// What a client does: transfer money under a lock, and write down everything before it counts on it.
//
//   client URL BEGIN ID PLACE LEASE_MS fenced|unfenced NAMES    until a line comes on stdin; its history goes to stdout
//
// BEGIN is the statement that opens a writing transaction, PLACE the client's among those of the run; the locks are
// NAMES, separated by commas: see Ledger.
//
// Balances are read when the lock has been granted, and written, as they were computed from that, in a transaction that
// comes later: another holder in between is a lost update. A fenced client lets the fence alone decide whether it may
// write. An unfenced one does what users of other lock libraries do: it asks whether the lock is still valid, then
// writes. A fenced client has several threads on one engine, whose leases it makes longer and shorter, and hands to
// itself; it has an observer that takes its time, may begin its fences behind a savepoint, stand in a queue, and take
// several locks at once. It also shares locks, and reads two accounts one after the other, which balance unless
// somebody wrote between; becomes a reader of what it wrote, and a writer of what it read; and has permits. What a
// short run has to have seen is done in the first turns of a thread, and later by chance.
#include "fault/suite/application.hpp"
#include "fault/suite/engines.hpp"
#include "fault/suite/history.hpp"
#include "fault/suite/ledger.hpp"
#include "fault/suite/neighbours.hpp"
#include "fault/suite/watch.hpp"

#include <dlock/dlock.hpp>
#include <dlock/soci.hpp>

#include <soci/soci.h>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

namespace dlock::test {
namespace {

using namespace std::chrono_literals;

// One thread of a process.
class Client {
 public:
  Client(const Orders& orders, Ledger ledger, Engines& engines, LetGo& let_go, std::string id)
      : orders_(orders), engines_(engines), let_go_(let_go), id_(std::move(id)) {
    std::copy_if(orders.names.begin(), orders.names.end(), std::back_inserter(names_),
                 [&](const std::string& name) { return ledger_of(name) == ledger && name != lone_till; });
    has_lone_till_ = ledger == Ledger::bank && orders.fenced;
  }

  void run() {
    while (!told_to_stop()) {
      try {
        ++turns_;
        const bool all = (first_turns() && !took_all_) || one_in(20);
        if (orders_.fenced && names_.size() > 1 && all) take_all();
        const bool lone = has_lone_till_ && (engines_.likes_lone_till() ? first_turns() || one_in(2) : one_in(200));
        if (lone) serve_lone_till();
        serve(names_[chance(names_.size())]);
        if (orders_.fenced) engines_.count_batches();
      } catch (const Error& error) {
        note({boottime(), What::trouble, "-", 0, 0, std::string(to_string(error.fault())) + ": " + error.what()});
        pause(20ms);
      }
    }
  }

 private:
  struct Balance {
    long long id = 0, money = 0;
  };

  std::size_t chance(std::size_t outcomes) {
    return std::uniform_int_distribution<std::size_t>(0, outcomes - 1)(random_);
  }

  // Half of all work takes no time, so that locks also change hands in quick succession.
  int busyness() { return chance(2) == 0 ? 0 : static_cast<int>(chance(20)); }

  bool first_turns() const noexcept { return turns_ <= 10; }

  // Again and again, as a process does for which its row is kept.
  void serve_lone_till() {
    const bool hurried = engines_.likes_lone_till() && chance(3) != 0;
    for (auto times = hurried ? 4 + chance(20) : 1; times > 0 && !told_to_stop(); --times)
      serve(std::string(lone_till), hurried);
  }

  // All locks at once, for a moment: they are asked for, and let go of, in a statement each.
  void take_all() {
    auto asked = boottime();
    auto all = engines_.first().try_lock_all_for(names_, orders_.lease / 2);
    if (!all) {
      note({boottime(), What::busy, names_.front()});
      return;
    }
    took_all_ = true;
    for (const auto& lock : *all) note({boottime(), What::grant, lock.name(), number(lock.token()), asked});
    pause(orders_.lease / 40);
    for (const auto& lock : *all)
      if (const auto now = boottime(); lock.valid())
        note({boottime(), What::held, lock.name(), number(lock.token()), now});
    std::vector<std::pair<std::string, long long>> held;
    for (const auto& lock : *all) held.emplace_back(lock.name(), number(lock.token()));
    asked = boottime();
    const std::string outcome(to_string(all->release()));
    for (const auto& [name, token] : held) note({boottime(), What::release, name, token, asked, outcome});
  }

  void serve(const std::string& name, bool hurried = false) {
    LockOptions options;
    const bool late = !hurried && chance(8) == 0;  // works past its lease, as a holder does who has forgotten it
    options.renew = !late;
    const bool looked_for = !hurried && orders_.fenced && first_turns() && !had_ticket_;
    if (looked_for || (!hurried && orders_.fenced && one_in(3))) options.fairness = Fairness::fifo;
    if (looked_for) options.label = id_;
    const auto share = choose_share(ledger_of(name), options);
    auto& engine = engines_.first();
    std::optional<Lookout> lookout;
    if (looked_for) lookout.emplace(engine, name, id_);
    const auto asked = boottime();
    auto lock = engine.try_lock_for(name, orders_.lease / 2, options);
    if (!lock) {
      note({boottime(), What::busy, name});
      return;
    }
    Watch watch(*lock, asked, share);
    const bool alone = share.mode == Share::Mode::exclusive;
    if (alone) tell_of_predecessor(*lock, asked);
    if (lookout && lookout->has_seen_it()) {
      had_ticket_ = true;
      tell(What::ticket, *lock);
    }
    for (auto jobs = late || hurried ? 1 : 1 + chance(3); jobs > 0; --jobs) {
      const auto length = late ? orders_.lease * 3 / 2 : hurried ? Duration{} : orders_.lease / 40 * busyness();
      if (!work(*lock, watch, length)) break;
      if (!orders_.fenced || late || hurried) continue;
      if (ledger_of(name) == Ledger::readers && one_in(3) && !change_share(*lock, watch)) break;
      if (extended_ < 2 || one_in(4)) extend(*lock);
      if ((!adopted_ || one_in(6)) && !adopt(*lock, watch)) return;
    }
    if (alone && orders_.fenced) let_go_.add(name, number(lock->token()), boottime());
    watch.release();
  }

  // Who of this process has let go of it before, as it seems: waited for, or in a row that was kept meanwhile.
  void tell_of_predecessor(const Lock& lock, Nanoseconds asked) {
    switch (let_go_.came_to(lock.name(), number(lock.token()), asked)) {
      case LetGo::Way::handed: tell(What::handed, lock); break;
      case LetGo::Way::later:
        if (engines_.keeps_row_of(lock)) tell(What::lingered, lock);
        break;
      case LetGo::Way::elsewhere: break;
    }
  }

  static void tell(What what, const Lock& lock) { note({boottime(), what, lock.name(), number(lock.token())}); }

  Share choose_share(Ledger ledger, LockOptions& options) {
    if (ledger == Ledger::permits) {
      options.mode = Mode::permits;
      options.permits = 1 + static_cast<long long>(chance(2));
      options.limit = permits_there_are;
      return {Share::Mode::permits, options.permits, options.limit};
    }
    if (ledger == Ledger::bank || one_in(3)) return {};
    options.mode = Mode::shared;
    return {Share::Mode::shared};
  }

  // False: better nothing else under this lock.
  bool work(Lock& lock, Watch& watch, Duration length) {
    switch (watch.share().mode) {
      case Share::Mode::exclusive: return transfer(lock, watch, length);
      case Share::Mode::shared: return one_in(3) ? read_fenced(lock, watch) : read_twice(lock, watch, length);
      case Share::Mode::permits: break;
    }
    watch.work(length);
    if (!watch.look()) return false;
    note({boottime(), What::work, lock.name(), number(lock.token()), watch.trusted()});
    return true;
  }

  // From one who writes to one who reads, or back if nobody else reads. False: it is lost.
  bool change_share(Lock& lock, Watch& watch) {
    if (!watch.look()) return false;
    watch.tell();  // of the grant that it was
    const auto asked = boottime();
    try {
      if (watch.share().mode == Share::Mode::exclusive) {
        watch.trust_no_longer();  // whatever comes of it: readers may come in from here on
        lock.downgrade();
        watch.begin(asked, {Share::Mode::shared});
        tell(What::downgraded, lock);
      } else if (lock.try_upgrade()) {
        watch.begin(asked, {});
        tell(What::upgraded, lock);
      }
    } catch (const Error& error) { trouble(lock, error); }
    return watch.look();
  }

  // What was read counts if the lock was trusted after it.
  bool read_twice(Lock& lock, Watch& watch, Duration between) {
    try {
      const auto reading = read_accounts(lock, [&] { watch.work(between); });
      if (!watch.look()) return false;
      note({boottime(), What::read, lock.name(), number(lock.token()), watch.trusted(), reading.text()});
      return true;
    } catch (const std::exception& error) { trouble(lock, error); }
    watch.look();
    return false;
  }

  // What was read counts if its transaction was committed.
  bool read_fenced(Lock& lock, Watch& watch) {
    Reading reading;
    const auto work = [&] { reading = read_accounts(lock, [&] { pause(orders_.lease / 40); }); };
    try {
      if (!sql_) sql_ = application().connect(orders_.url);
      if (chance(2) == 0) {
        lock.with_fence(*sql_, work);
      } else {
        *sql_ << orders_.begin;
        lock.fence(*sql_);
        work();
        *sql_ << "COMMIT";
      }
      note({boottime(), What::read, lock.name(), number(lock.token()), 0, reading.text()});
      return watch.look();
    } catch (const std::exception& error) { trouble(lock, error); }
    watch.look();
    return false;
  }

  template <class Between>
  Reading read_accounts(const Lock& lock, Between between) {
    if (!sql_) sql_ = application().connect(orders_.url);
    const auto accounts = read(lock.name());
    const auto entry = [&](std::size_t account) {
      const auto id = accounts.at(account).id;
      return Reading::Entry{id, read(lock.name(), id).at(0).money};
    };
    Reading reading;
    reading.first = entry(0);
    between();
    reading.second = entry(1);
    return reading;
  }

  // Shorter, longer, or as it is.
  void extend(Lock& lock) {
    const auto quarters = extended_ == 0 ? 3 : extended_ == 1 ? 8 : 3 + static_cast<int>(chance(6));
    try {
      lock.extend(orders_.lease * quarters / 4);
      ++extended_;
      if (quarters != 4) tell(quarters < 4 ? What::shorter : What::longer, lock);
    } catch (const Error& error) { trouble(lock, error); }
  }

  // Lets go of the lease, and has two adopt it at the same time. False: nobody has it.
  bool adopt(Lock& lock, Watch& watch) {
    if (!watch.look()) return true;
    const auto name = lock.name();
    const auto grant = lock.detach();
    if (one_in(4)) pause(2 * orders_.lease);  // it is over, and still theirs unless somebody came between
    std::optional<Lock> here, there;
    bool answered_here = false, answered_there = false;
    {
      const std::jthread rival([&] { there = adopted(&Engines::other, name, grant, answered_there); });
      here = adopted(&Engines::first, name, grant, answered_here);
    }
    if (here && there) note({boottime(), What::twice, name, number(grant.token)});
    if (answered_here && answered_there && here.has_value() != there.has_value()) {
      adopted_ = true;
      note({boottime(), What::adopted, name, number(grant.token)});
    }
    if (!here && !there) {
      note({boottime(), What::loss, name, number(grant.token), 0, "adopted by nobody"});
      return false;
    }
    lock = std::move(here ? *here : *there);
    return true;
  }

  template <class Which>
  std::optional<Lock> adopted(Which which, const std::string& name, const Grant& grant, bool& answered) {
    for (int tries = 3; tries > 0; --tries) try {
        auto lock = (engines_.*which)().adopt(name, grant);
        answered = true;
        return lock;
      } catch (const Error& error) {
        note({boottime(), What::trouble, name, number(grant.token), 0, error.what()});
        if (error.fault() != Fault::in_doubt) break;
      }
    return std::nullopt;
  }

  // False: better not another one under this lock.
  bool transfer(Lock& lock, Watch& watch, Duration work) {
    std::vector<Balance> accounts;
    try {
      if (!sql_) sql_ = application().connect(orders_.url);
      accounts = read(lock.name());
    } catch (const std::exception& error) {
      trouble(lock, error);
      return false;
    }
    watch.work(work);
    const auto id = id_ + '-' + std::to_string(++transfers_);
    const auto said = [&](What what) {
      note({boottime(), what, lock.name(), number(lock.token()), 0, id});
      return what == What::commit;
    };
    if (!orders_.fenced && !watch.look()) return false;
    said(What::intent);
    if (!orders_.fenced) pause(orders_.lease / 4);  // whoever is stopped here believes in what it asked before
    const bool first = transfers_ == 1;
    const bool whole = orders_.fenced && !first && chance(2) == 0;  // the library begins and commits
    const bool savepoint = first || chance(2) == 0;
    bool sent = false;
    try {
      if (whole) {
        lock.with_fence(*sql_, [&] { write(lock, id, accounts); });
      } else {
        *sql_ << orders_.begin;
        if (savepoint) run("SAVEPOINT before_the_fence");
        if (orders_.fenced) lock.fence(*sql_);
        if (orders_.fenced && savepoint) tell(What::savepoint, lock);
        watch.look();
        write(lock, id, accounts);
        sent = true;
        *sql_ << "COMMIT";
      }
      said(What::commit);
      return watch.look();
    } catch (const Error& error) {
      const bool lost = error.fault() == Fault::lost;
      said(lost ? What::refused : error.fault() == Fault::in_doubt ? What::doubt : What::failed);
      if (!lost) trouble(lock, error);
      else if (!whole) write_regardless(lock, id, accounts, savepoint);
    } catch (const std::exception& error) {
      said(sent ? What::doubt : What::failed);
      trouble(lock, error);
    }
    sql_.reset();  // and with it what was left of the transaction
    watch.look();
    return false;
  }

  // As a program does that swallows exceptions: a refused fence has to have made this impossible.
  void write_regardless(const Lock& lock, const std::string& id, std::vector<Balance>& accounts, bool savepoint) {
    const auto attempt = [](const auto& work) {
      try {
        work();
      } catch (const std::exception&) {  // as it should be
      }
    };
    if (savepoint) attempt([&] { run("ROLLBACK TO SAVEPOINT before_the_fence"); });
    attempt([&] { write(lock, id, accounts); });
    attempt([&] { run("COMMIT"); });
  }

  void trouble(const Lock& lock, const std::exception& error) {
    sql_.reset();
    note({boottime(), What::trouble, lock.name(), number(lock.token()), 0, error.what()});
  }

  // SOCI's rules here: the whole text first, and a new session after any error.
  std::vector<Balance> read(const std::string& name, long long only = 0) {
    std::vector<Balance> accounts;
    const std::string query = "SELECT id, balance FROM account WHERE name = '" + name + "'" +
                              (only == 0 ? "" : " AND id = " + std::to_string(only)) + " ORDER BY id";
    const soci::rowset<soci::row> rows = (sql_->prepare << query);
    for (const auto& row : rows) accounts.push_back({integer(row, 0), integer(row, 1)});
    return accounts;
  }

  static long long integer(const soci::row& row, std::size_t column) {
    return row.get_properties(column).get_data_type() == soci::dt_integer ? row.get<int>(column)
                                                                          : row.get<long long>(column);
  }

  void write(const Lock& lock, const std::string& id, std::vector<Balance>& accounts) {
    auto& source = accounts[chance(accounts.size() / 2)];
    auto& target = accounts[accounts.size() / 2 + chance(accounts.size() / 2)];
    const auto amount = static_cast<long long>(chance(9)) - 4;
    const auto token = std::to_string(number(lock.token())), name = "'" + lock.name() + "'";
    run("UPDATE till SET seq = seq + 1 WHERE name = " + name);  // one after another, in the order of commits
    run("INSERT INTO transfer (id, name, seq, token, source, target, amount) SELECT '" + id + "', name, seq, " + token +
        ", " + std::to_string(source.id) + ", " + std::to_string(target.id) + ", " + std::to_string(amount) +
        " FROM till WHERE name = " + name);
    for (const auto& [account, money] : {std::pair{&source, source.money - amount}, {&target, target.money + amount}})
      run("UPDATE account SET balance = " + std::to_string(money) + " WHERE id = " + std::to_string(account->id));
  }

  void run(const std::string& statement) { *sql_ << statement; }

  const Orders& orders_;
  Engines& engines_;
  LetGo& let_go_;
  const std::string id_;
  std::vector<std::string> names_;
  std::unique_ptr<soci::session> sql_;
  std::mt19937 random_{std::random_device{}()};
  std::size_t turns_ = 0, transfers_ = 0, extended_ = 0;
  bool has_lone_till_ = false, took_all_ = false, had_ticket_ = false, adopted_ = false;
};

// To the superuser no file is read-only, unless this is given up. Others do not have it.
void respect_permissions() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0) return;
  for (const unsigned right : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
    sets[0].effective &= ~(1U << right);
    sets[0].permitted &= ~(1U << right);
  }
  ::syscall(SYS_capset, &header, sets);
}

}  // namespace
}  // namespace dlock::test

int main(int argc, char** argv) {
  using namespace dlock::test;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody stays behind, stopped or not
  std::signal(SIGXFSZ, SIG_IGN);       // a full disk is an error, not the end
  respect_permissions();
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    Orders orders{arguments.at(0),
                  arguments.at(1),
                  arguments.at(2),
                  std::stoul(arguments.at(3)),
                  std::chrono::milliseconds{std::stoll(arguments.at(4))},
                  arguments.at(5) == "fenced",
                  {}};
    std::istringstream names(arguments.at(6));
    for (std::string name; std::getline(names, name, ',');) orders.names.push_back(name);
    Engines engines(orders);
    LetGo let_go;
    std::vector<std::jthread> threads;
    for (const auto& [letter, ledger] : {std::pair{"a", Ledger::bank},
                                         {"b", Ledger::bank},
                                         {"c", Ledger::bank},
                                         {"d", Ledger::readers},
                                         {"e", Ledger::permits}}) {
      threads.emplace_back(
          [&, ledger = ledger, id = orders.id + letter] { Client(orders, ledger, engines, let_go, id).run(); });
      if (!orders.fenced) break;
    }
    threads.clear();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "client: " << error.what() << '\n';
    return 2;
  }
}

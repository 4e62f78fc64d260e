// The order of a run: set up, let the nemesis loose, let recover, stop, check.
#include "fault/suite/campaign.hpp"

#include "fault/suite/bank.hpp"
#include "fault/suite/kept_run.hpp"
#include "fault/suite/ledger.hpp"
#include "fault/suite/nemesis.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/keep.hpp"
#include "support/slowness.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>

namespace dlock::test {
namespace {

using namespace std::chrono_literals;

const auto recovery = std::max<std::chrono::milliseconds>(60s, far_longer());  // nobody is stuck this long

// A server of the suite's own, where there are servers, since it is going to be killed. It takes seconds to start: one
// for all runs of a program.
PrivateServer* machine(const Plan& plan) {
  if (plan.paused_enough || plan.nemeses || Nodes::of_environment() || opener().private_server == nullptr)
    return nullptr;
  static const auto server = opener().private_server();
  return server.get();
}

// The database of a run, and a way to it for each client.
struct Ground {
  explicit Ground(const Plan& plan) {
    if (opener().server_database != nullptr) {
      auto test_database = machine(plan) != nullptr ? machine(plan)->test_database() : opener().server_database();
      server = test_database.get();
      for (std::size_t i = 0; i < plan.clients; ++i) {
        proxies.push_back(
            std::make_unique<Proxy>(*server, nodes ? nodes->address(i % nodes->size()) : server->address()));
        urls.push_back(server->url_at(proxies.back()->address()));
      }
      database = std::make_unique<Database>(std::move(test_database));
    } else {
      database = std::make_unique<Database>();
      urls.assign(plan.clients, database->url());
    }
    open_bank(database->test_database(), ledger_names());
  }

  const std::optional<Nodes> nodes = Nodes::of_environment();
  ServerTestDatabase* server = nullptr;
  std::vector<std::unique_ptr<Proxy>> proxies;
  std::vector<std::string> urls;
  std::unique_ptr<Database> database;
};

class Run {
 public:
  explicit Run(const Plan& plan)
      : plan_(plan),
        ground_(plan),
        clients_({ground_.urls, ground_.database->test_database().begin_writing(),
                  std::chrono::duration_cast<std::chrono::milliseconds>(plan.lease).count(), plan.fenced,
                  ledger_names(), histories_.path()}),
        victims_{clients_,
                 ground_.database->test_database(),
                 plan.lease,
                 ground_.server,
                 machine(plan),
                 ground_.nodes ? &*ground_.nodes : nullptr,
                 ground_.server == nullptr ? nullptr : &ground_.proxies} {}

  Report operator()() {
    begin();
    if (plan_.paused_enough) pause_holders();
    else run_nemesis();
    finish();
    return std::move(report_);
  }

 private:
  void begin() {
    const char* seed = std::getenv("DLOCK_TEST_SEED");
    report_.seed = seed == nullptr ? std::random_device{}() : static_cast<unsigned>(std::stoul(seed));
    if (!eventually([&] { return everybody_commits(std::vector<std::size_t>(clients_.size(), 0)); }, recovery))
      report_.troubles.push_back("not every client got to work");
  }

  bool everybody_commits(const std::vector<std::size_t>& before) const {
    for (std::size_t i = 0; i < clients_.size(); ++i)
      if (clients_.commits_of(i) <= before[i]) return false;
    return true;
  }

  void inflict(const Nemesis& nemesis) {
    const auto begun = boottime();
    try {
      nemesis.inflict();
    } catch (const std::exception& error) {  // one fault may come in the way of the next
      clients_.note({boottime(), What::trouble, "-", 0, begun, nemesis.name + ": " + error.what()});
      auto& spared = report_.spared[nemesis.name];
      ++spared.times;
      spared.why = error.what();
      return;
    }
    clients_.note({boottime(), What::fault, "-", 0, begun, nemesis.name});
    ++report_.faults[nemesis.name];
    // Whatever was done, work goes on.
    const auto commits = clients_.times(What::commit);
    if (!eventually([&] { return clients_.times(What::commit) > commits; }, recovery))
      report_.troubles.push_back("nobody commits after: " + nemesis.name);
  }

  void tell() {
    count();
    report_.resident = clients_.resident();
    if (plan_.progress) plan_.progress(report_);
  }

  void count() {
    for (int i = 0; i <= static_cast<int>(What::fault); ++i)
      report_.times[static_cast<What>(i)] = clients_.times(static_cast<What>(i));
  }

  void run_nemesis() {
    auto deck = plan_.nemeses ? plan_.nemeses(victims_) : nemeses(victims_);
    std::mt19937 random{report_.seed};
    const auto end = boottime() + std::chrono::nanoseconds(plan_.length).count();
    do {
      std::shuffle(deck.begin(), deck.end(), random);
      for (const auto& nemesis : deck) {
        inflict(nemesis);
        tell();
        if (!report_.troubles.empty()) return;
      }
    } while (boottime() < end || report_.inflicted() < plan_.faults);
    // What came to nothing because of another fault is done now, or the run has not shown what it is for.
    std::vector<std::string> never;
    for (const auto& nemesis : deck) {
      for (int i = 0; i < 5 && !report_.faults.contains(nemesis.name) && report_.troubles.empty(); ++i)
        inflict(nemesis);
      if (!report_.faults.contains(nemesis.name))
        never.push_back("never inflicted: " + nemesis.name + ": " + report_.spared[nemesis.name].why);
    }
    report_.troubles.insert(report_.troubles.end(), never.begin(), never.end());
    // What only chance brings about is waited for.
    const auto seen = [&] {
      count();
      return std::all_of(std::begin(wanted), std::end(wanted),
                         [&](const Wanted& one) { return report_.count(one.what) >= one.times; });
    };
    for (int i = 0; i < 20 && !seen(); ++i) inflict({"pause", [&] { pause_past_lease(victims_); }});
  }

  // Of all names that were ever granted.
  Books books() const {
    std::set<std::string> granted(ledger_names().begin(), ledger_names().end());
    for (const auto& record : clients_.history())
      if (record.what == What::grant) granted.insert(record.name);
    return read_books(ground_.database->test_database(), {granted.begin(), granted.end()});
  }

  void pause_holders() {
    const auto end = boottime() + std::chrono::nanoseconds(plan_.length).count();
    do {
      inflict({"pause", [&] {
                 eventually([&] { return clients_.inside().about_to_write; }, far_longer(), closely);
                 pause_past_lease(victims_);
               }});
      count();
      report_.violations = violations(clients_.history(), books());
    } while (!plan_.paused_enough(report_) && boottime() < end);
  }

  void finish() {
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < clients_.size(); ++i) before.push_back(clients_.commits_of(i));
    if (report_.troubles.empty() && !eventually([&] { return everybody_commits(before); }, recovery))
      report_.troubles.push_back("not every client works again when all is well");
    clients_.dismiss();
    report_.troubles.insert(report_.troubles.end(), clients_.broken().begin(), clients_.broken().end());
    count();
    if (!eventually([&] { return freed(); }, recovery)) report_.troubles.push_back("what was left held is not freed");
    const KeptRun all{clients_.history(), books()};
    report_.violations = violations(all.history, all.books);
    if (plan_.fenced ? report_.violations.empty() && report_.troubles.empty() : report_.troubles.empty()) return;
    report_.kept = place_to_keep("run-" + std::to_string(boottime()));
    keep_run(report_.kept, all);
  }

  // Frees what those who were killed have held. False: the database does not answer now.
  bool freed() const {
    try {
      Engine engine(ground_.database->url());
      for (const auto& name : ledger_names()) free_by_force(engine, name);
      return true;
    } catch (const Error&) { return false; }
  }

  const Plan& plan_;
  const TemporaryFolder histories_{true};
  Report report_;
  Ground ground_;
  Clients clients_;
  Victims victims_;
};

}  // namespace

std::size_t Report::count(What what) const {
  const auto found = times.find(what);
  return found == times.end() ? 0 : found->second;
}

std::size_t Report::inflicted() const {
  std::size_t all = 0;
  for (const auto& [kind, times_done] : faults) all += times_done;
  return all;
}

std::string Report::text() const {
  std::ostringstream out;
  out << "faults " << inflicted();
  for (const auto what :
       {What::grant,    What::busy,      What::loss,          What::commit,  What::refused, What::failed,
        What::doubt,    What::read,      What::work,          What::trouble, What::longer,  What::shorter,
        What::adopted,  What::savepoint, What::slow_observer, What::batch,   What::ticket,  What::downgraded,
        What::upgraded, What::handed,    What::lingered})
    out << ", " << to_string(what) << ' ' << count(what);
  out << ", violations " << violations.size() << ", memory of a client " << resident / 1024 << " KiB\n ";
  for (const auto& [kind, times_done] : faults) out << ' ' << kind << ": " << times_done << ';';
  for (const auto& [kind, not_done] : spared) out << " not inflicted: " << kind << ": " << not_done.times << ';';
  out << '\n';
  for (const auto& violation : violations) out << "  violation: " << violation << '\n';
  for (const auto& trouble : troubles) out << "  trouble: " << trouble << '\n';
  if (!kept.empty()) out << "  kept, for dlock_judge: " << kept << '\n';
  out << "  seed " << seed << '\n';
  return out.str();
}

Duration lease_of_tellers() { return 400ms * std::min(slowness(), 6); }

Report run(const Plan& plan) { return Run(plan)(); }

}  // namespace dlock::test

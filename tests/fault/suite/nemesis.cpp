// How each fault is brought about, and ended.
#include "fault/suite/nemesis.hpp"

#include "support/admin.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <dlock/dlock.hpp>

#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>

namespace dlock::test {
namespace {

using namespace std::chrono_literals;

// A fault lasts for a time: what it is about is what happens meanwhile.
void last(Duration length) { std::this_thread::sleep_for(length); }

// Past any trust and any lease that was granted before.
Duration past_lease(const Victims& victims) { return victims.lease * 3 / 2; }

// Throws, so that it counts for nothing, unless the fault has met somebody.
void require(bool met, const char* otherwise) {
  if (!met) throw std::runtime_error(otherwise);
}

// Who holds a lock now, or soon.
Clients::Inside holder(const Victims& victims) {
  Clients::Inside found;
  eventually(
      [&] {
        found = victims.clients.inside();
        return !found.name.empty();
      },
      2s * slowness());
  require(!found.name.empty(), "nobody holds a lock");
  return found;
}

// Stops a client that holds a lock until another one has written under it, but not forever: who is stopped inside a
// transaction may keep the others out. True: another one has. It is past its lease in any case, and stays stopped.
bool stop_past_lease(Victims& victims, const Clients::Inside& inside) {
  victims.clients.signal(inside.client, SIGSTOP);
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(victims.lease * 3 + 1s);
  return eventually([&] { return victims.clients.newest_commit(inside.name) > inside.token; }, limit);
}

void force_release(Victims& victims) {
  Engine engine(victims.test_database.url());
  const auto inside = holder(victims);
  const auto begun = boottime();
  // Noted as done even if it was not, or is not known to be: it excuses one lease, and the fence none.
  const auto done = [&] { victims.clients.note({boottime(), What::force, inside.name, inside.token, begun}); };
  bool freed = false;
  try {
    freed = engine.force_release(inside.name, Token{inside.token});
  } catch (const Error&) {
    done();
    throw;
  }
  done();
  require(freed, "the lock had moved on");
}

// What a failover or a restore does that has forgotten the last time the reaper raised the floor: tokens of rows that
// are removed afterwards must not be given again. Names that only this nemesis uses, each once.
class ForgottenFloor {
 public:
  explicit ForgottenFloor(Victims& victims) : victims_(victims), round_(std::make_shared<int>(0)) {}

  void operator()() {
    // The same engine each time: what it remembers of the floor is what may deceive it.
    if (!engine_) {
      EngineOptions options;
      options.reaper.retention = options.reaper.grace = 20ms;
      engine_ = std::make_shared<Engine>(victims_.test_database.url(), options);
    }
    const auto end = std::to_string(++*round_);
    const auto low = quiet_name + ("/low/" + end), high = quiet_name + ("/high/" + end);
    const auto before = take(low);
    while (take(high) <= before) {}
    reap(high);
    Admin admin(victims_.test_database);
    admin.run("UPDATE resource_lock SET token = 0 WHERE name = ''");
    reap(low);
    for (const bool again : {false, true}) {
      const auto asked = boottime();
      const auto token = take(low);
      if (!again) victims_.clients.note({boottime(), What::grant, low, before, asked - 1});
      victims_.clients.note({boottime(), What::grant, low, token, asked});
    }
  }

 private:
  long long take(const std::string& name) {
    auto lock = engine_->try_lock_for(name, 5s * slowness());
    if (!lock) throw std::runtime_error(name + " is busy");
    const auto token = number(lock->token());
    lock->release();
    return token;
  }

  void reap(const std::string& name) {
    Reaping reaping;
    reaping.glob = name;
    if (!eventually([&] { return engine_->reap_all(reaping).removed > 0; }, 5s * slowness()))
      throw std::runtime_error(name + " was not removed");
  }

  Victims& victims_;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<int> round_;
};

void step_clock(Victims& victims, std::chrono::seconds offset) {
  const auto begun = boottime();
  victims.machine->step_clock(offset);
  victims.clients.note({boottime(), What::step, "-", 0, begun});
}

void on_clients(Victims& victims, std::vector<Nemesis>& all) {
  auto& clients = victims.clients;
  all.push_back({"kill", [&] { clients.replace(clients.inside().client); }});
  all.push_back({"pause", [&] { pause_past_lease(victims); }});
  all.push_back({"hiccup", [&] {
                   const auto client = holder(victims).client;
                   clients.signal(client, SIGSTOP);
                   last(victims.lease / 2);
                   clients.signal(client, SIGCONT);
                 }});
  all.push_back({"kill while stopped", [&] {
                   const auto inside = holder(victims);
                   stop_past_lease(victims, inside);
                   clients.replace(inside.client);
                 }});
  all.push_back({"force", [&] { force_release(victims); }});
  if (victims.nodes == nullptr) all.push_back({"floor forgotten", ForgottenFloor(victims)});
}

void on_network(Victims& victims, std::vector<Nemesis>& all) {
  auto& proxies = *victims.proxies;
  const auto one = [&]() -> Proxy& { return *proxies[victims.clients.inside().client]; };
  all.push_back({"cut", [=] {
                   std::size_t cut = 0;
                   for (int i = 0; i < 3; ++i) {
                     auto& proxy = one();
                     const auto before = proxy.ended();
                     proxy.cut();
                     last(20ms);
                     cut += proxy.ended() - before;
                   }
                   require(cut > 0, "nobody was connected");
                 }});
  all.push_back({"half close", [=] {
                   auto& proxy = one();
                   const auto before = proxy.ended();
                   proxy.half_close();
                   last(20ms);
                   require(proxy.ended() > before, "nobody was connected");
                 }});
  for (const auto round_trip : {20ms, 60ms, 150ms})
    all.push_back({"round trip of " + std::to_string(round_trip.count()) + " ms", [=, &victims] {
                     auto& proxy = one();
                     const auto before = proxy.requests();
                     proxy.delay(round_trip / 2);
                     last(past_lease(victims));
                     const auto after = proxy.requests();
                     proxy.pass();
                     require(after > before, "nothing was asked");
                   }});
  // What was asked takes effect when nobody waits for it any more, as from a backend that was stopped.
  all.push_back({"request held back", [=, &victims] {
                   auto& proxy = one();
                   proxy.hold_next_request();
                   const bool holds = eventually([&] { return proxy.holds(); }, 2s * slowness());
                   if (holds) last(past_lease(victims));
                   proxy.let_held_go();
                   require(holds, "nothing was asked");
                   eventually([&] { return proxy.held_was_answered(); }, 2s * slowness());
                 }});
  all.push_back({"black hole, delivered late", [=, &victims] {
                   auto& proxy = one();
                   proxy.black_hole();
                   last(past_lease(victims));
                   const auto inside = proxy.open();
                   proxy.pass();
                   require(inside > 0, "nobody was connected");
                 }});
  all.push_back({"black hole, cut", [=, &victims] {
                   auto& proxy = one();
                   proxy.black_hole();
                   last(past_lease(victims));
                   const auto inside = proxy.open();
                   proxy.cut();
                   proxy.pass();
                   require(inside > 0, "nobody was connected");
                 }});
  all.push_back({"answers swallowed", [=, &victims] {
                   auto& proxy = one();
                   const auto before = proxy.requests();
                   proxy.swallow_answers();
                   last(victims.lease);
                   const auto after = proxy.requests();
                   proxy.cut();
                   proxy.pass();
                   require(after > before, "nothing was asked");
                 }});
  all.push_back({"answer lost", [=] {
                   auto& proxy = one();
                   proxy.lose_next_answer();
                   require(eventually([&] { return proxy.lost_it(); }, 2s * slowness()), "nothing was asked");
                 }});
  all.push_back({"no network", [=, &victims] {
                   auto& proxy = one();
                   const auto before = proxy.ended();
                   proxy.refuse();
                   last(past_lease(victims));
                   const auto after = proxy.ended();
                   proxy.pass();
                   require(after > before, "nobody was connected, or asked to be");
                 }});
}

// They have met somebody if somebody connects anew.
void disconnect_everybody(Victims& victims) {
  const auto connections = [&] {
    std::size_t all = 0;
    for (const auto& proxy : *victims.proxies) all += proxy->connections();
    return all;
  };
  const auto before = connections();
  victims.server->disconnect_everybody();
  require(eventually([&] { return connections() > before; }, 2s * slowness()), "nobody was connected");
}

void on_server(Victims& victims, std::vector<Nemesis>& all) {
  auto& machine = *victims.machine;
  all.push_back({"server killed", [&] {
                   machine.stop();
                   machine.start();
                 }});
  all.push_back({"server frozen", [&] {
                   machine.freeze();
                   last(past_lease(victims));
                   machine.thaw();
                 }});
  all.push_back({"clock stepped", [&] {
                   step_clock(victims, std::chrono::ceil<std::chrono::seconds>(3 * victims.lease));
                   last(victims.lease);
                   step_clock(victims, 0s);
                 }});
}

void on_nodes(Victims& victims, std::vector<Nemesis>& all) {
  const auto& nodes = *victims.nodes;
  for (std::size_t i = 1; i < nodes.size(); ++i) {  // what is proved in the end is read from the first
    all.push_back({"node killed", [&, i] {
                     nodes.signal(i, "KILL");
                     last(past_lease(victims));
                     nodes.start();
                   }});
  }
  all.push_back({"node frozen", [&] {
                   const auto node = static_cast<std::size_t>(boottime() / 1000) % nodes.size();
                   nodes.signal(node, "STOP");
                   last(past_lease(victims));
                   nodes.signal(node, "CONT");
                 }});
}

void on_file(Victims& victims, std::vector<Nemesis>& all) {
  auto& clients = victims.clients;
  const auto path = victims.test_database.url().substr(victims.test_database.url().find(':') + 1);
  all.push_back({"foreign transaction", [&] {
                   Admin admin(victims.test_database);
                   admin.run(victims.test_database.begin_writing());
                   last(past_lease(victims));
                   admin.run("ROLLBACK");
                 }});
  all.push_back({"full disk", [&] {
                   const auto pid = clients.pid(holder(victims).client);
                   rlimit before{};
                   const rlimit full{4096, RLIM_INFINITY};
                   require(::prlimit(pid, RLIMIT_FSIZE, &full, &before) == 0, "the client has gone");
                   last(past_lease(victims));
                   require(::prlimit(pid, RLIMIT_FSIZE, &before, nullptr) == 0, "the client has gone");
                 }});
  all.push_back({"read-only file", [&clients, &victims, path] {
                   const auto set = [&](mode_t mode) {
                     bool all_set = true;  // the parts that are there
                     for (const auto* part : {"", "-wal", "-shm"})
                       all_set = (::chmod((path + part).c_str(), mode) == 0 || errno == ENOENT) && all_set;
                     return all_set;
                   };
                   const bool closed = set(0400);
                   clients.replace(clients.inside().client);  // who opens it now may not write
                   last(past_lease(victims));
                   require(set(0600) && closed, "the file's mode could not be set");
                 }});
}

}  // namespace

bool pause_past_lease(Victims& victims) {
  const auto inside = holder(victims);
  const bool written = stop_past_lease(victims, inside);
  victims.clients.signal(inside.client, SIGCONT);
  return written;
}

std::vector<Nemesis> nemeses(Victims& victims) {
  std::vector<Nemesis> all;
  on_clients(victims, all);
  if (victims.proxies != nullptr) on_network(victims, all);
  if (victims.server != nullptr) all.push_back({"connections terminated", [&] { disconnect_everybody(victims); }});
  if (victims.machine != nullptr) on_server(victims, all);
  if (victims.nodes != nullptr) on_nodes(victims, all);
  if (victims.server == nullptr) on_file(victims, all);
  return all;
}

}  // namespace dlock::test

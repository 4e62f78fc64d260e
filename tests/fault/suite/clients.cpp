// How clients are started, listened to and ended.
#include "fault/suite/clients.hpp"
#include "support/eventually.hpp"
#include "support/paths.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>

namespace dlock::test {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

}  // namespace

Clients::Clients(Orders orders) : orders_(std::move(orders)) {
  for (std::size_t i = 0; i < orders_.urls.size(); ++i) {
    players_.push_back(nullptr);
    start(i);
  }
}

Clients::~Clients() {
  for (auto& player : players_) {
    player->child->signal(SIGKILL);
    end(*player, killed_by(SIGKILL));
  }
}

void Clients::start(std::size_t client) {
  auto player = std::make_unique<Player>();
  player->who = "client" + std::to_string(client) + '.' + std::to_string(++started_);
  player->child = std::make_unique<Child>(std::vector<std::string>{
      path::client(), orders_.urls[client], orders_.begin, player->who, std::to_string(client),
      std::to_string(orders_.lease_ms), orders_.fenced ? "fenced" : "unfenced", joined(orders_.names)});
  player->reader = std::jthread([this, one = player.get()] { read(*one); });
  players_[client] = std::move(player);
}

void Clients::read(Player& player) {
  std::ofstream file(orders_.folder + '/' + player.who);
  while (const auto line = player.child->line()) {
    file << *line << '\n' << std::flush;
    auto record = Record::parse(*line);
    if (!record) continue;
    record->who = player.who;
    const std::lock_guard guard(mutex_);
    ++times_[record->what];
    // A transfer goes on meanwhile.
    if (record->what != What::held && record->what != What::slow_observer) player.last = record->what;
    if (record->what == What::commit) {
      ++player.commits;
      auto& newest = newest_commit_[record->name];
      newest = std::max(newest, record->token);
    }
    if (record->what == What::grant) {
      player.locks[record->name] = record->token;
      auto& newest = newest_token_[record->name];
      newest = std::max(newest, record->token);
    }
    if (record->what == What::release) player.locks.erase(record->name);
    history_.push_back(std::move(*record));
  }
}

void Clients::end(Player& player, const ExitStatus& expected) {
  if (player.child->pid() < 0) return;
  player.reader.join();
  if (const auto status = player.child->wait(); status != expected)
    broken_.push_back(player.who + " ended with " + status.text());
}

pid_t Clients::pid(std::size_t client) const { return players_[client]->child->pid(); }

void Clients::signal(std::size_t client, int number) { players_[client]->child->signal(number); }

void Clients::replace(std::size_t client) {
  signal(client, SIGKILL);
  end(*players_[client], killed_by(SIGKILL));
  start(client);
}

Clients::Inside Clients::inside() const {
  const std::lock_guard guard(mutex_);
  Inside found;
  for (std::size_t i = 0; i < players_.size(); ++i) {
    const auto& player = *players_[i];
    for (const auto& [name, token] : player.locks)
      if (newest_token_.at(name) == token && (found.name.empty() || token % 2 == 0))
        found = {i, name, token, player.last == What::intent};
  }
  return found;
}

void Clients::note(Record record) {
  record.who = "tormentor";
  const std::lock_guard guard(mutex_);
  std::ofstream(orders_.folder + "/tormentor", std::ios::app) << record.line();
  ++times_[record.what];
  history_.push_back(std::move(record));
}

std::size_t Clients::times(What what) const {
  const std::lock_guard guard(mutex_);
  const auto found = times_.find(what);
  return found == times_.end() ? 0 : found->second;
}

std::size_t Clients::commits_of(std::size_t client) const {
  const std::lock_guard guard(mutex_);
  return players_[client]->commits;
}

long long Clients::newest_token(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  const auto found = newest_token_.find(name);
  return found == newest_token_.end() ? 0 : found->second;
}

long long Clients::newest_commit(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  const auto found = newest_commit_.find(name);
  return found == newest_commit_.end() ? 0 : found->second;
}

std::size_t Clients::resident() const {
  std::size_t most = 0;
  for (const auto& player : players_) {
    std::ifstream file("/proc/" + std::to_string(player->child->pid()) + "/statm");
    std::size_t all = 0, pages = 0;
    if (file >> all >> pages) most = std::max(most, pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  }
  return most;
}

void Clients::dismiss() {
  for (auto& player : players_) {
    try {
      player->child->tell("stop");
    } catch (const std::exception&) {  // it has ended by itself: its status tells
    }
  }
  for (auto& player : players_) {
    std::jthread watchdog([pid = player->child->pid()](const std::stop_token& stop) {
      const auto end = boottime() + std::chrono::nanoseconds(far_longer()).count();
      while (!stop.stop_requested() && boottime() < end) std::this_thread::sleep_for(std::chrono::milliseconds{10});
      if (!stop.stop_requested()) ::kill(pid, SIGKILL);
    });
    end(*player, exited(0));
    watchdog.request_stop();
  }
}

History Clients::history() const {
  const std::lock_guard guard(mutex_);
  return history_;
}

}  // namespace dlock::test

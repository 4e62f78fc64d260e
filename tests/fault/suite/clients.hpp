// The clients of a run: their processes, and their histories as they come in.
#pragma once

#include "fault/suite/history.hpp"
#include "support/child.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dlock::test {

// Threads: one, and the readers of its own. Owns: the clients' processes.
class Clients {
 public:
  struct Orders {
    std::vector<std::string> urls;  // one a client
    std::string begin;
    long long lease_ms = 0;
    bool fenced = true;
    std::vector<std::string> names;
    std::string folder;  // the histories stay here as files, one a process
  };

  explicit Clients(Orders orders);
  ~Clients();
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  std::size_t size() const noexcept { return orders_.urls.size(); }
  pid_t pid(std::size_t client) const;
  void signal(std::size_t client, int number);
  // SIGKILL, and another one in its place.
  void replace(std::size_t client);

  // Who holds a lock, as its history says; the first client if nobody does. And which lock.
  struct Inside {
    std::size_t client = 0;
    std::string name;
    long long token = 0;
    bool about_to_write = false;  // the transfer has begun, and is not over
  };
  Inside inside() const;

  void note(Record record);  // into the tormentor's own history

  std::size_t times(What what) const;
  std::size_t commits_of(std::size_t client) const;        // of the present process
  long long newest_token(const std::string& name) const;   // of its grants
  long long newest_commit(const std::string& name) const;  // the token of the transfers under it
  std::size_t resident() const;                            // bytes of memory that the largest client has just now

  // Lets them finish what they are doing.
  void dismiss();
  // Those who ended otherwise than they were told to, and how.
  const std::vector<std::string>& broken() const noexcept { return broken_; }

  History history() const;

 private:
  struct Player {
    std::string who;
    std::unique_ptr<Child> child;
    std::size_t commits = 0;                 // guarded by mutex_
    std::map<std::string, long long> locks;  // it is inside of, and their tokens; guarded by mutex_
    What last{};                             // guarded by mutex_
    std::jthread reader;
  };

  void start(std::size_t client);
  void read(Player& player);
  void end(Player& player, const ExitStatus& expected);

  const Orders orders_;
  std::vector<std::unique_ptr<Player>> players_;
  std::size_t started_ = 0;
  std::vector<std::string> broken_;
  mutable std::mutex mutex_;
  History history_;                                                // guarded by mutex_
  std::map<What, std::size_t> times_;                              // guarded by mutex_
  std::map<std::string, long long> newest_token_, newest_commit_;  // guarded by mutex_
};

}  // namespace dlock::test

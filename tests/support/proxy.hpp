// How to stand between a client and its server: it counts, delays, cuts and swallows.
#pragma once

#include "support/test_database.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

// A TCP proxy on a port of its own.
// Threads: any. Owns: a thread.
class Proxy {
 public:
  explicit Proxy(const ServerTestDatabase& server);
  // To another door of the server; without a record of what was sent.
  Proxy(const ServerTestDatabase& server, const Address& door);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  Address address() const;

  // How many requests clients have begun to send since the proxy started.
  std::size_t requests() const;
  // Every byte that clients have sent.
  std::string sent() const;
  // How many connections were ever made.
  std::size_t connections() const;
  // How many there are now.
  std::size_t open() const;
  // How many the proxy has cut, refused or half closed since it started.
  std::size_t ended() const;

  // Everything goes through (as in the beginning).
  void pass();
  // Nothing goes through in either direction, and nobody is told. Connections are accepted.
  void black_hole();
  // Connections end at once, and new ones too.
  void refuse();
  // New connections are served until that many bytes of the server have reached their client; then they are stalled.
  void stall_after(std::size_t bytes);
  // How many connections have been stalled so.
  std::size_t silenced() const;
  // How many bytes of the server have reached the client of the connection that was made last, each time that the
  // client spoke again, and by now.
  std::vector<std::size_t> bursts() const;
  // Connections end once; new ones are served.
  void cut();
  // As a black hole, for the connections there are now and for good; new ones are served.
  void stall();
  // What clients send goes through; no answer does. What was swallowed never comes: cut() before pass().
  void swallow_answers();
  // Clients of the present connections are told that nothing more will come; what they send still goes through.
  void half_close();
  // Each direction takes this much longer, until pass().
  void delay(std::chrono::milliseconds length);
  // The next request, or the one after `spared` others, reaches the server; its answer is lost, and with it the
  // connection.
  void lose_next_answer(std::size_t spared = 0);
  // The same, and from then on as after refuse().
  void lose_next_answer_and_refuse(std::size_t spared = 0);
  // The next request never reaches the server, and its connection ends.
  void lose_next_request();
  bool lost_it() const;  // since then
  // Of what the next client says that says anything, so many bytes reach the server; then it is cut off, and the server
  // is told that nothing more comes.
  void cut_next_after(std::size_t bytes);
  bool cut_was_noticed() const;  // since then: the server has ended that connection
  // The next request that is a transaction of several statements is undone in that place: see Undoer. `times`: and the
  // next ones of this kind, in the same place.
  void undo_next_transaction(std::size_t gap, std::size_t times = 1);
  // How many such places the one that was undone last had. 0: there was none since then.
  std::size_t gaps_of_undone() const;
  // The next request that has these words in it, and whatever else its connection sends, is held until let_held_go():
  // whether or not its client still waits for the answer then.
  void hold_next_request(std::string_view words = {});
  // The same; from then on all other connections end at once, and new ones too.
  void hold_next_request_and_refuse(std::string_view words = {});
  bool holds() const;
  void let_held_go();
  bool held_was_answered() const;  // since then, by the server

 private:
  void listen();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dlock::test

// Keeps the client library's way from a connected socket to a session inside of a deadline, and out of the clear.
#pragma once

#include "types/clock.hpp"

#include <mysql.h>

#include <string>

namespace dlock::dialects::mysql {

// Puts a socket that says nothing in the place of a connected one. The client library makes its socket blocking once it
// is connected, and reads the greeting, sets TLS up and logs in without a pause if all of it is there already. On a
// silent socket it has to pause, with its settings made on that one; then the real one is put back, as it should be.
// Owns: the connected socket while it is away. Threads: that which made it.
class SocketAside {
 public:
  // Throws Failure when there are no descriptors left.
  explicit SocketAside(int descriptor);
  ~SocketAside();
  SocketAside(const SocketAside&) = delete;
  SocketAside& operator=(const SocketAside&) = delete;

  // Only while the library still has the descriptor.
  void put_back();

 private:
  const int descriptor_;
  int real_ = -1, silent_ = -1, peer_ = -1;
};

// Whether the descriptor is a connected socket of the network.
bool is_connected_by_network(int descriptor);

// No child inherits it, and no call of the library on it ever blocks.
void tame(int descriptor);

// Makes the waits that the library does by itself (while TLS is set up, and when a connection is closed) ours: they end
// with the TimeForLibrary of their thread, and where there is none at once.
void take_waits_over(MYSQL* connection);

// While one lives, the library may wait on this thread.
class TimeForLibrary {
 public:
  explicit TimeForLibrary(const Deadline& deadline) noexcept;
  ~TimeForLibrary();
  TimeForLibrary(const TimeForLibrary&) = delete;
  TimeForLibrary& operator=(const TimeForLibrary&) = delete;
};

// The connection will be made without TLS, whatever the options and option files say of it.
void leave_tls_out(MYSQL* connection);

// Whoever listens to the network must not read the password: what would send it as it is will be refused.
void keep_password_hidden(MYSQL* connection);

}  // namespace dlock::dialects::mysql

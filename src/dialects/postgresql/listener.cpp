// What is sent to listen, how a notification reads (the owner of the ticket that is next, or 32 dashes, and then the
// name), and how soon it shows that the other end has gone.
#include "listener.hpp"

#include "connection.hpp"
#include "dialects/interrupt.hpp"
#include "faults.hpp"
#include "types/owner.hpp"
#include "types/process.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>

namespace dlock::dialects::postgresql {
namespace {

constexpr std::size_t head_length = 32;
constexpr std::string_view nobody = "--------------------------------";

// A connection on which nothing is ever sent does not notice by itself that the other end has gone. What the URL says
// of it comes after these, and wins.
Server watchful(Server server) {
  const Keywords alive{{"keepalives_idle", "10"}, {"keepalives_interval", "5"}, {"keepalives_count", "3"}};
  server.keywords.insert(server.keywords.begin(), alive.begin(), alive.end());
  return server;
}

class ServerListener final : public Listener {
 public:
  ServerListener(std::unique_ptr<ServerConnection> connection, const TableNames& names, Deadline deadline)
      : connection_(std::move(connection)) {
    // A server may be set to end sessions that are idle, which this one always is.
    if (PQserverVersion(connection_->native()) >= 140000) connection_->script("SET idle_session_timeout = 0", deadline);
    connection_->script("LISTEN dlock_" + names.channel(), deadline);
  }
  ~ServerListener() override {
    if (fork_guard_.forked()) static_cast<void>(connection_.release());  // it is the parent's
  }
  ServerListener(const ServerListener&) = delete;
  ServerListener& operator=(const ServerListener&) = delete;

  Notification wait(std::span<const AwaitedLock>, Deadline until) override {
    Notification notification;
    do {
      while (const Notify heard = next()) {
        const std::string_view text = heard->extra;
        if (text.size() <= head_length) continue;  // none of ours
        const auto head = text.substr(0, head_length);
        notification.names.push_back({std::string(text.substr(head_length)), std::string(head == nobody ? "" : head)});
      }
    } while (notification.empty() && interrupt_.wait(socket(), POLLIN, until) == Interrupt::Ended::ready);
    return notification;
  }

  void interrupt() noexcept override { interrupt_.raise(); }

 private:
  struct FreeNotification {
    void operator()(PGnotify* notification) const noexcept { PQfreemem(notification); }
  };
  using Notify = std::unique_ptr<PGnotify, FreeNotification>;

  int socket() const noexcept { return PQsocket(connection_->native()); }

  Notify next() {
    auto* const from = connection_->native();
    if (Notify kept{PQnotifies(from)}) return kept;
    if (PQconsumeInput(from) == 0)
      throw Failure(
          Cause::disconnected,
          "PostgreSQL: the connection that listens for releases is lost: " + in_one_line(PQerrorMessage(from)),
          "08006");
    return Notify{PQnotifies(from)};
  }

  const ForkGuard fork_guard_;
  Interrupt interrupt_;
  std::unique_ptr<ServerConnection> connection_;
};

}  // namespace

// Through a pooler a connection that is lent to others would listen, and this one would hear nothing.
std::unique_ptr<Listener> open_listener(const Server& server, const TableNames& names, Deadline deadline) {
  auto connection = std::make_unique<ServerConnection>(watchful(server), SessionUse::own_session, deadline);
  if (!connection->has_own_session()) return nullptr;
  return std::make_unique<ServerListener>(std::move(connection), names, deadline);
}

}  // namespace dlock::dialects::postgresql

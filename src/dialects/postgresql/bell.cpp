// This file knows what is sent to listen, and how a notification reads: the owner of the ticket that is next, or 32
// dashes, and then the name.
#include "bell.hpp"

#include "connection.hpp"
#include "dialects/interrupt.hpp"
#include "faults.hpp"
#include "types/owner.hpp"
#include "types/process.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr std::size_t head_length = 32;
constexpr std::string_view nobody = "--------------------------------";
constexpr std::chrono::seconds echo_time{1};

// A connection on which nothing is ever sent does not notice by itself that the other end has gone. What the URL says
// of it comes after these, and wins.
Server watchful(Server server) {
  const Keywords alive{{"keepalives_idle", "10"}, {"keepalives_interval", "5"}, {"keepalives_count", "3"}};
  server.keywords.insert(server.keywords.begin(), alive.begin(), alive.end());
  return server;
}

class ServerBell final : public Bell {
 public:
  ServerBell(const Server& server, const TableNames& names, Deadline deadline)
      : channel_("dlock_" + names.bell()), connection_(std::make_unique<ServerConnection>(server, false, deadline)) {
    PQsetNoticeProcessor(connection_->native(), [](void*, const char*) {}, nullptr);
    // A server may be set to end sessions that are idle, which this one always is.
    if (PQserverVersion(connection_->native()) >= 140000) connection_->script("SET idle_session_timeout = 0", deadline);
    connection_->script("LISTEN " + channel_, deadline);
  }
  ~ServerBell() override {
    if (birthplace_.forked()) static_cast<void>(connection_.release());  // it is the parent's
  }
  ServerBell(const ServerBell&) = delete;
  ServerBell& operator=(const ServerBell&) = delete;

  // Whether nothing lies between this connection and its backend: a pooler makes up the backend's number.
  bool direct(Deadline deadline) {
    const Statement who{"who", "SELECT pg_backend_pid()", {}, Marker::dollar, {}, {}, 0};
    return connection_->run(who, {}, deadline).integer(0, 0) == PQbackendPID(connection_->native());
  }

  // Whether what another connection sends is heard here.
  bool hears_from(const Server& server, Deadline deadline) {
    const auto word = random_identity();
    ServerConnection(server, false, deadline)
        .script(fmt::format("SELECT pg_notify('{}', '{}')", channel_, word), deadline);
    const auto end = std::min(deadline, later(BootClock::now(), echo_time));
    do {
      while (const Notification heard = next())
        if (word == heard->extra) return true;
    } while (interrupt_.wait(socket(), POLLIN, end) == Interrupt::Ended::ready);
    return false;
  }

  Rung wait(std::span<const Watched>, Deadline until) override {
    Rung rung;
    do {
      while (const Notification heard = next()) {
        const std::string_view text = heard->extra;
        if (text.size() <= head_length) continue;  // another bell's test
        const auto head = text.substr(0, head_length);
        rung.names.push_back({std::string(text.substr(head_length)), std::string(head == nobody ? "" : head)});
      }
    } while (rung.empty() && interrupt_.wait(socket(), POLLIN, until) == Interrupt::Ended::ready);
    return rung;
  }

  void interrupt() noexcept override { interrupt_.raise(); }

 private:
  struct Free {
    void operator()(PGnotify* notification) const noexcept { PQfreemem(notification); }
  };
  using Notification = std::unique_ptr<PGnotify, Free>;

  int socket() const noexcept { return PQsocket(connection_->native()); }

  Notification next() {
    auto* const from = connection_->native();
    if (Notification kept{PQnotifies(from)}) return kept;
    if (PQconsumeInput(from) == 0)
      throw Failure(Cause::disconnected,
                    "PostgreSQL: the connection that listens for releases is lost: " + in_one_line(PQerrorMessage(from)),
                    "08006");
    return Notification{PQnotifies(from)};
  }

  const Birthplace birthplace_;
  const std::string channel_;
  Interrupt interrupt_;
  std::unique_ptr<ServerConnection> connection_;
};

}  // namespace

std::unique_ptr<Bell> open_bell(const Server& server, const TableNames& names, Deadline deadline) {
  auto bell = std::make_unique<ServerBell>(watchful(server), names, deadline);
  if (bell->direct(deadline) || bell->hears_from(server, deadline)) return bell;
  return nullptr;
}

}  // namespace dlock::dialects::DLOCK_DIALECT

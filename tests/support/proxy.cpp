// How bytes get from a client to a server and back, as long as they are let through.
#include "support/proxy.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace dlock::test {
namespace {

enum class Mode { pass, black_hole, refuse, refuse_others, swallow_answers };

using Clock = std::chrono::steady_clock;

constexpr auto unbounded = std::numeric_limits<std::size_t>::max();

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

sockaddr_in socket_address(const Address& address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.host == "localhost" ? "127.0.0.1" : address.host.c_str(), &at.sin_addr);
  return at;
}

int new_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

const sockaddr* plain(const sockaddr_in& at) { return static_cast<const sockaddr*>(static_cast<const void*>(&at)); }
sockaddr* plain(sockaddr_in& at) { return static_cast<sockaddr*>(static_cast<void*>(&at)); }

// All of `bytes`, to a peer that reads. False: the peer is gone.
bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Bytes that are not to arrive yet.
struct Late {
  Clock::time_point due;
  bool from_client;
  std::string bytes;
};

struct Pair {
  int client, server;
  std::unique_ptr<RequestCounter> counter;
  std::unique_ptr<Undoer> undoer;
  std::size_t number;  // of all connections
  std::size_t left;    // of what the server may say
  std::vector<std::size_t> bursts{};
  bool client_spoke = false;
  bool losing = false, refuse_then = false, told_the_end = false, stalled = false;
  std::deque<Late> late{};
  enum class Hold { no, yes, let_go } held = Hold::no;
  std::string kept{};
  std::optional<std::size_t> bytes_to_cut{};
};

}  // namespace

struct Proxy::State {
  const ServerTestDatabase& test_database;
  const sockaddr_in target;
  int listener = -1, wake = -1;
  std::uint16_t port = 0;
  mutable std::mutex mutex;
  // Guarded by mutex:
  Mode mode = Mode::pass;
  bool cutting = false, closing = false, lose_next = false, refuse_then = false, lose_request = false, halving = false;
  bool stalling = false, hold_next = false, holds_one = false, letting_go = false, answered = false;
  std::chrono::milliseconds delay{};
  std::size_t requests = 0, connections = 0, open = 0, ended = 0, spared = 0, silenced = 0;
  std::size_t allowance = unbounded;  // of new connections
  std::vector<std::size_t> last_bursts;
  std::string sent, hold_words;
  std::optional<std::size_t> cut_after;
  bool cut_noticed = false;
  Undoer::Order undo;
  std::size_t undo_gap = 0, undo_again = 0;
  // The thread's own:
  std::list<Pair> pairs;
  std::jthread thread;
  const bool keep_sent;

  State(const ServerTestDatabase& server, const Address& door, bool keep)
      : test_database(server), target(socket_address(door)), keep_sent(keep) {}

  // Called with the mutex held. All but the one whose request is held.
  void drop_others() {
    for (auto pair = pairs.begin(); pair != pairs.end();) {
      if (pair->held != Pair::Hold::no) {
        ++pair;
        continue;
      }
      ::close(pair->client);
      ::close(pair->server);
      pair = pairs.erase(pair);
      ++ended;
    }
  }

  void drop_all() {
    for (auto& pair : pairs) {
      ::close(pair.client);
      ::close(pair.server);
    }
    pairs.clear();
  }

  void accept_one() {
    const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int on = 1;
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard guard(mutex);
    ++connections;
    last_bursts.clear();
    const int server = mode == Mode::refuse || mode == Mode::refuse_others ? -1 : new_socket();
    if (server < 0 || ::connect(server, plain(target), sizeof target) != 0) {
      if (server >= 0) ::close(server);
      ::close(client);
      ++ended;
      return;
    }
    pairs.push_back({client, server, test_database.request_counter(), test_database.undoer(), connections, allowance});
  }

  // False: this connection is over.
  bool forward(Pair& pair, bool from_client) {
    std::array<char, 65536> buffer;
    const auto count = ::recv(from_client ? pair.client : pair.server, buffer.data(), buffer.size(), 0);
    if (pair.client < 0 && count > 0) return true;  // it was cut off: nobody hears that any more
    if (count <= 0 && pair.client < 0) {
      const std::lock_guard guard(mutex);
      cut_noticed = true;
    }
    if (count <= 0) return false;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    if (pair.held == Pair::Hold::let_go) {
      const std::lock_guard guard(mutex);
      answered = true;
      return false;
    }
    if (!from_client && pair.losing) {
      const std::lock_guard guard(mutex);
      if (pair.refuse_then) mode = Mode::refuse;
      return false;
    }
    std::chrono::milliseconds by{};
    {
      const std::lock_guard guard(mutex);
      by = delay;
      if (!from_client && (mode == Mode::swallow_answers || pair.told_the_end)) return true;
    }
    if (by.count() > 0 || !pair.late.empty()) {
      pair.late.push_back({Clock::now() + by, from_client, std::string(bytes)});
      return true;
    }
    return deliver(pair, from_client, bytes);
  }

  bool deliver(Pair& pair, bool from_client, std::string_view bytes) {
    if (!from_client) return answer(pair, bytes);
    pair.client_spoke = true;
    std::string altered;
    {
      const std::lock_guard guard(mutex);
      if (keep_sent) sent.append(bytes);
      const auto begun = pair.counter->feed(bytes);
      requests += begun;
      if (begun > 0 && hold_next && bytes.find(hold_words) != std::string_view::npos) {
        hold_next = false;
        holds_one = true;
        answered = false;
        pair.held = Pair::Hold::yes;
        pair.kept = bytes;
        if (refuse_then) mode = Mode::refuse_others;
        refuse_then = false;
        return true;
      }
      if (cut_after) {
        pair.bytes_to_cut = *cut_after;
        cut_after.reset();
      }
      if (begun > 0 && lose_request) {
        lose_request = false;
        return false;
      }
      if (begun > 0 && lose_next && spared > 0) {
        --spared;
      } else if (begun > 0 && lose_next) {
        lose_next = false;
        pair.losing = true;
        pair.refuse_then = refuse_then;
        refuse_then = false;
      }
      if (pair.undoer) bytes = altered = pair.undoer->feed(bytes, undo);
      if (!undo.gap && undo_again > 0) {
        --undo_again;
        undo.gap = undo_gap;
      }
    }
    if (pair.bytes_to_cut) return deliver_until_cut(pair, bytes);
    return send_all(pair.server, bytes);
  }

  bool deliver_until_cut(Pair& pair, std::string_view bytes) {
    const auto some = bytes.substr(0, *pair.bytes_to_cut);
    *pair.bytes_to_cut -= some.size();
    send_all(pair.server, some);
    if (*pair.bytes_to_cut > 0) return true;
    ::shutdown(pair.server, SHUT_WR);
    ::close(pair.client);
    pair.client = -1;
    return true;
  }

  bool answer(Pair& pair, std::string_view bytes) {
    const auto some = bytes.substr(0, pair.left);
    pair.left -= some.size();
    const auto received = (pair.bursts.empty() ? 0 : pair.bursts.back()) + some.size();
    if (pair.client_spoke || pair.bursts.empty()) pair.bursts.push_back(0);
    pair.client_spoke = false;
    pair.bursts.back() = received;
    pair.stalled = pair.stalled || some.size() < bytes.size();
    {
      const std::lock_guard guard(mutex);
      silenced += some.size() < bytes.size() ? 1 : 0;
      if (pair.number == connections) last_bursts = pair.bursts;
    }
    return send_all(pair.client, some);
  }

  // False: this connection is over.
  bool deliver_late(Pair& pair) {
    for (; !pair.late.empty() && pair.late.front().due <= Clock::now(); pair.late.pop_front())
      if (!deliver(pair, pair.late.front().from_client, pair.late.front().bytes)) return false;
    return true;
  }

  // Milliseconds until the next late bytes are due; -1 if there are none.
  int patience() const {
    int least = -1;
    for (const auto& pair : pairs) {
      if (pair.late.empty()) continue;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(pair.late.front().due - Clock::now()).count();
      const int ms = std::max(0, static_cast<int>(left));
      least = least < 0 ? ms : std::min(least, ms);
    }
    return least;
  }

  // Called with the mutex held.
  void tell_the_end() {
    for (auto& pair : pairs) {
      ::shutdown(pair.client, SHUT_WR);
      pair.told_the_end = true;
    }
    ended += pairs.size();
  }

  // Likewise.
  void deliver_held() {
    for (auto& pair : pairs) {
      if (pair.held != Pair::Hold::yes) continue;
      pair.held = Pair::Hold::let_go;
      send_all(pair.server, pair.kept);
    }
    holds_one = false;
  }

  void run() {
    for (;;) {
      std::vector<pollfd> watched{{wake, POLLIN, 0}, {listener, POLLIN, 0}};
      {
        const std::lock_guard guard(mutex);
        if (closing) break;
        if (cutting || mode == Mode::refuse) {
          ended += pairs.size();
          drop_all();
        }
        if (mode == Mode::refuse_others) drop_others();
        cutting = false;
        if (halving) tell_the_end();
        halving = false;
        if (stalling)
          for (auto& pair : pairs) pair.stalled = true;
        stalling = false;
        if (letting_go) deliver_held();
        letting_go = false;
        open = pairs.size();
        if (mode != Mode::black_hole)
          for (const auto& pair : pairs) {
            watched.push_back({pair.stalled || pair.held != Pair::Hold::no ? -1 : pair.client, POLLIN, 0});
            watched.push_back({pair.stalled || pair.held == Pair::Hold::yes ? -1 : pair.server, POLLIN, 0});
          }
      }
      const bool holding = watched.size() == 2;  // in a black hole, what is late stays late
      if (::poll(watched.data(), watched.size(), holding ? -1 : patience()) < 0) continue;
      if (watched[0].revents != 0) {
        std::uint64_t ignored = 0;
        if (::read(wake, &ignored, sizeof ignored) < 0) continue;
        continue;  // the mode may be another one: nothing more goes through in the old one
      }
      auto pair = pairs.begin();
      for (std::size_t i = 2; i + 1 < watched.size(); i += 2) {
        const bool alive = deliver_late(*pair) && (watched[i].revents == 0 || forward(*pair, true)) &&
                           (watched[i + 1].revents == 0 || forward(*pair, false));
        if (alive) {
          ++pair;
          continue;
        }
        ::close(pair->client);
        ::close(pair->server);
        pair = pairs.erase(pair);
      }
      if (watched[1].revents != 0) accept_one();
    }
    drop_all();
  }

  template <class Change>
  void change(Change apply) {
    {
      const std::lock_guard guard(mutex);
      apply();
    }
    const std::uint64_t one = 1;
    if (::write(wake, &one, sizeof one) < 0) fail("wake the proxy");
  }
};

Proxy::Proxy(const ServerTestDatabase& server) : state_(std::make_unique<State>(server, server.address(), true)) {
  listen();
}

Proxy::Proxy(const ServerTestDatabase& server, const Address& door)
    : state_(std::make_unique<State>(server, door, false)) {
  listen();
}

void Proxy::listen() {
  state_->listener = new_socket();
  sockaddr_in at = socket_address({"127.0.0.1", 0});
  socklen_t size = sizeof at;
  if (::bind(state_->listener, plain(at), sizeof at) != 0 || ::listen(state_->listener, 64) != 0 ||
      ::getsockname(state_->listener, plain(at), &size) != 0)
    fail("listen");
  state_->port = ntohs(at.sin_port);
  state_->wake = ::eventfd(0, EFD_CLOEXEC);
  state_->thread = std::jthread([state = state_.get()] { state->run(); });
}

Proxy::~Proxy() {
  state_->change([&] { state_->closing = true; });
  state_->thread.join();
  ::close(state_->listener);
  ::close(state_->wake);
}

Address Proxy::address() const { return {"127.0.0.1", state_->port}; }

std::size_t Proxy::requests() const {
  const std::lock_guard guard(state_->mutex);
  return state_->requests;
}

std::string Proxy::sent() const {
  const std::lock_guard guard(state_->mutex);
  return state_->sent;
}

std::size_t Proxy::connections() const {
  const std::lock_guard guard(state_->mutex);
  return state_->connections;
}

std::size_t Proxy::open() const {
  const std::lock_guard guard(state_->mutex);
  return state_->open;
}

std::size_t Proxy::ended() const {
  const std::lock_guard guard(state_->mutex);
  return state_->ended;
}

std::size_t Proxy::silenced() const {
  const std::lock_guard guard(state_->mutex);
  return state_->silenced;
}

std::vector<std::size_t> Proxy::bursts() const {
  const std::lock_guard guard(state_->mutex);
  return state_->last_bursts;
}

void Proxy::pass() {
  state_->change([&] {
    state_->mode = Mode::pass;
    state_->allowance = unbounded;
    state_->delay = {};
  });
}
void Proxy::black_hole() {
  state_->change([&] { state_->mode = Mode::black_hole; });
}
void Proxy::refuse() {
  state_->change([&] { state_->mode = Mode::refuse; });
}
void Proxy::stall_after(std::size_t bytes) {
  state_->change([&] { state_->allowance = bytes; });
}
void Proxy::cut() {
  state_->change([&] { state_->cutting = true; });
}
void Proxy::swallow_answers() {
  state_->change([&] { state_->mode = Mode::swallow_answers; });
}
void Proxy::half_close() {
  state_->change([&] { state_->halving = true; });
}
void Proxy::stall() {
  state_->change([&] { state_->stalling = true; });
}
void Proxy::delay(std::chrono::milliseconds length) {
  state_->change([&] { state_->delay = length; });
}
void Proxy::lose_next_answer(std::size_t spared) {
  state_->change([&] {
    state_->lose_next = true;
    state_->spared = spared;
  });
}
void Proxy::lose_next_answer_and_refuse(std::size_t spared) {
  state_->change([&] {
    state_->lose_next = state_->refuse_then = true;
    state_->spared = spared;
  });
}
void Proxy::lose_next_request() {
  state_->change([&] { state_->lose_request = true; });
}
void Proxy::hold_next_request(std::string_view words) {
  state_->change([&] {
    state_->hold_next = true;
    state_->hold_words = words;
  });
}
void Proxy::hold_next_request_and_refuse(std::string_view words) {
  state_->change([&] {
    state_->hold_next = state_->refuse_then = true;
    state_->hold_words = words;
  });
}
void Proxy::cut_next_after(std::size_t bytes) {
  state_->change([&] {
    state_->cut_after = bytes;
    state_->cut_noticed = false;
  });
}
bool Proxy::cut_was_noticed() const {
  const std::lock_guard guard(state_->mutex);
  return state_->cut_noticed;
}
bool Proxy::holds() const {
  const std::lock_guard guard(state_->mutex);
  return state_->holds_one;
}
void Proxy::let_held_go() {
  state_->change([&] { state_->letting_go = true; });
}
bool Proxy::held_was_answered() const {
  const std::lock_guard guard(state_->mutex);
  return state_->answered;
}
void Proxy::undo_next_transaction(std::size_t gap, std::size_t times) {
  state_->change([&] {
    state_->undo = {gap, 0};
    state_->undo_gap = gap;
    state_->undo_again = times - 1;
  });
}
std::size_t Proxy::gaps_of_undone() const {
  const std::lock_guard guard(state_->mutex);
  return state_->undo.gaps;
}
bool Proxy::lost_it() const {
  const std::lock_guard guard(state_->mutex);
  return !state_->lose_next && !state_->lose_request;
}

}  // namespace dlock::test

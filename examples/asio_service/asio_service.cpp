// A service that hands out locks to its clients, on one thread: a client sends a name, is answered "granted under token
// N" or "busy", and has the lock until it hangs up. A thousand clients that wait cost no thread.
//
//   dlock-migrate -u sqlite:app.db up
//   asio_service sqlite:app.db 7777
#include <asio.hpp>
#include <dlock/asio.hpp>
#include <dlock/dlock.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::ip::tcp;

namespace {

constexpr std::size_t longest_line = 256;  // a name has 255 bytes at most

// Tells the client of its lock, until it hangs up or sends another line. When the lease is lost it is hung up on, so
// that it does not go on with what is somebody else's by now.
asio::awaitable<void> attend(std::shared_ptr<tcp::socket> client, const dlock::Lock& lock) {
  const std::stop_callback hang_up(lock.lost(), [client] {  // by a thread of the engine
    asio::post(client->get_executor(), [client] {
      asio::error_code ignored;
      client->close(ignored);
    });
  });
  const auto answer = "granted under token " + std::to_string(dlock::number(lock.token())) + "\n";
  std::string line;
  asio::error_code ended;  // whatever it is, the lock is released next
  co_await asio::async_write(*client, asio::buffer(answer), asio::redirect_error(use_awaitable, ended));
  if (ended) co_return;
  co_await asio::async_read_until(*client, asio::dynamic_buffer(line, longest_line), '\n',
                                  asio::redirect_error(use_awaitable, ended));
}

asio::awaitable<void> serve(std::shared_ptr<tcp::socket> client, dlock::Engine& locks) {
  try {
    std::string name;
    const auto length =
        co_await asio::async_read_until(*client, asio::dynamic_buffer(name, longest_line), '\n', use_awaitable);
    name.resize(length - 1);
    auto lock = co_await dlock::async_try_lock_for(locks, name, 200ms, use_awaitable);
    if (!lock) {
      co_await asio::async_write(*client, asio::buffer("busy\n", 5), use_awaitable);
      co_return;
    }
    co_await attend(client, *lock);
    // The destructor would release as well, but hold up everybody on this thread for that.
    const auto released = co_await dlock::async_release(locks, std::move(*lock), use_awaitable);
    if (released == dlock::Released::was_lost) std::cerr << name << ": the lease was lost before\n";
  } catch (const std::exception& error) {  // of the network, or dlock::Error: of this client alone
    std::cerr << error.what() << '\n';
  }
}

asio::awaitable<void> accept(tcp::acceptor& acceptor, dlock::Engine& locks) {
  asio::steady_timer pause(acceptor.get_executor());
  for (;;) {
    asio::error_code failed;
    auto client = co_await acceptor.async_accept(asio::redirect_error(use_awaitable, failed));
    if (failed) {  // as when there are no more file descriptors: until some client has gone
      std::cerr << failed.message() << '\n';
      pause.expires_after(100ms);
      co_await pause.async_wait(use_awaitable);
      continue;
    }
    asio::co_spawn(acceptor.get_executor(), serve(std::make_shared<tcp::socket>(std::move(client)), locks),
                   asio::detached);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("usage: asio_service URL PORT (0: any)");
  asio::io_context context;  // before the engine, whose answers it runs
  dlock::Engine locks(argv[1], {.lease = 10s, .timeouts = {.release = 200ms}});
  tcp::acceptor acceptor(context,
                         {asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(std::stoi(argv[2]))});
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](const asio::error_code&, int) { context.stop(); });
  asio::co_spawn(context, accept(acceptor, locks), asio::detached);
  std::cout << "listens on port " << acceptor.local_endpoint().port() << std::endl;
  context.run();
  // What clients have is released here, all at once; the coroutines that are destroyed below have none left.
  const auto released = locks.release_all();
  if (released.unconfirmed > 0) std::cerr << released.unconfirmed << " locks end with their leases\n";
  std::cout << "ended\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

// The promise that who asks for TLS gets TLS or an error, and nothing is sent in the clear.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/exit_status.hpp"
#include "support/process.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

using Known = std::array<bool, 1024>;

Known known_descriptors() {
  Known known{};
  for (std::size_t i = 0; i < known.size(); ++i) known[i] = ::fcntl(static_cast<int>(i), F_GETFD) >= 0;
  return known;
}

// The first descriptor but for those known that a program would inherit which this process starts by fork() and exec(),
// or 0. Asks the kernel only: a child of many threads may do no more.
ExitStatus inherited_by_fork(const Known& known) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::size_t i = 3; i < known.size(); ++i) {
      const int flags = known[i] ? FD_CLOEXEC : ::fcntl(static_cast<int>(i), F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ::_exit(static_cast<int>(std::min<std::size_t>(i, 255)));
    }
    ::_exit(0);
  }
  return await_end(child);
}

// What a program would inherit that is started in this moment without fork(): what is read for a connection, and no
// secret, or its socket, which is closed to programs before it is used.
void check_passes(int descriptor) {
  const auto target = target_of(descriptor);
  CAPTURE(target);
  if (closed_on_exec(descriptor)) return;  // another one has its number by now
  if (target.starts_with('/') && std::filesystem::exists(target)) {
    const auto readers = std::filesystem::status(target).permissions();
    CHECK((readers & std::filesystem::perms::others_read) != std::filesystem::perms::none);
  } else {
    CHECK((target.empty() || target.starts_with('/') || target.starts_with("socket:")));
  }
  CHECK(eventually([&] { return closed_on_exec(descriptor) || target_of(descriptor) != target; }));
}

}  // namespace

TEST_CASE("TLS that is asked for and not offered is an error, and nothing was sent in the clear") {
  const auto server = opener().server_offering(Tls::none);
  ServerDatabase database(server->test_database());
  Proxy proxy(database.server());
  const auto url = database.server().url_with_tls_at(proxy.address());
  for (const auto& thrown : {thrown_by([&] { Engine engine(url); }), thrown_by([&] { Engine::install_schema(url); })}) {
    CHECK(thrown.fault);
    CHECK_MESSAGE((thrown.names("SSL") || thrown.names("TLS")), thrown.text);
  }
  CHECK(proxy.connections() >= 2);
  CHECK(proxy.sent().size() <= proxy.connections() * database.server().bytes_before_tls());
}

TEST_CASE("without asking for TLS the same door opens") {
  const auto server = opener().server_offering(Tls::none);
  ServerDatabase database(server->test_database());
  Proxy proxy(database.server());
  Engine engine(database.server().url_preferring_tls_at(proxy.address()));
  CHECK(engine.try_lock("job").has_value());
  CHECK(proxy.sent().find("resource_lock") != std::string::npos);  // in the clear: there is no TLS
}

TEST_CASE("where TLS is offered it is used without being asked for") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->test_database());
  Proxy proxy(database.server());
  Engine engine(database.server().url_preferring_tls_at(proxy.address()));
  CHECK(engine.try_lock("job").has_value());
  CHECK(proxy.connections() > 0);
  CHECK(proxy.sent().find("resource_lock") == std::string::npos);
}

TEST_CASE("where TLS is offered and switched off it is not used") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->test_database());
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()));
  CHECK(engine.try_lock("job").has_value());
  CHECK(proxy.sent().find("resource_lock") != std::string::npos);
}

TEST_CASE("a server whose name is checked is the one that was named, and another name is refused") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->test_database());
  const auto port = database.server().address().port;
  Engine engine(database.server().url_verified_at({"localhost", port}, server->authority()));
  CHECK(engine.try_lock("job").has_value());
  // The same server, by an address that its certificate does not name.
  const auto thrown = thrown_by([&] {
    Engine other(database.server().url_verified_at({"127.0.0.1", port}, server->authority()));
  });
  CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
  CHECK_MESSAGE(thrown.names("certificate"), thrown.text);
}

TEST_CASE("where certificates are checked, one of another authority is refused, and one whose time is over") {
  const auto server = opener().server_offering(Tls::offered), expired = opener().server_offering(Tls::expired);
  ServerDatabase database(server->test_database()), late(expired->test_database());
  const auto refused = [](ServerDatabase& there, const std::string& authority) {
    const auto url = there.server().url_verified_at({"localhost", there.server().address().port}, authority);
    const auto thrown = thrown_by([&] { Engine engine(url); });
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
    CHECK_MESSAGE(thrown.names("certificate"), thrown.text);
  };
  refused(database, expired->authority());
  refused(late, expired->authority());
  // Nobody asks for either where they are not checked, and the connection is encrypted all the same.
  Proxy proxy(late.server());
  Engine engine(late.server().url_with_tls_at(proxy.address()));
  CHECK(engine.try_lock("job").has_value());
  CHECK(proxy.sent().find("resource_lock") == std::string::npos);
}

TEST_CASE(
    "while a connection is opened with TLS, a program started by fork() inherits nothing, and another no secret") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->test_database());
  const auto url =
      database.server().url_verified_at({"localhost", database.server().address().port}, server->authority());
  const auto known = known_descriptors();
  auto opening = std::async(std::launch::async, [&] {
    for (int i = 0; i < 20; ++i) Engine engine(url, {.connections = 1});
  });
  for (int looks = 0; opening.wait_for(0s) == std::future_status::timeout || looks < 20; ++looks) {
    // The runtimes of sanitizers do not survive a fork() among threads.
    if (!sanitized) CHECK(inherited_by_fork(known) == 0);
    for (const int descriptor : descriptors()) {
      const auto at = static_cast<std::size_t>(descriptor);
      if ((at >= known.size() || !known[at]) && !closed_on_exec(descriptor)) check_passes(descriptor);
    }
  }
  CHECK_NOTHROW(opening.get());
}

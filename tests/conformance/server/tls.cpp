// This file knows the promise that who asks for TLS gets TLS or an error, and nothing is sent in the clear.
#include "support/database.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("TLS that is asked for and not offered is an error, and nothing was sent in the clear") {
  const auto server = opener().server_offering(Tls::none);
  ServerDatabase database(server->place());
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
  ServerDatabase database(server->place());
  Proxy proxy(database.server());
  Engine engine(database.server().url_preferring_tls_at(proxy.address()));
  CHECK(engine.try_lock("job").has_value());
  CHECK(proxy.sent().find("resource_lock") != std::string::npos);  // in the clear: there is no TLS
}

TEST_CASE("where TLS is offered it is used without being asked for") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->place());
  Proxy proxy(database.server());
  Engine engine(database.server().url_preferring_tls_at(proxy.address()));
  CHECK(engine.try_lock("job").has_value());
  CHECK(proxy.connections() > 0);
  CHECK(proxy.sent().find("resource_lock") == std::string::npos);
}

TEST_CASE("where TLS is offered and switched off it is not used") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->place());
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()));
  CHECK(engine.try_lock("job").has_value());
  CHECK(proxy.sent().find("resource_lock") != std::string::npos);
}

TEST_CASE("a server whose name is checked is the one that was named, and another name is refused") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->place());
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
  ServerDatabase database(server->place()), late(expired->place());
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

// Tests which URLs of MySQL and MariaDB are right, and how much TLS they mean.
#include "refusal.hpp"
#include "server.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace dlock::dialects::mysql;

namespace {

Server server(const std::string& url) { return server_of(Url::parse(url), "tests"); }
Tls tls(const std::string& options) { return server("mysql://app@db/orders" + options).tls; }
std::string refused(const std::string& url) {
  return refusal([&] { server(url); });
}

}  // namespace

TEST_CASE("the parts of a URL become those of a server") {
  const auto found = server("mysql://app:s%40cret@db:3307/orders?ssl-ca=/ca&ssl-cert=/cert&ssl-key=/key");
  CHECK(found.host == "db");
  CHECK(found.port == 3307);
  CHECK(found.user == "app");
  CHECK(found.password == "s@cret");
  CHECK(found.database == "orders");
  CHECK(found.ssl_ca == "/ca");
  CHECK(found.ssl_cert == "/cert");
  CHECK(found.ssl_key == "/key");
  CHECK(found.application == "tests");
  CHECK(found.target == "mysql://app@db:3307/orders");
  CHECK(server("mysql://app@/orders?socket=/run/s").socket == "/run/s");
  CHECK(server("mysql://app@[::1]:3307/orders").host == "::1");
}

TEST_CASE("TLS is used where it is offered, unless the URL says otherwise") {
  CHECK(tls("") == Tls::preferred);
  CHECK(tls("?ssl-mode=PREFERRED") == Tls::preferred);
  CHECK(tls("?ssl-mode=required") == Tls::required);
  CHECK(tls("?ssl-mode=DISABLED") == Tls::disabled);
}

TEST_CASE("who names an authority, or asks for it to be looked at, has chain and name checked") {
  CHECK(tls("?ssl-ca=/ca") == Tls::verified);
  CHECK(tls("?ssl-mode=VERIFY_CA") == Tls::verified);
  CHECK(tls("?ssl-mode=verify_identity") == Tls::verified);
  CHECK(tls("?ssl-mode=VERIFY_CA&ssl-ca=/ca") == Tls::verified);
  // Chosen by name, whatever else is named.
  CHECK(tls("?ssl-mode=DISABLED&ssl-ca=/ca") == Tls::disabled);
  CHECK(tls("?ssl-ca=/ca&ssl-mode=REQUIRED") == Tls::required);
}

TEST_CASE("what a URL cannot mean is refused, and named") {
  CHECK(says(refused("mysql://app@db/orders?ssl-mode=SOMETIMES"), "ssl-mode=\"SOMETIMES\""));
  CHECK(says(refused("mysql://app@db/orders?sslmode=require"), "\"sslmode\""));
  CHECK(says(refused("mysql://app@db/orders?charset=latin1"), "only utf8mb4"));
  CHECK(says(refused("mysql://app@db:99999/orders"), "\"99999\""));
  CHECK(says(refused("mysql://app@db,other/orders"), "several hosts"));
  CHECK(says(refused("mysql://app@db/orders/more"), "slash"));
  CHECK(says(refused("mysql://app@db/orders?socket=/run/s"), "one is possible"));
  CHECK(says(refused("mysql://app@/orders?ssl-mode=REQUIRED"), "needs a host"));
  CHECK(says(refused("mysql://app@localhost/orders?socket=/run/s&ssl-mode=REQUIRED"), "no socket"));
}

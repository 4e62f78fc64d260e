// Which URLs of PostgreSQL are right, and what they mean to libpq.
#include "refusal.hpp"
#include "server.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace dlock::dialects::postgresql;

namespace {

Server server(const std::string& url) { return server_of(Url::parse(url), "tests"); }

std::string value(const Keywords& keywords, const std::string& key) {
  std::string last;
  for (const auto& [known, text] : keywords)
    if (known == key) last = text;
  return last;
}

std::string refused(const std::string& url) {
  return refusal([&] { server(url); });
}

// An environment variable of libpq's for one scope.
class Variable {
 public:
  Variable(const char* name, const char* text) : name_(name) { ::setenv(name, text, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("the parts of a URL become libpq's keywords") {
  const auto found = server("postgresql://app:s%40cret@db:5433/orders?sslmode=disable&keepalives_idle=5");
  REQUIRE(found.places.size() == 1);
  CHECK(value(found.places[0], "host") == "db");
  CHECK(value(found.places[0], "port") == "5433");
  CHECK(value(found.keywords, "user") == "app");
  CHECK(value(found.keywords, "password") == "s@cret");
  CHECK(value(found.keywords, "dbname") == "orders");
  CHECK(value(found.keywords, "sslmode") == "disable");
  CHECK(value(found.keywords, "keepalives_idle") == "5");
  CHECK(value(found.keywords, "client_encoding") == "UTF8");
  CHECK(value(found.keywords, "fallback_application_name") == "tests");
  CHECK(found.password == "s@cret");
  CHECK(found.target == "postgresql://app@db:5433/orders");
  CHECK_FALSE(found.connect_timeout);
}

TEST_CASE("several hosts are several places, and a server that takes writes is wanted of them") {
  const auto found = server("postgres://app@one:1,[::2]:2,three/orders");
  REQUIRE(found.places.size() == 3);
  CHECK(value(found.places[0], "host") == "one");
  CHECK(value(found.places[0], "port") == "1");
  CHECK(value(found.places[1], "host") == "::2");
  CHECK(value(found.places[1], "port") == "2");
  CHECK(value(found.places[2], "host") == "three");
  CHECK(value(found.keywords, "target_session_attrs") == "read-write");
  CHECK(value(server("postgres://one,two/orders?target_session_attrs=any").keywords, "target_session_attrs") == "any");
  CHECK(value(server("postgres://one/orders").keywords, "target_session_attrs") == "");
}

TEST_CASE("hosts and ports may come as options, one port for all of them too") {
  const auto found = server("postgresql:///orders?host=a,b&port=1,2");
  REQUIRE(found.places.size() == 2);
  CHECK(value(found.places[1], "host") == "b");
  CHECK(value(found.places[1], "port") == "2");
  const auto one = server("postgresql:///orders?host=a,b&port=7");
  REQUIRE(one.places.size() == 2);
  CHECK(value(one.places[1], "port") == "7");
}

TEST_CASE("a folder of sockets is a host") {
  CHECK(value(server("postgresql:///orders?host=/run/postgresql").places.at(0), "host") == "/run/postgresql");
  CHECK(value(server("postgresql://%2Frun%2Fpostgresql/orders").places.at(0), "host") == "/run/postgresql");
}

TEST_CASE("what a URL leaves out comes from where libpq would take it") {
  {
    const auto found = server("postgresql:///orders");  // a socket
    REQUIRE(found.places.size() == 1);
    CHECK(found.places[0].empty());
  }
  {
    const Variable host("PGHOST", "a,b"), port("PGPORT", "1,2");
    const auto found = server("postgresql:///orders");
    REQUIRE(found.places.size() == 2);
    CHECK(value(found.places[1], "host") == "b");
    CHECK(value(found.places[1], "port") == "2");
    CHECK(value(found.keywords, "target_session_attrs") == "read-write");
    CHECK(value(found.keywords, "host") == "");
  }
  {
    const Variable host("PGHOST", "a");
    CHECK(value(server("postgresql://c/orders").places.at(0), "host") == "c");
  }
  const Variable address("PGHOSTADDR", "127.0.0.1");
  CHECK(value(server("postgresql:///orders").places.at(0), "hostaddr") == "127.0.0.1");
}

TEST_CASE("connect_timeout of the URL is kept") {
  CHECK(server("postgresql://db/orders?connect_timeout=3").connect_timeout == Duration{3'000'000});
  CHECK_FALSE(server("postgresql://db/orders?connect_timeout=0").connect_timeout);
}

TEST_CASE("what is wrong with a URL is named") {
  CHECK(says(refused("postgresql://db/orders?nonsense=1"), "nonsense"));
  CHECK(says(refused("postgresql://db:port/orders"), "no port"));
  CHECK(says(refused("postgresql://db:99999/orders"), "99999"));
  CHECK(says(refused("postgresql://db:0/orders"), "\"0\""));
  CHECK(says(refused("postgresql://db/orders?port=1,x"), "\"x\""));
  CHECK(says(refused("postgresql://[::1/orders"), "bracket"));
  CHECK(says(refused("postgresql://[::1]x/orders"), "bracket"));
  CHECK(says(refused("postgresql://db/orders?sslmode=maybe"), "maybe"));
  CHECK(says(refused("postgresql://db/orders?connect_timeout=soon"), "soon"));
  CHECK(says(refused("postgresql://db/orders?keepalives_idle=1.5"), "1.5"));
  CHECK(says(refused("postgresql://db/orders?client_encoding=LATIN1"), "client_encoding"));
  CHECK(says(refused("postgresql:orders"), "postgresql://"));
}

TEST_CASE("what only libpq knows to be wrong is found before anything is sent") {
  CHECK(says(refused("postgresql://db/orders?target_session_attrs=best"), "best"));
  CHECK(says(refused("postgresql://db/orders?channel_binding=maybe"), "maybe"));
  CHECK(says(refused("postgresql://a,b,c:1/orders?port=1,2"), "port"));
  CHECK(says(refused("postgresql://db/orders?service=not_there"), "not_there"));
}

TEST_CASE("a refusal does not show the password") {
  for (const std::string url :
       {"postgresql://app:s3cret@db/orders?nonsense=1", "postgresql://app:s3cret@db:x/orders",
        "postgresql://app:s3cret@db/orders?channel_binding=x", "postgresql://db/orders?password=s3cret&sslmode=x"})
    CHECK_FALSE(says(refused(url), "s3cret"));
}

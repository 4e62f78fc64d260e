// What a database URL is taken apart into, and that no password is ever shown.
#include "types/url.hpp"

#include "refusal.hpp"

using namespace dlock;
using dlock::test::refusal;
using dlock::test::says;

TEST_CASE("a URL with everything in it") {
  const auto url =
      Url::parse("postgresql://app:s%40cret@db1:5432,db2/orders%20old?sslmode=require&application_name=a%26b");
  CHECK(url.scheme == "postgresql");
  CHECK(url.has_authority);
  CHECK(url.user == "app");
  CHECK(url.password == "s@cret");
  CHECK(url.hosts == "db1:5432,db2");
  CHECK(url.path == "/orders old");
  REQUIRE(url.options.size() == 2);
  CHECK(url.options[0] == std::pair<std::string, std::string>("sslmode", "require"));
  CHECK(url.options[1] == std::pair<std::string, std::string>("application_name", "a&b"));
}

TEST_CASE("what may be left out") {
  const auto bare = Url::parse("postgresql://");
  CHECK(bare.has_authority);
  CHECK_FALSE(bare.user);
  CHECK_FALSE(bare.password);
  CHECK(bare.hosts.empty());
  CHECK(bare.path.empty());
  CHECK(bare.options.empty());
  const auto no_password = Url::parse("mysql://app@db");
  CHECK(no_password.user == "app");
  CHECK_FALSE(no_password.password);
  const auto empty_password = Url::parse("mysql://app:@db");
  CHECK(empty_password.password == "");
  CHECK(Url::parse("mysql://@db").user == "");
  CHECK(Url::parse("postgresql:///orders?host=/run/postgresql").path == "/orders");
}

TEST_CASE("a path without an authority") {
  const auto relative = Url::parse("sqlite:var/app.db");
  CHECK_FALSE(relative.has_authority);
  CHECK(relative.path == "var/app.db");
  CHECK(Url::parse("sqlite:/var/app.db").path == "/var/app.db");
  const auto absolute = Url::parse("sqlite:///var/app.db?synchronous=full");
  CHECK(absolute.has_authority);
  CHECK(absolute.hosts.empty());
  CHECK(absolute.path == "/var/app.db");
  CHECK(absolute.options.size() == 1);
  CHECK(Url::parse("sqlite:a%3Fb.db").path == "a?b.db");
}

TEST_CASE("an at sign in a password belongs to it, the last one ends the account") {
  const auto url = Url::parse("mysql://app:a@b@db/orders");
  CHECK(url.password == "a@b");
  CHECK(url.hosts == "db");
}

TEST_CASE("an option may hold an equals sign, and be empty") {
  const auto url = Url::parse("postgresql://db/x?options=-c%20a=b&empty=");
  CHECK(url.options[0].second == "-c a=b");
  CHECK(url.options[1].second.empty());
}

TEST_CASE("what is no URL is refused with the rule") {
  CHECK(says(refusal([] { Url::parse(""); }), "empty"));
  for (const char* text : {"orders", "/var/lib/app.db", ":x", "://", " sqlite:x", "SQLITE:x", "a b:c"})
    CHECK(says(refusal([text] { Url::parse(text); }), "scheme"));
  for (const char* text : {"sqlite:a%zz", "sqlite:a%4", "sqlite:a%", "mysql://a%g0@db", "mysql://db/x?a=%"})
    CHECK(says(refusal([text] { Url::parse(text); }), "%"));
  CHECK(says(refusal([] { Url::parse("sqlite:a%00b"); }), "NUL"));
  CHECK(says(refusal([] { Url::parse(std::string_view("sqlite:a\0b", 10)); }), "control character"));
  CHECK(says(refusal([] { Url::parse("sqlite:x?a=b&c"); }), "number 2"));
  for (const char* text : {"sqlite:a\nb", "mysql://app@db\r\n/x"})
    CHECK(says(refusal([text] { Url::parse(text); }), "control character"));
  for (const char* text : {"sqlite:x?synchronous", "sqlite:x?=full", "sqlite:x?a=b&c"})
    CHECK(says(refusal([text] { Url::parse(text); }), "key=value"));
}

TEST_CASE("no password is shown, however the URL is broken, and as much else as can be known to be none") {
  struct Shown {
    const char *text, *as;
  };
  for (const auto& [text, as] :
       {Shown{"mysql://app:s3cret@db/x", "mysql://app:***@db/x"},
        {"mysql://app:s3cret@db:3306,[::1]:3307/x?ssl-ca=/a", "mysql://app:***@db:3306,[::1]:3307/x?ssl-ca=/a"},
        {"mysql://app:a@s3cret@db", "mysql://app:***@db"},
        {"mysql://:s3cret@db", "mysql://:***@db"},
        {"mysql://db/x?password=s3cret", "mysql://db/x?password=***"},
        {"mysql://db/x?sslpassword=s3cret&a=b", "mysql://db/x?sslpassword=***&a=b"},
        {"mysql://db/x?PWD=s3cret", "mysql://db/x?PWD=***"},
        {"mysql://db/x?p%61ssword=s3cret", "mysql://db/x?p%61ssword=***"},
        {"mysql://db/x?init=set password=s3cret", "mysql://db/x?init=***"},
        {"mysql://db/x?s3cret", "mysql://db/x?***"},
        {"mysql://app:s3/cret@db/x", "mysql://***"},
        {"mysql://app:33/cret@db/x", "mysql://***"},
        {"mysql://app:s3?cret@db", "mysql://***"},
        {"mysql://app:33?cr=et@db", "mysql://***"},
        {"mysql://app:a@b/s3cret@db", "mysql://***"},
        {"mysql://app:a@b?s3=cret@db", "mysql://***"},
        {"mysql://app:s3cret", "mysql://***"},
        {"mysql://db/x;password=s3cret", "mysql://db/***"},
        {"mysql:app:s3cret@db", "mysql:***"},
        {"mysql:host=db;user=app;pwd=s3cret", "mysql:***"},
        {"app:s3cret@db/x", "app:***"},
        {"host=db password=s3cret", "***"},
        {"Server=db;Pwd=s3cret;", "***"},
        {"app/s3cret@db", "***"},
        {"mysql://app@db/x?a=b&c=d", "mysql://app@db/x?a=b&c=d"},
        {"mysql://db/x?a=b@c", "mysql://db/x?a=b@c"},
        {"sqlite:/a/b.db", "sqlite:/a/b.db"},
        {"/var/lib/app.db", "/var/lib/app.db"},
        {"", ""}}) {
    CHECK(without_password(text) == as);
    CHECK(without_password(as) == as);
    CHECK_FALSE(says(without_password(text), "cret"));
  }
  CHECK_FALSE(says(refusal([] { Url::parse("mysql://app:s3cret@db/x%zz"); }), "s3cret"));
  CHECK_FALSE(says(refusal([] { Url::parse("mysql://app:s3cret@db/x?password"); }), "s3cret"));
  CHECK_FALSE(says(refusal([] { Url::parse("mysql://db/x?s3cret"); }), "s3cret"));
}

TEST_CASE("a connection string of another kind is not taken for the name of a database, which would be shown") {
  for (const char* text :
       {"postgresql://db/x;password=s3cret", "mysql://db/x;Pwd=s3cret", "sqlite:Data Source=a.db;Password=s3cret",
        "mysql://Server=db;Pwd=s3cret@db/x", "mysql://db/x;pw=s3cret", "sqlite:/a/p%61ssword=s3cret"}) {
    const auto told = refusal([text] { Url::parse(text); });
    CHECK_MESSAGE(says(told, "%3D"), told);
    CHECK_FALSE(says(told, "cret"));
  }
  CHECK(Url::parse("sqlite:/a/passwords.db").path == "/a/passwords.db");
  CHECK(Url::parse("sqlite:/a/x=y.db").path == "/a/x=y.db");
  CHECK(Url::parse("sqlite:/a/password%3Dy.db").path == "/a/password=y.db");
}

TEST_CASE("a URL whose password has ended it early is refused, whatever else it could mean") {
  for (const char* text :
       {"mysql://app:s3/cret@db/x", "mysql://app:33/cret@db/x", "mysql://app:s3?cret@db", "mysql://app:33?cr=et@db",
        "mysql://app:a@b/s3cret@db", "mysql://app:a@b?s3=cret@db", "mysql://app:s3cret", "mysql://app/s3cret@db",
        "mysql://host=db;pwd=s3cret", "mysql://db,host;pwd=s3cret/x"}) {
    const auto told = refusal([text] { Url::parse(text); });
    CHECK_MESSAGE(says(told, "%2F"), told);
    CHECK_FALSE(says(told, "cret"));
  }
  CHECK(Url::parse("mysql://app:a%2Fb@db/x").password == "a/b");
  CHECK(Url::parse("postgresql://db/x?application_name=me@here").options.front().second == "me@here");
}

TEST_CASE("an option that is taken out of a URL is not in it any more, and its last value counts") {
  auto url = Url::parse("postgresql://db/orders?prepared=on&sslmode=require&prepared=off");
  CHECK(url.take("prepared") == "off");
  CHECK(url.options == std::vector<std::pair<std::string, std::string>>{{"sslmode", "require"}});
  CHECK_FALSE(url.take("prepared"));
}

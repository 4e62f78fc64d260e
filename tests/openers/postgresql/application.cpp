// How an application is connected to PostgreSQL.
#include "fault/suite/application.hpp"

#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

// SOCI 4.0.3 forgets a connection that breaks between its login and the first statement, which SOCI sends by itself: a
// server that is killed just then would have every client that met it end as one that leaks.
[[gnu::visibility("default")]] const char* __lsan_default_suppressions() { return "leak:libpq.so\n"; }
#endif

namespace dlock::test {
namespace postgresql {
namespace {

std::unique_ptr<soci::session> connect(const std::string& url) {
  // With a parameter, SOCI takes a URL as it is.
  const char* const further = url.find('?') == std::string::npos ? "?" : "&";
  return std::make_unique<soci::session>(soci::postgresql, url + further + "connect_timeout=2");
}

const Application application{"postgresql", &connect};

}  // namespace
}  // namespace postgresql
}  // namespace dlock::test

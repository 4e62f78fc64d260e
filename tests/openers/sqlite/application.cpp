// How an application is connected to SQLite.
#include "fault/suite/application.hpp"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

namespace dlock::test {
namespace sqlite {
namespace {

std::unique_ptr<soci::session> connect(const std::string& url) {
  const std::string where = "db=" + url.substr(url.find(':') + 1) + " timeout=2";
  return std::make_unique<soci::session>(soci::sqlite3, where);
}

const Application application{"sqlite", &connect};

}  // namespace
}  // namespace sqlite
}  // namespace dlock::test

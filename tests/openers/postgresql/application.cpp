// This file knows how an application is connected to PostgreSQL.
#include "fault/suite/application.hpp"

#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

namespace dlock::test {
namespace DLOCK_DIALECT {
namespace {

std::unique_ptr<soci::session> connect(const std::string& url) {
  // With a parameter, SOCI takes a URL as it is.
  return std::make_unique<soci::session>(soci::postgresql, url + "?connect_timeout=2");
}

const Application application{DLOCK_DIALECT_NAME, &connect};

}  // namespace
}  // namespace DLOCK_DIALECT
}  // namespace dlock::test

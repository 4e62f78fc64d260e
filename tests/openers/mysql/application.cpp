// How an application is connected to MariaDB or MySQL.
#include "fault/suite/application.hpp"

#include "types/url.hpp"

#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>

namespace dlock::test {
namespace mysql {
namespace {

std::unique_ptr<soci::session> connect(const std::string& text) {
  const auto url = Url::parse(text);
  const auto colon = url.hosts.rfind(':');
  const std::string where = "host=" + url.hosts.substr(0, colon) + " port=" + url.hosts.substr(colon + 1) +
                            " user=" + url.user.value_or("root") + " password='" + url.password.value_or("") +
                            "' db=" + url.path.substr(1) + " charset=utf8mb4 connect_timeout=2";
  return std::make_unique<soci::session>(soci::mysql, where);
}

const Application application{"mysql", &connect};

}  // namespace
}  // namespace mysql
}  // namespace dlock::test

// How a test fills the lock table with rows that nobody uses.
#pragma once

#include "support/admin.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace dlock::test {

// The name of row `i` of those below a prefix; in the order of the numbers.
inline std::string row_name(std::string_view prefix, int i) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%06d", i);
  return std::string(prefix) + digits;
}

// Adds `count` rows <prefix>000000 … with these tokens' beginning, idle since the epoch. `owned`: they are leases that
// expired then, without release, held by label <name>.
inline void add_old_rows(Admin& admin, std::string_view prefix, int count, std::int64_t first_token = 1,
                         bool owned = false) {
  constexpr int at_once = 1000;
  admin.run("BEGIN");
  for (int i = 0; i < count;) {
    std::string sql = "INSERT INTO resource_lock (name, token, owner, node, label, expires_at, lease_us) VALUES ";
    for (const int end = std::min(count, i + at_once); i < end; ++i) {
      if (sql.back() != ' ') sql += ",";
      const auto name = row_name(prefix, i);
      char owner[40];
      std::snprintf(owner, sizeof owner, "'%032x'", static_cast<unsigned>(i));
      sql += "('" + name + "'," + std::to_string(first_token + i) + "," +
             (owned ? std::string(owner) + ",'node 1','" + name + "'" : "NULL,'',''") + ",1000,1000)";
    }
    admin.run(sql);
  }
  admin.run("COMMIT");
}

}  // namespace dlock::test

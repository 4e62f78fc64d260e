// What is true of a name that several hold, at every moment and whatever was interrupted.
#pragma once

#include "support/admin.hpp"

#include <string>

namespace dlock::test {

// What of it is not true now, in words; empty if all is. For names whose holders have all been let in by the lock's row
// as it is: no gate was replaced since.
inline std::string half_done(Admin& admin) {
  const std::string holders =
      " FROM resource_lock_holder h LEFT JOIN resource_lock l ON l.name = h.name AND l.owner = h.gate ";
  std::string wrong;
  const auto none = [&](const char* what, const std::string& sql) {
    if (admin.number(sql) != 0) wrong += std::string(wrong.empty() ? "" : "; ") + what;
  };
  none("a holder without its gate", "SELECT count(*)" + holders + "WHERE h.token > 0 AND l.name IS NULL");
  none("a holder that ends after its gate",
       "SELECT count(*)" + holders + "WHERE h.expires_at > l.expires_at OR h.reopens_at > l.expires_at");
  none("a token above that of the gate", "SELECT count(*)" + holders + "WHERE h.token > l.token");
  none("a mode that is not the gate's", "SELECT count(*)" + holders + "WHERE h.gate <> '' AND h.mode <> l.mode");
  none("more permits than there are",
       "SELECT count(*) FROM (SELECT h.name" + holders +
           "WHERE h.mode = 'permits' GROUP BY h.name HAVING sum(h.permits) > max(h.permit_limit)) x");
  none("a gate that nobody holds",
       "SELECT count(*) FROM resource_lock l WHERE l.mode <> '' AND NOT EXISTS (SELECT 1 FROM resource_lock_holder h "
       "WHERE h.name = l.name AND h.gate = l.owner)");
  none("a mode without an owner", "SELECT count(*) FROM resource_lock WHERE mode <> '' AND owner IS NULL");
  return wrong;
}

}  // namespace dlock::test

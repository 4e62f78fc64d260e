// The words for the exit codes, and which fault leads to which.
#include "tools/shared/exit_code.hpp"

namespace dlock::tools {

std::string_view word(Exit code) noexcept {
  switch (number(code)) {
    case 0: return "ok";
    case 1: return "database";
    case 2: return "usage";
    case 3: return "no";
    case 4: return "drift";
    case 5: return "interrupted";
    case 6: return "locked";
    case 7: return "incompatible";
    case 8: return "unreachable";
    case 9: return "permission";
    case 75: return "busy";
    default: return "error";
  }
}

Exit exit_code(Fault fault) noexcept {
  switch (fault) {
    case Fault::unavailable:
    case Fault::timeout: return Exit::unreachable;
    case Fault::schema: return Exit::incompatible;
    case Fault::permission: return Exit::permission;
    case Fault::misuse: return Exit::usage;
    case Fault::lost: return Exit::no;
    case Fault::deadlock:
    case Fault::conflict:
    case Fault::in_doubt: return Exit::database;
  }
  return Exit::database;
}

}  // namespace dlock::tools

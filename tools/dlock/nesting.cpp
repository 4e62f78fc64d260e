// How a lock is known as one that a run around this process holds: by its owner, or by a renewal.
#include "nesting.hpp"

#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace dlock::tools {
namespace {

bool is_ours(const std::string& owner) {
  return !owner.empty() && (variable("DLOCK_OWNER") == owner ||
                            (" " + variable(owners_variable) + " ").find(" " + owner + " ") != std::string::npos);
}

// Of a name that several hold the row names none of them: whether the run around this one does tells a renewal, which
// its own would do as well.
bool is_among_holders(Engine& engine, const std::string& name) {
  const auto token = variable("DLOCK_TOKEN"), owner = variable("DLOCK_OWNER");
  if (variable("DLOCK_NAME") != name) return false;
  try {
    return engine.renew(
        name, {Token{parse_number("DLOCK_TOKEN", token, 1, std::numeric_limits<std::int64_t>::max())}, owner});
  } catch (const UsageError&) { return false; } catch (const Error& error) {
    if (error.fault() != Fault::misuse) throw;
    return false;  // these are no words of a run
  }
}

}  // namespace

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

bool inside_a_run() { return !variable("DLOCK_OWNER").empty() || !variable(owners_variable).empty(); }

void refuse_nesting(Engine& engine, const std::string& name) {
  if (!inside_a_run()) return;
  const auto row = engine.inspect(name);
  if (!row) return;
  if (row->mode == Mode::exclusive ? is_ours(row->owner) : is_among_holders(engine, name))
    throw std::runtime_error(fmt::format(
        "{} (token {}) is held by a dlock run around this one: waiting for it would deadlock", in_quotes(name),
        row->mode == Mode::exclusive ? std::to_string(number(row->token)) : variable("DLOCK_TOKEN")));
}

}  // namespace dlock::tools

// This file knows which texts the build embeds for each dialect.
#pragma once

#include "dialects/dialect.hpp"

namespace dlock::dialects {

// Each dialect's generated source defines, in its own namespace, `const Embedded& embedded() noexcept`.
struct Embedded {
  std::string_view lock_sql, migrator_sql, schema_sql;
  std::span<const Migration> migrations;
};

}  // namespace dlock::dialects

// Which texts the build embeds for each dialect, and what follows from them for all dialects alike.
#pragma once

#include "dialects/dialect.hpp"

#include <span>
#include <string>
#include <string_view>

namespace dlock::dialects {

// Each dialect's generated source defines, in its own namespace, `const Embedded& embedded() noexcept`.
struct Embedded {
  std::string_view lock_sql, migrator_sql, guard_sql, recording_sql, schema_sql;
  std::span<const Migration> migrations;
};

// A dialect whose texts are embedded: what is left to say is how it connects.
class EmbeddedDialect : public Dialect {
 public:
  struct Traits {
    std::string_view name;
    std::span<const std::string_view> schemes;
    Marker marker;
    char quote;  // around identifiers; doubled inside of them
    Duration smallest_margin;
    RemovalPace removal_pace;
    IdentifierLimit identifier_limit{};
  };

  EmbeddedDialect(const Traits& traits, const Embedded& texts) : traits_(traits), texts_(texts) {}

  std::string_view name() const noexcept override { return traits_.name; }
  std::span<const std::string_view> schemes() const noexcept override { return traits_.schemes; }
  Marker marker() const noexcept override { return traits_.marker; }
  std::string quote(std::string_view identifier) const override {
    std::string result(1, traits_.quote);
    for (const char c : identifier) {
      if (c == traits_.quote) result += c;
      result += c;
    }
    return result + traits_.quote;
  }
  IdentifierLimit identifier_limit() const noexcept override { return traits_.identifier_limit; }
  std::string_view lock_sql() const noexcept override { return texts_.lock_sql; }
  std::string_view migrator_sql() const noexcept override { return texts_.migrator_sql; }
  std::string_view guard_sql() const noexcept override { return texts_.guard_sql; }
  std::string_view recording_sql() const noexcept override { return texts_.recording_sql; }
  std::span<const Migration> migrations() const noexcept override { return texts_.migrations; }
  std::string_view schema_sql() const noexcept override { return texts_.schema_sql; }
  Duration smallest_margin() const noexcept override { return traits_.smallest_margin; }
  RemovalPace removal_pace() const noexcept override { return traits_.removal_pace; }

 private:
  const Traits traits_;
  const Embedded& texts_;
};

}  // namespace dlock::dialects

// How a caller's own open transaction is handed over.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dlock {
inline namespace v0 {

// How a handle of some client library is seen as a transaction: a specialisation has
//   static TransactionRef view(T& handle);
// <dlock/soci.hpp>, <dlock/libpq.hpp>, <dlock/mysql.hpp> and <dlock/sqlite.hpp> have one each; users may write others.
template <class T>
struct Adapter;

// The way in for any other driver (libpqxx, ODBC, another language's runtime): a function that runs one statement in
// the caller's open transaction.
struct SqlRunner {
  std::string dialect;  // "postgresql", "mysql" or "sqlite": whose SQL it takes
  // Runs the text, which has no parameters, and answers the first row of its result as text (an empty optional is NULL;
  // no row is an empty vector). A statement without a result answers one field: the number of rows it changed.
  // What it throws goes through to the caller, whose transaction must then be rolled back. On SQLite its what() has the
  // database's own words in it: a BEGIN that fails "within a transaction" is how one that is open is told.
  std::function<std::vector<std::optional<std::string>>(std::string_view sql)> run;
};

// A view of the caller's open transaction, for one call. Threads: as the handle behind it. Owns: nothing.
class TransactionRef {
 public:
  template <class T>
  requires requires(T& handle) { Adapter<std::remove_cvref_t<T>>::view(handle); }
  TransactionRef(T&& handle) : TransactionRef(Adapter<std::remove_cvref_t<T>>::view(handle)) {}
  TransactionRef(const SqlRunner& runner) noexcept : dialect_(runner.dialect), runner_(&runner) {}
  // `native`: the handle of the dialect's own client library (PGconn*, MYSQL*, sqlite3*).
  TransactionRef(std::string_view dialect, void* native) noexcept : dialect_(dialect), native_(native) {}

  std::string_view dialect() const noexcept { return dialect_; }
  void* native() const noexcept { return native_; }             // null with a runner
  const SqlRunner* runner() const noexcept { return runner_; }  // null with a native handle

 private:
  std::string_view dialect_;
  void* native_ = nullptr;
  const SqlRunner* runner_ = nullptr;
};

}  // namespace v0
}  // namespace dlock

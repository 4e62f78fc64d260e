// Which files SQLite opens, and what is said of others; the oldest library; and how a file comes into WAL mode, for
// which SQLite does not wait by itself.
#include "opening.hpp"

#include "faults.hpp"
#include "types/mutant.hpp"
#include "types/retry.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

namespace dlock::dialects::sqlite {
namespace {

constexpr int oldest_version = 3035000;

void check_library() {
  if (sqlite3_libversion_number() < oldest_version)
    throw Failure(Cause::rejected,
                  fmt::format("SQLite {} is too old: 3.35 is the oldest supported", sqlite3_libversion()));
  if (sqlite3_threadsafe() == 0)
    throw Failure(Cause::rejected, "this SQLite was built without support for threads (SQLITE_THREADSAFE=0)");
}

// SQLite says "unable to open database file" to all of these.
void check_path(const std::string& path, bool create) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto found = fs::status(path, error);
  if (found.type() == fs::file_type::regular) return;
  if (found.type() == fs::file_type::directory)
    throw Failure(Cause::rejected, fmt::format("{} is a folder; the URL must name a file", path));
  if (error == std::errc::permission_denied)
    throw Failure(Cause::permission, fmt::format("{}: this user may not enter the folder of the file", path));
  if (found.type() != fs::file_type::not_found) throw Failure(Cause::rejected, fmt::format("{} is not a file", path));
  const auto folder = fs::path(path).parent_path();
  if (!fs::is_directory(folder, error))
    throw Failure(Cause::refused, fmt::format("there is no file {}, and no folder for it", path));
  if (!create)
    throw Failure(Cause::schema, fmt::format("there is no file {}; run \"dlock-migrate up\" to make it", path));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Failure(Cause::permission,
                  fmt::format("there is no file {}, and this user may not write in its folder", path));
}

}  // namespace

std::string look_up(sqlite3* db, const char* sql, const std::string& path) {
  sqlite3_stmt* raw = nullptr;
  if (const int code = sqlite3_prepare_v2(db, sql, -1, &raw, nullptr); code != SQLITE_OK)
    throw failure_of(db, code, path);
  const Prepared statement(raw);
  const int code = sqlite3_step(raw);
  if (code == SQLITE_DONE) return {};
  if (code != SQLITE_ROW) throw failure_of(db, code, path);
  const auto* text = static_cast<const char*>(sqlite3_column_blob(raw, 0));
  return text == nullptr ? std::string{} : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(raw, 0)));
}

Handle open_file(const File& file, bool create, BusyPatience& patience) {
  check_library();
  check_path(file.path, create && !file.read_only);
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  flags |= file.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (create && !file.read_only) flags |= SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.path.c_str(), &raw, flags, nullptr);
  Handle db(raw);
  if (code != SQLITE_OK) throw failure_of(raw, code, file.path);
  sqlite3_extended_result_codes(raw, 1);
  patience.watch(raw);
  // What SQLite did not need to read yet, it reads here: that the file is a database at all.
  if (look_up(raw, "PRAGMA encoding", file.path) != "UTF-8")
    throw Failure(Cause::rejected, fmt::format("SQLite, {}: the database stores text as UTF-16, where names are not "
                                               "compared as bytes; keep the locks in one with PRAGMA encoding='UTF-8'",
                                               file.path));
  const auto synchronous = planted("file_synchronous_off") ? "OFF" : file.synchronous;
  look_up(raw, ("PRAGMA synchronous=" + synchronous).c_str(), file.path);
  return db;
}

void make_wal(sqlite3* db, const File& file, BusyPatience& patience) {
  // The switch needs the file alone for a moment, and SQLite does not wait for that by itself.
  int attempt = 0;
  retry(
      [&] {
        if (look_up(db, "PRAGMA journal_mode", file.path) != "wal") look_up(db, "PRAGMA journal_mode=WAL", file.path);
      },
      [&](const Failure& failure) { return failure.cause() == Cause::locked && patience.wait(attempt++); });
}

}  // namespace dlock::dialects::sqlite

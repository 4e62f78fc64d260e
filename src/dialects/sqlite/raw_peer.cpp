// This file knows the plain use of sqlite3_* that dlock-bench compares with.
#include "dialects/raw_peer.hpp"

#include "dialects/embedded.hpp"
#include "types/url.hpp"

#include <sqlite3.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace dlock::dialects::DLOCK_DIALECT {

const Embedded& embedded() noexcept;

namespace {

namespace fs = std::filesystem;

// How many bytes were appended to the write-ahead log of a database: https://sqlite.org/fileformat2.html#walformat.
// Frames that a checkpoint between two calls made room over are missed. (Opening and closing this file drops no lock:
// they are on its two neighbours.)
class Log {
 public:
  explicit Log(std::string path) : path_(std::move(path)) {}

  std::int64_t appended() {
    std::ifstream file(path_, std::ios::binary);
    std::array<unsigned char, 32> header{};
    if (!read(file, header)) return sum_;
    const auto page = big_endian(header, 8), generation = big_endian(header, 12);
    const auto frame_size = static_cast<std::int64_t>(24 + page);
    std::int64_t bytes = 0;
    // A frame belongs to this generation of the log if it carries the header's two salts.
    for (std::array<unsigned char, 24> frame{}; read(file, frame); file.seekg(page, std::ios::cur)) {
      if (big_endian(frame, 8) != big_endian(header, 16) || big_endian(frame, 12) != big_endian(header, 20)) break;
      bytes += frame_size;
    }
    sum_ += generation == generation_ ? bytes - last_ : bytes;
    generation_ = generation;
    last_ = bytes;
    return sum_;
  }

 private:
  template <std::size_t size>
  static bool read(std::ifstream& file, std::array<unsigned char, size>& bytes) {
    return static_cast<bool>(file.read(reinterpret_cast<char*>(bytes.data()), size));
  }
  template <std::size_t size>
  static std::uint32_t big_endian(const std::array<unsigned char, size>& bytes, std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = at; i < at + 4; ++i) number = number << 8 | bytes.at(i);
    return number;
  }

  const std::string path_;
  std::int64_t sum_ = 0, last_ = 0;
  std::uint32_t generation_ = 0;
};

// How often the file is open, in all processes of this user.
std::int64_t opened(const fs::path& path) {
  std::int64_t count = 0;
  std::error_code gone;  // processes and files that end meanwhile
  const auto wanted = fs::canonical(path, gone);
  for (fs::directory_iterator process("/proc", gone), end; process != end; process.increment(gone))
    for (fs::directory_iterator file(process->path() / "fd", gone); file != end; file.increment(gone))
      if (fs::read_symlink(file->path(), gone) == wanted) ++count;
  return count;
}

class Peer final : public RawPeer {
 public:
  Peer(const Url& url, const std::string& table)
      : path_(url.path.starts_with("//") ? url.path.substr(1) : url.path), log_(path_ + "-wal") {
    check(sqlite3_open_v2(path_.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr));
    for (const auto& [key, value] : url.options)
      if (key == "synchronous") check(sqlite3_exec(db_, ("PRAGMA synchronous=" + value).c_str(), nullptr, nullptr, nullptr));
    check(sqlite3_busy_timeout(db_, 5000));
    TableNames names;
    names.schema = "main";
    names.lock = table;
    names.history = table + "_schema_history";
    const Statements statements(embedded().lock_sql, names, Marker::question,
                                [](std::string_view identifier) { return '"' + std::string(identifier) + '"'; });
    acquire_sql_ = statements.at(
        "acquire", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta", "entry", "ticket"});
    release_sql_ = statements.at("release", {"name", "owner", "token"});
    check(sqlite3_prepare_v3(db_, acquire_sql_.sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &acquire_, nullptr));
    check(sqlite3_prepare_v3(db_, release_sql_.sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &release_, nullptr));
  }
  ~Peer() override {
    sqlite3_finalize(acquire_);
    sqlite3_finalize(release_);
    sqlite3_close(db_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::int64_t acquire(std::string_view name, std::string_view owner) override {
    const std::string_view texts[] = {name, owner, "bench", "bench", owner, {}, {}, "", "", {}};
    const std::int64_t lease = 30'000'000;
    for (std::size_t i = 0; i < acquire_sql_.markers.size(); ++i) {
      const auto argument = acquire_sql_.markers[i];
      const int at = static_cast<int>(i) + 1;
      const bool number = argument == 5 || argument == 6 || argument == 9;
      if (number) sqlite3_bind_int64(acquire_, at, argument == 5 ? lease : 0);
      else bind(acquire_, at, texts[argument]);
    }
    std::int64_t token = 0;
    int code = sqlite3_step(acquire_);
    if (code == SQLITE_ROW) {
      token = sqlite3_column_int64(acquire_, 0);
      code = sqlite3_step(acquire_);
    }
    finish(acquire_, code);
    return token;
  }

  void release(std::string_view name, std::string_view owner, std::int64_t token) override {
    for (std::size_t i = 0; i < release_sql_.markers.size(); ++i) {
      const auto argument = release_sql_.markers[i];
      const int at = static_cast<int>(i) + 1;
      if (argument == 2) sqlite3_bind_int64(release_, at, token);
      else bind(release_, at, argument == 0 ? name : owner);
    }
    finish(release_, sqlite3_step(release_));
  }

  std::string server() const override { return "SQLite " + std::string(sqlite3_libversion()); }

  Load load() override { return {std::nullopt, log_.appended(), opened(path_)}; }

 private:
  void check(int code) {
    if (code == SQLITE_OK) return;
    const std::string text = db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
    throw std::runtime_error("raw peer: " + text);
  }
  void finish(sqlite3_stmt* statement, int code) {
    sqlite3_reset(statement);
    if (code != SQLITE_DONE) check(code);
  }
  static void bind(sqlite3_stmt* statement, int at, std::string_view text) {
    sqlite3_bind_text(statement, at, text.data() != nullptr ? text.data() : "", static_cast<int>(text.size()),
                      SQLITE_STATIC);
  }

  const std::string path_;
  Log log_;
  sqlite3* db_ = nullptr;
  Statement acquire_sql_, release_sql_;
  sqlite3_stmt *acquire_ = nullptr, *release_ = nullptr;
};

}  // namespace

std::unique_ptr<RawPeer> make_raw_peer(const Url& url, std::string_view, const std::string& table) {
  return std::make_unique<Peer>(url, table);
}

}  // namespace dlock::dialects::DLOCK_DIALECT

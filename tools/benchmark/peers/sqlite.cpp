// The plain use of sqlite3_* that dlock-bench compares with.
#include "raw_peer.hpp"

#include "dialects/dialect.hpp"
#include "peers.hpp"
#include "raw_pair.hpp"
#include "types/url.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace bench::sqlite {

std::string_view peers_sql() noexcept;
const Peers& peers() noexcept;

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> words{"raw", "naive"};

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

struct Finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  void operator()(sqlite3* db) const noexcept { sqlite3_close(db); }
};

// One prepared statement.
struct Prepared {
  dlock::dialects::Statement statement;
  std::unique_ptr<sqlite3_stmt, Finalize> handle;

  sqlite3_stmt* raw() const noexcept { return handle.get(); }
};

class Peer final : public RawPeer {
 public:
  explicit Peer(const PeerOf& of)
      : path_(of.parsed.path.starts_with("//") ? of.parsed.path.substr(1) : of.parsed.path), log_(path_ + "-wal") {
    sqlite3* db = nullptr;
    const int code = sqlite3_open_v2(path_.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    db_.reset(db);
    check(code);
    for (const auto& [key, value] : of.parsed.options)
      if (key == "synchronous")
        check(sqlite3_exec(db, ("PRAGMA synchronous=" + value).c_str(), nullptr, nullptr, nullptr));
    check(sqlite3_busy_timeout(db, 60'000));
    dlock::dialects::TableNames names;
    names.schema = "main";
    names.lock = of.table.name;
    names.history = of.table.name + "_schema_history";
    const auto quoted = [](std::string_view identifier) { return '"' + std::string(identifier) + '"'; };
    const dlock::dialects::Statements ours(of.lock_sql, names, dlock::dialects::Marker::question, quoted);
    const dlock::dialects::Statements theirs(peers_sql(), names, dlock::dialects::Marker::question, quoted);
    auto pair = raw_pair(of.word, ours, theirs);
    acquire_ = prepared(std::move(pair.acquire));
    release_ = prepared(std::move(pair.release));
    read_ = prepared(theirs.at("read", {"name"}));
    fill_ = prepared(theirs.at("fill", {"prefix", "first", "count"}));
    tidy_ = prepared(theirs.at("tidy", {}));
  }

  std::int64_t acquire(std::string_view name, std::string_view owner) override {
    bind(acquire_, std::array<std::string_view, 9>{name, owner, "bench", "bench", owner, {}, {}, "", {}},
         {0, 0, 0, 0, 0, 30'000'000});
    std::int64_t token = 0;
    int code = sqlite3_step(acquire_.raw());
    if (code == SQLITE_ROW) {
      token = sqlite3_column_int64(acquire_.raw(), 0);
      code = sqlite3_step(acquire_.raw());
    }
    finish(acquire_, code);
    return token;
  }

  void release(std::string_view name, std::string_view owner, std::int64_t token) override {
    bind(release_, {name, owner}, {0, 0, token});
    finish(release_, sqlite3_step(release_.raw()));
  }

  void read(std::string_view name) override {
    bind(read_, {name}, {});
    run(read_);
  }

  std::string server() const override { return "SQLite " + std::string(sqlite3_libversion()); }

  Settings settings() override {
    static constexpr std::array<std::string_view, 5> levels{"OFF", "NORMAL", "FULL", "EXTRA", "unknown"};
    const auto level = std::strtoull(asked("PRAGMA synchronous").c_str(), nullptr, 10);
    return {{"journal_mode", asked("PRAGMA journal_mode")},
            {"synchronous", std::string(levels.at(std::min<std::size_t>(level, levels.size() - 1)))}};
  }

  Load load() override { return {std::nullopt, log_.appended(), opened(path_)}; }

  std::int64_t end_of_log() override { return log_.appended(); }
  bool counts_all_of_log() const override { return false; }

  void fill(std::string_view prefix, std::int64_t first, std::int64_t count) override {
    bind(fill_, {prefix}, {0, first, count});
    run(fill_);
  }

  void tidy() override { run(tidy_); }

 private:
  void check(int code) {
    if (code == SQLITE_OK) return;
    const std::string text = db_ ? sqlite3_errmsg(db_.get()) : sqlite3_errstr(code);
    throw std::runtime_error("raw peer: " + text);
  }

  Prepared prepared(dlock::dialects::Statement statement) {
    sqlite3_stmt* handle = nullptr;
    check(sqlite3_prepare_v3(db_.get(), statement.sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr));
    return {std::move(statement), std::unique_ptr<sqlite3_stmt, Finalize>(handle)};
  }

  // An argument without text is a number.
  static void bind(const Prepared& prepared, const std::array<std::string_view, 9>& texts,
                   const std::array<std::int64_t, 9>& numbers) {
    int at = 0;
    for (const auto argument : prepared.statement.markers) {
      ++at;
      const auto text = texts[argument];
      if (text.data() == nullptr) sqlite3_bind_int64(prepared.raw(), at, numbers[argument]);
      else sqlite3_bind_text(prepared.raw(), at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
    }
  }

  void finish(const Prepared& prepared, int code) {
    sqlite3_reset(prepared.raw());
    if (code != SQLITE_DONE) check(code);
  }

  void run(const Prepared& prepared) {
    int code = SQLITE_ROW;
    while (code == SQLITE_ROW) code = sqlite3_step(prepared.raw());
    finish(prepared, code);
  }

  std::string asked(const char* pragma) {
    sqlite3_stmt* handle = nullptr;
    check(sqlite3_prepare_v2(db_.get(), pragma, -1, &handle, nullptr));
    const std::unique_ptr<sqlite3_stmt, Finalize> statement(handle);
    if (sqlite3_step(handle) != SQLITE_ROW) check(sqlite3_errcode(db_.get()));
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle, 0));
    return text == nullptr ? std::string() : text;
  }

  const std::string path_;
  Log log_;
  std::unique_ptr<sqlite3, Finalize> db_;
  Prepared acquire_, release_, read_, fill_, tidy_;
};

}  // namespace

const Peers& peers() noexcept {
  static constexpr Peers instance{
      words, [](const PeerOf& of) -> std::unique_ptr<RawPeer> { return std::make_unique<Peer>(of); }};
  return instance;
}

}  // namespace bench::sqlite

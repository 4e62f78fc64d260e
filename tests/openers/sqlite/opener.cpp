// How to open a fresh SQLite database, and how to look at one from outside.
#include "support/child.hpp"
#include "support/test_database.hpp"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace dlock::test {
namespace sqlite {
namespace {

std::unique_ptr<soci::session> open(const std::string& path) {
  const std::string where = "db=" + path + " timeout=20";
  return std::make_unique<soci::session>(soci::sqlite3, where);
}

class DatabaseInFile final : public TestDatabase {
 public:
  DatabaseInFile() : path_(folder_.path() + "/lock.db"), watching_(open(path_)) {}

  std::string url() const override { return "sqlite:" + path_; }
  std::string client() const override { return "sqlite3 -batch -bail '" + path_ + "'"; }
  std::unique_ptr<soci::session> connect() const override { return open(path_); }
  std::string begin_writing() const override { return "BEGIN IMMEDIATE"; }
  std::vector<Beginning> beginnings() const override {
    return {{"immediate", {"BEGIN IMMEDIATE"}, false}, {"deferred", {"BEGIN"}, true}};
  }
  std::vector<std::string> odd_session() const override {
    return {"PRAGMA busy_timeout = 0", "PRAGMA case_sensitive_like = on", "PRAGMA reverse_unordered_selects = on"};
  }
  std::string session_state() const override { return "SELECT timeout || '' FROM pragma_busy_timeout"; }

  // The version of the data as another connection sees it, the change counter in the file's header, and the log's size.
  std::string written() override {
    long long version = 0;
    const std::string sql = "PRAGMA data_version";
    *watching_ << sql, soci::into(version);
    std::array<char, 4> counter{};
    std::ifstream(path_, std::ios::binary).seekg(24).read(counter.data(), counter.size());
    std::error_code none;
    const auto log = std::filesystem::file_size(path_ + "-wal", none);
    return std::to_string(version) + ' ' + std::string(counter.data(), counter.size()) + ' ' + std::to_string(log);
  }

  std::string row_of(std::string_view literal_name) const override {
    return "SELECT name || '|' || coalesce(owner, '-') || '|' || token || '|' || acquired_at || '|' || expires_at || "
           "'|' || reopens_at || '|' || lease_us || '|' || meta || '|' || label || '|' || actor || '|' || node || '|' "
           "|| mode FROM resource_lock WHERE name = '" +
           std::string(literal_name) + "'";
  }

 private:
  const TemporaryFolder folder_;
  const std::string path_;
  const std::unique_ptr<soci::session> watching_;
};

std::optional<std::string> missing() { return std::nullopt; }
std::unique_ptr<TestDatabase> test_database() { return std::make_unique<DatabaseInFile>(); }

const Opener opener{"sqlite", &missing, &test_database, &test_database, nullptr, nullptr};

}  // namespace
}  // namespace sqlite
}  // namespace dlock::test

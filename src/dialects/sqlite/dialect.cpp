// This file knows what makes SQLite a dialect.
#include "connection.hpp"
#include "dialects/embedded.hpp"
#include "file.hpp"

namespace dlock::dialects::DLOCK_DIALECT {

const Embedded& embedded() noexcept;
const Dialect& dialect() noexcept;

namespace {

class FileConnector final : public Connector {
 public:
  FileConnector(const Url& url, const ConnectOptions& options)
      : file_(file_of(url)), create_(options.create), target_(url.scheme + ":" + file_.path) {}
  std::unique_ptr<Connection> connect(Deadline deadline) const override {
    return std::make_unique<FileConnection>(file_, create_, deadline);
  }
  const std::string& target() const noexcept override { return target_; }

 private:
  const File file_;
  const bool create_;
  const std::string target_;
};

class FileDialect final : public Dialect {
 public:
  std::string_view name() const noexcept override { return DLOCK_DIALECT_NAME; }
  std::span<const std::string_view> schemes() const noexcept override {
    static constexpr std::string_view schemes[] = {DLOCK_DIALECT_SCHEMES};
    return schemes;
  }
  std::unique_ptr<Connector> connector(const Url& url, const ConnectOptions& options) const override {
    return std::make_unique<FileConnector>(url, options);
  }
  Marker marker() const noexcept override { return Marker::question; }
  std::string quote(std::string_view identifier) const override {
    std::string result = "\"";
    for (const char c : identifier) {
      if (c == '"') result += '"';
      result += c;
    }
    return result + "\"";
  }
  std::string_view lock_sql() const noexcept override { return embedded().lock_sql; }
  std::string_view migrator_sql() const noexcept override { return embedded().migrator_sql; }
  std::span<const Migration> migrations() const noexcept override { return embedded().migrations; }
  std::string_view schema_sql() const noexcept override { return embedded().schema_sql; }
  // The clock in the statements has steps of 1 ms: one for each end of a lease, and one for what lies between.
  Duration smallest_margin() const noexcept override { return std::chrono::milliseconds{3}; }
};

}  // namespace

const Dialect& dialect() noexcept {
  static const FileDialect instance;
  return instance;
}

}  // namespace dlock::dialects::DLOCK_DIALECT

// What makes SQLite a dialect: its URL scheme, its least margin (for the steps of its clock), how many rows are removed
// at once, how long a name may be.
#include "dialects/dialect.hpp"
#include "caller_connection.hpp"
#include "connection.hpp"
#include "file.hpp"
#include "listener.hpp"

namespace dlock::dialects::sqlite {

const Texts& embedded_texts() noexcept;
const Dialect& dialect() noexcept;

namespace {

class StatementCanceller final : public Canceller {
 public:
  explicit StatementCanceller(FileConnection& connection) : connection_(connection) {}
  void cancel(Deadline) override { connection_.interrupt(); }

 private:
  FileConnection& connection_;
};

class FileConnector final : public Connector {
 public:
  FileConnector(const Url& url, const ConnectOptions& options)
      : file_(file_of(url)), create_(options.create), target_(url.scheme + ":" + file_.path) {}
  std::unique_ptr<Connection> connect(Deadline deadline) const override {
    return std::make_unique<FileConnection>(file_, create_, deadline);
  }
  std::unique_ptr<Canceller> canceller(Connection& connection, Deadline) const override {
    return std::make_unique<StatementCanceller>(static_cast<FileConnection&>(connection));
  }
  std::unique_ptr<Listener> listener(const TableNames&, Deadline deadline) const override {
    return open_listener(file_, deadline);
  }
  const std::string& target() const noexcept override { return target_; }

 private:
  const File file_;
  const bool create_;
  const std::string target_;
};

constexpr std::string_view url_schemes[] = {"sqlite"};
// The clock in the statements has steps of 1 ms: one for each end of a lease, and one for what lies between.
constexpr Duration clock_margin = std::chrono::milliseconds{3};
// All who write wait for it: so rarely that one in a hundred of them does not notice.
constexpr RemovalPace removal{1000, 8, 250};
// There is no rule; nobody has a longer one.
constexpr IdentifierLimit longest_name{255, 1020};

class FileDialect final : public Dialect {
 public:
  FileDialect()
      : Dialect({"sqlite", url_schemes, Marker::question, '"', clock_margin, removal, longest_name}, embedded_texts()) {
  }
  std::unique_ptr<Connector> connector(const Url& url, const ConnectOptions& options) const override {
    return std::make_unique<FileConnector>(url, options);
  }
  std::unique_ptr<CallerConnection> caller_connection(const TransactionRef& transaction,
                                                      const QuotedTable& table) const override {
    if (const auto* runner = transaction.runner()) return std::make_unique<TransactionConnection>(runner->run, table);
    return std::make_unique<TransactionConnection>(static_cast<sqlite3*>(transaction.native()), table);
  }
  void append_literal(std::string& sql, const Argument& argument) const override {
    sqlite::append_literal(sql, argument);
  }
};

}  // namespace

const Dialect& dialect() noexcept {
  static const FileDialect instance;
  return instance;
}

}  // namespace dlock::dialects::sqlite

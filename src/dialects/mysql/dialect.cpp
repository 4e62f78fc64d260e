// What makes MySQL and MariaDB a dialect: their URL schemes, their least margin, how many rows are removed at once, how
// long a name may be; and that nobody listens where nothing is prepared.
#include "dialects/dialect.hpp"
#include "caller_connection.hpp"
#include "canceller.hpp"
#include "connection.hpp"
#include "listener.hpp"
#include "literals.hpp"
#include "release_signal.hpp"
#include "server.hpp"

namespace dlock::dialects::mysql {

const Texts& embedded_texts() noexcept;
const Dialect& dialect() noexcept;

namespace {

class ServerConnector final : public Connector {
 public:
  ServerConnector(const Url& url, const ConnectOptions& options)
      : server_(server_of(url, options.application)), use_{options.prepared_statements, options.waits_for_locks} {}
  std::unique_ptr<Connector> as(const Credentials& credentials) const override {
    auto other = std::make_unique<ServerConnector>(*this);
    if (credentials.user) other->server_.user = *credentials.user;
    if (credentials.password) other->server_.password = *credentials.password;
    return other;
  }
  std::unique_ptr<Connection> connect(Deadline deadline) const override {
    return std::make_unique<ServerConnection>(server_, use_, deadline);
  }
  std::unique_ptr<Canceller> canceller(Connection& connection, Deadline deadline) const override {
    return make_canceller(server_, static_cast<ServerConnection&>(connection), deadline);
  }
  // Without prepared statements there is a pooler in between, which lends connections for a transaction.
  std::unique_ptr<Listener> listener(const TableNames& names, Deadline deadline) const override {
    return use_.prepared_statements ? open_listener(server_, names, deadline) : nullptr;
  }
  std::unique_ptr<ReleaseSignal> release_signal(const TableNames& names, std::string_view engine) const override {
    return use_.prepared_statements ? make_release_signal(server_, engine, names.channel()) : nullptr;
  }
  const std::string& target() const noexcept override { return server_.target; }

 private:
  Server server_;
  SessionUse use_;
};

constexpr std::string_view url_schemes[] = {"mysql", "mariadb"};
constexpr Duration clock_margin = std::chrono::milliseconds{1};
// Others feel the commit of a batch: so rarely that one in a hundred of them does not notice.
constexpr RemovalPace removal{3000, 1, 250};
constexpr IdentifierLimit longest_name{64, 192};

class ServerDialect final : public Dialect {
 public:
  ServerDialect()
      : Dialect({"mysql", url_schemes, Marker::question, '`', clock_margin, removal, longest_name, true},
                embedded_texts()) {}
  std::unique_ptr<Connector> connector(const Url& url, const ConnectOptions& options) const override {
    return std::make_unique<ServerConnector>(url, options);
  }
  std::unique_ptr<CallerConnection> caller_connection(const TransactionRef& transaction,
                                                      const QuotedTable& table) const override {
    if (const auto* runner = transaction.runner()) return std::make_unique<TransactionConnection>(runner->run, table);
    return std::make_unique<TransactionConnection>(static_cast<MYSQL*>(transaction.native()), table);
  }
  void append_literal(std::string& sql, const Argument& argument) const override {
    mysql::append_literal(sql, argument);
  }
  // name@host; without a host it is every host.
  std::string grantee(std::string_view role) const override {
    const auto at = role.rfind('@');
    return at == std::string_view::npos ? quote(role) : quote(role.substr(0, at)) + "@" + quote(role.substr(at + 1));
  }
};

}  // namespace

const Dialect& dialect() noexcept {
  static const ServerDialect instance;
  return instance;
}

}  // namespace dlock::dialects::mysql

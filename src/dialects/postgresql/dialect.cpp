// What makes PostgreSQL a dialect: its URL schemes, its least margin, how many rows are removed at once; and when a
// session is the engine's own, and there is something to listen to.
#include "dialects/dialect.hpp"
#include "caller_connection.hpp"
#include "canceller.hpp"
#include "connection.hpp"
#include "listener.hpp"
#include "literals.hpp"
#include "server.hpp"

namespace dlock::dialects::postgresql {

const Texts& embedded_texts() noexcept;
const Dialect& dialect() noexcept;

namespace {

class ServerConnector final : public Connector {
 public:
  ServerConnector(const Url& url, const ConnectOptions& options)
      : server_(server_of(url, options.application)),
        use_(options.prepared_statements ? SessionUse::own_session
             : options.waits_for_locks   ? SessionUse::as_it_is
                                         : SessionUse::lent_session) {}
  std::unique_ptr<Connector> as(const Credentials& credentials) const override {
    auto other = std::make_unique<ServerConnector>(*this);
    if (credentials.user) other->server_.keywords.emplace_back("user", *credentials.user);
    if (credentials.password) {
      other->server_.keywords.emplace_back("password", *credentials.password);
      other->server_.password = *credentials.password;
    }
    return other;
  }
  std::unique_ptr<Connection> connect(Deadline deadline) const override {
    return std::make_unique<ServerConnection>(server_, use_, deadline);
  }
  std::unique_ptr<Canceller> canceller(Connection& connection, Deadline) const override {
    return make_canceller(static_cast<ServerConnection&>(connection));
  }
  std::unique_ptr<Listener> listener(const TableNames& names, Deadline deadline) const override {
    return use_ == SessionUse::own_session ? open_listener(server_, names, deadline) : nullptr;
  }
  const std::string& target() const noexcept override { return server_.target; }

 private:
  Server server_;
  SessionUse use_;
};

constexpr std::string_view url_schemes[] = {"postgresql", "postgres"};
constexpr Duration clock_margin = std::chrono::milliseconds{1};
constexpr RemovalPace removal{150};  // rows are locked one by one: others feel the log that is written

class ServerDialect final : public Dialect {
 public:
  ServerDialect()
      : Dialect({"postgresql", url_schemes, Marker::dollar, '"', clock_margin, removal}, embedded_texts()) {}
  std::unique_ptr<Connector> connector(const Url& url, const ConnectOptions& options) const override {
    return std::make_unique<ServerConnector>(url, options);
  }
  std::unique_ptr<CallerConnection> caller_connection(const TransactionRef& transaction,
                                                      const QuotedTable& table) const override {
    if (const auto* runner = transaction.runner()) return std::make_unique<TransactionConnection>(runner->run, table);
    return std::make_unique<TransactionConnection>(static_cast<PGconn*>(transaction.native()), table);
  }
  void append_literal(std::string& sql, const Argument& argument) const override {
    postgresql::append_literal(sql, argument);
  }
};

}  // namespace

const Dialect& dialect() noexcept {
  static const ServerDialect instance;
  return instance;
}

}  // namespace dlock::dialects::postgresql

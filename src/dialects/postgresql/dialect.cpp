// This file knows what makes PostgreSQL a dialect.
#include "connection.hpp"
#include "dialects/embedded.hpp"
#include "server.hpp"

#include <array>

namespace dlock::dialects::DLOCK_DIALECT {

const Embedded& embedded() noexcept;
const Dialect& dialect() noexcept;

namespace {

class ServerConnector final : public Connector {
 public:
  ServerConnector(const Url& url, const ConnectOptions& options)
      : server_(server_of(url, options.application)), prepared_statements_(options.prepared_statements) {}
  std::unique_ptr<Connection> connect(Deadline deadline) const override {
    return std::make_unique<ServerConnection>(server_, prepared_statements_, deadline);
  }
  const std::string& target() const noexcept override { return server_.target; }

 private:
  const Server server_;
  const bool prepared_statements_;
};

class ServerDialect final : public Dialect {
 public:
  std::string_view name() const noexcept override { return DLOCK_DIALECT_NAME; }
  std::span<const std::string_view> schemes() const noexcept override {
    static constexpr std::array<std::string_view, std::size(std::initializer_list<const char*>{DLOCK_DIALECT_SCHEMES})>
        schemes{DLOCK_DIALECT_SCHEMES};
    return schemes;
  }
  std::unique_ptr<Connector> connector(const Url& url, const ConnectOptions& options) const override {
    return std::make_unique<ServerConnector>(url, options);
  }
  Marker marker() const noexcept override { return Marker::dollar; }
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
  Duration smallest_margin() const noexcept override { return std::chrono::milliseconds{1}; }
};

}  // namespace

const Dialect& dialect() noexcept {
  static const ServerDialect instance;
  return instance;
}

}  // namespace dlock::dialects::DLOCK_DIALECT

// The request of libpq to cancel: a connection for nothing else, which poolers pass on.
#include "canceller.hpp"

#include "faults.hpp"

#include <libpq-fe.h>

#include <array>

namespace dlock::dialects::postgresql {
namespace {

struct FreeCancel {
  void operator()(PGcancel* cancel) const noexcept { PQfreeCancel(cancel); }
};

class RequestCanceller final : public Canceller {
 public:
  explicit RequestCanceller(PGconn* connection) : cancel_(PQgetCancel(connection)) {}

  // libpq knows no deadline here; the server ends this connection once it has told the other one's process.
  void cancel(Deadline) override {
    std::array<char, 256> text{};
    if (PQcancel(cancel_.get(), text.data(), static_cast<int>(text.size())) == 0)
      throw Failure(Cause::refused, "PostgreSQL: the statement could not be cancelled: " + in_one_line(text.data()));
  }

 private:
  const std::unique_ptr<PGcancel, FreeCancel> cancel_;
};

}  // namespace

std::unique_ptr<Canceller> make_canceller(const ServerConnection& connection) {
  return std::make_unique<RequestCanceller>(connection.native());
}

}  // namespace dlock::dialects::postgresql

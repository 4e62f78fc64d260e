// KILL QUERY, and that the number it takes means another session on another server.
#include "canceller.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace dlock::dialects::mysql {
namespace {

// Where a session comes from: behind one name there may be several servers, and a number that is ours on one of them is
// somebody else's on another. Everybody may see their own sessions.
std::string place_of(ServerConnection& through, const std::string& number, Deadline deadline) {
  const auto& answer = through.ask("SELECT HOST FROM information_schema.processlist WHERE ID = " + number, deadline);
  return answer.rows() == 0 || answer.is_null(0, 0) ? std::string{} : answer.text(0, 0);
}

class KillingCanceller final : public Canceller {
 public:
  KillingCanceller(Server server, std::string number, std::string place)
      : server_(std::move(server)), number_(std::move(number)), place_(std::move(place)) {}

  void cancel(Deadline deadline) override {
    ServerConnection second(server_, {false, false}, deadline);
    if (place_of(second, number_, deadline) != place_)
      throw Failure(Cause::refused,
                    fmt::format("MySQL: {} led to a server that does not know the connection", server_.target));
    second.script("KILL QUERY " + number_, deadline);
  }

 private:
  const Server server_;
  const std::string number_, place_;
};

}  // namespace

std::unique_ptr<Canceller> make_canceller(const Server& server, ServerConnection& connection, Deadline deadline) {
  const auto& answer = connection.ask("SELECT CONNECTION_ID()", deadline);
  auto number = std::to_string(answer.integer(0, 0));
  auto place = place_of(connection, number, deadline);
  return std::make_unique<KillingCanceller>(server, std::move(number), std::move(place));
}

}  // namespace dlock::dialects::mysql

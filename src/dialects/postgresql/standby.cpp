// The warning is told by the place in the server that it comes from (src/backend/replication/syncrep.c).
#include "standby.hpp"

#include "handle.hpp"

#include <array>
#include <string_view>

namespace dlock::dialects::postgresql {
namespace {

std::string_view field_of(const PGresult* notice, int field) noexcept {
  const char* text = PQresultErrorField(notice, field);
  return text == nullptr ? std::string_view{} : std::string_view{text};
}

// The receiver of a connection whose owner has set none: it needs no argument, and so can be put back. libpq tells it
// of a connection alone; this one is never made.
PQnoticeReceiver default_receiver() {
  const ForkLock lock;  // a child must not find it half made
  static const auto receiver = [] {
    const std::array<const char*, 2> keys{"sslmode", nullptr}, values{"none at all", nullptr};
    const auto none = start_connection(keys.data(), values.data());
    return PQsetNoticeReceiver(none.get(), nullptr, nullptr);
  }();
  return receiver;
}

}  // namespace

bool gave_up_on_standby(const PGresult* notice) noexcept {
  return field_of(notice, PG_DIAG_SEVERITY_NONLOCALIZED) == "WARNING" &&
         field_of(notice, PG_DIAG_SOURCE_FUNCTION) == "SyncRepWaitForLSN";
}

Failure unconfirmed_commit() {
  return {Cause::timed_out,
          "PostgreSQL: the commit's wait for a synchronous standby was cancelled: a failover may forget what was "
          "committed",
          "01000", true};
}

StandbyWatch::StandbyWatch(PGconn* connection) : connection_(connection) {
  const auto current = PQsetNoticeReceiver(connection_, nullptr, nullptr);  // asks, and sets nothing
  if (current == nullptr || current != default_receiver()) return;
  receiver_ = current;
  PQsetNoticeReceiver(
      connection_,
      [](void* self, const PGresult* notice) {
        auto& watch = *static_cast<StandbyWatch*>(self);
        watch.gave_up_ = watch.gave_up_ || gave_up_on_standby(notice);
        watch.receiver_(nullptr, notice);
      },
      this);
}

StandbyWatch::~StandbyWatch() {
  if (receiver_ != nullptr) PQsetNoticeReceiver(connection_, receiver_, nullptr);
}

}  // namespace dlock::dialects::postgresql

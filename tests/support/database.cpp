// How the database of a test case is set up and looked at in the end; and that a program whose database is not there
// ends with 77: skipped.
#include "support/database.hpp"

#include "api/open.hpp"
#include "store/sql_lock_table.hpp"
#include "support/main.hpp"
#include "support/slowness.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

namespace dlock::test {
namespace {

int database_is_there() {
  try {
    const auto& database = opener();
    const auto why = database.missing();
    if (!why) return 0;
    std::fprintf(stderr, "skipped: %s\n", why->c_str());
    return 77;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

const Precondition precondition{&database_is_there};

unsigned combine_unless(unsigned chosen) {
  static const char* const text = std::getenv("DLOCK_TEST_COMBINE");
  return text == nullptr || chosen != EngineOptions{}.combine ? chosen : static_cast<unsigned>(std::stoul(text));
}

SaturatingDuration local_unless(SaturatingDuration chosen) {
  static const char* const text = std::getenv("DLOCK_TEST_LOCAL");
  if (text == nullptr || chosen != EngineOptions{}.hand_overs.local) return chosen;
  return std::chrono::milliseconds{std::stoll(text)};
}

// What is chosen; what is not, in proportion to how slow it is here.
Duration timeout(Duration chosen, Duration standard) { return chosen == standard ? standard * slowness() : chosen; }

}  // namespace

Database::Database(std::unique_ptr<TestDatabase> test_database) : test_database_(std::move(test_database)) {
  Engine::install_schema(test_database_->url());
  admin_ = std::make_unique<Admin>(*test_database_);
}

Database::~Database() {
  try {
    Admin admin(*test_database_);
    // What an answer that was late has granted is given back behind its caller.
    const bool in_time = std::uncaught_exceptions() == 0;
    CHECK_MESSAGE((in_time ? admin.held() == 0 : eventually([&] { return admin.held() == 0; })), "a lock is left held");
  } catch (const std::exception& error) {
    FAIL_CHECK("the locks left held could not be counted: " << std::string(error.what()));
  }
}

std::chrono::milliseconds time_in_vain() {
  return opener().server_database != nullptr ? std::chrono::seconds{10} : std::chrono::milliseconds{300} * slowness();
}

Engine Database::engine(const EngineOptions& options) const {
  auto chosen = options;
  const EngineOptions standard;
  chosen.combine = combine_unless(options.combine);
  chosen.hand_overs.local = local_unless(options.hand_overs.local);
  chosen.timeouts.connect = timeout(options.timeouts.connect, standard.timeouts.connect);
  chosen.timeouts.request = timeout(options.timeouts.request, standard.timeouts.request);
  // A server that stalls makes no release unconfirmed.
  if (options.timeouts.release == standard.timeouts.release)
    chosen.timeouts.release = std::chrono::seconds{5} * slowness();
  chosen.ticket = timeout(options.ticket, standard.ticket);
  return Engine(url(), std::move(chosen));
}

std::unique_ptr<store::LockTable> Database::table() const { return open_table(url()); }

std::unique_ptr<store::LockTable> open_table(const std::string& url, unsigned connections, const std::string& engine,
                                             bool prepared) {
  dialects::ConnectOptions connect;
  connect.prepared_statements = prepared;
  auto door = api::resolve(url, connect);
  store::TableOptions options;
  options.connections = connections;
  options.combine = combine_unless(options.combine);
  options.engine = engine;
  return store::open_lock_table(door.dialect, std::move(door.connector), options);
}

LockOptions renewed_often() {
  LockOptions options;
  options.lease = std::chrono::minutes{10};
  options.renew_every = std::chrono::milliseconds{20};
  return options;
}

void free_by_force(Engine& engine, std::string_view name) {
  const auto row = engine.inspect(name);
  if (row) engine.force_release(name, row->token);
}

}  // namespace dlock::test

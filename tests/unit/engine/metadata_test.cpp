// Tests that metadata are written although an answer is lost, and never for a lease that is lost.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Cause;
using dlock::Fault;
using dlock::later;

namespace {

struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  dlock::Core core{table, {}};
  std::shared_ptr<dlock::engine::Lease> held =
      core.acquire(dlock::Name("n"), {}, {later(BootClock::now(), 10s), {}, false});

  std::string metadata() { return table->metadata_of("n"); }
};

}  // namespace

TEST_CASE("metadata are written again when nobody has answered, whether they were written or not") {
  for (const bool carried_out : {true, false}) {
    Bench bench;
    REQUIRE(bench.held);
    bench.table->add_mishap(Cause::disconnected, true, carried_out);
    bench.core.update_metadata(bench.held, "new", dlock::Keep::until_free);
    CHECK(bench.metadata() == "new");
    CHECK(bench.held->valid(BootClock::now()));
  }
}

TEST_CASE("metadata that nobody may write any more are a loss, told once") {
  Bench bench;
  REQUIRE(bench.held);
  REQUIRE(bench.table->force_release("n", bench.held->token(), {}, {later(BootClock::now(), 10s)}));
  for (int i = 0; i < 2; ++i) try {
      bench.core.update_metadata(bench.held, "new", dlock::Keep::for_next);
      FAIL("it was written");
    } catch (const dlock::Error& error) { CHECK(error.fault() == Fault::lost); }
  CHECK(bench.metadata().empty());
  CHECK(bench.held->loss() == dlock::Loss::forced);
}

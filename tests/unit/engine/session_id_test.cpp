// How much a thread remembers of what it has handed out.
#include "engine/session_id.hpp"

#include "engine/lease/lease.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>

using namespace std::chrono_literals;
using namespace dlock::engine;

namespace {

// A grant whose row names the job, which has let go of it.
std::shared_ptr<Lease> of(const JobRef& job) {
  auto held =
      std::make_shared<Lease>(dlock::Name("n"), "owner", dlock::Token{1}, LeaseTerms{1h, 1s}, dlock::BootClock::now());
  held->row_names(job);
  return held;
}

std::size_t remembered(int many, bool detached) {
  const JobRef job{new ThreadJob};
  for (int i = 0; i < many; ++i) job->add({{}, of(job), detached});
  auto strays = job->take_strays();
  for (const auto& each : strays) each.held->row_names({});
  return strays.size();
}

}  // namespace

TEST_CASE("of the grants that a thread has detached it remembers the last ones, of those it has moved all") {
  CHECK(remembered(1000, true) == 1000);
  CHECK(remembered(20'000, true) < 2200);
  CHECK(remembered(3000, false) == 3000);
}

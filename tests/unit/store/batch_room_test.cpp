// The promise that nobody goes along with a leader whose time may be up before the answer.
#include "store/batch_room.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <stop_token>

using namespace dlock;
using namespace dlock::store;
using namespace std::chrono_literals;

namespace {

const Instant noon = later(Instant{}, 24h);
constexpr Pace quick{}, slow{true, 1ms, 300ms};

// Of a leader of kind 0, three of each kind.
BatchRoom room_of(const Pace& pace, BootClock::duration time, BootClock::duration promptly, std::stop_token stop = {}) {
  return {0, pace, Deadline(later(noon, time), std::move(stop)), later(noon, promptly), 3, noon};
}
std::size_t room_for(BatchRoom room, std::size_t kind, BootClock::duration waits) {
  std::size_t requests = 0;
  for (; room.admits(kind, later(noon, waits)); ++requests) room.take(kind);
  return requests;
}

}  // namespace

TEST_CASE("there is room for those of the leader's kind who have nearly as much time, and for no others") {
  const auto room = room_of(quick, 4s, 4s);
  CHECK(room_for(room, 0, 1h) == 2);
  CHECK(room_for(room, 0, 3s) == 2);
  CHECK(room_for(room, 0, 2999ms) == 0);
  CHECK(room_for(room, 1, 1h) == 0);
  CHECK(room_for(BatchRoom(), 0, 1h) == 0);
}

TEST_CASE("who has little time, or was told to stop, takes nobody along") {
  CHECK(room_for(room_of(slow, 100ms, 100ms), 0, 1h) == 2);
  CHECK(room_for(room_of(slow, 99ms, 99ms), 0, 1h) == 0);
  std::stop_source stop;
  CHECK(room_for(room_of(slow, 4s, 4s, stop.get_token()), 0, 1h) == 2);
  stop.request_stop();
  CHECK(room_for(room_of(slow, 4s, 4s, stop.get_token()), 0, 1h) == 0);
}

TEST_CASE(
    "where batches are slow each kind has its own room, and of the other one is who can wait until this one hangs") {
  auto room = room_of(slow, 4s, 4s);
  CHECK(room_for(room, 1, 300ms) == 3);
  CHECK(room_for(room, 1, 299ms) == 0);
  room.take(1);
  CHECK(room_for(room, 0, 1h) == 2);
  CHECK(room_for(room, 1, 1h) == 2);
  CHECK(room_for(room_of({true, 1ms, 8ms}, 4s, 4s), 1, 100ms) == 3);
  CHECK(room_for(room_of({true, 1ms, 8ms}, 4s, 4s), 1, 99ms) == 0);
}

TEST_CASE("nobody of the other kind loses its answer by a leader that could not wait until the batch hangs") {
  CHECK(room_for(room_of(slow, 4s, 300ms), 1, 1h) == 3);
  CHECK(room_for(room_of(slow, 4s, 299ms), 1, 1h) == 0);  // it has to ask on another connection then
  CHECK(room_for(room_of(slow, 4s, 299ms), 0, 1h) == 2);
  const std::stop_source stop;
  CHECK(room_for(room_of(slow, 4s, 4s, stop.get_token()), 1, 1h) == 0);
  CHECK(room_for(room_of(slow, 4s, 4s, stop.get_token()), 0, 1h) == 2);
}

// The promise that an answer is waited for as long as the database's last answers suggest, and no longer.
#include "store/round_trip.hpp"

#include <doctest/doctest.h>

#include <chrono>

using dlock::Duration;
using dlock::store::RoundTrip;
using namespace std::chrono_literals;

TEST_CASE("what a request takes is what the quickest of the last few took, answered or not") {
  RoundTrip trip;
  CHECK(trip.estimate() == Duration{});
  trip.answered(20ms);
  trip.answered(3ms);
  trip.note(2s);
  CHECK(trip.estimate() == 3ms);
  for (int i = 0; i < 8; ++i) trip.answered(60ms);
  CHECK(trip.estimate() == 60ms);
}

TEST_CASE("when time is up, an answer has several times what the slowest of the last ones took") {
  RoundTrip trip;
  CHECK(trip.answer_time({}) == 500ms);  // nobody knows
  trip.answered(1ms);
  CHECK(trip.answer_time({}) == 50ms);
  trip.answered(30ms);
  CHECK(trip.answer_time({}) == 120ms);
  trip.answered(900ms);
  CHECK(trip.answer_time({}) == 500ms);
  for (int i = 0; i < 8; ++i) trip.answered(1ms);
  CHECK(trip.answer_time({}) == 50ms);
}

TEST_CASE("what was not answered makes nobody wait longer for the next answer") {
  RoundTrip trip;
  for (int i = 0; i < 20; ++i) {
    trip.answered(1ms);
    trip.note(5s);
  }
  CHECK(trip.answer_time({}) == 50ms);
}

TEST_CASE("what waited for a lock says how long an answer takes, and nothing of the way") {
  RoundTrip trip;
  trip.answered(1ms);
  for (int i = 0; i < 8; ++i) trip.locked(60ms);
  CHECK(trip.estimate() == 1ms);
  CHECK(trip.answer_time({}) == 240ms);
}

TEST_CASE("far away an answer has the time for its way, and where rows are locked for as long as that takes") {
  RoundTrip trip;
  for (int i = 0; i < 8; ++i) trip.answered(150ms);
  CHECK(trip.answer_time({}) == 600ms);
  RoundTrip patient;
  patient.answered(1ms);
  CHECK(patient.answer_time(50ms) == 62500us);
  CHECK(patient.answer_time(2s) == 2s + 500ms);
  patient.answered(2s);
  CHECK(patient.answer_time(2s) == 2s + 500ms);
}

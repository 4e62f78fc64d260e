// The two roles of the demo, and the timetable they share.
#pragma once

#include <chrono>
#include <string>

namespace demo {

inline constexpr int ticks = 30;
inline constexpr int replicas = 3;
inline constexpr auto tick_length = std::chrono::seconds{1};
inline constexpr auto lease = std::chrono::seconds{3};
inline constexpr auto work = std::chrono::milliseconds{250};
inline constexpr auto job = "order_task";

// One replica of the service: tries to take the lock at every tick, and runs what is due. `begin_us` is the time of
// tick 1 on CLOCK_BOOTTIME, in microseconds. Says what it does on standard output, a line each.
int replica(const std::string& url, const std::string& name, long long begin_us);

// Starts the replicas, kills one, freezes one, tells the story, and reads the ledger in the end.
int conductor(const std::string& url);

// Now, on CLOCK_BOOTTIME, in microseconds.
long long now_us();
// Sleeps until that moment.
void sleep_until_us(long long moment);

}  // namespace demo

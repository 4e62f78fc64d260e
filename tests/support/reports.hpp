// Each abandoned lease is to be reported once.
#pragma once

#include "support/event_log.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <string_view>

namespace dlock::test {

// How often each name was reported.
using Reports = std::map<std::string, int>;

inline void add(Reports& reports, const EventLog& news) {
  for (const auto& item : news.of(Event::Kind::abandoned)) ++reports[item.name];
}

inline void check_once_each(const Reports& reports, std::string_view prefix, int count) {
  CHECK(reports.size() == static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto found = reports.find(row_name(prefix, i));
    CHECK_MESSAGE((found != reports.end() && found->second == 1), row_name(prefix, i));
  }
}

}  // namespace dlock::test

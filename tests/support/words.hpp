// How dlock's values are shown when a check fails.
#pragma once

#include "store/lock_table.hpp"

#include <doctest/doctest.h>
#include <dlock/dlock.hpp>

#include <optional>
#include <ostream>

namespace dlock {
inline namespace v0 {

inline std::ostream& operator<<(std::ostream& out, Fault value) { return out << to_string(value); }
inline std::ostream& operator<<(std::ostream& out, Loss value) { return out << to_string(value); }
inline std::ostream& operator<<(std::ostream& out, Released value) { return out << to_string(value); }
inline std::ostream& operator<<(std::ostream& out, State value) { return out << to_string(value); }
inline std::ostream& operator<<(std::ostream& out, Token value) { return out << number(value); }

}  // namespace v0
}  // namespace dlock

namespace doctest {

template <class Rep, class Period>
struct StringMaker<std::chrono::duration<Rep, Period>> {
  static String convert(std::chrono::duration<Rep, Period> value) {
    return toString(std::chrono::duration_cast<dlock::Duration>(value).count()) + " us";
  }
};

template <class T>
struct StringMaker<std::optional<T>> {
  static String convert(const std::optional<T>& value) {
    if constexpr (requires(std::ostream & out) { out << *value; }) return value ? toString(*value) : "nothing";
    else return value ? "something" : "nothing";
  }
};

}  // namespace doctest

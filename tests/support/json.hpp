// How a test reads the JSON that a tool has printed.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::test {

// A JSON value, or a part of one, which keeps the whole. Whatever is asked of it that it is not, or has not, is an
// exception that shows it. Threads: any.
class Json {
 public:
  // Throws std::runtime_error if the text is anything but one JSON value.
  static Json parse(std::string_view text);

  Json operator[](std::string_view name) const;  // of an object
  Json operator[](std::size_t index) const;      // of an array
  std::vector<Json> elements() const;            // of an array
  std::size_t size() const;                      // of either
  bool contains(std::string_view name) const;    // false of anything but an object

  bool is_null() const;
  bool is_truth() const;
  bool is_number() const;
  std::string text() const;
  double number() const;

  // A value of another kind is not equal, and neither less nor more.
  bool operator==(const Json& other) const;
  bool operator==(std::string_view text) const;
  template <std::integral Number>
  bool operator==(Number number) const {
    if constexpr (std::same_as<Number, bool>) return is(number);
    else return compared(static_cast<std::int64_t>(number)) == 0;
  }
  std::partial_ordering operator<=>(const Json& other) const;
  std::partial_ordering operator<=>(std::integral auto number) const {
    return compared(static_cast<std::int64_t>(number));
  }

  friend std::ostream& operator<<(std::ostream& stream, const Json& json);

 private:
  Json(std::shared_ptr<const void> whole, const void* value) : value_(std::move(whole), value) {}
  bool is(bool truth) const;
  std::partial_ordering compared(std::int64_t number) const;

  std::shared_ptr<const void> value_;  // the library's; shares the whole that it is a part of
};

}  // namespace dlock::test

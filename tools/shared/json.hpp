// A JSON value as the tools print it. The library for JSON is behind it, and nowhere else in a command.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dlock::tools {

// Nothing, a truth value, a number and a text become one by themselves, and so does a vector of numbers or texts.
// Threads: one. What is moved from is only good for being assigned to.
class Json {
 public:
  struct Member;

  Json(std::nullptr_t = nullptr) noexcept;
  Json(bool truth) noexcept;
  template <std::signed_integral Number>
  Json(Number number) noexcept : Json(Signed{number}) {}
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) Json(Number number)
  noexcept : Json(Unsigned{number}) {}
  Json(double number) noexcept;
  Json(std::string_view text);
  Json(const std::string& text);
  Json(const char* text);
  Json(const std::vector<int>& numbers);
  Json(const std::vector<std::string>& texts);

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json object(std::initializer_list<Member> members = {});

  // Of an array: adds a value at its end.
  void push_back(Json value);
  // Of an object, or of null, which becomes one: the value of this name, which is null if there was none. It stays
  // where it is until the next one is added.
  Json& operator[](std::string_view name);
  bool contains(std::string_view name) const;

  // On one line, or in lines with `indent` blanks a level. The members of an object are sorted by name; what is no
  // UTF-8 is replaced.
  std::string text(int indent = -1) const;
  // The same on one line, with members in the order in which they were added.
  std::string text_in_order() const;

 private:
  struct Signed {
    std::int64_t number;
  };
  struct Unsigned {
    std::uint64_t number;
  };
  struct Writer;
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json(Signed value) noexcept;
  Json(Unsigned value) noexcept;

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string_view name;
  Json value;
};

}  // namespace dlock::tools

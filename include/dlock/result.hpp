// How the answer to an asynchronous request is handed over.
#pragma once

#include <dlock/error.hpp>
#include <dlock/refusal.hpp>

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace dlock {
inline namespace v0 {

// What became of an asynchronous request: a value; or none, since it was refused; or an Error, where something is
// broken. Threads: as a value. Owns: the value. One that still has a Lock releases it when it goes.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : answer_(std::in_place_index<0>, std::move(value)) {}
  Result(Refused why) noexcept : answer_(std::in_place_index<1>, why) {}
  Result(Error error) noexcept : answer_(std::in_place_index<2>, std::move(error)) {}

  bool has_value() const noexcept { return answer_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // The value. Throws the Error; where it was refused Error{misuse}, since there is none.
  T& value() & {
    check();
    return std::get<0>(answer_);
  }
  T&& value() && {
    check();
    return std::get<0>(std::move(answer_));
  }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }

  // As the blocking calls answer: empty where it was refused. Throws the Error.
  std::optional<T> get() && {
    if (refused()) return std::nullopt;
    return std::optional<T>(std::in_place, std::move(*this).value());
  }

  // Why there is nothing, though nothing is broken. Empty: there is a value, or an Error.
  std::optional<Refused> refused() const noexcept {
    const auto* why = std::get_if<1>(&answer_);
    return why == nullptr ? std::nullopt : std::optional(*why);
  }
  // Null: nothing is broken. As long as the Result.
  const Error* error() const noexcept { return std::get_if<2>(&answer_); }

 private:
  void check() const {
    if (const auto* broken = error()) throw *broken;
    if (const auto why = refused())
      throw Error(Fault::misuse, "there is no value in this result: the request was answered \"" +
                                     std::string(to_string(*why)) + "\"");
  }
  std::variant<T, Refused, Error> answer_;
};

}  // namespace v0
}  // namespace dlock

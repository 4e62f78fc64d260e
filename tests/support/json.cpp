// How JSON is read, by nlohmann's library.
#include "support/json.hpp"

#include <nlohmann/json.hpp>

#include <ostream>
#include <stdexcept>

namespace dlock::test {
namespace {

using Value = nlohmann::json;

const Value& value(const std::shared_ptr<const void>& pointer) { return *static_cast<const Value*>(pointer.get()); }

// Everything but numbers is unordered; a number that is one is compared as the library does it.
std::partial_ordering order(const Value& one, const Value& other) {
  if (!one.is_number() || !other.is_number()) return std::partial_ordering::unordered;
  if (one < other) return std::partial_ordering::less;
  return one == other ? std::partial_ordering::equivalent : std::partial_ordering::greater;
}

[[noreturn]] void refuse(const Value& value, const std::string& what) {
  throw std::runtime_error(what + ": " + value.dump());
}

}  // namespace

Json Json::parse(std::string_view text) {
  try {
    const auto whole = std::make_shared<const Value>(Value::parse(text));
    return {whole, whole.get()};
  } catch (const Value::parse_error& error) {
    throw std::runtime_error(std::string(error.what()) + ": " + std::string(text));
  }
}

Json Json::operator[](std::string_view name) const {
  const auto& object = value(value_);
  const auto found = object.find(name);
  if (found == object.end()) refuse(object, "there is no \"" + std::string(name) + "\" in this");
  return {value_, &*found};
}

Json Json::operator[](std::size_t index) const {
  const auto& array = value(value_);
  if (!array.is_array() || index >= array.size())
    refuse(array, "there is no element " + std::to_string(index) + " in this");
  return {value_, &array[index]};
}

std::vector<Json> Json::elements() const {
  const auto& array = value(value_);
  if (!array.is_array()) refuse(array, "this is no array");
  std::vector<Json> result;
  for (const auto& element : array) result.push_back({value_, &element});
  return result;
}

std::size_t Json::size() const {
  if (!value(value_).is_structured()) refuse(value(value_), "this is neither an array nor an object");
  return value(value_).size();
}

bool Json::contains(std::string_view name) const { return value(value_).contains(name); }

bool Json::is_null() const { return value(value_).is_null(); }
bool Json::is_truth() const { return value(value_).is_boolean(); }
bool Json::is_number() const { return value(value_).is_number(); }

std::string Json::text() const {
  if (!value(value_).is_string()) refuse(value(value_), "this is no text");
  return value(value_).get<std::string>();
}

double Json::number() const {
  if (!is_number()) refuse(value(value_), "this is no number");
  return value(value_).get<double>();
}

bool Json::operator==(const Json& other) const { return value(value_) == value(other.value_); }
bool Json::operator==(std::string_view text) const { return value(value_).is_string() && value(value_) == Value(text); }
std::partial_ordering Json::operator<=>(const Json& other) const { return order(value(value_), value(other.value_)); }
bool Json::is(bool truth) const { return is_truth() && value(value_).get<bool>() == truth; }
std::partial_ordering Json::compared(std::int64_t number) const { return order(value(value_), Value(number)); }

std::ostream& operator<<(std::ostream& stream, const Json& json) { return stream << value(json.value_).dump(); }

}  // namespace dlock::test

// How a JSON value is put into words, by nlohmann's library.
#include "tools/shared/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace dlock::tools {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

}  // namespace

Json::Json(std::nullptr_t) noexcept : value_(nullptr) {}
Json::Json(bool truth) noexcept : value_(truth) {}
Json::Json(double number) noexcept : value_(number) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(const std::string& text) : value_(text) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(const std::vector<int>& numbers) : value_(Array(numbers.begin(), numbers.end())) {}
Json::Json(const std::vector<std::string>& texts) : value_(Array(texts.begin(), texts.end())) {}
Json::Json(Signed value) noexcept : value_(value.number) {}
Json::Json(Unsigned value) noexcept : value_(value.number) {}

Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array() {
  Json json;
  json.value_ = Array{};
  return json;
}

Json Json::object(std::initializer_list<Member> members) {
  Json json;
  auto& object = json.value_.emplace<Object>();
  object.reserve(members.size());
  for (const auto& [name, value] : members) object.emplace_back(name, value);
  return json;
}

void Json::push_back(Json value) { std::get<Array>(value_).push_back(std::move(value)); }

Json& Json::operator[](std::string_view name) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Object{};
  auto& object = std::get<Object>(value_);
  const auto named = [&](const auto& member) { return member.first == name; };
  const auto found = std::find_if(object.begin(), object.end(), named);
  return found == object.end() ? object.emplace_back(name, nullptr).second : found->second;
}

bool Json::contains(std::string_view name) const {
  const auto* object = std::get_if<Object>(&value_);
  const auto named = [&](const auto& member) { return member.first == name; };
  return object != nullptr && std::any_of(object->begin(), object->end(), named);
}

struct Json::Writer {
  bool sorted;

  nlohmann::ordered_json written(const Json& json) const {
    return std::visit(Overloaded{[](const auto& value) -> nlohmann::ordered_json { return value; },
                                 [&](const Array& array) { return written(array); },
                                 [&](const Object& object) { return written(object); }},
                      json.value_);
  }

  nlohmann::ordered_json written(const Array& array) const {
    auto result = nlohmann::ordered_json::array();
    for (const auto& value : array) result.push_back(written(value));
    return result;
  }

  nlohmann::ordered_json written(const Object& object) const {
    std::vector<const Object::value_type*> members;
    for (const auto& member : object) members.push_back(&member);
    const auto before = [](const auto* one, const auto* other) { return one->first < other->first; };
    if (sorted) std::sort(members.begin(), members.end(), before);
    auto result = nlohmann::ordered_json::object();
    for (const auto* member : members) result[member->first] = written(member->second);
    return result;
  }

  static std::string text(const nlohmann::ordered_json& json, int indent) {
    return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
};

std::string Json::text(int indent) const { return Writer::text(Writer{true}.written(*this), indent); }

std::string Json::text_in_order() const { return Writer::text(Writer{false}.written(*this), -1); }

}  // namespace dlock::tools

// How the description of a command line is read.
#include "docgen.hpp"

#include <nlohmann/json.hpp>

#include <istream>

namespace dlock::tools::docgen {
namespace {

using Json = nlohmann::json;

template <class Each>
auto all(const Json& array, Each read) {
  std::vector<decltype(read(array))> result;
  for (const auto& each : array) result.push_back(read(each));
  return result;
}

std::string text(const Json& json) { return json.get<std::string>(); }

Option option(const Json& json) {
  Option option{all(json.at("names"), text),     {},
                json.at("required").get<bool>(), json.at("repeatable").get<bool>(),
                text(json.at("group")),          text(json.at("help"))};
  if (const auto& value = json.at("value"); !value.is_null()) option.value = text(value);
  return option;
}

Argument argument(const Json& json) {
  return {text(json.at("name")), text(json.at("help")), json.at("repeatable").get<bool>()};
}

Command command(const Json& json) {
  return {text(json.at("name")),           text(json.at("full_name")),
          text(json.at("version")),        text(json.at("description")),
          text(json.at("footer")),         text(json.at("manual")),
          all(json.at("usage"), text),     all(json.at("arguments"), argument),
          all(json.at("options"), option), all(json.at("commands"), command)};
}

}  // namespace

Command read_description(std::istream& json) { return command(Json::parse(json)); }

}  // namespace dlock::tools::docgen

// The promises of the JSON that the tools print.
#include "support/json.hpp"
#include "tools/shared/json.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using dlock::tools::Json;

TEST_CASE("members are printed by name, or on request as they were added; each name stands there once") {
  auto json = Json::object({{"b", 1}, {"a", Json::object({{"d", true}, {"c", nullptr}})}});
  json["Z"] = "last";
  json["b"] = 2;
  CHECK(json.text() == R"({"Z":"last","a":{"c":null,"d":true},"b":2})");
  CHECK(json.text_in_order() == R"({"b":2,"a":{"d":true,"c":null},"Z":"last"})");
  CHECK(json.contains("Z"));
  CHECK_FALSE(json.contains("z"));
}

TEST_CASE("a value is null until it is given, and an object once it has a member") {
  Json json;
  CHECK(json.text() == "null");
  CHECK_FALSE(json.contains("a"));
  json["a"]["b"] = 1;
  CHECK(json["c"].text() == "null");
  CHECK(json.text() == R"({"a":{"b":1},"c":null})");
}

TEST_CASE("arrays keep their order") {
  auto array = Json::array();
  for (const char* word : {"z", "a"}) array.push_back(word);
  array.push_back(std::vector<int>{3, -1});
  array.push_back(std::vector<std::string>{});
  CHECK(array.text() == R"(["z","a",[3,-1],[]])");
}

TEST_CASE("on request it is printed in lines") {
  const auto json = Json::object({{"b", std::vector<int>{1, 2}}, {"a", Json::object()}, {"c", Json::array()}});
  CHECK(json.text(2) == "{\n  \"a\": {},\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\": []\n}");
}

TEST_CASE("numbers are printed whole, and as short as they can be read again") {
  CHECK(Json(std::numeric_limits<std::int64_t>::min()).text() == "-9223372036854775808");
  CHECK(Json(std::numeric_limits<std::uint64_t>::max()).text() == "18446744073709551615");
  CHECK(Json(0.1).text() == "0.1");
  CHECK(Json(3.0).text() == "3.0");
  CHECK(Json(1e300).text() == "1e+300");
  CHECK(Json(std::numeric_limits<double>::quiet_NaN()).text() == "null");
  CHECK(Json(false).text() == "false");
}

TEST_CASE("a text may hold anything; what is no UTF-8 is replaced") {
  CHECK(Json("a\"\\/\n\x01\x7F").text() == "\"a\\\"\\\\/\\n\\u0001\x7F\"");
  CHECK(Json("Größe 😀").text() == "\"Größe 😀\"");
  CHECK(Json("a\xFFz").text() == "\"a\xEF\xBF\xBDz\"");
  CHECK(Json(std::string("a\0z", 3)).text_in_order() == "\"a\\u0000z\"");
}

TEST_CASE("tests read what is printed, and hear what is not there") {
  const auto json = dlock::test::Json::parse(Json::object({{"list", std::vector<int>{1, 2}}, {"half", 0.5}}).text());
  CHECK(json["list"].size() == 2);
  CHECK(json["list"][1] == 2);
  CHECK(json["list"][0] < json["list"][1]);
  CHECK(json["half"] > 0);
  CHECK(json["half"] < 1);
  CHECK(json["half"] != 0);
  CHECK(json["half"] != "0.5");
  CHECK_FALSE(json["list"] > 0);
  CHECK_FALSE(json["list"] < 1);
  CHECK_THROWS_WITH_AS(json["lost"], "there is no \"lost\" in this: {\"half\":0.5,\"list\":[1,2]}", std::runtime_error);
  CHECK_THROWS_AS(json["list"][2], std::runtime_error);
  CHECK_THROWS_AS(json["half"].text(), std::runtime_error);
  CHECK_THROWS_AS(dlock::test::Json::parse("{} {}"), std::runtime_error);
}

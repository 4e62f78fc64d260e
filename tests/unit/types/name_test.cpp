// Which names, texts and identifiers are legal, and how a refused one is shown.
#include "types/name.hpp"

#include "refusal.hpp"

using namespace dlock;
using dlock::test::refusal;
using dlock::test::says;

TEST_CASE("a name is 1 to 255 bytes of UTF-8, kept as it is") {
  for (const std::string& text :
       {std::string("a"), std::string(255, 'x'), std::string("a "), std::string(" a"), std::string("É"),
        std::string("😀"), std::string("a'b\"c`d\\e;--"), std::string("\x01\x7f"), std::string("tab\tline\n")})
    CHECK(Name(text).text() == text);
}

TEST_CASE("names are compared as bytes") {
  CHECK(Name("a") != Name("A"));
  CHECK(Name("a") != Name("a "));
  CHECK(Name("E") != Name("É"));
  CHECK(Name("e\u0301") != Name("é"));
  CHECK(Name("Z") < Name("a"));
}

TEST_CASE("a name that is empty, too long, with a NUL or not UTF-8 is refused with the value and the rule") {
  CHECK(says(refusal([] { Name(""); }), "1 to 255"));
  const auto long_one = refusal([] { Name(std::string(256, 'x')); });
  CHECK(says(long_one, "256 bytes"));
  CHECK(says(long_one, "255"));
  CHECK(says(long_one, "xxxx"));
  CHECK(says(refusal([] { Name(std::string_view("a\0b", 3)); }), "NUL"));
  for (const char* text : {"\xFF", "a\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"})
    CHECK(says(refusal([text] { Name{text}; }), "UTF-8"));
}

TEST_CASE("255 bytes are counted, not characters") {
  std::string text;
  for (int i = 0; i < 63; ++i) text += "😀";
  CHECK(Name(text + "abc").text().size() == 255);
  CHECK(says(refusal([&] { Name(text + "abcd"); }), "256 bytes"));
}

TEST_CASE("a text may be empty and has the limit it is given") {
  CHECK_NOTHROW(check_text("the label", "", 3));
  CHECK_NOTHROW(check_text("the label", "abc", 3));
  const auto text = refusal([] { check_text("the label", "abcd", 3); });
  CHECK(says(text, "the label"));
  CHECK(says(text, "\"abcd\""));
  CHECK(says(text, "3"));
  CHECK(says(refusal([] { check_text("the label", "\xFF", 3); }), "\\xff"));
  CHECK(says(refusal([] { check_text("the label", std::string_view("a\0b", 3), 3); }), "\\x00"));
}

TEST_CASE("an identifier is a letter and at most 47 letters and digits more") {
  for (const std::string& text : {std::string("a"), std::string("_"), std::string("Lock_1"), std::string(48, 'x')})
    CHECK_NOTHROW(check_identifier("the table", text));
  for (const std::string& text :
       {std::string(), std::string("1a"), std::string("a-b"), std::string("a b"), std::string("a\"b"), std::string("É"),
        std::string("a.b"), std::string(49, 'x'), std::string("a;"), std::string("a\n")}) {
    const auto told = refusal([&] { check_identifier("the table", text); });
    CHECK(says(told, "the table"));
    CHECK(says(told, "[A-Za-z_][A-Za-z0-9_]{0,47}"));
  }
}

TEST_CASE("what is shown is printable and short, and no character is cut in two") {
  CHECK(in_quotes("a\"b\\c") == "\"a\\\"b\\\\c\"");
  CHECK(in_quotes("a\nb\x7f") == "\"a\\x0ab\\x7f\"");
  CHECK(in_quotes("É") == "\"É\"");
  CHECK(in_quotes("\xC9") == "\"\\xc9\"");
  const auto shown = in_quotes(std::string(59, 'x') + "É and more");
  CHECK(says(shown, std::string(59, 'x') + "…"));
  CHECK(says(shown, "(70 bytes)"));
}

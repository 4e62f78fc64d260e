// A checksum does not depend on the machine a text was checked out on, and never changes.
#include "types/digest.hpp"

#include <doctest/doctest.h>

using dlock::checksum;
using dlock::sha256;

TEST_CASE("SHA-256 is SHA-256") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("a checksum is the same with a byte order mark, other ends of lines, and blanks nobody sees") {
  const auto plain = checksum("CREATE TABLE {{lock}} (\n  name text\n);\n");
  CHECK(plain == "s1:" + sha256("CREATE TABLE {{lock}} (\n  name text\n);\n"));
  CHECK(checksum("\xEF\xBB\xBF"
                 "CREATE TABLE {{lock}} (\n  name text\n);\n") == plain);
  CHECK(checksum("CREATE TABLE {{lock}} (\r\n  name text\r\n);\r\n") == plain);
  CHECK(checksum("CREATE TABLE {{lock}} (  \n  name text\t\n);") == plain);
  CHECK(checksum("CREATE TABLE {{lock}} (\n  name text\n);\n\n \n") == plain);
}

TEST_CASE("a checksum sees everything else") {
  const auto plain = checksum("a\nb\n");
  CHECK(checksum("a\n\nb\n") != plain);
  CHECK(checksum(" a\nb\n") != plain);
  CHECK(checksum("a b\n") != plain);
  CHECK(checksum("A\nb\n") != plain);
  CHECK(checksum("") == "s1:" + sha256(""));
}

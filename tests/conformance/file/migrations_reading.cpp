// The promise that a file which may only be read can be looked at, and stays as it is, byte for byte.
#include "support/database.hpp"
#include "support/later_versions.hpp"
#include "support/read_only_calls.hpp"
#include "types/url.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

using namespace dlock;
using namespace dlock::test;
namespace fs = std::filesystem;

namespace {

// Every file beside the database and its bytes. Who reads shares memory with who writes, through a file that is empty
// otherwise.
std::map<std::string, std::string> bytes_around(const TestDatabase& test_database) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(Url::parse(test_database.url()).path).parent_path())) {
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const auto name = entry.path().filename().string();
    if (!name.ends_with("-shm") && !(name.ends_with("-wal") && text.str().empty())) files[name] = text.str();
  }
  return files;
}

}  // namespace

TEST_CASE("whatever the state of a table, looking at it changes no byte, in a file that may be written or not") {
  const LaterVersions versions;
  for (const auto& state : states_of_a_table()) {
    CAPTURE(state.name);
    const auto test_database = opener().test_database();
    state.make(*test_database);
    const auto before = bytes_around(*test_database);
    look_in_every_way(test_database->url());
    CHECK(bytes_around(*test_database) == before);
    look_in_every_way(test_database->url() + "?mode=ro");
    CHECK(bytes_around(*test_database) == before);
  }
}

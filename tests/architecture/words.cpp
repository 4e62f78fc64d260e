// The rules about single words: SQL in C++, calls nobody may make, clocks and sleeps, threads, retired
// names.
#include "architecture/rules.hpp"

#include <regex>

namespace dlock::architecture {
namespace {

void search(const std::string& text, const std::regex& form, const std::string& path, std::string_view why,
            Breaches& found) {
  for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end; ++at)
    found.push_back(
        {path, line_at(text, static_cast<std::size_t>(at->position())), at->str() + ": " + std::string(why)});
}

bool cpp(const Source& source) { return source.ends({".hpp", ".cpp", ".h", ".hpp.in", ".cpp.in"}); }

}  // namespace

Breaches glued_sql(const Tree& tree) {
  static const std::regex statement(
      R"(\b(select\b[^]*\bfrom\b|insert\s+(ignore\s+)?into\b|replace\s+into\b|update\s+\S+\s+set\b|delete\s+from\b|)"
      R"((create|alter|drop)\s+(table|view|index|schema)\b))",
      std::regex::icase);
  static const std::regex catalog(R"(\bfrom\s+(pg_catalog|information_schema)\.)", std::regex::icase);
  static const std::regex selecting(R"(\bSELECT\s+[^\s,])");
  Breaches found;
  for (const auto& source : tree) {
    // The demo is an application with tables of its own.
    if (!cpp(source) || !(source.in("src/") || source.in("tools/")) || source.in("tools/demo/")) continue;
    // A dialect may ask for what belongs to its session or server: SET, SHOW, PRAGMA, a SELECT from nothing or from
    // the system's catalog.
    const bool dialect = (source.in("src/dialects/") && source.path.find('/', 13) != std::string::npos) ||
                         source.in("tools/benchmark/peers/");
    for (const auto& literal : parts_of_cpp(source.text).literals)
      if (std::regex_search(dialect ? std::regex_replace(literal.text, catalog, "") : literal.text, statement) ||
          (!dialect && std::regex_search(literal.text, selecting)))
        found.push_back({source.path, literal.line, "SQL in \"" + literal.text + "\""});
  }
  return found;
}

Breaches forbidden_calls(const Tree& tree) {
  static const std::regex escape(R"(\bmysql_(real_)?escape_string(_quote)?\b)");
  Breaches found;
  for (const auto& source : tree)
    if (cpp(source))
      search(parts_of_cpp(source.text).code, escape, source.path, "values are bound, or sent as hexadecimal digits",
             found);
  return found;
}

Breaches clocks(const Tree& tree) {
  static const std::regex clock(
      R"(\b(system_clock|utc_clock|gettimeofday|CLOCK_REALTIME\w*|localtime\w*|gmtime\w*|time\s*\(\s*(nullptr|NULL|0|&)))");
  static const std::regex other(R"(\b(steady_clock|high_resolution_clock|CLOCK_MONOTONIC\w*)\b)");
  static const std::regex moved(R"(\bBootClock::ahead\b)");
  static const std::regex sleep(R"(\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|sleep)\s*\()");
  Breaches found;
  for (const auto& source : tree) {
    if (!cpp(source) || !source.in("src/")) continue;
    const auto code = parts_of_cpp(source.text).code;
    // What the kernel ends a sleep by.
    if (source.path != "src/types/event_count.hpp")
      search(code, other, source.path, "a clock that stands still while the machine is suspended", found);
    search(code, moved, source.path, "only tests move the clock", found);
    if (!(source.in("src/engine/") || source.in("src/store/") || source.in("src/migrate/"))) continue;
    search(code, clock, source.path, "a wall clock", found);
    search(code, sleep, source.path, "a sleep that nobody can end", found);
  }
  return found;
}

Breaches threads(const Tree& tree) {
  // A thread's number is none.
  static const std::regex thread(R"(\bstd\s*::\s*(j?thread\b(?!\s*::)|async\b)|\bpthread_create\b)");
  Breaches found;
  for (const auto& source : tree)
    if (cpp(source) && source.in("src/") && source.path != "src/types/thread.hpp")
      search(parts_of_cpp(source.text).code, thread, source.path, "a thread that types/thread.hpp does not start",
             found);
  return found;
}

Breaches retired_words(const Tree& tree) {
  // Each has a word of the field instead: see "The words inside" in CONTRIBUTING.md.
  static const std::regex word(
      R"(\b(keepers?|agendas?|ushers?|bells?|ringers?|vigils?|convoys?|riders?|outlook|birthplace|torments?|troupe|)"
      R"(waiting_?room|busy_?names|actor_?name|peeked|obstacle|enroll(s|ed)?|rung|rehears(e|es|ed|al)|)"
      R"(this file knows)\b)",
      std::regex::icase | std::regex::optimize);
  // Ordinary words, but for types.
  static const std::regex type(
      R"(\b((Sql)?Visit|(Transaction)?Guest|(Take)?Ask|Claim|Standing|Terms|Upkeep|Passed|Held|Announced|Trip|Watched|)"
      R"(News|Wish|Course|Place|Verdict|Contest(Options|Result))\b)",
      std::regex::optimize);
  Breaches found;
  for (const auto& source : tree) {
    if (!(cpp(source) || source.ends({".sql", ".md", ".cmake", ".txt", ".pml"})) || source.in("tests/architecture/"))
      continue;
    if (source.path == "CONTRIBUTING.md") continue;
    search(source.path, word, source.path, "a retired word", found);
    search(source.text, word, source.path, "a retired word", found);
    if (cpp(source)) search(parts_of_cpp(source.text).code, type, source.path, "a retired word", found);
  }
  return found;
}

}  // namespace dlock::architecture

// How a .sql file is read: headers, fragments, markers, and the names of tables; and what stands for a table in the
// names of channels and triggers.
#include "dialects/statement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>

namespace dlock::dialects {
namespace {

std::atomic<std::uint64_t> last_number{0};

constexpr std::string_view header = "-- name:", fragment_header = "-- fragment:";

[[noreturn]] void defect(std::string_view statement, std::string_view what) {
  throw std::logic_error(fmt::format("statement {}: {}", statement, what));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

bool word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// "release(name, owner) -> hint" into its parts.
Statement read_header(std::string_view line) {
  Statement statement;
  if (const auto arrow = line.find("->"); arrow != std::string_view::npos) {
    statement.hint = trimmed(line.substr(arrow + 2));
    line = line.substr(0, arrow);
  }
  const auto open = line.find('(');
  const auto close = line.find(')');
  statement.name = trimmed(line.substr(0, open));
  if (statement.name.empty() || open == std::string_view::npos || close == std::string_view::npos || close < open)
    defect(line, "a header is written name(argument, …)");
  auto list = line.substr(open + 1, close - open - 1);
  while (!trimmed(list).empty()) {
    const auto comma = std::min(list.find(','), list.size());
    statement.arguments.emplace_back(trimmed(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return statement;
}

// What follows a header, as far as the next one.
struct Section {
  bool fragment = false;
  std::string_view title, body;
};

std::vector<Section> sections_of(std::string_view text) {
  const auto next_header = [&](std::size_t from) {
    return std::min(text.find(header, from), text.find(fragment_header, from));
  };
  std::vector<Section> sections;
  for (auto at = next_header(0); at != std::string_view::npos;) {
    const bool fragment = text.substr(at).starts_with(fragment_header);
    const auto title = at + (fragment ? fragment_header : header).size();
    const auto line_end = std::min(text.find('\n', at), text.size());
    const auto next = next_header(line_end);
    auto body = trimmed(text.substr(line_end, next == std::string_view::npos ? next : next - line_end));
    // Comments for people stay in the file, as does what the next part of it begins with.
    while (body.starts_with("--")) body = trimmed(body.substr(std::min(body.find('\n'), body.size())));
    for (auto last = body.rfind('\n'); last != std::string_view::npos && body.substr(last + 1).starts_with("--");
         last = body.rfind('\n'))
      body = trimmed(body.substr(0, last));
    if (body.ends_with(';')) body = trimmed(body.substr(0, body.size() - 1));
    sections.push_back({fragment, text.substr(title, line_end - title), body});
    at = next;
  }
  return sections;
}

using Fragments = std::map<std::string_view, std::string_view>;

// The words that are no fragment's are left as they are.
std::string with_fragments(std::string_view sql, const Fragments& fragments, int depth) {
  if (depth > 8) defect(sql, "a fragment stands in itself");
  std::string result;
  for (;;) {
    const auto open = sql.find("{{"), close = sql.find("}}", open);
    if (close == std::string_view::npos) return result.append(sql);
    const auto found = fragments.find(sql.substr(open + 2, close - open - 2));
    result += sql.substr(0, found == fragments.end() ? close + 2 : open);
    if (found != fragments.end()) result += with_fragments(found->second, fragments, depth + 1);
    sql.remove_prefix(close + 2);
  }
}

// Where the next character stands that may be something else than itself, from `from` on.
std::size_t past_plain(std::string_view sql, std::size_t from) {
  const auto plain = [](char c) {
    return c != '\'' && c != '"' && c != '`' && c != '-' && c != '/' && c != ':' && c != '?' && c != '$' && c != ';';
  };
  const char *const end = sql.data() + sql.size(), *at = sql.data() + from;
  while (at != end && plain(*at)) ++at;
  return static_cast<std::size_t>(at - sql.data());
}

// The end of the quoted text or comment that begins at `from`, or `from` if none does.
std::size_t past_quoted(std::string_view sql, std::size_t from) {
  const char c = sql[from];
  const auto past = [&](std::string_view end, std::size_t begin) {
    const auto at = sql.find(end, begin);
    return at == std::string_view::npos ? sql.size() : at + end.size();
  };
  if (c == '\'' || c == '"' || c == '`') return past(std::string_view{&c, 1}, from + 1);
  if (sql.substr(from, 2) == "--") return past("\n", from);
  if (sql.substr(from, 2) == "/*") return past("*/", from);
  return from;
}

// FNV-1a: the same in every process.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// Turns :name into the database's own marker.
void place_markers(Statement& statement, std::string_view sql, Marker marker) {
  statement.marker = marker;
  for (std::size_t i = 0; i < sql.size();) {
    auto past = past_plain(sql, i);
    if (past == i) past = past_quoted(sql, i);
    if (past != i) {
      statement.sql += sql.substr(i, past - i);
      i = past;
      continue;
    }
    if (sql[i] == ':' && i + 1 < sql.size() && (sql[i + 1] == ':' || sql[i + 1] == '=')) {
      statement.sql += sql.substr(i, 2);
      i += 2;
      continue;
    }
    if (sql[i] != ':') {
      statement.sql += sql[i++];
      continue;
    }
    auto end = i + 1;
    while (end < sql.size() && word_character(sql[end])) ++end;
    const auto word = sql.substr(i + 1, end - i - 1);
    const auto found = std::find(statement.arguments.begin(), statement.arguments.end(), word);
    if (found == statement.arguments.end()) defect(statement.name, fmt::format(":{} is not in its header", word));
    const auto number = static_cast<std::size_t>(found - statement.arguments.begin());
    if (marker == Marker::dollar) {
      statement.sql += fmt::format("${}", number + 1);
    } else {
      statement.sql += '?';
      statement.markers.push_back(number);
    }
    i = end;
  }
}

}  // namespace

// That two tables share one is harmless.
std::string TableNames::channel() const { return fmt::format("{:016x}", hash_of(schema + '\n' + lock)); }

// Without the schema, which need not be known, and has names of its own.
std::string TableNames::recorders() const { return fmt::format("dlock_history_{:016x}_", hash_of(lock)); }

WordFiller filler_of(TableNames names, Quote quote) {
  return [names = std::move(names), quote = std::move(quote)](std::string_view word) {
    const auto qualified = [&](std::string_view table) {
      return names.schema.empty() ? quote(table) : quote(names.schema) + "." + quote(table);
    };
    if (word == "lock") return qualified(names.lock);
    if (word == "status") return qualified(names.status());
    if (word == "history") return qualified(names.history);
    if (word == "waiter") return qualified(names.waiter());
    if (word == "holder") return qualified(names.holder());
    if (word == "lock_history") return qualified(names.lock_history());
    if (word == "channel") return names.channel();
    if (word == "schema") return quote(names.schema);
    defect("{{" + std::string(word) + "}}", "no such name");
  };
}

std::string fill_in(std::string_view sql, const WordFiller& filler) {
  std::string result;
  for (;;) {
    const auto open = sql.find("{{");
    result += sql.substr(0, open);
    if (open == std::string_view::npos) return result;
    const auto close = sql.find("}}", open);
    const auto word = sql.substr(open + 2, std::min(close, sql.size()) - open - 2);
    result += filler(word);
    sql.remove_prefix(close + 2);
  }
}

std::string fill_in(std::string_view sql, const TableNames& names, const Quote& quote) {
  return fill_in(sql, filler_of(names, quote));
}

std::string with_literals(const Statement& statement, std::span<const Argument> arguments,
                          const AppendLiteral& append) {
  const std::string_view sql = statement.sql;
  std::string result;
  auto marker = statement.markers.begin();
  for (std::size_t i = 0; i < sql.size();) {
    auto past = past_plain(sql, i);
    if (past == i) past = past_quoted(sql, i);
    if (past != i) {
      result += sql.substr(i, past - i);
      i = past;
    } else if (statement.marker == Marker::question && sql[i] == '?' && marker != statement.markers.end()) {
      append(result, arguments[*marker++]);
      ++i;
    } else if (statement.marker == Marker::dollar && sql[i] == '$' && i + 1 < sql.size() && sql[i + 1] >= '1' &&
               sql[i + 1] <= '9') {
      std::size_t number = 0;
      for (++i; i < sql.size() && sql[i] >= '0' && sql[i] <= '9'; ++i)
        number = 10 * number + static_cast<std::size_t>(sql[i] - '0');
      append(result, arguments[number - 1]);
    } else {
      result += sql[i++];
    }
  }
  return result;
}

std::vector<std::string_view> pieces_of(std::string_view sql) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  const auto end_at = [&](std::size_t end) {
    if (const auto piece = trimmed(sql.substr(begin, end - begin)); !piece.empty()) pieces.push_back(piece);
    begin = end + 1;
  };
  for (std::size_t i = 0; i < sql.size();) {
    if (const auto past = past_quoted(sql, i); past != i) {
      i = past;
      continue;
    }
    if (sql[i] == ';') end_at(i);
    ++i;
  }
  end_at(sql.size());
  return pieces;
}

Statements::Statements(std::string_view text, Marker marker, const WordFiller& filler) {
  const auto sections = sections_of(text);
  Fragments fragments;
  // Texts that are put together have the same ones.
  for (const auto& section : sections)
    if (section.fragment && fragments.try_emplace(trimmed(section.title), section.body).first->second != section.body)
      defect(section.title, "it is there twice");
  for (const auto& section : sections) {
    if (section.fragment) continue;
    auto statement = read_header(section.title);
    if (section.body.empty()) defect(statement.name, "it has no text");
    place_markers(statement, fill_in(with_fragments(section.body, fragments, 0), filler), marker);
    statement.number = ++last_number;
    statements_.push_back(std::move(statement));
  }
  std::sort(statements_.begin(), statements_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(statements_.begin(), statements_.end(),
                                        [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != statements_.end()) defect(twice->name, "it is there twice");
}

const Statement* Statements::find(std::string_view name) const noexcept {
  const auto found = std::lower_bound(statements_.begin(), statements_.end(), name,
                                      [](const auto& each, std::string_view sought) { return each.name < sought; });
  return found != statements_.end() && found->name == name ? &*found : nullptr;
}

bool Statements::has(std::string_view name) const noexcept { return find(name) != nullptr; }

bool Statement::hinted(std::string_view word) const noexcept {
  const std::string_view words = hint;
  const auto at = words.find(word);
  if (at == std::string_view::npos) return false;
  const auto end = at + word.size();
  return (at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ');
}

const Statement& Statements::at(std::string_view name, std::initializer_list<std::string_view> arguments) const {
  const auto* statement = find(name);
  if (statement == nullptr) defect(name, "it is missing");
  if (!std::equal(statement->arguments.begin(), statement->arguments.end(), arguments.begin(), arguments.end()))
    defect(name, "its header lists other arguments than the store gives");
  return *statement;
}

}  // namespace dlock::dialects

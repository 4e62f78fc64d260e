// This file knows the words and the lines of the graph.
#include "graph.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace dlock::tools {
namespace {

// The second half of an actor is its job. Who has none is a job of its own.
std::string job(const std::string& actor, const std::string& otherwise) {
  return actor.size() == 32 ? actor.substr(16) : otherwise;
}
std::string waiting_job(const Waiter& waiter) { return job(waiter.actor, waiter.owner); }
std::string holding_job(const Waiter& waiter) {
  return job(waiter.holder_actor, fmt::format("{}/{}", waiter.name, number(waiter.holder_token)));
}

bool is_held(const Waiter& waiter) { return number(waiter.holder_token) != 0; }

// A job waits for one name at a time, so that from each job at most one line leads on, and every cycle is found by
// following them. Answers, for each cycle, the waiters in it.
std::vector<std::vector<const Waiter*>> cycles(const std::vector<Waiter>& waiters) {
  std::map<std::string, const Waiter*> next;
  for (const auto& waiter : waiters)
    if (is_held(waiter) && waiting_job(waiter) != holding_job(waiter)) next[waiting_job(waiter)] = &waiter;
  std::vector<std::vector<const Waiter*>> found;
  std::set<std::string> seen;
  for (const auto& entry : next) {
    std::vector<const Waiter*> path;
    std::set<std::string> here;
    for (auto at = next.find(entry.first); at != next.end(); at = next.find(holding_job(*at->second))) {
      if (here.contains(at->first)) {
        const auto begin =
            std::ranges::find_if(path, [&](const Waiter* one) { return waiting_job(*one) == at->first; });
        found.emplace_back(begin, path.end());
        break;
      }
      if (!seen.insert(at->first).second) break;
      here.insert(at->first);
      path.push_back(at->second);
    }
  }
  return found;
}

std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string who(const std::string& label, const std::string& node) { return label.empty() ? node : label; }

}  // namespace

std::string in_words(const Waiter& waiter) {
  return fmt::format("{} waits for {}{}{} for {}", printable(who(waiter.label, waiter.node)), in_quotes(waiter.name),
                     waiter.in_transaction ? " in a transaction" : "",
                     waiter.ticket != 0 ? fmt::format(" in turn (ticket {})", waiter.ticket) : "",
                     shown(waiter.waited));
}

std::string as_text(const std::vector<Waiter>& waiters) {
  std::string text;
  for (const auto& waiter : waiters)
    text += fmt::format(
        "{}, {}\n", in_words(waiter),
        is_held(waiter) ? fmt::format("held by {} (token {})", printable(who(waiter.holder_label, waiter.holder_node)),
                                      number(waiter.holder_token))
                        : "which nobody holds under a lease");
  for (const auto& cycle : cycles(waiters)) {
    text += "deadlock: ";
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto& before = *cycle[(i + cycle.size() - 1) % cycle.size()];
      text += fmt::format("{}{} holds {}, waits for {}", i == 0 ? "" : "; ",
                          printable(who(cycle[i]->label, cycle[i]->node)), in_quotes(before.name),
                          in_quotes(cycle[i]->name));
    }
    text += '\n';
  }
  if (text.empty()) return "nobody waits";
  text.pop_back();
  return text;
}

std::string as_dot(const std::vector<Waiter>& waiters) {
  std::set<const Waiter*> dead;
  for (const auto& cycle : cycles(waiters)) dead.insert(cycle.begin(), cycle.end());
  std::string text = "digraph dlock {\n  node [shape=box];\n";
  std::map<std::string, std::string> nodes;
  for (const auto& waiter : waiters) {
    nodes.emplace(waiting_job(waiter), who(waiter.label, waiter.node));
    if (is_held(waiter)) nodes.emplace(holding_job(waiter), who(waiter.holder_label, waiter.holder_node));
    else nodes.emplace(waiter.name, waiter.name + " (free, or locked in a transaction)");
  }
  for (const auto& [id, label] : nodes) text += fmt::format("  {} [label={}];\n", dot_string(id), dot_string(label));
  for (const auto& waiter : waiters)
    text += fmt::format("  {} -> {} [label={}{}];\n", dot_string(waiting_job(waiter)),
                        dot_string(is_held(waiter) ? holding_job(waiter) : waiter.name), dot_string(waiter.name),
                        dead.contains(&waiter) ? ", color=red" : "");
  return text + "}";
}

Json as_json(const Waiter& waiter) {
  auto json = Json::object({{"name", waiter.name},
                            {"node", waiter.node},
                            {"owner", waiter.owner},
                            {"label", waiter.label},
                            {"actor", waiter.actor},
                            {"ticket", nullptr},
                            {"in_transaction", waiter.in_transaction},
                            {"waited_us", waiter.waited.count()},
                            {"left_us", nullptr},
                            {"holder", nullptr}});
  if (waiter.ticket != 0) json["ticket"] = waiter.ticket;
  if (waiter.left) json["left_us"] = waiter.left->count();
  if (is_held(waiter))
    json["holder"] = Json::object({{"node", waiter.holder_node},
                                   {"label", waiter.holder_label},
                                   {"actor", waiter.holder_actor},
                                   {"token", number(waiter.holder_token)}});
  return json;
}

std::string exactly(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace dlock::tools

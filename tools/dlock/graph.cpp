// The words and the lines of the graph, and which waiters are called a deadlock there.
#include "graph.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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

constexpr std::size_t most_named = 3;

bool is_held(const Waiter& waiter) { return number(waiter.holder_token) != 0; }

std::string holding_job(const Sharer& sharer) {
  return job(sharer.actor, fmt::format("{}/{}", sharer.name, number(sharer.token)));
}

// The jobs that keep a waiter waiting by themselves. Of those who have permits none does: any other may give back
// enough.
std::vector<std::string> blocking_jobs(const WaitGraph& graph, const Waiter& waiter) {
  std::vector<std::string> jobs;
  for (const auto& sharer : graph.together(waiter))
    if (sharer.permits == 0) jobs.push_back(holding_job(sharer));
  if (graph.together(waiter).empty() && is_held(waiter)) jobs.push_back(holding_job(waiter));
  std::erase(jobs, waiting_job(waiter));
  return jobs;
}

// A job waits for one name at a time. From each job the search goes on once, so that one cycle at least is found where
// there are some, and each that is found is named once. Answers, for each cycle, the waiters in it.
class Cycles {
 public:
  explicit Cycles(const WaitGraph& graph) : graph_(graph) {
    for (const auto& waiter : graph.waiters) next_[waiting_job(waiter)] = &waiter;
    for (const auto& entry : next_) search(entry.first);
  }
  const std::vector<std::vector<const Waiter*>>& found() const { return found_; }

 private:
  struct Step {
    std::string job;
    const Waiter* waiter;
    std::vector<std::string> rest;  // the jobs that have not been looked at
  };

  void search(const std::string& from) {
    enter(from);
    while (!path_.empty()) {
      auto& last = path_.back();
      if (last.rest.empty()) {
        on_path_.erase(last.job);
        path_.pop_back();
        continue;
      }
      const auto job = std::move(last.rest.back());
      last.rest.pop_back();
      if (on_path_.contains(job)) note(job);
      else enter(job);
    }
  }

  void enter(const std::string& job) {
    const auto at = next_.find(job);
    if (at == next_.end() || !seen_.insert(job).second) return;
    on_path_.insert(job);
    path_.push_back({job, at->second, blocking_jobs(graph_, *at->second)});
  }

  void note(const std::string& job) {
    auto& cycle = found_.emplace_back();
    auto step = std::ranges::find_if(path_, [&](const Step& one) { return one.job == job; });
    for (; step != path_.end(); ++step) cycle.push_back(step->waiter);
  }

  const WaitGraph& graph_;
  std::map<std::string, const Waiter*> next_;
  std::set<std::string> seen_, on_path_;
  std::vector<Step> path_;
  std::vector<std::vector<const Waiter*>> found_;
};

std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string who(const std::string& label, const std::string& node) { return label.empty() ? node : label; }

std::string who(const Sharer& sharer) {
  return fmt::format("{} (token {}{})", printable(who(sharer.label, sharer.node)), number(sharer.token),
                     sharer.permits > 1 ? fmt::format(", {} permits", sharer.permits) : "");
}

std::string holder_in_words(const WaitGraph& graph, const Waiter& waiter) {
  if (!is_held(waiter)) return "which nobody holds under a lease";
  const auto& together = graph.together(waiter);
  if (together.empty())
    return fmt::format("held by {} (token {})", printable(who(waiter.holder_label, waiter.holder_node)),
                       number(waiter.holder_token));
  std::vector<std::string> some;
  for (const auto& sharer : together)
    if (some.size() < most_named) some.push_back(who(sharer));
  const auto more = together.size() - some.size();
  return fmt::format("held by {}{}", joined(some, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string_view asked_for(const Waiter& waiter) {
  switch (waiter.mode) {
    case Mode::shared: return " as a reader";
    case Mode::permits: return " for permits";
    default: return "";
  }
}

}  // namespace

WaitGraph::WaitGraph(std::vector<Waiter> all_waiters, std::vector<Sharer> all_sharers)
    : waiters(std::move(all_waiters)) {
  for (const auto& waiter : waiters) sharers[waiter.name];
  for (auto& sharer : all_sharers)
    if (const auto at = sharers.find(sharer.name); at != sharers.end()) at->second.push_back(std::move(sharer));
}

const std::vector<Sharer>& WaitGraph::together(const Waiter& waiter) const {
  static const std::vector<Sharer> none;
  // Of a name that several hold nobody is named; of one that somebody has got for itself since, somebody may be.
  const auto at = sharers.find(waiter.name);
  return at == sharers.end() || !waiter.holder_actor.empty() ? none : at->second;
}

std::string in_words(const Waiter& waiter) {
  return fmt::format("{} waits for {}{}{}{} for {}", printable(who(waiter.label, waiter.node)), in_quotes(waiter.name),
                     asked_for(waiter), waiter.in_transaction ? " in a transaction" : "",
                     waiter.ticket != 0 ? fmt::format(" in turn (ticket {})", waiter.ticket) : "",
                     shown(waiter.waited));
}

std::string as_text(const WaitGraph& graph) {
  std::string text;
  for (const auto& waiter : graph.waiters)
    text += fmt::format("{}, {}\n", in_words(waiter), holder_in_words(graph, waiter));
  const Cycles cycles(graph);
  for (const auto& cycle : cycles.found()) {
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

std::string as_dot(const WaitGraph& graph) {
  std::set<const Waiter*> dead;
  const Cycles cycles(graph);
  for (const auto& cycle : cycles.found()) dead.insert(cycle.begin(), cycle.end());
  std::string text = "digraph dlock {\n  node [shape=box];\n";
  std::map<std::string, std::string> nodes;
  std::set<std::string> names;  // that several hold, and that are drawn themselves
  for (const auto& waiter : graph.waiters) {
    nodes.emplace(waiting_job(waiter), who(waiter.label, waiter.node));
    const auto& together = graph.together(waiter);
    if (!together.empty()) names.insert(waiter.name);
    else if (is_held(waiter)) nodes.emplace(holding_job(waiter), who(waiter.holder_label, waiter.holder_node));
    else nodes.emplace(waiter.name, waiter.name + " (free, or locked in a transaction)");
  }
  for (const auto& name : names)
    for (const auto& sharer : graph.sharers.at(name))
      nodes.emplace(holding_job(sharer), who(sharer.label, sharer.node));
  for (const auto& [id, label] : nodes) text += fmt::format("  {} [label={}];\n", dot_string(id), dot_string(label));
  for (const auto& name : names)
    text += fmt::format("  {} [label={}, shape=ellipse];\n", dot_string(name), dot_string(name));
  for (const auto& waiter : graph.waiters)
    text += fmt::format("  {} -> {} [label={}{}];\n", dot_string(waiting_job(waiter)),
                        dot_string(!names.contains(waiter.name) && is_held(waiter) ? holding_job(waiter) : waiter.name),
                        dot_string(waiter.name), dead.contains(&waiter) ? ", color=red" : "");
  for (const auto& name : names)
    for (const auto& sharer : graph.sharers.at(name))
      text += fmt::format("  {} -> {};\n", dot_string(name), dot_string(holding_job(sharer)));
  return text + "}";
}

Json as_json(const Sharer& sharer) {
  return Json::object({{"name", sharer.name},
                       {"node", sharer.node},
                       {"owner", sharer.owner},
                       {"label", sharer.label},
                       {"actor", sharer.actor},
                       {"token", number(sharer.token)},
                       {"permits", sharer.permits == 0 ? Json() : Json(sharer.permits)},
                       {"held_us", sharer.held.count()},
                       {"left_us", sharer.left.count()}});
}

Json as_json(const WaitGraph& graph) {
  auto waiters = Json::array(), holders = Json::array();
  for (const auto& waiter : graph.waiters) {
    auto json = as_json(waiter);
    if (!graph.together(waiter).empty()) json["holder"] = Json();
    waiters.push_back(std::move(json));
  }
  for (const auto& [name, sharers] : graph.sharers)
    for (const auto& sharer : sharers) holders.push_back(as_json(sharer));
  return Json::object({{"waiters", std::move(waiters)}, {"holders", std::move(holders)}});
}

Json as_json(const Waiter& waiter) {
  auto json = Json::object({{"name", waiter.name},
                            {"node", waiter.node},
                            {"owner", waiter.owner},
                            {"label", waiter.label},
                            {"actor", waiter.actor},
                            {"mode", to_string(waiter.mode)},
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

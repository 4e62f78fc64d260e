// What list, inspect, acquire, renew and release take, what they do, and with which code they exit.
#include "lock_commands.hpp"

#include "graph.hpp"
#include "nesting.hpp"
#include "show.hpp"
#include "waiting.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>

namespace dlock::tools {
namespace {

constexpr std::array<const char*, 5> states{"held", "free", "closed", "expired", "all"};
constexpr std::size_t longest_pattern = 4096;

constexpr std::size_t longest_reason = 255;
constexpr std::size_t length_of_owner = 32;

// Whether one of those who hold a name together does so by this grant, under a live lease.
bool shares(Engine& engine, const std::string& name, const Grant& grant) {
  const bool plain = name.find_first_of("*?[\\") == std::string::npos;
  const auto all = engine.sharers(plain ? name : "*");
  return std::any_of(all.begin(), all.end(), [&](const Sharer& sharer) {
    return sharer.name == name && sharer.token == grant.token && sharer.owner == grant.owner;
  });
}

void check_owner(const std::string& owner) {
  const bool digits = owner.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!digits || owner.size() != length_of_owner)
    throw UsageError(fmt::format("the owner {} must be {} hexadecimal digits, as acquire answered them",
                                 in_quotes(owner), length_of_owner));
}

bool confirmed() {
  std::cerr << "dlock: free it although it is held? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace

Single::Single(Command& tool)
    : list_(tool.add_command("list", "who holds what, since when and for how long")),
      inspect_(tool.add_command("inspect", "all that is known of one lock; exits 3 if it is not held")),
      acquire_(tool.add_command("acquire", "take a lock that nobody renews, for scripts that cannot use run")),
      renew_(tool.add_command("renew", "give a lock taken by acquire a new lease")),
      release_(tool.add_command("release", "free a lock taken by acquire, or any lock by force")) {
  list_.add_argument("GLOB", glob_, "a shell pattern (*)");
  list_.add_option("--state", "held|free|closed|expired|all", state_,
                   "which (held); closed is free, but inside its at-least time");
  for (auto* command : {&inspect_, &renew_, &release_}) command->add_argument("NAME", name_).required = true;
  asking_.add_to(acquire_);
  acquire_.add_option("--ttl", "D", ttl_, "length of the lease, from a few ms to 10 years, or until-released")
      .required = true;
  renew_.add_option("--token", "T", token_, "what acquire answered: the token, or the token and the owner").required =
      true;
  renew_.add_option("--owner", "O", owner_, "the owner that acquire answered (whoever holds it under that token)");
  renew_.add_option("--ttl", "D", ttl_, "length of the new lease, or until-released (the length it had)");
  release_.add_option("--token", "T", token_, "what acquire answered: the token, or the token and the owner");
  release_.add_option("--owner", "O", owner_, "the owner that acquire answered (whoever holds it under that token)");
  release_.add_flag("--force", force_, "free it although somebody else holds it");
  release_.add_option("--expect-token", "T", expected_,
                      "for --force: what list shows; has it moved on, nothing is done");
  release_.add_option("--reason", "TEXT", reason_,
                      "for --force: why; shown by list and inspect until the next one has it");
  release_.add_flag("--yes", yes_, "for --force: do not ask");
  list_.set_footer(
      "OWNER is the label, with the first digits of the owner where one holds it alone. Times are counted by the\n"
      "database's clock. LEFT of a closed lock: until it opens; negative: expired since. Of one that nobody holds,\n"
      "LAST, ENDED and OUTCOME tell who had it last: released, expired, or forced and why.\n"
      "Examples:\n"
      "  dlock list\n"
      "  dlock list 'report/*' --state all --format json");
  inspect_.set_footer(
      "Examples:\n"
      "  dlock inspect nightly\n"
      "  dlock inspect -q nightly >/dev/null || echo \"nobody runs it\"");
  acquire_.set_footer(
      "Prints the token and the owner; with --format env DLOCK_TOKEN=… and DLOCK_OWNER=…, for eval. Exits 75 if the\n"
      "lock is busy.\n"
      "Examples:\n"
      "  token=$(dlock acquire -n deploy --ttl 5m) && ./deploy\n"
      "  token=$(dlock acquire --limit 4 --permits 2 gpu --ttl 1h) && ./train\n"
      "  dlock release deploy --token \"$token\"");
  renew_.set_footer(
      "Exits 3 if the token is not the holder's.\n"
      "Examples:\n"
      "  dlock renew deploy --token \"$token\" --ttl 5m || exit 1");
  release_.set_footer(
      "Exits 3 if the token is not the holder's, or if the lease was over before: then somebody else could have had\n"
      "the lock. The fencing token never falls, not even by force.\n"
      "Examples:\n"
      "  dlock release deploy --token \"$token\"\n"
      "  dlock release nightly --force --expect-token 42 --reason \"web3 hangs\"");
  release_.set_usage(
      {"dlock release [OPTIONS] NAME --token T", "dlock release [OPTIONS] NAME --force --expect-token T"});
}

// `--token` may be both words that acquire printed.
Token Single::token() const {
  const auto& text = force_ ? *expected_ : *token_;
  return Token{parse_number(force_ ? "--expect-token" : "--token", force_ ? text : text.substr(0, text.find(' ')), 1,
                            std::numeric_limits<std::int64_t>::max())};
}

std::optional<std::string> Single::owner() const {
  if (owner_) return owner_;
  const auto blank = token_ ? token_->find(' ') : std::string::npos;
  if (blank == std::string::npos) return std::nullopt;
  return token_->substr(blank + 1);
}

std::optional<Grant> Single::grant(const std::optional<Holder>& row) const {
  if (auto known = owner()) return Grant{token(), std::move(*known)};
  if (!row || row->owner.empty() || row->token != token()) return std::nullopt;
  return Grant{token(), row->owner};
}

void Single::check(const Console& console) const {
  if (console.env() && !acquire_.parsed())
    throw UsageError("--format \"env\" is possible with acquire only; use text or json");
  if (list_.parsed()) {
    check_text("the pattern", glob_, longest_pattern);
    if (std::find(states.begin(), states.end(), state_) == states.end())
      throw UsageError(fmt::format("--state {} is unknown; use held, free, closed, expired or all", in_quotes(state_)));
    return;
  }
  check_name(acquire_.parsed() ? asking_.name() : name_);
  if (ttl_) static_cast<void>(parse_ttl(*ttl_));
  if (release_.parsed()) {
    if (force_ && !expected_) throw UsageError("--force needs --expect-token, the token that list shows");
    if (force_ && token_)
      throw UsageError(fmt::format("--token {} is not for --force: that takes --expect-token", in_quotes(*token_)));
    if (!force_ && expected_)
      throw UsageError(fmt::format("--expect-token {} is for --force only", in_quotes(*expected_)));
    if (!force_ && reason_) throw UsageError("--reason is for --force only");
    if (reason_) check_text("the reason", *reason_, longest_reason);
    if (!force_ && yes_) throw UsageError("--yes is for --force only");
    if (!force_ && !token_) throw UsageError("release needs --token, what acquire answered (or --force)");
  }
  if (token_ || expected_) static_cast<void>(token());
  if (force_ && owner_)
    throw UsageError(fmt::format("--owner {} is not for --force: that takes --expect-token", in_quotes(*owner_)));
  if (const auto known = owner()) {
    check_owner(*known);
    if (owner_ && token_->find(' ') != std::string::npos && token_->substr(token_->find(' ') + 1) != *owner_)
      throw UsageError(
          fmt::format("--token {} names another owner than --owner {}", in_quotes(*token_), in_quotes(*owner_)));
  }
  if (force_ && !yes_ && ::isatty(STDIN_FILENO) == 0)
    throw UsageError("--force asks before it frees a lock: without a terminal it needs --yes");
}

int Single::operator()(const ConnectionOptions& connection, Console& console) {
  check(console);
  const auto options = engine_options(connection);
  if (acquire_.parsed()) {
    static_cast<void>(asking_.lock_options());
    static_cast<void>(asking_.wait());
  }
  const auto url = connection.url({"DLOCK_URL"});
  const Signals signals;
  if (acquire_.parsed()) return acquire(url, options, signals, console);
  int code = 0;
  const int ended_by = wait_for(signals, [&](const std::stop_token&) {
    Engine engine(url, options);
    code = list_.parsed()      ? list(engine, console)
           : inspect_.parsed() ? inspect(engine, console)
           : renew_.parsed()   ? renew(engine, console)
           : force_            ? force(engine, console)
                               : release(engine, console);
  });
  return ended_by != 0 ? 128 + ended_by : code;
}

int Single::list(Engine& engine, Console& console) const {
  auto rows = engine.list(glob_);
  if (state_ != "all") std::erase_if(rows, [&](const Holder& row) { return to_string(row.state) != state_; });
  if (console.json()) {
    auto locks = Json::array();
    for (const auto& row : rows) locks.push_back(as_json(row));
    console.result(Json::object({{"locks", std::move(locks)}}));
  } else {
    console.result(as_table(rows));
  }
  return number(Exit::ok);
}

int Single::inspect(Engine& engine, Console& console) const {
  const auto row = engine.inspect(name_);
  if (!row) return say_no(fmt::format("{} is not held, and there is no row for it", in_quotes(name_)), console);
  std::vector<Waiter> queue;
  if (row->waiters > 0) queue = engine.waiters(exactly(name_));
  if (console.json()) {
    auto object = as_json(*row);
    object["queue"] = Json::array();
    for (const auto& waiter : queue) object["queue"].push_back(as_json(waiter));
    console.result(std::move(object));
  } else {
    auto text = as_lines(*row);
    for (const auto& waiter : queue) text += fmt::format("\n  {}", in_words(waiter));
    console.result(text);
  }
  return number(row->state == State::held ? Exit::ok : Exit::no);
}

int Single::acquire(const std::string& url, const EngineOptions& options, const Signals& signals,
                    Console& console) const {
  auto lock_options = asking_.lock_options();
  lock_options.lease = parse_ttl(*ttl_);
  lock_options.renew = false;
  lock_options.job = Job::from_environment();  // of the run around it
  std::optional<Engine> engine;
  std::optional<Lock> lock;
  Refusal refusal;
  const auto name = asking_.name();
  const auto ask_for_it = [&](const std::stop_token& stop) {
    engine.emplace(url, options);
    const auto wait = asking_.wait();
    if (!wait && inside_a_run()) {
      lock = ask(*engine, name, Duration{}, lock_options, stop, refusal);
      if (lock) return;
      refuse_nesting(*engine, name);
    }
    lock = ask(*engine, name, wait, lock_options, stop, refusal);
  };
  // A grant that nobody learns of lasts as long as its lease: its answer is worth waiting for.
  const auto leave = [&](int signal) {
    signals.restore(signal);
    console.warning(fmt::format("the database has not answered: \"{}\" may be held now; see dlock inspect", name));
  };
  const int ended_by = wait_and_go_on(signals, ask_for_it, leave, std::chrono::milliseconds{900});
  if (ended_by != 0) {
    signals.restore(ended_by);
    if (lock) give_back(*lock, console);
    return 128 + ended_by;
  }
  if (lock) return hand_out(*lock, *lock_options.lease, signals, console);
  signals.restore();
  say_busy(refusal.holder, console);
  return number(Exit::busy);
}

void Single::give_back(Lock& lock, Console& console) {
  constexpr std::string_view in_vain = "nobody learns the token, and the lock may be held still: see dlock inspect";
  const Signals::ExitMessage if_that_takes_too_long(fmt::format("dlock: warning: {}\n", in_vain));
  if (lock.release() == Released::freed) console.warning("nobody learns the token: the lock is free again");
  else console.warning(in_vain);
}

int Single::hand_out(Lock& lock, Duration ttl, const Signals& signals, Console& console) {
  signals.interrupt_writes();
  if (Signals::received() == 0) {
    print_grant(lock, ttl, console);
    if (console.unwritten() == 0) {
      Signals::forget();  // one that comes when the token is read is too late
      lock.detach();
      return number(Exit::ok);
    }
  }
  give_back(lock, console);
  if (const int signal = Signals::received(); signal != 0) ::_exit(128 + signal);
  return number(Exit::database);
}

void Single::print_grant(const Lock& lock, Duration ttl, Console& console) {
  const auto token = number(lock.token());
  if (console.json())
    console.result(
        Json::object({{"name", lock.name()}, {"token", token}, {"owner", lock.owner()}, {"ttl_us", ttl.count()}}));
  else if (console.env()) console.result(fmt::format("DLOCK_TOKEN={}\nDLOCK_OWNER={}", token, lock.owner()));
  else console.result(fmt::format("{} {}", token, lock.owner()));
}

int Single::not_the_holder(const std::optional<Holder>& row, Console& console) const {
  if (row && row->mode != Mode::exclusive && !owner() && !force_)
    return say_no(fmt::format("{} is held by several, and the token alone names none of them: give both words that "
                              "acquire answered, token and owner",
                              in_quotes(name_)),
                  console);
  if (!row) return say_no(fmt::format("there is no lock {}", in_quotes(name_)), console);
  const bool one = row->mode == Mode::exclusive || row->mode == Mode::node;
  const auto held_now = one && row->state == State::held && row->token != token()
                            ? fmt::format("it is held under token {}", number(row->token))
                            : "it was released, or its lease is over";
  return say_no(fmt::format("{} is not held under token {}: {}", in_quotes(name_), number(token()), held_now), console);
}

int Single::renew(Engine& engine, Console& console) const {
  std::optional<Duration> lease;
  if (ttl_) lease = parse_ttl(*ttl_);
  const auto row = engine.inspect(name_);
  const auto named = grant(row);
  if (!named || !engine.renew(name_, *named, lease)) return not_the_holder(row, console);
  if (row && row->mode == Mode::exclusive && Grant{row->token, row->owner} == *named) {
    if (row->state == State::expired)
      console.warning(
          fmt::format("the lease of {} had been over for {}: it protected nothing in between, though nobody else "
                      "was granted it",
                      in_quotes(name_), shown(-row->left)));
    else if (lease && row->left > *lease)
      console.note(fmt::format("{} is not open to others sooner: the lease that it had ends in {}", in_quotes(name_),
                               shown(row->left)));
  }
  if (console.json()) console.result(Json::object({{"name", name_}, {"token", number(token())}, {"renewed", true}}));
  return number(Exit::ok);
}

int Single::release(Engine& engine, Console& console) const {
  LockOptions options;
  options.renew = false;
  const auto row = engine.inspect(name_);
  const auto named = grant(row);
  if (row && !row->label.empty()) options.label = row->label;  // the last run is the one that is released
  const bool alone = row && row->mode == Mode::exclusive;
  const bool over = row && named &&
                    (alone ? row->state == State::expired && Grant{row->token, row->owner} == *named
                           : !shares(engine, name_, *named));
  auto lock = named ? engine.adopt(name_, *named, options) : std::nullopt;
  const auto released = lock ? lock->release() : Released::was_lost;
  if (released == Released::was_lost) return not_the_holder(row, console);
  if (released == Released::unconfirmed)
    return console.error(
        Exit::unreachable,
        fmt::format("the release of {} could not be confirmed; it ends with its lease", in_quotes(name_)));
  if (over)
    return say_no(
        fmt::format("the lease of {} under token {} had been over{}: it protected nothing since{}", in_quotes(name_),
                    number(token()), alone ? " for " + shown(-row->left) : "", alone ? "; the lock is free" : ""),
        console);
  if (console.json()) console.result(Json::object({{"name", name_}, {"token", number(token())}, {"released", true}}));
  return number(Exit::ok);
}

int Single::force(Engine& engine, Console& console) const {
  const auto row = engine.inspect(name_);
  if (!row || row->owner.empty() || row->token != token()) return not_the_holder(row, console);
  console.note(why_busy(*row));
  if (!yes_ && !confirmed()) return say_no("nothing was done", console);
  if (!engine.force_release(name_, token(), reason_.value_or(""))) return not_the_holder(row, console);
  console.note(fmt::format("{} was freed", in_quotes(name_)));
  if (console.json()) console.result(Json::object({{"name", name_}, {"token", number(token())}, {"released", true}}));
  return number(Exit::ok);
}

}  // namespace dlock::tools

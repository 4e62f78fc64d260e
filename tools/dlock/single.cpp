// This file knows what the single commands print, and which code they leave with.
#include "single.hpp"

#include "show.hpp"
#include "waiting.hpp"

#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <limits>

namespace dlock::tools {
namespace {

constexpr std::array<const char*, 5> states{"held", "free", "closed", "expired", "all"};

std::string not_the_holder(const std::string& name, Token token) {
  return fmt::format("{} is not held under token {}", in_quotes(name), number(token));
}

bool confirmed(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) return false;
  std::cerr << question << " [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

}  // namespace

Single::Single(CLI::App& app)
    : list_(app.add_subcommand("list", "who holds what, since when and for how long")),
      inspect_(app.add_subcommand("inspect", "all that is known of one lock; exits 3 if it is not held")),
      acquire_(app.add_subcommand("acquire", "take a lock that nobody renews, for scripts that cannot wrap their work")),
      renew_(app.add_subcommand("renew", "give a lock taken by acquire a new lease")),
      release_(app.add_subcommand("release", "free a lock taken by acquire, or any lock by force")) {
  list_->add_option("GLOB", glob_, "a shell pattern (default *)");
  list_->add_option("--state", state_, "held (default), free, closed, expired or all");
  inspect_->add_option("NAME", name_, "the lock's name")->required();
  asking_.add_to(*acquire_);
  acquire_->add_option("--ttl", ttl_, "length of the lease, 1ms to 10 years")->required();
  for (auto* command : {renew_, release_}) command->add_option("NAME", name_, "the lock's name")->required();
  renew_->add_option("--token", token_, "what acquire answered")->required();
  renew_->add_option("--ttl", ttl_, "length of the new lease (default: the length it had)");
  release_->add_option("--token", token_, "what acquire answered");
  release_->add_flag("--force", force_, "free it although it is somebody else's; needs --expect-token");
  release_->add_option("--expect-token", expected_, "with --force: the token shown by list; nothing happens if it has moved on");
  release_->add_flag("--yes", yes_, "with --force: do not ask");
  list_->footer("Example: dlock list 'report/*' --state all");
  acquire_->footer("With --format env it prints DLOCK_TOKEN=… for eval. Exits 75 if the lock is busy.\n"
                   "Example: token=$(dlock acquire deploy --ttl 5m -n) && ./deploy; dlock release deploy --token \"$token\"");
  release_->footer("Exits 3 if the token is not the holder's. The fencing token never falls, not even by force.\n"
                   "Example: dlock release nightly --force --expect-token 42");
}

void Single::check() const {
  if (list_->parsed() && std::find(states.begin(), states.end(), state_) == states.end())
    throw UsageError("--state " + in_quotes(state_) + " is unknown; use held, free, closed, expired or all");
  if (!release_->parsed()) return;
  if (force_ && expected_.empty()) throw UsageError("--force needs --expect-token, the token that list shows");
  if (force_ && !token_.empty()) throw UsageError("--force goes with --expect-token, not with --token");
  if (!force_ && token_.empty()) throw UsageError("release needs --token, what acquire answered (or --force)");
  if (!force_ && !expected_.empty()) throw UsageError("--expect-token goes with --force");
}

int Single::operator()(const ConnectionOptions& connection, Console& console) {
  check();
  if (!token_.empty()) static_cast<void>(token("--token", token_));
  if (!expected_.empty()) static_cast<void>(token("--expect-token", expected_));
  if (!ttl_.empty()) static_cast<void>(parse_positive_duration("--ttl", ttl_));
  if (acquire_->parsed()) static_cast<void>(asking_.lock_options());
  if (acquire_->parsed()) static_cast<void>(asking_.wait());
  const auto url = connection.url({"DLOCK_URL"});
  const auto options = engine_options(connection);
  const Signals signals;
  int code = 0;
  const int ended_by = wait_for(signals, [&](const std::stop_token&) {
    Engine engine(url, options);
    code = list_->parsed()      ? list(engine, console)
           : inspect_->parsed() ? inspect(engine, console)
           : acquire_->parsed() ? acquire(engine, console)
           : renew_->parsed()   ? renew(engine, console)
           : force_             ? force(engine, console)
                                : release(engine, console);
  });
  return ended_by != 0 ? 128 + ended_by : code;
}

Token Single::token(const char* flag, const std::string& text) const {
  return Token{parse_number(flag, text, 1, std::numeric_limits<std::int64_t>::max())};
}

int Single::list(Engine& engine, Console& console) const {
  auto rows = engine.list(glob_);
  if (state_ != "all") std::erase_if(rows, [&](const Holder& row) { return to_string(row.state) != state_; });
  if (console.json()) {
    auto locks = nlohmann::json::array();
    for (const auto& row : rows) locks.push_back(as_json(row));
    console.result(nlohmann::json{{"locks", std::move(locks)}});
  } else {
    console.result(as_table(rows));
  }
  return number(Exit::ok);
}

int Single::inspect(Engine& engine, Console& console) const {
  const auto row = engine.inspect(name_);
  if (row) {
    if (console.json()) console.result(as_json(*row));
    else console.result(as_lines(*row));
  }
  const bool held = row && row->state == State::held;
  if (!row) console.note(fmt::format("{} is free, and was never taken (or not for a long time)", in_quotes(name_)));
  return number(held ? Exit::ok : Exit::no);
}

int Single::acquire(Engine& engine, Console& console) const {
  auto options = asking_.lock_options();
  options.lease = parse_positive_duration("--ttl", ttl_);
  options.renew = false;
  Holder busy;
  const auto wait = asking_.wait();
  auto lock = wait && *wait == Duration{} ? engine.try_lock(asking_.name(), options, &busy)
              : wait                     ? engine.try_lock_for(asking_.name(), *wait, options)
                                         : engine.try_lock_for(asking_.name(), Duration::max(), options);
  if (!lock) {
    if (busy.name.empty()) {
      if (auto row = engine.inspect(asking_.name())) busy = std::move(*row);
      busy.name = asking_.name();
    }
    console.note(why_busy(busy));
    return number(Exit::busy);
  }
  const auto owner = lock->owner();
  const auto granted = number(lock->detach());
  if (console.json())
    console.result(nlohmann::json{{"name", asking_.name()}, {"token", granted}, {"owner", owner}, {"ttl_us", options.lease->count()}});
  else if (console.env())
    console.result(fmt::format("DLOCK_TOKEN={}", granted));
  else
    console.result(fmt::format("{}", granted));
  return number(Exit::ok);
}

int Single::renew(Engine& engine, Console& console) const {
  LockOptions options;
  options.renew = false;
  if (!ttl_.empty()) options.lease = parse_positive_duration("--ttl", ttl_);
  const auto wanted = token("--token", token_);
  auto lock = engine.adopt(name_, wanted, options);
  if (!lock) {
    console.note(not_the_holder(name_, wanted));
    return number(Exit::no);
  }
  lock->detach();
  return number(Exit::ok);
}

int Single::release(Engine& engine, Console& console) const {
  LockOptions options;
  options.renew = false;
  const auto wanted = token("--token", token_);
  auto lock = engine.adopt(name_, wanted, options);
  const auto released = lock ? lock->release() : Released::was_lost;
  if (released == Released::freed) return number(Exit::ok);
  if (released == Released::was_lost) {
    console.note(not_the_holder(name_, wanted));
    return number(Exit::no);
  }
  return console.error(Exit::unreachable, fmt::format("the release of {} could not be confirmed; it ends with its lease", in_quotes(name_)));
}

int Single::force(Engine& engine, Console& console) const {
  const auto expected = token("--expect-token", expected_);
  const auto row = engine.inspect(name_);
  if (!row || row->owner.empty() || row->token != expected) {
    console.note(not_the_holder(name_, expected));
    return number(Exit::no);
  }
  console.note(why_busy(*row));
  if (!yes_ && !confirmed("free it although it is held?")) {
    if (::isatty(STDIN_FILENO) == 0) throw UsageError("--force without a terminal to ask on needs --yes");
    return number(Exit::no);
  }
  if (!engine.force_release(name_, expected)) {
    console.note(not_the_holder(name_, expected));
    return number(Exit::no);
  }
  return number(Exit::ok);
}

}  // namespace dlock::tools

// Promises of what is sent as several statements in one packet: wherever in it a server of a cluster undoes the
// transaction, telling nobody, what is told is what is in the table. A proxy undoes it, in every place in turn.
#include "support/database.hpp"
#include "support/hands.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view actor = "0000000000000001000000000000004d";

// Who holds a name, alone or with others.
struct Part {
  std::string name, owner = identity(1);
  Mode mode = Mode::shared;
  Duration lease = 1h, at_least{};
  std::int64_t permits = 1;
  bool alone = false;
  std::string node = "node";
  Token token{};

  store::LeaseKey key() const { return {name, owner, token, lease, mode}; }
};

// The table through a proxy that undoes; the same without; and the rows, as the administrator sees them.
class Undone {
 public:
  explicit Undone(bool prepared)
      : proxy_(database_.server()),
        table_(open_table(database_.server().url_at(proxy_.address()), 1, {}, prepared)),
        plain_(open_table(database_->url(), 1)) {}

  Admin& admin() { return database_->admin(); }
  store::LockTable& table() { return *table_; }
  store::LockTable& plain() { return *plain_; }
  Proxy& proxy() { return proxy_; }
  bool undoes() { return database_.server().undoer() != nullptr; }

  // Answers whether the part is in, and with which token.
  bool add(store::LockTable& table, Part& part) {
    const Name name(part.name);
    store::AcquireRequest ask{name, part.owner, part.node, "label", actor, part.lease, part.at_least, "meta"};
    ask.mode = part.mode;
    ask.permits = part.permits;
    ask.limit = 3;
    ask.alone = part.alone;
    const auto granted = patiently([&] {
      auto answer = table.acquire(ask, soon());
      if (answer.row_locked) throw Failure(Cause::locked, "the row is locked");
      return answer;
    });
    part.token = granted.token.value_or(Token{});
    return granted.token.has_value();
  }
  Part added(const std::string& name, Mode mode = Mode::shared, int owner = 1, Duration lease = 1h,
             Duration at_least = {}) {
    Part part{name, identity(owner), mode, lease, at_least};
    REQUIRE(add(*plain_, part));
    return part;
  }

  long long of_holder(const Part& part, const std::string& column) {
    return admin().number("SELECT " + column + " FROM resource_lock_holder WHERE name = '" + part.name +
                          "' AND owner = '" + part.owner + "'");
  }
  // When its lease ends, if it is in, or that of the lock where it is the only holder; 0: it holds nothing.
  long long end_of(const Part& part) {
    const auto owner = "l.name = '" + part.name + "' AND ";
    if (part.mode == Mode::exclusive)
      return admin().number("SELECT l.expires_at FROM resource_lock l WHERE " + owner + "l.owner = '" + part.owner +
                            "' AND l.mode = '' AND l.token = " + std::to_string(number(part.token)));
    return admin().number(
        "SELECT LEAST(h.expires_at, l.expires_at) FROM resource_lock l JOIN resource_lock_holder h ON h.name = l.name "
        "AND h.gate = l.owner WHERE " +
        owner + "h.owner = '" + part.owner + "' AND h.token = " + std::to_string(number(part.token)) +
        " AND l.mode = '" +
        (part.mode == Mode::shared    ? "shared"
         : part.mode == Mode::permits ? "permits"
                                      : "node") +
        "'");
  }
  bool has(const Part& part) { return number(part.token) > 0 && end_of(part) > 0; }
  bool is_free(const std::string& name) {
    return admin().number("SELECT count(*) FROM resource_lock WHERE name = '" + name + "' AND owner IS NOT NULL") == 0;
  }

 private:
  ServerDatabase database_{};
  Proxy proxy_;
  std::unique_ptr<store::LockTable> table_, plain_;
};

// What is asked with a name that is new each time. The first part makes the table ready and answers the second one,
// which asks and looks whether the table says what was told.
using Asking = std::function<std::function<void()>(const std::string& name)>;

// Undoes it in each of its places, and in each of them twice in a row.
void undo_everywhere(Undone& undone, const std::string& what, const Asking& asking) {
  std::size_t gaps = 1;
  for (std::size_t times = 1; times <= 2; ++times)
    for (std::size_t gap = 0; gap < gaps; ++gap) {
      CAPTURE(what);
      CAPTURE(gap);
      CAPTURE(times);
      const auto ask = asking(what + "/" + std::to_string(times) + "/" + std::to_string(gap));
      undone.proxy().undo_next_transaction(gap, times);
      ask();
      const auto had = undone.proxy().gaps_of_undone();
      CHECK_MESSAGE(had >= 2, "nothing of it was undone");
      if (had == 0) return;
      gaps = had;
    }
}

template <class Scenarios>
void with_and_without_preparing(Scenarios scenarios) {
  for (const bool prepared : {true, false}) {
    CAPTURE(prepared);
    Undone undone(prepared);
    if (!undone.undoes()) return;  // nothing is undone there without a word
    scenarios(undone, [&](const std::string& what, const Asking& asking) { undo_everywhere(undone, what, asking); });
    undone.admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''");
  }
}

}  // namespace

TEST_CASE("who comes in beside others is in as it was told, wherever a server undoes that") {
  with_and_without_preparing([](Undone& undone, auto everywhere) {
    for (const Mode mode : {Mode::shared, Mode::permits, Mode::node}) {
      const auto m = std::to_string(static_cast<int>(mode));
      const auto comes_in = [&](Part part) {
        return [&undone, part]() mutable {
          CHECK(undone.add(undone.table(), part));
          CHECK(undone.has(part));
        };
      };
      everywhere("first " + m, [&](const std::string& name) { return comes_in({name, identity(1), mode}); });
      everywhere("on a free row " + m, [&](const std::string& name) {
        Part before{name, identity(9), Mode::exclusive};
        REQUIRE(undone.add(undone.plain(), before));
        REQUIRE(undone.plain().release(before.key(), soon()));
        return comes_in({name, identity(1), mode, 1h, 1min});
      });
      everywhere("second " + m, [&](const std::string& name) {
        undone.added(name, mode, 2, 1min);
        return comes_in({name, identity(1), mode});
      });
      everywhere("after those whose lease is over " + m, [&](const std::string& name) {
        undone.added(name, mode, 2);
        undone.admin().expire(name);
        return comes_in({name, identity(1), mode});
      });
      everywhere("once more " + m, [&](const std::string& name) {
        auto part = undone.added(name, mode, 1, 1min);
        const auto end = undone.end_of(part);
        part.lease = 1h;
        return [&undone, part, end]() mutable {
          const auto token = part.token;
          CHECK(undone.add(undone.table(), part));
          CHECK(part.token == token);
          CHECK(undone.end_of(part) > end + Duration(50min).count());
        };
      });
    }
    everywhere("alone", [&](const std::string& name) {
      const auto other = undone.added(name, Mode::node, 2);
      undone.admin().run("UPDATE resource_lock_holder SET actor = '" + identity(0).replace(0, 1, "f") +
                         "' WHERE name = '" + name + "'");
      Part part{name, identity(1), Mode::node};
      part.alone = true;
      return [&undone, other, part]() mutable {
        CHECK(undone.add(undone.table(), part));
        CHECK(undone.has(part));
        CHECK(part.token > other.token);
        CHECK_FALSE(undone.has(other));
      };
    });
  });
}

TEST_CASE("who leaves others has left, wherever a server undoes that") {
  with_and_without_preparing([](Undone& undone, auto everywhere) {
    for (const Mode mode : {Mode::shared, Mode::permits, Mode::node}) {
      const auto m = std::to_string(static_cast<int>(mode));
      everywhere("the last leaves " + m, [&](const std::string& name) {
        const auto part = undone.added(name, mode);
        return [&undone, part] {
          CHECK(patiently([&] { return undone.table().release(part.key(), soon()); }));
          CHECK_FALSE(undone.has(part));
          CHECK(undone.is_free(part.name));
        };
      });
      everywhere("one of two leaves " + m, [&](const std::string& name) {
        const auto other = undone.added(name, mode, 2);
        const auto part = undone.added(name, mode);
        return [&undone, part, other] {
          CHECK(patiently([&] { return undone.table().release(part.key(), soon()); }));
          CHECK_FALSE(undone.has(part));
          CHECK(undone.has(other));
        };
      });
      everywhere("what nobody knows of is withdrawn " + m, [&](const std::string& name) {
        auto part = undone.added(name, mode);
        return [&undone, part]() mutable {
          patiently([&] { return undone.table().withdraw(part.name, part.owner, soon(), part.mode), true; });
          CHECK_FALSE(undone.has(part));
          CHECK(undone.is_free(part.name));
          CHECK_FALSE(undone.add(undone.plain(), part));
        };
      });
      everywhere("what has not arrived yet is withdrawn " + m, [&](const std::string& name) {
        return [&undone, part = Part{name, identity(1), mode}]() mutable {
          patiently([&] { return undone.table().withdraw(part.name, part.owner, soon(), part.mode), true; });
          CHECK_FALSE(undone.add(undone.plain(), part));
        };
      });
    }
    everywhere("within its at-least time", [&](const std::string& name) {
      const auto part = undone.added(name, Mode::shared, 1, 1h, 30min);
      return [&undone, part] {
        CHECK(patiently([&] { return undone.table().release(part.key(), soon()); }));
        CHECK(undone.of_holder(part, "token") == 0);
        CHECK_FALSE(undone.has(part));
      };
    });
  });
}

TEST_CASE("what several hold is renewed, extended and passed on as it was told, wherever a server undoes that") {
  with_and_without_preparing([](Undone& undone, auto everywhere) {
    for (const Mode mode : {Mode::shared, Mode::permits, Mode::node}) {
      const auto m = std::to_string(static_cast<int>(mode));
      everywhere("renewed " + m, [&](const std::string& name) {
        auto one = undone.added(name, mode, 1, 1min), other = undone.added(name + "/other", mode, 2, 1min);
        const auto ends = undone.end_of(one), end_of_other = undone.end_of(other);
        one.lease = other.lease = 1h;
        return [&undone, one, other, ends, end_of_other] {
          const std::vector<store::LeaseKey> keys{one.key(), other.key()};
          patiently([&] {
            for (const auto renewed : undone.table().renew(keys, soon())) {
              CHECK(renewed != store::Renewed::lost);
              if (renewed == store::Renewed::not_known_yet) throw Failure(Cause::locked, "not renewed");
            }
            return true;
          });
          CHECK(undone.end_of(one) > ends + Duration(50min).count());
          CHECK(undone.end_of(other) > end_of_other + Duration(50min).count());
        };
      });
      for (const Duration lease : {1min, 60min})
        everywhere("extended from " + std::to_string(lease.count()) + " " + m, [&](const std::string& name) {
          const auto part = undone.added(name, mode, 1, lease);
          const auto end = undone.end_of(part);
          return [&undone, part, end, lease] {
            const auto renewed = patiently([&] { return undone.table().extend(part.key(), 1h, 30min, soon()); });
            CHECK(renewed == store::Renewed::yes);
            CHECK(undone.end_of(part) > end + Duration(lease < 1h ? 50min : 0min).count());
            if (part.mode == Mode::node) CHECK(undone.admin().reopens_at(part.name) > Duration{});
            else CHECK(undone.of_holder(part, "reopens_at") > 0);
          };
        });
      if (mode == Mode::node) continue;
      everywhere("adopted " + m, [&](const std::string& name) {
        const auto part = undone.added(name, mode, 1, 1min);
        const auto end = undone.end_of(part);
        return [&undone, part, end] {
          auto heir = part;
          heir.owner = identity(5);
          const Name of(part.name);
          const store::AcquireRequest to{of, heir.owner, "node", "label", actor, 1h, {}, ""};
          CHECK(patiently([&] { return undone.table().adopt(part.key(), to, soon()); }) == part.mode);
          CHECK(undone.end_of(heir) > end + Duration(50min).count());
          CHECK_FALSE(undone.has(part));
        };
      });
    }
  });
}

TEST_CASE("who is alone lets others in, and the other way round, as it was told, wherever a server undoes that") {
  with_and_without_preparing([](Undone& undone, auto everywhere) {
    everywhere("downgrade", [&](const std::string& name) {
      Part part{name, identity(1), Mode::exclusive};
      REQUIRE(undone.add(undone.plain(), part));
      return [&undone, part] {
        Part reader{part.name, identity(5)};
        const auto token = patiently([&] { return undone.table().downgrade(part.key(), reader.owner, soon()); });
        reader.token = token.value_or(Token{});
        CHECK(undone.has(reader));
        CHECK_FALSE(undone.has(part));
      };
    });
    everywhere("upgrade", [&](const std::string& name) {
      const auto part = undone.added(name);
      return [&undone, part] {
        Part one{part.name, identity(5), Mode::exclusive};
        const auto token = patiently([&] { return undone.table().upgrade(part.key(), one.owner, soon()); });
        one.token = token.value_or(Token{});
        CHECK(undone.has(one));
        CHECK_FALSE(undone.has(part));
      };
    });
  });
}

TEST_CASE("who was told of a ticket has it, wherever a server undoes the drawing") {
  with_and_without_preparing([](Undone& undone, auto everywhere) {
    const auto draws = [&](const std::string& name) {
      return [&undone, name] {
        Hand hand(undone.table(), 1, name);
        CHECK(hand.draw_ticket() > 0);
        CHECK(undone.admin().number("SELECT ticket FROM resource_lock_waiter WHERE name = '" + name +
                                    "' AND owner = '" + hand.owner() + "'") == hand.ticket());
        CHECK(undone.admin().number("SELECT next_ticket FROM resource_lock WHERE name = '" + name + "'") >=
              hand.ticket());
      };
    };
    everywhere("drawn first", draws);
    everywhere("drawn after another", [&](const std::string& name) {
      Hand(undone.plain(), 2, name).draw_ticket();
      return draws(name);
    });
    everywhere("drawn once more", [&](const std::string& name) {
      Hand(undone.plain(), 1, name).draw_ticket();
      return draws(name);
    });
  });
}

TEST_CASE("what is acquired and released together is as it was told, wherever a server undoes that") {
  with_and_without_preparing([](Undone& undone, auto everywhere) {
    everywhere("acquired together", [&](const std::string& text) {
      std::vector<Name> names;
      for (const char* end : {" 1", " 2", " 3"}) names.emplace_back(text + end);
      Part busy{names[1].text(), identity(9), Mode::exclusive};
      Part was{names[2].text(), identity(8), Mode::exclusive};
      REQUIRE(undone.add(undone.plain(), busy));
      REQUIRE(undone.add(undone.plain(), was));
      REQUIRE(undone.plain().release(was.key(), soon()));
      return [&undone, names, busy] {
        std::vector<store::AcquireRequest> asks;
        const auto owner = identity(1);
        for (const auto& name : names) asks.push_back({name, owner, "node", "label", actor, 1h, {}, "meta"});
        const auto granted = patiently([&] { return undone.table().acquire_together(asks, soon()); });
        REQUIRE(granted.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) {
          Part part{names[i].text(), owner, Mode::exclusive};
          const bool told = granted[i] && granted[i]->token;
          if (told) part.token = *granted[i]->token;
          CHECK(told == undone.has(part));
        }
        CHECK(granted[0]);
        CHECK((granted[1] && !granted[1]->token));
        CHECK(undone.has(busy));
      };
    });
    everywhere("released together", [&](const std::string& name) {
      std::vector<Part> parts;
      for (const char* end : {" 1", " 2", " 3"}) {
        parts.push_back({name + end, identity(1), Mode::exclusive});
        REQUIRE(undone.add(undone.plain(), parts.back()));
      }
      // One of them is free already, and all are of one owner: what is asked first, on MariaDB, is not believed then.
      REQUIRE(undone.plain().release(parts.back().key(), soon()));
      return [&undone, parts] {
        std::vector<store::LeaseKey> keys;
        for (const auto& part : parts) keys.push_back(part.key());
        const auto released = patiently([&] { return undone.table().release_together(keys, soon()); });
        REQUIRE(released.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) {
          CHECK(released[i].value_or(false) == undone.is_free(parts[i].name));
          CHECK(released[i].value_or(true));
        }
      };
    });
  });
}

TEST_CASE("what one holds alone is asked for by single statements: there is nothing of it to undo in between") {
  Undone undone(true);
  undone.proxy().undo_next_transaction(0);
  Hand hand(undone.table(), 1), next(undone.table(), 2);
  CHECK(hand.barge());
  undone.table().waiting().want("job", 1min, soon());
  undone.table().waiting().unwant("job", soon());
  const store::LeaseKey key{"job", hand.owner(), hand.token(), 2h};
  CHECK(undone.table().renew({&key, 1}, soon()).at(0) == store::Renewed::yes);
  CHECK(undone.table().extend(key, 1h, {}, soon()) == store::Renewed::yes);
  CHECK(undone.table().update_metadata(key, "meta", Keep::for_next, soon()));
  next.add();
  CHECK(hand.hand_over(next).has_value());
  CHECK(next.lives());
  next.remove();
  CHECK(next.release());
  undone.table().withdraw("job", hand.owner(), soon());
  CHECK(undone.proxy().gaps_of_undone() == 0);
  if (!undone.undoes()) return;
  CHECK(next.draw_ticket() > 0);  // which is not one: the proxy would have seen it
  CHECK(undone.proxy().gaps_of_undone() > 0);
}

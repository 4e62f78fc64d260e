// What an engine told its observer.
#pragma once

#include "support/eventually.hpp"

#include <dlock/dlock.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dlock::test {

// Threads: any. A copy is the same collection.
class EventLog {
 public:
  struct Item {
    Event::Kind kind{};
    std::string name{}, text{};
    Token token{};
    Duration took{};
    std::string label{}, node{}, job{};
  };

  std::function<void(const Event&)> observer() const {
    return [state = state_](const Event& event) {
      const std::lock_guard guard(state->mutex);
      state->items.push_back({event.kind, std::string(event.name), std::string(event.text), event.token, event.took,
                              std::string(event.label), std::string(event.node), std::string(event.job)});
    };
  }

  std::vector<Item> of(Event::Kind kind) const {
    const std::lock_guard guard(state_->mutex);
    std::vector<Item> found;
    std::copy_if(state_->items.begin(), state_->items.end(), std::back_inserter(found),
                 [&](const Item& item) { return item.kind == kind; });
    return found;
  }

  bool has(Event::Kind kind) const { return !of(kind).empty(); }
  bool comes(Event::Kind kind) const {
    return eventually([&] { return has(kind); });
  }

 private:
  struct State {
    std::mutex mutex;
    std::vector<Item> items;  // guarded by mutex
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace dlock::test

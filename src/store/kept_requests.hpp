// Copies of requests whose texts are their own, so that whoever has asked may go before the answer comes.
#pragma once

#include "store/lock_table.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace dlock::store {

// An acquire request whose texts are its own.
class KeptAcquireRequest {
 public:
  explicit KeptAcquireRequest(const AcquireRequest& ask)
      : name_(ask.name), ask_{name_, {}, {}, {}, {}, ask.lease, ask.at_least, {}} {
    const std::array from{&AcquireRequest::owner, &AcquireRequest::node, &AcquireRequest::label, &AcquireRequest::actor,
                          &AcquireRequest::metadata};
    std::size_t size = 0;
    for (const auto field : from) size += (ask.*field).size();
    texts_.reserve(size);
    for (const auto field : from) texts_ += ask.*field;
    std::string_view left = texts_;
    for (const auto field : from) {
      ask_.*field = left.substr(0, (ask.*field).size());
      left.remove_prefix((ask.*field).size());
    }
  }
  KeptAcquireRequest(const KeptAcquireRequest&) = delete;
  KeptAcquireRequest& operator=(const KeptAcquireRequest&) = delete;
  const AcquireRequest& view() const noexcept { return ask_; }

 private:
  const Name name_;
  std::string texts_;
  AcquireRequest ask_;
};

// A lease's key whose texts are its own.
class KeptLeaseKey {
 public:
  explicit KeptLeaseKey(const LeaseKey& key) : name_(key.name), owner_(key.owner), key_{name_, owner_, key.token} {}
  KeptLeaseKey(const KeptLeaseKey&) = delete;
  KeptLeaseKey& operator=(const KeptLeaseKey&) = delete;
  const LeaseKey& view() const noexcept { return key_; }

 private:
  const std::string name_, owner_;
  const LeaseKey key_;
};

// A request of either kind.
using EitherRequest = std::variant<LeaseKey, AcquireRequest>;

class KeptEitherRequest {
 public:
  explicit KeptEitherRequest(const EitherRequest& request) : view_(keep(request)) {}
  KeptEitherRequest(const KeptEitherRequest&) = delete;
  KeptEitherRequest& operator=(const KeptEitherRequest&) = delete;
  const EitherRequest& view() const noexcept { return view_; }

 private:
  EitherRequest keep(const EitherRequest& request) {
    if (const auto* ask = std::get_if<AcquireRequest>(&request)) return ask_.emplace(*ask).view();
    return key_.emplace(std::get<LeaseKey>(request)).view();
  }

  std::optional<KeptAcquireRequest> ask_{};
  std::optional<KeptLeaseKey> key_{};
  const EitherRequest view_;  // of one of them
};

}  // namespace dlock::store

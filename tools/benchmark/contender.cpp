// Which contenders there are, with which engine or connections, and what their clients ask. How they are driven:
// clients.cpp.
#include "contender.hpp"

#include "redis.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace bench {
namespace {

class DlockClient final : public Client {
 public:
  DlockClient(std::shared_ptr<dlock::Engine> locks, std::string name, const Field& field)
      : locks_(std::move(locks)), name_(std::move(name)), options_(field.lock), waits_(field.one_name) {}

  void acquire() override { lock_.emplace(waits_ ? locks_->lock(name_, options_) : take(*locks_, name_)); }
  void release() override {
    give_back(std::move(*lock_));
    lock_.reset();
  }

 private:
  const std::shared_ptr<dlock::Engine> locks_;
  const std::string name_;
  const dlock::LockOptions options_;
  const bool waits_;
  std::optional<dlock::Lock> lock_;
};

class PeerClient final : public Client {
 public:
  PeerClient(const Target& target, std::string_view word, std::string name, std::size_t number)
      : peer_(raw_peer(target, word)), name_(std::move(name)), owner_(fmt::format("{:032x}", number)) {}

  void acquire() override {
    next_owner();
    token_ = peer_->acquire(name_, owner_);
    if (token_ == 0) throw std::runtime_error(fmt::format("the lock \"{}\" is held by somebody else", name_));
  }
  void release() override { peer_->release(name_, owner_, token_); }

 private:
  // Each grant has an owner of its own: the first half of it counts.
  void next_owner() {
    for (auto at = owner_.begin() + 15;; --at) {
      if (*at == '9') *at = 'a';
      else if (*at == 'f') *at = '0';
      else ++*at;
      if (*at != '0' || at == owner_.begin()) return;
    }
  }

  const std::unique_ptr<RawPeer> peer_;
  const std::string name_;
  std::string owner_;
  std::int64_t token_ = 0;
};

// An upsert answers at once; only the database's own locks wait.
bool waits(std::string_view word) { return word != "raw" && word != "naive"; }

}  // namespace

dlock::EngineOptions engine_options(const Field& field) {
  auto options = engine_options(field.target);
  if (field.connections > 0) options.connections = field.connections;
  if (field.combine > 0) options.combine = field.combine;
  if (field.by_statement) options.hand_overs.local = {};
  options.linger = field.linger;
  return options;
}

Contender dlock_contender(const Field& field) {
  return {"dlock", field.threads, [field](const std::vector<std::string>& names) {
            const auto locks = std::make_shared<dlock::Engine>(field.target.url, engine_options(field));
            std::vector<std::unique_ptr<Client>> clients;
            for (const auto& name : names) clients.push_back(std::make_unique<DlockClient>(locks, name, field));
            return clients;
          }};
}

Contender one_client(const Field& field) {
  Field alone = field;
  alone.threads = 1;
  alone.one_name = false;
  alone.lock = {};
  auto contender = dlock_contender(alone);
  contender.word = "one";
  return contender;
}

Contender by_statement(const Field& field) {
  Field other = field;
  other.by_statement = true;
  auto contender = dlock_contender(other);
  contender.word = "by_statement";
  return contender;
}

Contender lingering(const Field& field, dlock::Duration linger) {
  Field other = field;
  other.linger = linger;
  auto contender = dlock_contender(other);
  contender.word = "linger";
  return contender;
}

Contender peer(const Field& field, std::string_view word) {
  if (word == "redis") return redis_contender(field);
  const auto known = raw_peers(field.target.url);
  if (std::find(known.begin(), known.end(), word) == known.end())
    throw dlock::tools::UsageError(
        fmt::format("--against {} is unknown or not possible on this database; it has {} and redis",
                    dlock::tools::in_quotes(word), dlock::tools::joined({known.begin(), known.end()}, ", ")));
  const auto clients = field.one_name && !waits(word) ? 1 : std::min(field.threads, field.raw_connections);
  return {std::string(word), clients, [field, peer = std::string(word)](const std::vector<std::string>& names) {
            std::vector<std::unique_ptr<Client>> opened;
            for (const auto& name : names)
              opened.push_back(std::make_unique<PeerClient>(field.target, peer, name, opened.size()));
            return opened;
          }};
}

}  // namespace bench

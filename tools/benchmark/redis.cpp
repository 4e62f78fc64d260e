// The recommended lock of Redis, as its clients send it.
#include "redis.hpp"

#include "tools/shared/usage.hpp"

#ifndef DLOCK_REDIS

namespace bench {

Contender redis_contender(const Field&) {
  throw dlock::tools::UsageError(
      "--against redis is not possible: this dlock-bench was built without hiredis (libhiredis-dev)");
}

std::string redis_setup(const std::string&) { return {}; }

}  // namespace bench

#else

#include <fmt/core.h>
#include <hiredis/hiredis.h>

#include <array>
#include <cstring>
#include <stdexcept>

namespace bench {
namespace {

struct Free {
  void operator()(redisContext* connection) const noexcept { redisFree(connection); }
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, Free>;

constexpr auto compare_and_delete =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

class Connection {
 public:
  explicit Connection(const std::string& where) : connection_(open(where)) {
    if (!connection_ || connection_->err != 0)
      throw std::runtime_error(
          fmt::format("redis at {}: {}", where, connection_ ? connection_->errstr : "out of memory"));
  }

  template <std::size_t size>
  Reply send(const std::array<std::string_view, size>& words) {
    std::array<const char*, size> texts{};
    std::array<std::size_t, size> lengths{};
    for (std::size_t i = 0; i < size; ++i) {
      texts[i] = words[i].data();
      lengths[i] = words[i].size();
    }
    Reply reply(static_cast<redisReply*>(
        redisCommandArgv(connection_.get(), static_cast<int>(size), texts.data(), lengths.data())));
    if (!reply) throw std::runtime_error(fmt::format("redis: {}", connection_->errstr));
    if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(fmt::format("redis: {}", reply->str));
    return reply;
  }

 private:
  static redisContext* open(const std::string& where) {
    if (where.find('/') != std::string::npos) return redisConnectUnix(where.c_str());
    const auto colon = where.rfind(':');
    if (colon == std::string::npos) return redisConnect(where.c_str(), 6379);
    const auto port = dlock::tools::parse_number("the port of --redis", where.substr(colon + 1), 1, 65535);
    return redisConnect(where.substr(0, colon).c_str(), static_cast<int>(port));
  }

  const std::unique_ptr<redisContext, Free> connection_;
};

class RedisClient final : public Client {
 public:
  RedisClient(const std::string& where, std::string name, std::size_t number)
      : connection_(where), name_(std::move(name)), owner_(fmt::format("{:032x}", number)) {
    script_ = connection_.send<3>({"SCRIPT", "LOAD", compare_and_delete})->str;
  }

  void acquire() override {
    const auto reply = connection_.send<6>({"SET", name_, owner_, "NX", "PX", "30000"});
    if (reply->type == REDIS_REPLY_NIL)
      throw std::runtime_error(fmt::format("the key \"{}\" is held by somebody else", name_));
  }

  void release() override {
    const auto reply = connection_.send<5>({"EVALSHA", script_, "1", name_, owner_});
    if (reply->integer != 1) throw std::runtime_error("redis: the key was not ours any more");
  }

 private:
  Connection connection_;
  const std::string name_, owner_;
  std::string script_;
};

}  // namespace

Contender redis_contender(const Field& field) {
  return {"redis", field.one_name ? 1 : field.threads, [where = field.redis](const std::vector<std::string>& names) {
            std::vector<std::unique_ptr<Client>> clients;
            for (const auto& name : names)
              clients.push_back(std::make_unique<RedisClient>(where, name, clients.size()));
            return clients;
          }};
}

std::string redis_setup(const std::string& where) {
  Connection connection(where);
  const auto info = connection.send<2>({"INFO", "server"});
  const std::string text(info->str, info->len);
  const std::string key = "redis_version:";
  const auto begin = text.find(key);
  auto setup =
      "Redis " +
      (begin == std::string::npos ? "" : text.substr(begin + key.size(), text.find('\r', begin) - begin - key.size()));
  for (const std::string_view setting : {"appendonly", "appendfsync"}) {
    const auto found = connection.send<3>({"CONFIG", "GET", setting});
    if (found->elements == 2) setup += fmt::format(", {} {}", setting, found->element[1]->str);
  }
  return setup;
}

}  // namespace bench

#endif

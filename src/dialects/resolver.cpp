// getaddrinfo(3) on threads that are left to themselves when they take too long: one for all who ask for the same host.
#include "dialects/resolver.hpp"

#include "types/failure.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <exception>
#include <system_error>

namespace dlock::dialects {
namespace {

struct FreeList {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

std::string in_words(int code, int system) {
  return code == EAI_SYSTEM ? std::generic_category().message(system) : ::gai_strerror(code);
}

}  // namespace

Resolver::Found Resolver::look_up(const std::string& host) try {
  Found found;
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &wanted, &list);
  const int system = errno;
  if (code != 0) {
    found.trouble = in_words(code, system);
    return found;
  }
  const std::unique_ptr<addrinfo, FreeList> owned(list);
  std::array<char, NI_MAXHOST> numeric{};
  for (const auto* one = list; one != nullptr; one = one->ai_next)
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, numeric.data(), numeric.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      found.addresses.emplace_back(numeric.data());
  return found;
} catch (const std::exception& failure) { return {{}, failure.what()}; }

bool is_address(const std::string& host) noexcept {
  in6_addr six{};
  in_addr four{};
  const auto zone = host.find('%');  // fe80::1%eth0
  if (zone != std::string::npos) return host.find(':') < zone;
  return ::inet_pton(AF_INET, host.c_str(), &four) == 1 || ::inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

// One for all who ask for the same host at the same time, so that one that hangs takes no more than one thread.
std::shared_ptr<Resolver::Lookup> Resolver::lookup(const std::string& host) {
  const MutexLock guard(mutex_);
  std::erase_if(lookups_, [](const auto& entry) { return entry.second->over(); });
  auto& known = lookups_[host];
  if (known) return known;
  try {
    known = Lookup::start([host] { return look_up(host); });
    return known;
  } catch (const std::system_error& error) {
    lookups_.erase(host);
    throw Failure(Cause::refused, fmt::format("the host {} cannot be looked up: no thread could be started: {}",
                                              in_quotes(host), error.code().message()));
  }
}

std::vector<std::string> Resolver::addresses_of(const std::string& host, const Deadline& deadline) {
  if (is_address(host)) return {host};
  const auto asked = lookup(host);
  const auto* found = asked->await(
      planted("lookup_outlasts_deadline") ? Deadline(later(deadline.at(), std::chrono::seconds{20})) : deadline);
  if (found == nullptr)
    throw Failure(Cause::refused, fmt::format("the host {} was not found in time", in_quotes(host)));
  if (found->addresses.empty())
    throw Failure(Cause::refused, fmt::format("the host {} was not found: {}", in_quotes(host),
                                              found->trouble.empty() ? "it has no address" : found->trouble));
  return found->addresses;
}

}  // namespace dlock::dialects

// The URLs of SQLite, sqlite:PATH and sqlite:///absolute/path: which options there are, and which paths are refused;
// and which file systems are of a network.
#include "file.hpp"

#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <sys/vfs.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

namespace dlock::dialects::sqlite {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(Fault::misuse, what); }

// One of a few words, written in any case.
std::string word_of(std::string_view option, std::string_view value, std::initializer_list<std::string_view> known) {
  std::string lower(value);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  std::string list;
  for (const auto word : known) {
    if (word == lower) return lower;
    list += list.empty() ? "" : ", ";
    list += word;
  }
  refuse(
      fmt::format("the option {}={} of the URL is unknown; {} is one of {}", option, in_quotes(value), option, list));
}

}  // namespace

File file_of(const Url& url) {
  if (url.has_authority && (!url.hosts.empty() || url.user))
    refuse(fmt::format("the URL has the host {}, but {} is a file on this host: write {}:PATH or {}:///absolute/path",
                       in_quotes(url.hosts), url.scheme, url.scheme, url.scheme));
  if (url.path.empty() || url.path == "/")
    refuse(fmt::format("the URL {}:{} names no file: write {}:PATH or {}:///absolute/path", url.scheme, url.path,
                       url.scheme, url.scheme));
  if (url.path == ":memory:" || url.path.starts_with("file:"))
    refuse(
        fmt::format("the URL {}:{} is not supported: a database in memory belongs to one connection, so nobody else "
                    "could see its locks; write {}:PATH",
                    url.scheme, url.path, url.scheme));
  File file;
  for (const auto& [key, value] : url.options) {
    if (key == "synchronous") file.synchronous = word_of(key, value, {"off", "normal", "full", "extra"});
    else if (key == "mode") file.read_only = word_of(key, value, {"rw", "ro"}) == "ro";
    else
      refuse(fmt::format("the option {} of the URL is unknown; {} knows synchronous and mode", in_quotes(key),
                         url.scheme));
  }
  for (char& c : file.synchronous)
    if (c >= 'a') c = static_cast<char>(c - 'a' + 'A');
  std::error_code error;
  file.path = std::filesystem::absolute(url.path, error).string();
  if (error) refuse(fmt::format("the path {} cannot be resolved: {}", in_quotes(url.path), error.message()));
  return file;
}

std::string network_file_system(const std::string& path) {
  // By its path: to open the file and close it again would drop every lock this process has on it.
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return {};
  static constexpr std::array<std::pair<unsigned long, const char*>, 9> known{{{0x6969, "NFS"},
                                                                               {0x517B, "SMB"},
                                                                               {0xFE534D42, "SMB2"},
                                                                               {0xFF534D42, "CIFS"},
                                                                               {0x00C36400, "Ceph"},
                                                                               {0x01021997, "9p"},
                                                                               {0x5346414F, "AFS"},
                                                                               {0x0BD00BD0, "Lustre"},
                                                                               {0x65735546, "FUSE"}}};
  const auto magic = static_cast<unsigned long>(info.f_type) & 0xFFFFFFFFUL;
  for (const auto& [number, name] : known)
    if (magic == number) return name;
  return {};
}

}  // namespace dlock::dialects::sqlite

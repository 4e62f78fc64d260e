// Which two statements each kind of raw peer is made of.
#pragma once

#include "dialects/statement.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace bench {

// The arguments of every acquire begin the same way, and so do those of every release: some peers need fewer.
struct RawPair {
  dlock::dialects::Statement acquire, release;
  std::optional<dlock::dialects::Statement>
      first{};  // is asked before `acquire`, which only follows where it grants nothing
};

// `ours`: what the engine sends; `theirs`: the texts of the other peers.
inline RawPair raw_pair(std::string_view word, const dlock::dialects::Statements& ours,
                        const dlock::dialects::Statements& theirs) {
  if (word == "raw") {
    RawPair pair{ours.at("acquire", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta", "ticket"}),
                 ours.at("release", {"name", "owner", "token"})};
    if (ours.has("acquire_free"))
      pair.first = ours.at("acquire_free", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta"});
    return pair;
  }
  if (word == "naive")
    return {theirs.at("naive_acquire", {"name", "owner", "node", "label", "actor", "lease"}),
            theirs.at("naive_release", {"name", "owner", "token"})};
  const std::string name(word);
  return {theirs.at(name + "_acquire", {"name"}), theirs.at(name + "_release", {"name"})};
}

}  // namespace bench

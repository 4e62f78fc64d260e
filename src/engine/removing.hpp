// What takes rows and grants away, whosever they are.
#pragma once

#include "engine/context.hpp"
#include "engine/inspector.hpp"
#include "engine/lease/lingering.hpp"

#include <dlock/engine.hpp>
#include <dlock/reaping.hpp>

#include <cstddef>
#include <stop_token>
#include <string_view>

namespace dlock::engine {

// Threads: any.
class Remover {
 public:
  Remover(Context& context, Lingering& lingering, Inspector& inspector) noexcept
      : context_(context), lingering_(lingering), inspector_(inspector) {}

  bool force_release(const Name& name, Token seen, std::string_view reason);
  // The row of one name that nobody uses, in the two steps of the reaper. `row`: what was seen of it, if it stays.
  Removal remove(const Name& name, Holder* row, const std::stop_token& stop);
  Engine::Reaped reap(std::size_t batch);
  Engine::Reaped reap_all(const Reaping& reaping, const std::stop_token& stop);

 private:
  Removal look_and_remove(const Name& name, Holder* row, const std::stop_token& stop, Doubt& doubt);

  Context& context_;
  Lingering& lingering_;
  Inspector& inspector_;
};

}  // namespace dlock::engine

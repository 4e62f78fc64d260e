// The release of all that an engine holds.
#pragma once

#include "engine/context.hpp"
#include "engine/lease/late_attempts.hpp"
#include "engine/lease/lingering.hpp"
#include "engine/lease/releasing.hpp"

#include <dlock/engine.hpp>

#include <vector>

namespace dlock::engine {

// Once. Threads: one. Once it is taken a lease is nobody's here, whatever becomes of its row.
class ReleaseOfAll {
 public:
  ReleaseOfAll(Context& context, Releaser& releaser, Lingering& lingering, LateAttempts& late_attempts, Instant until)
      : context_(context), releaser_(releaser), lingering_(lingering), late_attempts_(late_attempts), until_(until) {}

  Engine::ReleasedAll operator()();

 private:
  void take();
  void send_together();
  void send(std::vector<ReleaseRequest>& batch);
  void send_alone();
  void send(ReleaseRequest& one);
  void end(const ReleaseRequest& one, Released released);

  Context& context_;
  Releaser& releaser_;
  Lingering& lingering_;
  LateAttempts& late_attempts_;
  const Instant until_;
  std::vector<ReleaseRequest> taken_{}, alone_{};
  Engine::ReleasedAll released_{};
};

}  // namespace dlock::engine

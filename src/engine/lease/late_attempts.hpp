// What is done about attempts that got no answer and may be granted something yet.
#pragma once

#include "engine/context.hpp"
#include "engine/grant_request.hpp"

#include <string>

namespace dlock::engine {

// Threads: any.
class LateAttempts {
 public:
  explicit LateAttempts(Context& context) noexcept : context_(context) {}

  // What the request may have been granted, or may be yet, is freed by the renewer.
  void free_later(const GrantRequest& request);
  // Frees what a late attempt of this engine holds: its grant is nobody's. False: it is somebody's, or free.
  bool free_late_grant(const Name& name, const Deadline& deadline);
  bool free_late_grant(const Name& name, const store::Availability& availability, const Deadline& deadline);
  // An attempt at it that got no answer may be granted the name once more, when it is somebody else's turn.
  void expect(const Lease& held);
  // Of an exclusive grant the row itself remembers who gave it back. Where others hold the name beside it, that has to
  // be said.
  void bar(const Lease& held, const Deadline& deadline) noexcept;
  // A hand-over to somebody who has given up may still take effect. Once the row is free of its first holder it cannot;
  // then the heir's name is taken out of it.
  void disown(const Lease& held, const std::string& heir);

 private:
  Context& context_;
};

}  // namespace dlock::engine

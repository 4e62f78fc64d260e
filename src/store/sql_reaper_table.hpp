// How the reaper's questions reach the database: as statements on a connection of the pool.
#pragma once

#include "dialects/dialect.hpp"
#include "store/reaper_table.hpp"
#include "store/release_notice.hpp"
#include "types/row.hpp"

#include <functional>
#include <initializer_list>

namespace dlock::store {

// Must not outlive what it is given.
class SqlReaperTable final : public ReaperTable {
 public:
  // Does work on a connection, which is given back after it. The deadline is for one short request.
  using Work = std::function<void(dialects::Connection&, const Deadline&)>;
  using OnConnection = std::function<void(const Deadline&, const Work&)>;

  // `all` is the dialect's lock.sql.
  SqlReaperTable(const dialects::Statements& all, RemovalPace removal_pace, ReleaseNotice& notice,
                 OnConnection on_connection);

  bool begin_reaping(std::string_view reaper, std::string_view label, Duration lease, Duration pause,
                     Deadline deadline) override;
  void end_reaping(std::string_view reaper, Duration pause, Deadline deadline) override;
  std::vector<Abandoned> abandoned(const Some& some, Deadline deadline) override;
  bool settle(std::string_view name, Token token, std::string_view settler, Deadline deadline) override;
  Settled settled(std::string_view name, Token token, std::string_view settler, Deadline deadline) override;
  Token raise_floor(Duration retention, Deadline deadline) override;
  Token raise_floor_to(Token least, Deadline deadline) override;
  std::vector<Idle> idle(const Some& some, Token floor, Duration retention, Deadline deadline) override;
  std::optional<Idle> idle_row(std::string_view name, Deadline deadline) override;
  std::size_t remove_idle(std::span<const Idle> rows, Deadline deadline) override;
  RemovalPace removal_pace() const noexcept override { return removal_pace_; }
  std::vector<DeadHolder> dead_holders(const Some& some, std::string_view after_owner, Deadline deadline) override;
  std::vector<DeadHolder> dead_holders_of(std::string_view name, std::string_view after_owner, std::size_t limit,
                                          Deadline deadline) override;
  bool forget_holder(const DeadHolder& dead, Deadline deadline) override;
  bool has_holder(const DeadHolder& dead, Deadline deadline) override;
  void forget_holders(std::span<const DeadHolder> dead, Deadline deadline) override;
  HistoryPiece count_history(std::size_t keep, std::int64_t after, std::size_t batch, Deadline deadline) override;
  std::size_t trim_history(std::size_t keep, std::size_t batch, Deadline deadline) override;

 private:
  using Read = std::function<void(const Answer&)>;
  void ask(const dialects::Statement& statement, std::initializer_list<Argument> arguments, Deadline deadline,
           const Read& read) const;
  // The same for what reads or writes many rows, which takes its time.
  void scan(const dialects::Statement& statement, std::initializer_list<Argument> arguments, Deadline deadline,
            const Read& read) const;
  Token floor(Deadline deadline) const;
  // The newest row of history that is more than `keep`.
  std::optional<std::int64_t> last_to_trim(std::size_t keep, Deadline deadline) const;

  const RemovalPace removal_pace_;
  ReleaseNotice& notice_;
  const OnConnection on_connection_;
  const dialects::Statement &begin_reaping_, &end_reaping_, &abandoned_, &settle_, &settled_, &floor_, &raise_floor_,
      &raise_floor_to_, &idle_, &idle_row_, &remove_idle_, &dead_holders_, &dead_holders_of_, &forget_holder_,
      &has_holder_, &forget_holders_, &history_above_, &history_count_, &trim_history_;
};

}  // namespace dlock::store

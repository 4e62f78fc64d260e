// How the insert id of a statement becomes its answer.
#include "dialects/mysql/connection.hpp"

namespace dlock::dialects::mysql {

// What a trigger on the table does hides the id from the client, and not from the session: then it is asked for. So nothing
// that changes a row may leave an id of 0 but to say that it was in vain; of a statement that tells whether somebody waits it
// is 1 or 2.
void ServerConnection::tell_insert_id(bool wanted, Deadline deadline) {
  const auto affected = answer_.affected;
  if (insert_id_ == 0 && affected > 0) {
    try {
      query("SELECT LAST_INSERT_ID()", deadline);
    } catch (const Failure& failure) {  // what was asked before has been done
      throw Failure(failure.cause(), failure.what(), failure.code(), true);
    }
    insert_id_ = static_cast<std::uint64_t>(answer_.integer(0, 0));
  }
  answer_.reset(1);
  answer_.affected = affected;
  const auto said = wanted && insert_id_ > 0 ? insert_id_ - 1 : insert_id_;
  if (said != 0) answer_.next() = static_cast<std::int64_t>(said);
}

}  // namespace dlock::dialects::mysql

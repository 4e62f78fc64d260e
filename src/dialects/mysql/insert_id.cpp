// How the insert id of a statement becomes its answer.
#include "dialects/mysql/connection.hpp"

namespace dlock::dialects::mysql {

// What a trigger on the table does hides the id from the client, and not from the session. So it is asked for: by a
// statement of its own where the session is this connection's, and else in the text of the statement (insert_id_too).
// Whatever changes a row, or finds it as it is to be, sets the id, so that it is never that of an earlier statement; 0
// says that it was in vain, and where it tells of those who wait it is one more than that.
void ServerConnection::tell_insert_id(bool wanted, Deadline deadline) {
  const auto affected = answer_.affected;
  if (affected == 0) {
    insert_id_ = 0;
  } else if (prepare_ && insert_id_ == 0) {
    try {
      query("SELECT LAST_INSERT_ID()", deadline);
    } catch (const Failure& failure) {  // what was asked before has been done
      throw Failure(failure.cause(), failure.what(), failure.code(), true);
    }
  }
  if (affected > 0 && answer_.rows() > 0) insert_id_ = static_cast<std::uint64_t>(answer_.integer(0, 0));
  answer_.reset(1);
  answer_.affected = affected;
  const auto said = wanted && insert_id_ > 0 ? insert_id_ - 1 : insert_id_;
  if (said != 0) answer_.next() = static_cast<std::int64_t>(said);
}

}  // namespace dlock::dialects::mysql

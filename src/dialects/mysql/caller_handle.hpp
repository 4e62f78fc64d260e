// What the client library knows of a caller's own connection: whether it is there, whether an answer is left to read on
// it, and whether a transaction is open.
#pragma once

#include "dialects/caller_connection.hpp"

#include <mysql.h>

#include <string_view>

namespace dlock::dialects::mysql {

// Runs a statement and reads its answer. Throws Failure.
TextRow ask(MYSQL* connection, std::string_view sql);

// As far as the client library knows.
bool is_alive(MYSQL* connection) noexcept;

// As the last answer has said. What fails does not say it.
bool in_transaction(MYSQL* connection);
bool commits_by_itself(MYSQL* connection);

// Throws NothingToSpoil where an answer is left to read; a connection on which it would be taken for the answer to the
// next statement is ended.
void check_read(MYSQL* connection);
// The same where the connection is gone: what the client library remembers of one is of no use. Throws
// Failure{rejected}, once, where another session would take the place of one that is gone, or was ended here, and store
// what is sent next by itself: from then on none does.
void check_ready(MYSQL* connection);

// What is sent next fails, and then the client library knows; but for a result that is still in somebody's hands.
void end(MYSQL* connection) noexcept;

// Nothing has come since something was sent: that needs no answer, or has not been asked for its answer.
bool owes_perhaps(MYSQL* connection);
// Throws NothingToSpoil, and ends the connection, where the answer that comes is another one's.
void check_in_step(MYSQL* connection);

// What is left unread would be in the way of every statement, and the transaction would stay open. A result that the
// caller still has in its hands cannot be read to its end here: then the connection goes. Sends nothing.
void drain(MYSQL* connection) noexcept;
// The same, and ends a connection on which an answer would be taken for another one's.
void clear_the_way(MYSQL* connection) noexcept;

}  // namespace dlock::dialects::mysql

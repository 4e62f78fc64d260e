// A pool of workers that shares a table of tasks with any number of other processes: each task is done once. SIGTERM
// ends it within a second, also where the database does not answer.
//
//   dlock-migrate -u "$DATABASE_URL" up
//   psql "$DATABASE_URL" -c 'create table task (id integer primary key, done_under bigint)'
//   worker_pool "$DATABASE_URL"
#include <dlock/dlock.hpp>
#include <dlock/libpq.hpp>

#include <libpq-fe.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>
using namespace std::chrono_literals;

namespace {

// What the end may take, in this order: a transaction under way, a release, the engine. Together less than a second.
constexpr auto transaction_time = 250ms, release_time = 150ms, request_time = 400ms;

void say(const std::string& text) {
  std::ostringstream line;
  line << text << '\n';
  std::cout << line.str() << std::flush;
}

// Sleeps, unless it is stopped.
void pause(std::chrono::milliseconds length, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock guard(mutex);
  never.wait_for(guard, stop, length, [] { return false; });
}

// A worker's own connection. libpq's calls block for as long as the server is silent; to hang up ends them.
class Connection {
 public:
  Connection(const std::string& url, const std::stop_token& stop, const std::stop_token& hang_up)
      : connection_(PQconnectStart(url.c_str()), PQfinish) {
    auto wanted = PGRES_POLLING_WRITING;
    while (wanted != PGRES_POLLING_OK) {
      if (wanted == PGRES_POLLING_FAILED) throw std::runtime_error(PQerrorMessage(get()));
      if (stop.stop_requested()) throw std::runtime_error("stopped while it connected");
      pause(5ms, stop);
      wanted = PQconnectPoll(get());
    }
    socket_.emplace(PQsocket(get()));
    hang_up_.emplace(hang_up, HangUp{socket_->number});
  }

  PGconn* get() const { return connection_.get(); }

  // The first column of what a statement answers.
  std::vector<std::string> run(const std::string& sql) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(get(), sql.c_str()), PQclear);
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) throw std::runtime_error(PQerrorMessage(get()));
    std::vector<std::string> column;
    for (int row = 0; row < PQntuples(result.get()); ++row) column.emplace_back(PQgetvalue(result.get(), row, 0));
    return column;
  }

 private:
  // A number of our own for the same socket: libpq may close its own at any error, and it would be somebody else's
  // next.
  struct Socket {
    const int number;
    explicit Socket(int other) : number(::dup(other)) {
      if (number < 0) throw std::system_error(errno, std::generic_category(), "dup");
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket() { ::close(number); }
  };
  struct HangUp {
    int socket;
    void operator()() const { ::shutdown(socket, SHUT_RDWR); }
  };
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  std::optional<Socket> socket_;
  std::optional<std::stop_callback<HangUp>> hang_up_;  // gone before the socket is
};

// Deep inside of a task, where nobody knows what is locked already: the same job enters what it holds.
void note(dlock::Engine& locks, const std::string& name) {
  const auto lock = locks.try_lock(name);
  say(name + " is done by job " + std::string(dlock::Job::current().name()));
}

// Does the task if nobody else has it. It counts as done only if the lock was ours up to the commit.
void do_task(dlock::Engine& locks, Connection& db, const std::string& id, const std::stop_token& stop) {
  const dlock::Job::Scope here(dlock::Job::unique("task"));  // a task is no other's, whatever ran on this thread before
  const auto name = "task/" + id;
  auto lock = locks.try_lock_for(name, 0s, {}, stop);
  if (!lock) return;  // somebody else does it, or it is time to go: no error
  const auto token = std::to_string(dlock::number(lock->token()));
  bool mine = false;
  lock->with_fence(db.get(), [&] {
    mine =
        !db.run("update task set done_under = " + token + " where id = " + id + " and done_under is null returning id")
             .empty();
    db.run("select pg_sleep(0.01)");  // the work, of which what is in this transaction is stored once
  });
  if (mine) note(locks, name);
}

void work(dlock::Engine& locks, const std::string& url, const std::stop_token& stop, const std::stop_token& hang_up) {
  std::optional<Connection> db;
  while (!stop.stop_requested()) try {
      if (!db) db.emplace(url, stop, hang_up);
      const auto open = db->run("select id from task where done_under is null order by random() limit 10");
      for (const auto& id : open)
        if (!stop.stop_requested()) do_task(locks, *db, id, stop);
      if (open.empty()) pause(100ms, stop);
    } catch (
        const std::exception& error) {  // dlock::Error too: whatever it was, the task is still there, or it is done
      if (!stop.stop_requested()) std::cerr << error.what() << '\n';
      db.reset();
      pause(500ms, stop);
    }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: worker_pool postgresql://…");
  const std::string url = argv[1];
  // Before there are threads, so that none of them is interrupted: the main thread waits for the signal.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  dlock::Engine locks(url, {.timeouts = {.request = request_time, .release = release_time}});
  std::stop_source stop, hang_up;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) workers.emplace_back([&] { work(locks, url, stop.get_token(), hang_up.get_token()); });
    say("4 workers");
    int signal = 0;
    sigwait(&signals, &signal);
    stop.request_stop();                            // ends waits at once; nobody begins another task
    std::this_thread::sleep_for(transaction_time);  // for what is under way
    hang_up.request_stop();                         // a commit without an answer: stored or not, but never half of it
  }
  say("ended");
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

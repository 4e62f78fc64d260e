// What a test may ask of a database: one of its own, and means to look behind the engine's back.
// Each folder under tests/openers is one database; nothing else in the tests knows which there are.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace soci {
class session;
}

namespace dlock::test {

// A way to begin a transaction.
struct Beginning {
  std::string name{};
  std::vector<std::string> statements{};
  bool early_snapshot = false;  // what it reads first decides what it sees; else each statement sees what is committed
};

// An empty database of its own for one test case. Removed, with all that is in it, by the destructor.
class TestDatabase {
 public:
  virtual ~TestDatabase() = default;

  // As an application would write it.
  virtual std::string url() const = 0;

  // The shell command of the database's own client, which runs the script on its standard input and fails with it.
  virtual std::string client() const = 0;

  // A new administrative connection.
  virtual std::unique_ptr<soci::session> connect() const = 0;

  // A text that is another one after anything was written, as near to this database as can be told: on a server by
  // anybody, so that it tells something on a quiet server only.
  virtual std::string written() = 0;

  // The statement that opens a transaction which is going to write.
  virtual std::string begin_writing() const = 0;

  // Every way a caller's transaction can be begun; the first is the recommended one.
  virtual std::vector<Beginning> beginnings() const = 0;

  // A query whose answer is everything in a session that whoever is let in must leave alone, in one text.
  virtual std::string session_state() const = 0;

  // Settings an application may have made in its session, which a careless one would trip over.
  virtual std::vector<std::string> odd_session() const = 0;

  // A name that a careless statement would trip over, for a column that can be guarded.
  virtual std::string odd_column() const { return R"(l"a's`t \ {{column}} %s ü)"; }

  // Whether a connection here reaches what is in other databases of the same server, by its full name.
  virtual bool reaches_others() const { return false; }

  // A query that answers what one of the statements that last wrote rows of a table has written, in that order, as a
  // comma-separated list of this column; with OFFSET 1 and so on behind it, another one. Empty where nothing tells it.
  virtual std::string written_together(std::string_view, std::string_view) const { return {}; }

  // The statement that names every column of the lock table, in a form that can be compared.
  virtual std::string row_of(std::string_view literal_name) const = 0;
};

// Where a server listens.
struct Address {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};

// Tells where requests begin in what one client sends. One object a connection.
class RequestCounter {
 public:
  virtual ~RequestCounter() = default;
  virtual std::size_t feed(std::string_view sent) = 0;
};

// Undoes a transaction in the middle of one request of several statements, as a server of a cluster does without
// telling anybody: what came before in it is gone, what comes later runs. One object a connection.
class Undoer {
 public:
  // Between which two of its statements the next such request is undone, counted from the one that begins the
  // transaction; and then how many such places it had.
  struct Order {
    std::optional<std::size_t> gap{};
    std::size_t gaps = 0;
  };

  virtual ~Undoer() = default;
  // What the server is to get instead, now.
  virtual std::string feed(std::string_view sent, Order& order) = 0;
};

// A way in which another session keeps a whole table from being written, while none of its rows is locked.
struct TableLock {
  std::string name{};
  std::vector<std::string> lock{};
  std::string unlock{};
  bool reads = false;  // the table can be read meanwhile
  std::string told{};  // what the engine says of it
};

struct OddClock {
  std::vector<std::string> statements{};
  bool counts = false;
};

// One on a server: it is reached over a network, and has a clock and roles of its own.
class ServerTestDatabase : public TestDatabase {
 public:
  virtual Address address() const = 0;
  virtual std::unique_ptr<RequestCounter> request_counter() const = 0;
  // Null: a transaction that this server undoes is always told of.
  virtual std::unique_ptr<Undoer> undoer() const { return nullptr; }

  // The same database through another door, in the clear, whatever the server offers: who stands in the door can count
  // what is asked.
  virtual std::string url_at(const Address& door) const = 0;
  // The same, with TLS where the server offers it, as is the default.
  virtual std::string url_preferring_tls_at(const Address& door) const = 0;
  // As connect().
  virtual std::unique_ptr<soci::session> connect_at(const Address& door) const = 0;
  // Every way to lock a table of this name.
  virtual std::vector<TableLock> table_locks(std::string_view table) const = 0;
  // The doors to the same database on the other servers of a cluster, all of which take writes.
  virtual std::vector<Address> peers() const { return {}; }
  // Returns once they know everything that was committed here before.
  virtual void await_peers() const {}
  virtual std::string url_with_tls_at(const Address& door) const = 0;
  // The server's certificate is checked against this authority, and its name against the door's.
  virtual std::string url_verified_at(const Address& door, const std::string& authority) const = 0;
  // The same database by the unix socket of its server, which is on this machine.
  virtual std::string url_by_socket() = 0;
  // The ways to log in that this server knows, and has the role that was made last use one of them.
  virtual std::vector<std::string> ways_to_log_in() const = 0;
  virtual void use_way_to_log_in(const std::string& way, const std::string& password) = 0;
  // How many bytes a client has to send before it can know that the server has no TLS.
  virtual std::size_t bytes_before_tls() const = 0;

  // The URL of a new role that has nothing but these rights on the tables ("SELECT", "INSERT", …).
  virtual std::string url_of_role(const std::vector<std::string>& rights) = 0;
  // From now on the role that was made last logs in with this password: any bytes of UTF-8 but 0.
  virtual void use_password(const std::string& password) = 0;

  // Ends every connection to this database but the administrative ones. Works after a crash of the server, too.
  virtual void disconnect_everybody() = 0;

  // The zone new connections begin with.
  virtual void use_time_zone(std::string_view zone) = 0;

  // Whether a statement in this database waits now for a lock of another session.
  virtual bool somebody_waits() = 0;

  // Another door of the same database: a pooler that lends a connection for one transaction; empty where databases are
  // not used in that way. The pooler ends with the database.
  virtual std::optional<Address> pooler() = 0;
  // Queries whose answers tell what a client has left in the session that a pooler lent it, but for what the pooler
  // itself passes on.
  virtual std::vector<std::string> session_traces() const { return {}; }
  // From now on whoever writes the lock table finds nothing in its session that it had prepared, as if a pooler had
  // lent it another one. False: here that would hurt nobody.
  virtual bool forget_prepared() { return false; }
  // The same, but it finds there what others have prepared under the names that it is going to use next.
  virtual bool take_prepared_names() { return false; }
  // Whether a client that has sent this had a statement prepared.
  virtual bool has_prepared(std::string_view sent) const = 0;
  // A query, to be asked in a transaction, for how long that may be idle before the server ends it. Empty where that is
  // not bounded, or not for a caller's own transaction.
  virtual std::string idle_bound() const { return {}; }
  // The statement that bounds it for a session.
  virtual std::string bind_idle(std::chrono::seconds bound) const = 0;
  // What a careless driver does with a connection (as TransactionRef has it): it sends something, and reads no answer,
  // or not all of it; in so many ways.
  virtual int ways_to_leave_unread() const = 0;
  virtual void leave_unread(void* connection, int way) const = 0;
  // Prepares a statement on such a connection, runs it, and closes it, whether or not it fails. Throws std::exception.
  virtual void run_prepared(void* connection, const std::string& sql) const = 0;
  // The statement that makes a procedure, and the one that calls it, which begins a transaction, inserts 9 into app and
  // fails, so that the client is not told of the transaction. Empty: what fails leaves none open.
  virtual std::vector<std::string> begin_in_what_fails() const { return {}; }
  // Settings of a session that have the end of one transaction begin another, or end the session.
  virtual std::vector<std::string> odd_ends() const { return {}; }
  // Whether the server ends a transaction that with_fence has begun when its client is silent for longer than the
  // lease.
  virtual bool ends_silent_work() const { return true; }
  // Statements that give a session another clock than the server has, and whether a lease would count by it.
  virtual std::vector<OddClock> odd_clocks() const = 0;
  // The statement that stops the clock of a session. Empty: there is none.
  virtual std::string stop_clock() const { return {}; }
  // The statement after which a session answers queries with no rows. Empty: there is none.
  virtual std::string answer_nothing() const { return {}; }
  // Has the client library open another session where that of a connection (as TransactionRef has it) is gone. False:
  // it never does.
  virtual bool begin_anew(void* /*connection*/) const { return false; }
  // The statement that sets how long a session waits for locks of others to something unusual, and the query for it.
  virtual std::string wait_for_locks() const = 0;
  virtual std::string lock_wait() const = 0;
  // The statement that sets a session to wait no longer than a second for a locked row, where a fence in it waits as
  // the session does. Empty where the engine bounds that.
  virtual std::string wait_briefly() const { return {}; }
  // The statement that takes so long.
  virtual std::string sleep_for(std::chrono::seconds time) const = 0;
  // How many locks the sessions in this database have now, but for those of the one that asks.
  virtual long long locks_held() = 0;

  // From now on new connections begin with defaults that a careless statement would trip over.
  virtual void use_odd_defaults() = 0;
  // The same, without those that an engine has to set in its sessions and cannot bring along with each statement.
  virtual void use_odd_defaults_for_all() = 0;

  // Defaults, each of which a careless migration would trip over. While one is set, by `set_default`, it is that of new
  // connections. For the whole server: a private one.
  virtual std::vector<std::string> defaults_in_the_way() const = 0;
  virtual void set_default(const std::string& setting, bool yes) = 0;

  // Whatever is written to the lock table fails with what the server says in that case, until fail_no_more().
  enum class Mishap { deadlock, serialization, lock_wait };
  virtual void fail_writes(Mishap mishap) = 0;
  virtual void fail_no_more() = 0;

  // Whether the server takes writes from roles that may not override it. For the whole server: a private one.
  virtual void take_writes(bool yes) = 0;

  // Whether commits can wait for a standby, and succeed although somebody has cancelled that.
  virtual bool has_standbys() const { return false; }
  // From now on every commit waits for a standby that is not there, and new sessions hear of nothing less than an error
  // unless they ask to. For the whole server: a private one.
  virtual void await_standby() {}
  virtual void await_standby_no_more() {}
  // How many commits in this database wait so now, and the end of their waiting, as an administrator would bring it
  // about.
  virtual long long commits_waiting() { return 0; }
  virtual void cancel_waiting_commits() {}

  // Has this server follow another as its standby; both are Opener::replicating_server's. Answers when it does. What
  // was in it may be gone then.
  virtual void follow(ServerTestDatabase& /*primary*/) {}
  // Its commits wait from now on until a standby has them: with whoever follows it after that.
  virtual void wait_for_followers() {}

  // Sets the server so that it may forget in a crash what it has acknowledged; answers the setting's name.
  virtual std::string make_forgetful() = 0;

  // Another URL of the same database. From hold_back() on, each acquire through it stops between reading its token and
  // writing its row, until let_go().
  virtual std::string url_to_hold_back() = 0;
  virtual void hold_back() = 0;
  virtual void let_go() = 0;
  // Whether that tells an acquire which inserts its row what it would have been told without. Where it does not, only
  // one that finds its row can be held back.
  virtual bool can_hold_back_inserts() const { return true; }
  // Whether an acquire is being held back now.
  virtual bool holding_back() = 0;
  // Whether the server undoes by itself what has read a row that was changed since; then it is asked again.
  virtual bool undoes_overtaken() { return false; }

  // Another URL of the same database. From hold_writes() on, whoever comes through it stops before it writes a row of
  // this table in this way ("INSERT", "UPDATE", "DELETE"), until let_go(); holding_back() tells whether one does. Once
  // a database.
  virtual std::string url_to_hold_writes() = 0;
  virtual void hold_writes(const std::string& table, const std::string& way) = 0;
};

// A server that its administrator has set so that grants may be forgotten, or replicated as others.
struct WeakServer {
  std::string arguments{};                // of its command line
  std::vector<std::string> statements{};  // once it runs
  std::string setting{};
  bool refused = false;  // nothing is granted there; else it is said when an engine opens
};

// A server of one test alone, whose clock can be stepped and which can be stopped.
class PrivateServer {
 public:
  virtual ~PrivateServer() = default;
  virtual std::unique_ptr<ServerTestDatabase> test_database() = 0;
  // The file of the authority that vouches for it, if it offers TLS. It does so for the name localhost.
  virtual std::string authority() const = 0;
  // Makes the server's clock differ by this much from the true one.
  virtual void step_clock(std::chrono::seconds offset) = 0;
  virtual void stop() = 0;    // as a crash would
  virtual void start() = 0;   // again, at the same address
  virtual void freeze() = 0;  // its processes are stopped, its connections stay
  virtual void thaw() = 0;
};

// Whether a server offers TLS, and whether the time of its certificate is over.
enum class Tls { none, offered, expired };

// One database under test. An opener defines one constant object of this type, which enters itself into a list.
struct Opener {
  using Missing = std::optional<std::string>();

  Opener(std::string_view name, Missing* missing, std::unique_ptr<TestDatabase> (*test_database)(),
         std::unique_ptr<TestDatabase> (*quiet_database)(), std::unique_ptr<ServerTestDatabase> (*server_database)(),
         std::unique_ptr<PrivateServer> (*private_server)(),
         std::unique_ptr<PrivateServer> (*server_offering)(Tls) = nullptr,
         std::unique_ptr<PrivateServer> (*server_with)(const std::string&) = nullptr,
         std::vector<WeakServer> (*weak_servers)() = nullptr,
         std::unique_ptr<PrivateServer> (*replicating_server)() = nullptr, std::string_view listens_everywhere = {});

  std::string_view name;
  Missing* missing;  // why it cannot be tested here, if it cannot
  std::unique_ptr<TestDatabase> (*test_database)();
  // Where nobody else writes: on a server of this program's own, or on the one that was chosen for the whole run, which
  // is then for the chooser to keep quiet.
  std::unique_ptr<TestDatabase> (*quiet_database)();
  std::unique_ptr<ServerTestDatabase> (*server_database)();  // nullptr where there is no server
  std::unique_ptr<PrivateServer> (*private_server)();        // likewise
  // The same, where it matters what of TLS it offers.
  std::unique_ptr<PrivateServer> (*server_offering)(Tls);
  std::unique_ptr<PrivateServer> (*server_with)(const std::string& arguments);  // the same, with these to its command
  std::vector<WeakServer> (*weak_servers)();
  std::unique_ptr<PrivateServer> (
      *replicating_server)();      // the same, and others of them can follow it; nullptr: not tested
  std::string listens_everywhere;  // for server_with(): at every address of this machine
};

// The opener of the database that DLOCK_TEST_DATABASE names.
const Opener& opener();

}  // namespace dlock::test

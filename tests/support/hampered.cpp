// A process that uses the public face of the library while its system says no: threads cannot be started, no descriptor
// is left, names of hosts are looked up for ever.
//
//   hampered URL REQUEST_TIMEOUT_MS      obeys lines on stdin, with one line for each:
//     open [reaping] [patient]  opens the engine                  "open", or the fault and its text
//     threads no|yes       whether a thread can be started        "ok"
//     close                ends the engine                        "closed"
//     descriptors no|yes|N whether a descriptor can be had, or N  "ok"
//     names no|yes         whether a host can be looked up        "ok"
//     try NAME [long]      one attempt                            "granted", "busy", or the fault and its text
//     async NAME           one attempt, without a wait for it     "ok", or the fault and its text, and "granted NAME"
//     elect NAME           a candidate for the name               "ok", or the fault and its text, and "leads NAME"
//     resign NAME          ends that candidate                    "resigned"
//     stop NAME            a wait that is stopped once it is under way   "stopped" or "granted", and after how many us
//     watch NAME           is told of the loss of what it holds   "ok", and "told NAME" once it is
//     wait NAME            on a thread that is there already      "ok", and "granted NAME" once it is
//     check NAME           what it holds                          "valid" or "lost"
//     release NAME         what it holds                          what became of it, and how long that took in ms
//     drop NAME            destroys what it holds                 "dropped", and how long that took in ms
//     lookups              names looked up by the thread that reads these lines   their number
//     refused              threads that could not be started      their number
//     count                the threads of this process            their number
//     signals              since the process began                "same", or those that are handled otherwise by now
#include <dlock/dlock.hpp>

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace {

std::atomic<bool> threads{true}, names{true};
std::atomic<int> lookups{0}, refused{0};
const auto main_thread = std::this_thread::get_id();

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// In the place of the system's own: the libraries of this process find these first.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) {
  static const auto real = next<decltype(&pthread_create)>("pthread_create");
  if (threads.load()) return real(thread, attributes, run, argument);
  ++refused;
  return EAGAIN;
}

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* wanted, addrinfo** found) {
  static const auto real = next<decltype(&getaddrinfo)>("getaddrinfo");
  // Digits need no name service.
  const std::string_view name = host == nullptr ? "" : host;
  const bool numeric = name.find_first_not_of("0123456789.") == std::string_view::npos;
  if (!numeric && std::this_thread::get_id() == main_thread) ++lookups;
  for (int i = 0; !numeric && !names.load() && i < 30'000; ++i) ::usleep(1000);
  return real(host, service, wanted, found);
}

namespace {

using namespace std::chrono_literals;

void say(const std::string& line) {
  const auto text = line + '\n';
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(3);
}

// So many more than there are now; empty: as many as in the beginning.
void let_descriptors(std::optional<rlim_t> spare) {
  static const auto before = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit;
  }();
  auto limit = before;
  if (spare) {
    const int lowest = ::dup(STDOUT_FILENO);  // the first number that is free; whatever is beyond it stays open
    ::close(lowest);
    limit.rlim_cur = static_cast<rlim_t>(lowest) + *spare;
  }
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

using Dispositions = std::array<void (*)(int), 65>;

Dispositions dispositions() {
  Dispositions all{};
  for (int signal = 1; signal < 65; ++signal) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0) all[static_cast<std::size_t>(signal)] = now.sa_handler;
  }
  return all;
}

// A thread that was started while threads could be.
class Helper {
 public:
  Helper() : thread_([this](const std::stop_token& stop) { run(stop); }) {}
  void ask(std::function<void()> work) {
    const std::lock_guard guard(mutex_);
    work_ = std::move(work);
    changed_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    for (;;) {
      std::unique_lock guard(mutex_);
      if (!changed_.wait(guard, stop, [&] { return static_cast<bool>(work_); })) return;
      const auto work = std::exchange(work_, nullptr);
      guard.unlock();
      work();
    }
  }
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::function<void()> work_;
  std::jthread thread_;
};

class Process {
 public:
  Process(std::string url, dlock::Duration timeout) : url_(std::move(url)), timeout_(timeout) {}

  void obey(const std::string& command, const std::string& what, const std::string& how) {
    try {
      act(command, what, how);
    } catch (const dlock::Error& error) { say(std::string(dlock::to_string(error.fault())) + ": " + error.what()); }
  }

 private:
  void act(const std::string& command, const std::string& what, const std::string& how) {
    const bool yes = what == "yes";
    if (command == "open") {
      dlock::EngineOptions options;
      options.timeouts.request = timeout_;
      if (what == "reaping") options.reaper.every = 100ms;
      if (what == "patient" || how == "patient") options.timeouts.release = 30s;
      engine_.emplace(url_, options);
      say("open");
    } else if (command == "close") {
      engine_.reset();
      say("closed");
    } else if (command == "threads") {
      threads = yes;
      say("ok");
    } else if (command == "descriptors") {
      if (yes) let_descriptors({});
      else let_descriptors(what == "no" ? 0 : std::stoul(what));
      say("ok");
    } else if (command == "names") {
      names = yes;
      say("ok");
    } else if (command == "try") {
      auto lock = engine_->try_lock(what, {.lease = how == "long" ? 10min : 3s, .renew_every = 1s});
      const bool granted = lock.has_value();
      if (granted) keep(what, std::move(*lock));
      say(granted ? "granted" : "busy");
    } else if (command == "async") {
      engine_->async_try_lock(what, {}, [this, what](dlock::Result<dlock::Lock> result) {
        try {
          keep(what, std::move(result).value());
          say("granted " + what);
        } catch (const dlock::Error& error) { say(error.what()); }
      });
      say("ok");
    } else if (command == "elect") {
      dlock::ElectionOptions options;
      options.on_elected = [what](const dlock::Term&) { say("leads " + what); };
      elections_[what] = std::make_unique<dlock::Election>(*engine_, what, options);
      say("ok");
    } else if (command == "resign") {
      elections_.erase(what);
      say("resigned");
    } else if (command == "stop") {
      std::chrono::steady_clock::time_point asked{};
      std::stop_source source;
      std::atomic<bool> over{false};
      helper_.ask([&] {
        while (!over && engine_->stats().requests_in_flight == 0) std::this_thread::sleep_for(1ms);
        asked = std::chrono::steady_clock::now();
        source.request_stop();
      });
      const bool granted = engine_->lock(source.get_token(), what).has_value();
      const auto took = std::chrono::steady_clock::now() - asked;
      over = true;
      while (!source.stop_requested()) std::this_thread::sleep_for(1ms);
      say((granted ? "granted " : "stopped ") +
          std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
    } else if (command == "watch") {
      callbacks_[what] = std::make_unique<Callback>(held(what).lost(), [what] { say("told " + what); });
      say("ok");
    } else if (command == "wait") {
      helper_.ask([this, what] {
        try {
          keep(what, engine_->lock(what));
          say("granted " + what);
        } catch (const dlock::Error& error) { say(error.what()); }
      });
      say("ok");
    } else if (command == "check") {
      say(held(what).valid() ? "valid" : "lost");
    } else if (command == "release") {
      const auto begun = std::chrono::steady_clock::now();
      const auto released = held(what).release();
      say(std::string(dlock::to_string(released)) + took(begun));
    } else if (command == "drop") {
      const auto begun = std::chrono::steady_clock::now();
      {
        const std::lock_guard guard(mutex_);
        locks_.erase(what);
      }
      say("dropped" + took(begun));
    } else if (command == "lookups") {
      say(std::to_string(lookups.load()));
    } else if (command == "refused") {
      say(std::to_string(refused.load()));
    } else if (command == "count") {
      struct stat tasks {};  // a link for each, and two: to read the folder takes a descriptor
      say(std::to_string(::stat("/proc/self/task", &tasks) == 0 ? tasks.st_nlink - 2 : 0));
    } else if (command == "signals") {
      std::string changed;
      const auto now = dispositions();
      for (std::size_t i = 1; i < now.size(); ++i)
        if (now[i] != before_[i]) changed += ' ' + std::to_string(i);
      say(changed.empty() ? "same" : "changed:" + changed);
    } else {
      say("unknown: " + command);
    }
  }

  using Callback = std::stop_callback<std::function<void()>>;

  static std::string took(std::chrono::steady_clock::time_point begun) {
    const auto length = std::chrono::steady_clock::now() - begun;
    return ' ' + std::to_string(std::chrono::ceil<std::chrono::milliseconds>(length).count());
  }

  void keep(const std::string& name, dlock::Lock lock) {
    const std::lock_guard guard(mutex_);
    locks_.insert_or_assign(name, std::move(lock));
  }
  dlock::Lock& held(const std::string& name) {
    const std::lock_guard guard(mutex_);
    return locks_.at(name);
  }

  const std::string url_;
  const dlock::Duration timeout_;
  const Dispositions before_ = dispositions();
  std::optional<dlock::Engine> engine_;
  std::mutex mutex_;
  std::map<std::string, dlock::Lock> locks_;  // guarded by mutex_
  std::map<std::string, std::unique_ptr<Callback>> callbacks_;
  std::map<std::string, std::unique_ptr<dlock::Election>> elections_;
  Helper helper_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::signal(SIGPIPE, SIG_DFL);  // whoever has started this may have a library that has switched it off
  // Never destroyed: an end that waits for what it hampered itself shows nothing.
  auto& process = *new Process(argv[1], std::chrono::milliseconds{std::atoll(argv[2])});
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, what, how;
    words >> command >> what >> how;
    process.obey(command, what, how);
  }
  std::_Exit(0);
}

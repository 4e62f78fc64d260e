// A mutex of this process whose use clang checks: what is GUARDED_BY it is touched by who holds it, and by nobody else.
// For other compilers the words are comments. The test architecture.thread_safety lets clang read them.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define DLOCK_THREAD_ANNOTATION(annotation) __attribute__((annotation))
#else
#define DLOCK_THREAD_ANNOTATION(annotation)
#endif

// The words of clang's manual ("Thread Safety Analysis"), of Abseil and LevelDB.
#define CAPABILITY(name) DLOCK_THREAD_ANNOTATION(capability(name))
#define SCOPED_CAPABILITY DLOCK_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(...) DLOCK_THREAD_ANNOTATION(guarded_by(__VA_ARGS__))
#define REQUIRES(...) DLOCK_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) DLOCK_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) DLOCK_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) DLOCK_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) DLOCK_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(mutex) DLOCK_THREAD_ANNOTATION(assert_capability(mutex))
#define NO_THREAD_SAFETY_ANALYSIS DLOCK_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace dlock {

// std::mutex, which has no annotations in libstdc++. Not to be confused with dlock::Mutex, which is a name in a
// database.
class CAPABILITY("mutex") AnnotatedMutex {
 public:
  constexpr AnnotatedMutex() noexcept = default;
  AnnotatedMutex(const AnnotatedMutex&) = delete;
  AnnotatedMutex& operator=(const AnnotatedMutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() noexcept RELEASE() { mutex_.unlock(); }
  // Tells clang that it is held, where it cannot see that: in a function that is handed to one whose caller holds it.
  void is_held() const noexcept ASSERT_CAPABILITY(this) {}
  bool try_lock() noexcept TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class UniqueMutexLock;
  std::mutex mutex_;
};

// Stands for the mutexes of all objects of a class, where one of them guards members of other objects: clang has no
// name for the one. So it sees that some mutex of that class is held, not whether it is the right one.
class CAPABILITY("mutex of the kind") MutexKind {};

// As std::lock_guard.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(AnnotatedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  // `mutex` is one of that kind.
  MutexLock(AnnotatedMutex& mutex, [[maybe_unused]] const MutexKind& kind) ACQUIRE(mutex, kind) : mutex_(mutex) {
    mutex.lock();
  }
  // It is held already, and is let go of here.
  MutexLock(AnnotatedMutex& mutex, std::adopt_lock_t) REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  AnnotatedMutex& mutex_;
};

// As std::unique_lock, which it is to a condition variable. A predicate of a wait says REQUIRES by itself.
class SCOPED_CAPABILITY UniqueMutexLock {
 public:
  explicit UniqueMutexLock(AnnotatedMutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  // `mutex` is one of that kind.
  UniqueMutexLock(AnnotatedMutex& mutex, [[maybe_unused]] const MutexKind& kind) ACQUIRE(mutex, kind)
      : lock_(mutex.mutex_) {}
  ~UniqueMutexLock() RELEASE() = default;
  UniqueMutexLock(const UniqueMutexLock&) = delete;
  UniqueMutexLock& operator=(const UniqueMutexLock&) = delete;

  void lock() ACQUIRE() { lock_.lock(); }
  void unlock() RELEASE() { lock_.unlock(); }

  // NOLINTNEXTLINE(google-explicit-constructor): std::condition_variable waits with nothing else.
  operator std::unique_lock<std::mutex>&() noexcept { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace dlock

// The whole engine; start reading at <dlock/engine.hpp>.
#pragma once

#include <dlock/credentials.hpp>
#include <dlock/duration.hpp>
#include <dlock/election.hpp>
#include <dlock/engine.hpp>
#include <dlock/error.hpp>
#include <dlock/event.hpp>
#include <dlock/grant.hpp>
#include <dlock/holder.hpp>
#include <dlock/job.hpp>
#include <dlock/lock.hpp>
#include <dlock/lock_set.hpp>
#include <dlock/mutex.hpp>
#include <dlock/options.hpp>
#include <dlock/reaping.hpp>
#include <dlock/refusal.hpp>
#include <dlock/result.hpp>
#include <dlock/semaphore.hpp>
#include <dlock/shared_mutex.hpp>
#include <dlock/stats.hpp>
#include <dlock/subscription.hpp>
#include <dlock/token.hpp>
#include <dlock/transaction.hpp>
#include <dlock/version.hpp>
#include <dlock/waiter.hpp>

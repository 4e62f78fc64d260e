/* A lock that goes on in the memory of one process: from thread to thread, or to whoever comes after it has lingered. The
 * row keeps tokens for that, and another process looks at the row only. README.md beside it says which line stands for
 * which statement, and what was left out and why.
 *
 * Two threads share the engine, come TURNS times together; a client of another process comes once. With FENCES so many
 * transactions of the threads are fenced, by a text that may be sent at any time.
 * Wrong variants, each of which must be found out: PASS_PAST_RANGE, TRUST_ANEW, PASS_WHAT_IS_NAMED, PASS_AFTER_TRUST,
 * PASS_BESIDE_RELEASE, PASS_IN_DOUBT, RESERVE_NOTHING, TRUST_RESERVE_FROM_ANSWER, FENCE_ANY_OWNER.
 */
#ifndef TURNS
#define TURNS 3
#endif
#ifndef FENCES
#define FENCES 0
#endif
#ifndef TIME
#define TIME 3 /* ticks in all */
#endif
#ifndef RENEWALS
#define RENEWALS 1
#endif
#define LEASE 2
#define RANGE 1 /* tokens that one write keeps, beside the one that it grants */

#define NOBODY 0
#define OTHER 1 /* the client of the other process, in the row */
#define FIRST_OWNER 2
#define LINGERS 3 /* the engine's grant is in nobody's hands; else a thread + 1 */

/* What is asked of the row. Each is sent at one moment, done by the database at another, if at all, and answered at a
 * third. */
#define NOTHING 0
#define SENT 1
#define DONE 2
#define REFUSED 3

/* A fence. */
#define NAMED 1
#define OPEN 2
#define OVER 3

#define MAX(a, b) ((a) > (b) -> (a) : (b))

byte now;
byte owner, token, ends; /* the row */
bool locked;             /* by a fenced transaction */
byte owners = FIRST_OWNER;

/* The engine's grant: who has it, its row's owner and token, its own token, and until when it is trusted. */
byte holder, its_owner, row_token, current, trust;
bool named;

/* Its requests. */
byte acquire, acquire_sent, acquire_owner, acquire_token;
byte renew, renew_sent, renew_owner, renew_token;
byte reserve, reserve_sent, reserve_new, reserve_token, reserve_owner;
byte release, release_owner, release_token;

/* The other process. */
byte other, other_sent, other_token, other_trust, other_turns;

byte turns;
bool waits[2];

/* The fences of the threads: what they say. */
byte fence[2], fence_owner[2], fence_row[2], fence_token[2], fences, renewals;

/* Not in any program. */
byte highest, committed;
bool one_trusts = true, tokens_grow = true, in_order = true;

#define FREE (owner == NOBODY || ends <= now)
#define HELD_HERE (holder != NOBODY && holder != LINGERS)
#define ROOM (row_token > current)
#define TRUSTED (trust > now)
#define QUIET (reserve == NOTHING && release == NOTHING)

inline look_around() {
  one_trusts = !(HELD_HERE && TRUSTED && other_trust > now);
  assert(one_trusts)
}

inline granted(a_token) {
  tokens_grow = a_token > highest;
  assert(tokens_grow);
  highest = a_token
}

inline let_go() {
  holder = NOBODY;
  its_owner = NOBODY;
  row_token = 0;
  current = 0;
  trust = 0;
  named = false
}

/* To the next in memory: the same row, the next of its tokens, and the trust that is left. */
inline go_on(whom) {
  current = current + 1;
#ifdef TRUST_ANEW
  trust = now + LEASE;
#endif
  holder = whom;
  printf("token %d goes on in memory\n", current);
  granted(current);
  look_around()
}

inline end_fence(me) {
  fence[me] = OVER;
  fence_owner[me] = NOBODY;
  fence_row[me] = 0;
  fence_token[me] = 0
}

inline send_release() {
  release = SENT;
  release_owner = its_owner;
  release_token = row_token
}

#ifdef PASS_PAST_RANGE
#define WITHIN true
#else
#define WITHIN ROOM
#endif
#ifdef PASS_WHAT_IS_NAMED
#define UNNAMED true
#else
#define UNNAMED !named
#endif
#ifdef PASS_AFTER_TRUST
#define FRESH true
#else
#define FRESH TRUSTED
#endif
#define MAY_GO_ON (WITHIN && UNNAMED && FRESH && QUIET)

proctype Thread(byte me) {
end:
  do
  :: d_step { !waits[me] && turns < TURNS && holder != me + 1 && fence[me] != NAMED && fence[me] != OPEN ->
       turns++;
       waits[me] = true }
  :: d_step { waits[me] && holder == NOBODY && acquire == NOTHING && QUIET ->
       acquire = SENT;
       acquire_sent = now;
       acquire_owner = owners }
  :: d_step { waits[me] && holder == NOBODY && acquire == DONE ->
       its_owner = acquire_owner;
       row_token = acquire_token;
       current = acquire_token;
       trust = acquire_sent + LEASE;
       acquire = NOTHING;
       acquire_owner = NOBODY;
       acquire_token = 0;
       acquire_sent = 0;
       if
       :: TRUSTED ->
          holder = me + 1;
          waits[me] = false;
          printf("thread %d is granted token %d\n", me, current);
          granted(current)
       :: else -> send_release(); let_go() /* the answer took longer than the lease */
       fi;
       look_around() }
  /* What lingers is taken, or let go of. */
  :: d_step { waits[me] && holder == LINGERS && FRESH && QUIET -> waits[me] = false; holder = me + 1; look_around() }
  :: d_step { holder == LINGERS && QUIET -> send_release(); let_go(); printf("what lingers is let go of\n") }
  /* A fence as text is sent whenever its driver likes. */
  :: d_step { holder == me + 1 && fence[me] == NOTHING && fences < FENCES ->
       fences++;
       named = true;
       fence[me] = NAMED;
       fence_owner[me] = its_owner;
       fence_row[me] = row_token;
       fence_token[me] = current }
  :: d_step { fence[me] == NAMED && !locked ->
       if
#ifdef FENCE_ANY_OWNER
       :: owner >= FIRST_OWNER ->
#else
       :: owner == fence_owner[me] && token == fence_row[me] ->
#endif
          locked = true;
          ends = MAX(ends, now + LEASE);
          fence[me] = OPEN;
          printf("thread %d has fenced under token %d\n", me, fence_token[me])
       :: else -> end_fence(me)
       fi }
  :: d_step { fence[me] == OPEN ->
       locked = false;
       printf("what was fenced under token %d is committed\n", fence_token[me]);
       in_order = fence_token[me] >= committed;
       assert(in_order);
       committed = MAX(committed, fence_token[me]);
       end_fence(me) }
  :: d_step { fence[me] == OPEN -> end_fence(me); locked = false }
  /* It is given back: it goes on in memory, to the other thread or to nobody yet; */
  :: d_step { holder == me + 1 && MAY_GO_ON ->
       if
       :: waits[1 - me] -> waits[1 - me] = false; go_on(2 - me)
       :: else -> go_on(LINGERS)
       fi }
  /* or goes on by a statement that keeps tokens in the row, in nobody's hands until that is answered; */
  :: d_step { holder == me + 1 && QUIET ->
       reserve = SENT;
       reserve_sent = now;
       reserve_owner = its_owner;
       reserve_token = row_token;
       reserve_new = owners;
       owners++;
       let_go() }
  /* or is freed. */
#ifdef PASS_BESIDE_RELEASE
  :: d_step { holder == me + 1 && QUIET -> send_release(); holder = LINGERS; printf("released, and kept\n") }
#endif
  :: d_step { holder == me + 1 && QUIET -> send_release(); let_go() }
  od
}

/* What the database and the connections do with the engine's requests. */
proctype Requests() {
end:
  do
  :: d_step { acquire == SENT && !locked && FREE ->
       token++;
       owner = acquire_owner;
       owners++;
       ends = now + LEASE;
       acquire_token = token;
       acquire = DONE }
  /* It was refused, and is sent again. */
  :: d_step { acquire == SENT && acquire_sent < now -> acquire_sent = now }
  :: d_step { HELD_HERE && renew == NOTHING && renewals < RENEWALS ->
       renewals++;
       renew = SENT; renew_sent = now; renew_owner = its_owner; renew_token = row_token }
  :: d_step { renew == SENT && !locked ->
       if
       :: owner == renew_owner && token == renew_token -> ends = MAX(ends, now + LEASE); renew = DONE
       :: else -> renew = REFUSED
       fi }
  :: d_step { renew == SENT || renew == DONE || renew == REFUSED ->
       if
       :: renew == DONE && holder != NOBODY && its_owner == renew_owner -> trust = MAX(trust, renew_sent + LEASE)
       :: renew == REFUSED && holder != NOBODY && its_owner == renew_owner -> let_go(); printf("lost\n")
       :: else
       fi;
       renew = NOTHING;
       renew_sent = 0;
       renew_owner = NOBODY;
       renew_token = 0;
       look_around() }
  :: d_step { reserve == SENT && !locked ->
       if
       :: owner == reserve_owner && token == reserve_token ->
          owner = reserve_new;
#ifndef RESERVE_NOTHING
          token = token + 1 + RANGE;
#else
          token = token + 1;
#endif
          ends = now + LEASE;
          printf("tokens to %d are kept\n", token);
          reserve = DONE
       :: else -> reserve = REFUSED
       fi }
  :: d_step { reserve == DONE && holder == NOBODY ->
       its_owner = reserve_new;
       current = reserve_token + 1;
       row_token = reserve_token + 1 + RANGE;
#ifdef TRUST_RESERVE_FROM_ANSWER
       trust = now + LEASE;
#else
       trust = reserve_sent + LEASE;
#endif
       if
       :: TRUSTED -> holder = LINGERS; granted(current)
       :: else -> send_release(); let_go()
       fi;
       look_around();
       reserve = NOTHING; reserve_sent = 0; reserve_owner = NOBODY; reserve_token = 0; reserve_new = NOBODY }
  :: d_step { reserve == REFUSED ->
       reserve = NOTHING; reserve_sent = 0; reserve_owner = NOBODY; reserve_token = 0; reserve_new = NOBODY }
  /* No answer: the row may be the new owner's, and nobody has it; it is freed, or its lease ends. */
  :: d_step { reserve == DONE -> reserve = NOTHING; release = SENT; release_owner = reserve_new; release_token = token;
       reserve_sent = 0; reserve_owner = NOBODY; reserve_token = 0; reserve_new = NOBODY }
#ifdef PASS_IN_DOUBT
  :: d_step { reserve == SENT && holder == NOBODY ->
       its_owner = reserve_new; current = reserve_token + 1; row_token = reserve_token + 1 + RANGE;
       trust = reserve_sent + LEASE; holder = LINGERS; granted(current) }
#endif
  :: d_step { release == SENT && !locked ->
       if
       :: owner == release_owner && token == release_token -> owner = NOBODY
       :: else
       fi;
       release = NOTHING; release_owner = NOBODY; release_token = 0 }
  /* Nor is what was lost on the way: the lease ends. */
  :: d_step { release == SENT -> release = NOTHING; release_owner = NOBODY; release_token = 0 }
  od
}

proctype Other() {
end:
  do
  :: d_step { other == NOTHING && other_turns < 1 -> other = SENT; other_turns++; other_sent = now }
  :: d_step { other == SENT && !locked && FREE ->
       token++;
       owner = OTHER;
       ends = now + LEASE;
       other_token = token;
       other = DONE }
  :: d_step { other == DONE && other_trust == 0 ->
       other_trust = other_sent + LEASE;
       if
       :: other_trust > now -> printf("the other process is granted token %d\n", other_token); granted(other_token)
       :: else
       fi;
       look_around() }
  /* It commits what is fenced while the row is its own, which takes no time here; */
  :: d_step { other == DONE && other_trust > 0 && owner == OTHER && token == other_token && !locked ->
       in_order = other_token >= committed;
       assert(in_order);
       committed = MAX(committed, other_token);
       ends = MAX(ends, now + LEASE) }
  /* and gives back, or is lost. */
  :: d_step { other == DONE && other_trust > 0 && !locked ->
       owner = (owner == OTHER && token == other_token -> NOBODY : owner);
       other = NOTHING; other_sent = 0; other_token = 0; other_trust = 0 }
  od
}

proctype Clock() {
end:
  do
  :: d_step { now < TIME -> now++ }
  od
}

init {
  atomic {
    run Thread(0);
    run Thread(1);
    run Requests();
    run Other();
    run Clock()
  }
}

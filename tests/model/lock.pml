/* One name of the lock table and those who want it, small enough that every run can be looked at.
 * README.md beside it says which line stands for which statement and which function, and what was left out and why.
 *
 * Wrong variants, each of which must be found out: RELEASE_BY_NAME, TRUST_FROM_ANSWER, REAP_AT_ONCE, NO_SECOND_LOOK,
 * LONG_STATEMENTS, FENCE_READS, LATE_GRANT, ADOPT_KEEPS_OWNER, and with SERVED, which bounds what could go on for ever
 * and asks whether all who wait are served, NEVER_EXPIRES.
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef TOKENS
#define TOKENS 4
#endif

/* What is on its way. An acquire is two steps: the floor is read before the row is locked. */
#define NONE 0
#define ACQUIRE 1
#define INSERT 2
#define ADOPT 3
#define RELEASE 4
#define WITHDRAW 5
#define RENEW 6
#define RENEWED 7
#define REFUSED 8

/* What a client does. */
#define IDLE 0
#define ASKS 1
#define HOLDS 2
#define WORKS 3 /* in a transaction that it has fenced */
#define FREES 4
#define GONE 5

#define NO 0
#define NOBODY 0
#define ORPHAN (CLIENTS + 1)

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define OWNER(client, attempt) (1 + (client) + CLIENTS * (attempt))
#define CLIENT_OF(an_owner) (((an_owner) - 1) % CLIENTS)

/* The row, and the floor beside it. `live`: it has not expired. `last`: who gave it back, while nobody holds it. */
bool present, live;
byte owner, token, floor, last;

/* The transaction that has fenced, and so locked, the row: a client + 1, or ORPHAN when its client has gone away. */
byte tx;
bool committing;

/* The clients. `hope`: an answer to the request under way would come in time to be trusted. `old`: was asking already
 * when the reaper raised the floor; `late`: its answer comes later than half the grace period after it asked first. */
byte phase[CLIENTS], attempt[CLIENTS], own[CLIENTS], tok[CLIENTS];
byte kind[CLIENTS], number[CLIENTS], answer[CLIENTS]; /* the request under way */
byte renewal[CLIENTS];                                /* the renewer's, which goes beside it */
bool ended[CLIENTS], trust[CLIENTS], hope[CLIENTS], old[CLIENTS], late[CLIENTS];
bool adopts[CLIENTS]; /* what it asks for is the grant in the letter */

/* A grant that was let go of without being released, as a message tells of it: whoever reads it may adopt it, and it may
 * be read any number of times. */
byte letter_owner, letter_token;

/* A request whose sender has given up on it. It may still arrive, at any time. */
byte stray, stray_owner, stray_number;

/* The reaper between its two steps. */
bool armed;
byte armed_floor;

/* Not in any program: what the promises are about. */
byte high;            /* the highest token there ever was */
byte committed;       /* the token of the last commit */
byte stale[CLIENTS];  /* a token it was granted that was not above all before it */
bool forced[CLIENTS]; /* was released by force: it may trust until its next renewal */
byte gave_back;       /* whose release, or withdrawal, was carried out, with no grant to anybody since */

#ifdef SERVED
byte doubts, forces;
bool worked[CLIENTS];
#ifndef DOUBTS
#define DOUBTS 1
#endif
#define MAY_DOUBT doubts < DOUBTS
#define DOUBT doubts++
#define MAY_FORCE forces < 1
#define FORCE forces++
#define MAY_WORK(c) !worked[c]
#define WORKED(c) worked[c] = true
#define BOUNDED true
ltl served { [] ((phase[0] == ASKS) -> <> (phase[0] != ASKS)) && [] ((phase[1] == ASKS) -> <> (phase[1] != ASKS)) }
#else
#define MAY_DOUBT true
#define DOUBT skip
#define MAY_FORCE true
#define FORCE skip
#define MAY_WORK(c) true
#define WORKED(c) skip
#define BOUNDED false
#endif

#define HELD (present && owner != NOBODY && live)
#define MINE(c) (present && owner == own[c] && token == tok[c])
#ifdef LATE_GRANT
#define GAVE_BACK(whose) false
#else
#define GAVE_BACK(whose) (present && owner == NOBODY && last == whose)
#endif
#define TRUSTS(c) (trust[c] && !forced[c])

inline leave_behind(its_kind, its_owner, its_number) {
  stray = its_kind;
  stray_owner = its_owner;
  stray_number = its_number
}

/* After each change. No two clients trust at once, and who trusts has the row. What can make no difference any more is
 * forgotten: a late release, withdrawal or renewal of one who has the row no longer, and will not have it again. */
inline look_around() {
#ifndef RELEASE_BY_NAME
  if
  :: (stray == RELEASE || stray == RENEW) && !(present && owner == stray_owner) -> leave_behind(NONE, NOBODY, 0)
  :: stray == WITHDRAW && (HELD && owner != stray_owner || present && owner == NOBODY && last == stray_owner) ->
     leave_behind(NONE, NOBODY, 0)
  :: stray == ADOPT && !(present && (owner == stray_owner || owner == letter_owner)) -> leave_behind(NONE, NOBODY, 0)
  :: else
  fi;
#endif
  forced[0] = forced[0] && (trust[0] || hope[0]);
  forced[1] = forced[1] && (trust[1] || hope[1]);
#if CLIENTS > 2
  forced[2] = forced[2] && (trust[2] || hope[2]);
#endif
  assert(!(TRUSTS(0) && TRUSTS(1)));
  assert(!TRUSTS(0) || (present && owner == own[0]));
  assert(!TRUSTS(1) || (present && owner == own[1]));
#if CLIENTS > 2
  assert(!(TRUSTS(2) && (TRUSTS(0) || TRUSTS(1))));
  assert(!TRUSTS(2) || (present && owner == own[2]));
#endif
}

/* The row, under a token drawn just now, goes to `heir`. Not to one who has given it back, though an attempt of its own
 * may still be on its way. */
inline grant(heir) {
  assert(heir != gave_back);
  gave_back = NOBODY;
  last = NOBODY;
  if
  :: own[CLIENT_OF(heir)] == heir ->
     stale[CLIENT_OF(heir)] = (token <= high && phase[CLIENT_OF(heir)] == ASKS -> token : stale[CLIENT_OF(heir)]);
     forced[CLIENT_OF(heir)] = false
  :: else
  fi;
  present = true;
  live = true;
  owner = heir;
  high = MAX(high, token);
  printf("granted to owner %d: token %d\n", heir, token)
}

inline free_row(by) {
  last = by;
  owner = NOBODY;
  live = false
}

/* A statement that has to wait for the row's lock is one that runs later. */
#define CAN_RUN(a_kind) (tx == NOBODY && a_kind != NONE || a_kind == ACQUIRE || a_kind == INSERT)

/* One statement; `what` is NONE when it is done. A token beyond the bound is not granted: that is a busy answer. */
inline execute(what, whose, count, reply) {
  if
  :: what == ACQUIRE && (HELD && owner != whose || GAVE_BACK(whose)) -> reply = NO; what = NONE
  :: what == ACQUIRE && !(HELD && owner != whose || GAVE_BACK(whose)) ->
     count = floor;
     what = INSERT;
     printf("acquire of owner %d has read floor %d\n", whose, floor)
  :: what == INSERT ->
     if
     :: present && tx != NOBODY -> reply = NO
     :: present && tx == NOBODY && owner == whose ->
        live = true;
        reply = token;
        printf("granted again to owner %d: token %d\n", whose, token)
     :: !present && count < TOKENS -> token = count + 1; grant(whose); reply = token
     :: present && tx == NOBODY && owner != whose && !HELD && !GAVE_BACK(whose) && token < TOKENS && count < TOKENS ->
        token = MAX(token, count) + 1;
        grant(whose);
        reply = token
     :: else -> reply = NO
     fi;
     count = 0;
     what = NONE
  :: what == RELEASE ->
     if
#ifdef RELEASE_BY_NAME
     :: present ->
#else
     :: present && owner == whose && token == count ->
#endif
        free_row(whose);
        gave_back = whose;
        printf("released by owner %d\n", whose)
     :: else
     fi;
     count = 0;
     what = NONE
  :: what == WITHDRAW ->
     if
     :: present && owner == whose -> free_row(whose); gave_back = whose; printf("withdrawn by owner %d\n", whose)
     :: present && owner == NOBODY -> last = whose; gave_back = whose
     :: !present && floor < TOKENS -> /* a row is made, to say so in it */
        present = true;
        token = floor + 1;
        high = MAX(high, token);
        last = whose;
        gave_back = whose
     :: else
     fi;
     count = 0;
     what = NONE
  :: what == ADOPT ->
     if
     :: present && token == count && (owner == letter_owner || owner == whose) ->
#ifndef ADOPT_KEEPS_OWNER
        owner = whose;
#endif
        live = true;
        reply = token;
        printf("adopted by owner %d: token %d\n", whose, token)
     :: else -> reply = NO
     fi;
     count = 0;
     what = NONE
  :: what == RENEW ->
     if
     :: present && owner == whose && token == count -> live = true; printf("renewed by owner %d\n", whose)
     :: else
     fi;
     count = 0;
     what = NONE
  fi;
  look_around()
}

inline commit(under) {
  printf("commit under token %d\n", under);
  assert(under >= committed);
  committed = under
}

inline end_transaction() {
  tx = NOBODY;
  committing = false
}

inline send(a_kind, a_number) {
  kind[me] = a_kind;
  number[me] = a_number;
  answer[me] = NO;
  hope[me] = (a_kind == ACQUIRE || a_kind == ADOPT)
}

/* A renewal whose answer nobody waits for any more may still run, if there is room to remember it. */
inline forget_renewal() {
  if
  :: renewal[me] == RENEW && stray == NONE -> leave_behind(RENEW, own[me], tok[me])
  :: else
  fi;
  renewal[me] = NONE
}

inline let_go() {
  forget_renewal();
  ended[me] = true;
  trust[me] = false;
  phase[me] = FREES;
  send(RELEASE, tok[me]);
  printf("client %d lets go\n", me)
}

inline be_idle() {
  phase[me] = IDLE;
  kind[me] = NONE;
  number[me] = 0;
  answer[me] = NO;
  hope[me] = false;
  own[me] = NOBODY;
  tok[me] = 0;
  ended[me] = false;
  trust[me] = false;
  old[me] = false;
  late[me] = false;
  adopts[me] = false;
  stale[me] = 0;
  forced[me] = false
}

inline accept() {
  printf("client %d holds under token %d\n", me, answer[me]);
  assert(answer[me] != stale[me]);
  phase[me] = HOLDS;
  tok[me] = answer[me];
#ifdef TRUST_FROM_ANSWER
  trust[me] = true;
#else
  trust[me] = hope[me];
#endif
  answer[me] = NO;
  hope[me] = false;
  old[me] = false;
  late[me] = false;
  adopts[me] = false;
  stale[me] = 0;
  look_around()
}

proctype Client(byte me) {
end:
  do
  /* Clients are alike: they may be numbered in the order in which they first ask. */
  :: d_step { phase[me] == IDLE && attempt[me] < ATTEMPTS && (me == 0 || attempt[me - 1] > 0) ->
       own[me] = OWNER(me, attempt[me]);
       attempt[me]++;
       phase[me] = ASKS;
       send(ACQUIRE, 0);
       printf("client %d asks as owner %d\n", me, own[me]) }
#ifndef SERVED
  :: d_step { phase[me] == IDLE && letter_owner != NOBODY && attempt[me] < ATTEMPTS && (me == 0 || attempt[me - 1] > 0) ->
#ifdef ADOPT_KEEPS_OWNER
       own[me] = letter_owner;
#else
       own[me] = OWNER(me, attempt[me]);
#endif
       attempt[me]++;
       phase[me] = ASKS;
       adopts[me] = true;
       send(ADOPT, letter_token);
       printf("client %d adopts as owner %d\n", me, own[me]) }
#endif

  /* The request under way: it runs, or nobody waits for it any more, or its answer is lost. Then it is sent again. */
  :: d_step { CAN_RUN(kind[me]) -> execute(kind[me], own[me], number[me], answer[me]) }
  :: d_step { kind[me] != NONE && stray == NONE && MAY_DOUBT ->
       DOUBT;
       leave_behind(kind[me], own[me], number[me]);
       kind[me] = (phase[me] == ASKS && !adopts[me] -> ACQUIRE : kind[me]);
       number[me] = (phase[me] == ASKS && !adopts[me] -> 0 : number[me]);
       hope[me] = (phase[me] == ASKS);
       printf("client %d waits for its request no longer, and asks again\n", me);
       look_around() }
  :: d_step { phase[me] == ASKS && kind[me] == NONE && answer[me] != NO && MAY_DOUBT ->
       DOUBT;
       if
       :: adopts[me] -> send(ADOPT, letter_token)
       :: else -> send(ACQUIRE, 0)
       fi;
       printf("client %d got no answer, and asks again\n", me) }

  /* The answer to an acquire, or to an adoption. */
  :: d_step { phase[me] == ASKS && kind[me] == NONE && answer[me] == NO && !adopts[me] -> send(ACQUIRE, 0) }
  :: d_step { phase[me] == ASKS && kind[me] == NONE && answer[me] == NO && adopts[me] -> be_idle() }
  :: d_step { phase[me] == ASKS && kind[me] == NONE && answer[me] != NO && adopts[me] -> accept() }
#ifdef NO_SECOND_LOOK
  :: d_step { phase[me] == ASKS && kind[me] == NONE && answer[me] != NO && !adopts[me] -> accept() }
#else
  :: d_step { phase[me] == ASKS && kind[me] == NONE && answer[me] != NO && !adopts[me] && !late[me] -> accept() }
  :: d_step { phase[me] == ASKS && kind[me] == NONE && answer[me] > floor && !adopts[me] -> accept() }
  :: d_step { phase[me] == ASKS && kind[me] == NONE && answer[me] != NO && !adopts[me] && answer[me] <= floor ->
       phase[me] = FREES;
       send(WITHDRAW, 0);
       printf("client %d gives back a token that is not above the floor\n", me) }
#endif

  /* Giving up: instead of sending again. */
  :: d_step { phase[me] == ASKS && kind[me] == ACQUIRE && !BOUNDED -> phase[me] = FREES; send(WITHDRAW, 0); look_around() }
  :: d_step { phase[me] == FREES && kind[me] == RELEASE -> send(WITHDRAW, 0); look_around() }
  :: d_step { phase[me] == FREES && kind[me] == WITHDRAW -> be_idle() }
  :: d_step { phase[me] == FREES && kind[me] == NONE -> be_idle() }
  :: d_step { phase[me] == FREES && kind[me] == NONE && tok[me] != 0 && MAY_DOUBT -> DOUBT; send(RELEASE, tok[me]) }
  :: d_step { phase[me] == ASKS && kind[me] == ADOPT && stray == NONE && !BOUNDED ->
       leave_behind(ADOPT, own[me], number[me]);
       be_idle();
       look_around() }

  /* The holder. It may send its fence whatever it thinks of its lease. */
  :: d_step { phase[me] == HOLDS -> let_go(); look_around() }
#ifndef SERVED
  :: d_step { phase[me] == HOLDS && !ended[me] && letter_owner == NOBODY ->
       letter_owner = own[me];
       letter_token = tok[me];
       forget_renewal();
       printf("client %d detaches owner %d, token %d\n", me, own[me], tok[me]);
       be_idle();
       look_around() }
#endif
#ifdef FENCE_READS
  :: d_step { phase[me] == HOLDS && MINE(me) && MAY_WORK(me) -> WORKED(me); phase[me] = WORKS }
  :: d_step { phase[me] == WORKS -> commit(tok[me]); phase[me] = HOLDS }
#else
  :: d_step { phase[me] == HOLDS && tx == NOBODY && MINE(me) && MAY_WORK(me) ->
       WORKED(me);
       phase[me] = WORKS;
       tx = me + 1;
       printf("client %d has fenced\n", me) }
  :: d_step { phase[me] == WORKS && tx == me + 1 -> /* the lease that the fence began is over */
       commit(tok[me]);
       end_transaction();
       phase[me] = HOLDS }
  :: d_step { phase[me] == WORKS && tx == me + 1 -> /* it is not */
       commit(tok[me]);
       end_transaction();
       phase[me] = HOLDS;
       live = true;
       trust[me] = !ended[me];
       look_around() }
  :: d_step { phase[me] == WORKS && tx == me + 1 -> end_transaction(); phase[me] = HOLDS }
  :: d_step { phase[me] == WORKS && tx == me + 1 -> tx = ORPHAN; phase[me] = HOLDS } /* the connection is lost */
  :: d_step { phase[me] == WORKS && tx == me + 1 -> tx = ORPHAN; committing = true; phase[me] = HOLDS }
  :: d_step { phase[me] == WORKS && tx != me + 1 -> phase[me] = HOLDS } /* the server has ended it */
#endif

#ifdef SERVED
  /* A crash. Where nobody needs to be served, one who stops for ever has crashed. */
  :: d_step { phase[me] != GONE && phase[me] != IDLE ->
       if
       :: tx == me + 1 -> tx = ORPHAN
       :: else
       fi;
       if
       :: kind[me] != NONE && stray == NONE -> leave_behind(kind[me], own[me], number[me])
       :: else
       fi;
       forget_renewal();
       be_idle();
       phase[me] = GONE;
       printf("client %d crashes\n", me) }
#endif
  od
}

/* The renewer sends beside whatever its client does. */
proctype Renewer(byte me) {
end:
  do
  :: d_step { (phase[me] == HOLDS || phase[me] == WORKS) && !ended[me] && renewal[me] == NONE ->
       renewal[me] = RENEW;
       hope[me] = true }
  :: d_step { renewal[me] == RENEW ->
       if
       :: !MINE(me) -> renewal[me] = REFUSED; hope[me] = false
       :: MINE(me) && tx != NOBODY -> renewal[me] = NONE; hope[me] = false /* not known yet */
       :: else -> renewal[me] = RENEWED; live = true; printf("renewed by client %d\n", me)
       fi }
  :: d_step { renewal[me] == RENEWED ->
       renewal[me] = NONE;
#ifdef TRUST_FROM_ANSWER
       trust[me] = true;
#else
       trust[me] = trust[me] || hope[me];
#endif
       hope[me] = false;
       look_around() }
  :: d_step { renewal[me] == REFUSED -> renewal[me] = NONE; ended[me] = true; trust[me] = false }
  :: d_step { renewal[me] != NONE && MAY_DOUBT -> DOUBT; forget_renewal(); hope[me] = false; look_around() }
  od
}

/* What arrives late or never, what the server ends by itself, and who releases by force. */
proctype World() {
  byte unheard;
end:
  do
  :: d_step { CAN_RUN(stray) ->
       printf("a late request of owner %d runs\n", stray_owner);
       execute(stray, stray_owner, stray_number, unheard);
       unheard = NO;
       stray_owner = (stray == NONE -> NOBODY : stray_owner) }
  :: d_step { stray != NONE -> leave_behind(NONE, NOBODY, 0) }
  :: d_step { tx == ORPHAN && committing -> commit(token); end_transaction() }
  :: d_step { tx == ORPHAN && committing -> commit(token); end_transaction(); live = true }
  :: d_step { tx != NOBODY -> end_transaction() }
#ifdef SERVED
  :: d_step { MAY_FORCE -> FORCE } /* not even when that is all that is left to do */
#endif
  :: d_step { MAY_FORCE && present && owner != NOBODY && tx == NOBODY && token < TOKENS ->
       FORCE;
       printf("released by force from owner %d\n", owner);
       forced[0] = forced[0] || own[0] == owner;
       forced[1] = forced[1] || own[1] == owner;
#if CLIENTS > 2
       forced[2] = forced[2] || own[2] == owner;
#endif
       token++;
       high = MAX(high, token);
       gave_back = owner;
       free_row(owner);
       look_around() }
  od
}

/* Time, as the order in which it ends things: trust before the lease that it came from, and the hope of more trust before
 * the lease that the request has begun. Nobody acts on trust here, so it is kept for as long as it could last. */
inline ends_for(whom) {
  if
  :: own[whom] == owner ->
     trust[whom] = false;
     hope[whom] = hope[whom] && (kind[whom] != NONE || renewal[whom] == RENEW)
  :: else
  fi
}

proctype Time() {
end:
  do
#ifdef NEVER_EXPIRES
  :: d_step { false ->
#else
  :: d_step { HELD ->
#endif
       live = false;
       ends_for(0);
       ends_for(1);
#if CLIENTS > 2
       ends_for(2);
#endif
       printf("the lease of owner %d expires\n", owner) }
  od
}

/* Between the reaper's two steps lies the grace period: who was asking at the first is late at the second. What such an
 * asker has given up on is over by then, one way or the other. */
inline grace_passes(whom) {
  late[whom] = late[whom] || old[whom];
  old[whom] = false
}

proctype Reaper() {
end:
  do
  :: d_step { present && owner != NOBODY && !live && tx == NOBODY && token < TOKENS ->
       printf("reaper: settles the lease of owner %d\n", owner);
       token++;
       high = MAX(high, token);
       gave_back = NOBODY; /* what was abandoned was not given back */
       free_row(NOBODY);
       look_around() }
  :: d_step { !armed && present && !HELD ->
       floor = MAX(floor, token);
       armed = true;
       armed_floor = floor;
       old[0] = (phase[0] == ASKS);
       old[1] = (phase[1] == ASKS);
#if CLIENTS > 2
       old[2] = (phase[2] == ASKS);
#endif
       printf("reaper: the floor is %d\n", floor) }
  :: d_step { armed ->
#ifndef REAP_AT_ONCE
       grace_passes(0);
       grace_passes(1);
#if CLIENTS > 2
       grace_passes(2);
#endif
#ifndef LONG_STATEMENTS
       if
       :: stray == INSERT && stray_number < armed_floor -> leave_behind(NONE, NOBODY, 0)
       :: else
       fi;
#endif
#endif
       if
       :: present && !HELD && tx == NOBODY && token <= armed_floor ->
          present = false;
          token = 0;
          free_row(NOBODY);
          gave_back = NOBODY; /* an attempt that was asked for so long ago is over */
          printf("reaper: removes the row\n")
       :: else
       fi;
       armed = false;
       armed_floor = 0;
       look_around() }
  od
}

init {
  atomic {
    run World();
    run Time();
    run Reaper();
    run Client(0);
    run Client(1);
    run Renewer(0);
    run Renewer(1);
#if CLIENTS > 2
    run Client(2);
    run Renewer(2);
#endif
  }
}

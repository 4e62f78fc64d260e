/* Those who wait for one name: their marks, looks and notifications, the lines in their processes, hand-over, and
 * tickets. README.md beside it says which line stands for which statement, and what was left out and why. What a lost or
 * late request does to a grant is in lock.pml.
 *
 * One of three worlds is defined. HEARD: there is no poll floor, and no notification is lost as long as its listener
 * lives. FLOOR: any notification may be lost, and the floor ends sleeps when nothing else will. HASTE: any notification
 * may be lost, and the floor may end every sleep at any time.
 */
#ifndef WAITERS
#define WAITERS 3
#endif
#ifndef MISHAPS
#define MISHAPS 1
#endif
#ifndef BOUND
#define BOUND 1 /* of hand-overs between two moments at which the row is free */
#endif

#define IDLE 0
#define STANDS 1 /* in its process's line, behind another */
#define DRAWS 2
#define MARKS 3
#define LOOKS 4
#define SLEEPS 5
#define ASKS 6
#define TAKES 7   /* the reading part of its acquire has found the lock free */
#define GRANTED 8 /* the answer is under way */
#define RESERVED 9
#define HOLDS 10
#define HANDS 11
#define PASSES 12 /* the reading part of its hand-over has found no ticket in the way */
#define HANDED 13 /* the answer is under way */
#define FREES 14
#define FREES_HEIR 15
#define NOTIFIES 16
#define WITHDRAWS 17
#define DISCARDS 18
#define NOTIFIES_NEXT 19
#define GONE 20
#define CRASHED 21
/* Of wrong variants only. */
#define DREW 22
#define FREES_LATE 23
#define DOZES 24

#define NOBODY 0
#ifdef THREE_IN_ONE
#define PROCESS(w) ((w) == 1)
#else
#define PROCESS(w) ((w) % 2)
#endif
#define MAX(a, b) ((a) > (b) -> (a) : (b))

/* The row. `live`: it has not expired. `wanted`: a mark is on it that has not ended. */
byte owner, token, next, served;
bool live, wanted;

/* The waiters and, of each, its row in the table of waiters: `ticket`, and `fresh`: that row has not expired. */
byte phase[WAITERS], ticket[WAITERS];
bool fresh[WAITERS], fifo[WAITERS], hasty[WAITERS]; /* may give up */
byte seen[WAITERS];  /* next, as its reading part saw it */
byte held[WAITERS];  /* the token it holds, or held */
byte heir[WAITERS];  /* whom it hands over to, + 1 */
byte sent[WAITERS];  /* the heir's ticket, in the hand-over under way */
bool paused[WAITERS]; /* holds, but its lease has ended, and it may trust no more */
bool alarm[WAITERS];  /* something ends about which its last look had said when */

/* The processes. */
bool listens[2], notified[2], down[2];
byte chain;

/* A hand-over whose sender has given up on it. It may still be executed. */
byte stray_from, stray_token, stray_heir, stray_ticket, stray_seen;

byte mishaps;

/* The promises, by their names. */
bool has_what_it_trusts = true, nobody_gone_holds = true, in_order = true, ticket_not_over = true;
bool others_have_turns = true, nobody_waits = true;

#define TICKET_LIVES(x) (ticket[x] > served && fresh[x])
#define TICKET_DEAD(x) (ticket[x] != 0 && !TICKET_LIVES(x))
#define EARLIER(x, w, t) ((x) != (w) && TICKET_LIVES(x) && ((t) == 0 || ticket[x] < (t)))
#define BEFORE(x, w) EARLIER(x, w, ticket[w])
#define IN_LINE(w) (phase[w] >= STANDS && phase[w] <= GRANTED || phase[w] == DREW || phase[w] == DOZES)
#ifdef LINE_BY_ARRIVAL
#define PLACE(w) (w)
#else
#define PLACE(w) (ticket[w] != 0 -> ticket[w] : 100 + (w))
#endif
#define AHEAD(x, w) ((x) != (w) && PROCESS(x) == PROCESS(w) && IN_LINE(x) && PLACE(x) < PLACE(w))
#define TAKEN_FROM(w) (owner != NOBODY && owner != (w) + 1 && live)
/* An acquire that is sent again is not held up by its own grant, nor by a queue that has formed since. */
#ifdef REPEAT_QUEUES
#define FINDS_BUSY(w) (TAKEN_FROM(w) || QUEUE_BEFORE(w))
#else
#define FINDS_BUSY(w) (TAKEN_FROM(w) || owner != (w) + 1 && QUEUE_BEFORE(w))
#endif
#define SENT(w) (phase[w] >= ASKS && phase[w] <= GRANTED)
#define OVER(w) (phase[w] == GONE || phase[w] == CRASHED)
#define TRUSTS(w) (phase[w] == HOLDS && !paused[w])
/* Who hands over sees to it that the row does not stay with an heir who has said no. */
#define CARES(x, w) (heir[x] == (w) + 1 && !OVER(x))

#define ANY3(f, w) (f(0, w) || f(1, w) || f(2, w))
#if WAITERS > 3
#define ANY(f, w) (ANY3(f, w) || f(3, w))
#define EACH(f) f(0) f(1) f(2) f(3)
#define WAKE_ALL ALARM(0) ALARM(1) ALARM(2) ALARM(3)
#define PASSES_QUEUE(w, t) (EARLIER(0, w, t) || EARLIER(1, w, t) || EARLIER(2, w, t) || EARLIER(3, w, t))
#else
#define ANY(f, w) ANY3(f, w)
#define EACH(f) f(0) f(1) f(2)
#define WAKE_ALL ALARM(0) ALARM(1) ALARM(2)
#define PASSES_QUEUE(w, t) (EARLIER(0, w, t) || EARLIER(1, w, t) || EARLIER(2, w, t))
#endif
#define QUEUE_BEFORE(w) ANY(BEFORE, w)
#define HEAD(w) (!ANY(AHEAD, w))
#define ASLEEP(w, none) (phase[w] == SLEEPS)
/* A listener keeps what came since it was opened, so that looking and falling asleep may be one step. */
#ifdef DEAF_WHILE_AWAKE
#define TO_SLEEP DOZES
#else
#define TO_SLEEP SLEEPS
#endif
#ifdef ANYBODY_HEARS
#define HEARS(w) true
#else
#define HEARS(w) HEAD(w)
#endif
#define IS_MATE(x, w) ((x) != (w) && PROCESS(x) == PROCESS(w) && IN_LINE(x))

#define MAY_FAIL (mishaps < MISHAPS)
#define FAIL mishaps++

#ifdef HASTE
#define LEAVE_SLEEP true
#else
#define LEAVE_SLEEP false
#endif
#ifdef HEARD
#define LOSE_NOTIFICATION false
#else
#define LOSE_NOTIFICATION true
#endif

/* Who has looked knows when what it saw ends, and who marks when to mark again, counted from before it marked. */
#define ALARM(w) alarm[w] = alarm[w] || phase[w] == SLEEPS;
#ifdef MARK_TIMED_FROM_ANSWER
#define MARK_AGAIN(w) ALARM(w)
#else
#define MARK_AGAIN(w) alarm[w] = alarm[w] || phase[w] == SLEEPS || phase[w] == LOOKS;
#endif

inline notify() {
#ifdef DEAF_WHILE_AWAKE
  notified[0] = notified[0] || listens[0] && (phase[0] == SLEEPS || phase[2] == SLEEPS);
  notified[1] = notified[1] || listens[1] && (phase[1] == SLEEPS);
#else
  notified[0] = notified[0] || listens[0];
  notified[1] = notified[1] || listens[1];
#endif
}

#ifdef HAND_OVER_FOR_EVER
#define MAY_HAND_OVER true
#else
#define MAY_HAND_OVER (chain < BOUND)
#endif

/* What a release reads before it has the row, in the wrong variants in which that matters. */
#ifdef OLD_MARK
#define RELEASE_READS
#define AS_READ wanted
inline notify_as_read() { notify() }
#endif
#ifdef NOTIFY_HEAD_ONLY
#define RELEASE_READS
#define FIRST(w) (TICKET_LIVES(w) && !QUEUE_BEFORE(w))
#define AS_READ (FIRST(0) -> 1 : (FIRST(1) -> 2 : (FIRST(2) -> 3 : 9)))
inline notify_as_read() {
  if
  :: seen[me] == 9 && wanted -> notify()
  :: seen[me] != 9 && wanted -> notified[PROCESS(seen[me] - 1)] = listens[PROCESS(seen[me] - 1)]
  :: else
  fi
}
#endif

#define PROMISES(w) \
  has_what_it_trusts = !TRUSTS(w) || owner == (w) + 1 && token == held[w] && live; \
  assert(has_what_it_trusts); \
  nobody_gone_holds = !(phase[w] == GONE && owner == (w) + 1) || down[PROCESS(w)] || ANY(CARES, w); \
  assert(nobody_gone_holds);
inline look_around() {
  EACH(PROMISES);
  others_have_turns = (chain <= BOUND);
  assert(others_have_turns)
}

inline free_row() {
  owner = NOBODY;
  live = false;
  chain = 0
}

/* The row goes to w, whose request came with ticket t. Nobody whose ticket lives has a smaller one, and numbers grow. */
inline grant(w, t, as_seen) {
  in_order = !PASSES_QUEUE(w, t);
  assert(in_order);
  ticket_not_over = (t == 0 || t > served);
  assert(ticket_not_over);
  served = MAX(served, (t == 0 -> as_seen : t));
  owner = w + 1;
  token++;
  live = true;
  printf("waiter %d is granted token %d with ticket %d; %d of %d are served\n", w, token, t, served, next)
}

#ifdef BARGE_WITHOUT_SECOND_LOOK
#define SAME_QUEUE(as_seen) true
#else
#define SAME_QUEUE(as_seen) (next == (as_seen))
#endif
#ifdef HAND_OVER_WITHOUT_SECOND_LOOK
#define SAME_QUEUE_YET(as_seen) true
#else
#define SAME_QUEUE_YET(as_seen) (next == (as_seen))
#endif
#ifdef DEAD_TICKET_ASKS
#define NOT_SERVED(t) true
#else
#define NOT_SERVED(t) ((t) > served)
#endif

/* The row of a hand-over: the giver's, or the heir's by this very hand-over. */
inline hand_over(giver, its_token, w, t, as_seen, passed) {
  if
  :: owner == giver && token == its_token && (t == 0 && SAME_QUEUE_YET(as_seen) || t != 0 && NOT_SERVED(t)) ->
     chain++;
     grant(w, t, as_seen);
     passed = true
  :: owner == w + 1 && token == its_token + 1 -> passed = true
  :: else -> passed = false
  fi
}

inline draw() {
  if
  :: TICKET_LIVES(me)
  :: else ->
     next = MAX(next, served) + 1;
     ticket[me] = next;
     fresh[me] = true;
     printf("waiter %d draws ticket %d\n", me, next)
  fi;
  wanted = true
}

/* A process in which nobody waits any more does not listen. */
#define SOME(w, p) (PROCESS(w) == (p) && (IN_LINE(w) || phase[w] == RESERVED))
inline close_listener(p) {
  if
  :: !ANY(SOME, p) -> listens[p] = false; notified[p] = false
  :: else
  fi
}

inline hold(w) {
  phase[w] = HOLDS;
  close_listener(PROCESS(w));
  held[w] = token;
  ticket[w] = 0;
  fresh[w] = false;
  printf("waiter %d holds\n", w)
}

inline be_done() {
  phase[me] = GONE;
  close_listener(PROCESS(me));
  held[me] = 0;
  heir[me] = 0;
  seen[me] = 0;
  paused[me] = false;
  fifo[me] = false;
  hasty[me] = false;
  alarm[me] = false
}

/* After it was not granted: who came for a queue draws a ticket, the others mark. */
inline be_busy() {
  seen[me] = 0;
#ifdef MARK_AFTER_LOOK
  phase[me] = (fifo[me] && ticket[me] == 0 -> DRAWS : LOOKS)
#else
  phase[me] = (fifo[me] && ticket[me] == 0 -> DRAWS : MARKS)
#endif
}

inline wake() {
  alarm[me] = false;
#ifdef MARK_AFTER_LOOK
  phase[me] = LOOKS
#else
  phase[me] = MARKS
#endif
}

/* The reservation ends, and the one who had it looks for itself. */
inline unreserve() {
  if
  :: heir[me] != 0 && phase[heir[me] - 1] == RESERVED -> phase[heir[me] - 1] = MARKS
  :: else
  fi;
  heir[me] = 0
}

#define COME(as_fifo, as_hasty) \
  fifo[me] = as_fifo; \
  hasty[me] = as_hasty; \
  phase[me] = (ANY(IS_MATE, me) -> (as_fifo -> DRAWS : STANDS) : ASKS); \
  printf("waiter %d of process %d comes, fifo %d, may give up %d\n", me, PROCESS(me), as_fifo, as_hasty)

#define LEAVES(x, none) hasty[x]
#ifdef NOBODY_HASTY
#define MAY_BE_HASTY false
#elif MISHAPS > 0
#define MAY_BE_HASTY !ANY(LEAVES, WAITERS)
#else
#define MAY_BE_HASTY true
#endif

/* Waiters of one process are alike: they may be numbered in the order in which they come. */
#ifdef THREE_IN_ONE
#define ELDER(w) ((w) == 3 -> 2 : 0)
#else
#define ELDER(w) ((w) < 2 -> 0 : (w) - 2)
#endif
#define MAY_COME (phase[me] == IDLE && (me < 2 || phase[ELDER(me)] != IDLE))

proctype Waiter(byte me) {
  bool passed;
end:
  do
  :: d_step { MAY_COME -> COME(false, false) }
  :: d_step { MAY_COME -> COME(true, false) }
  :: d_step { MAY_COME && MAY_BE_HASTY -> COME(false, true) }
  :: d_step { MAY_COME && MAY_BE_HASTY -> COME(true, true) }
  :: d_step { MAY_COME -> phase[me] = GONE }

  /* Its ticket. An answer that is lost is asked for again. */
#ifdef DRAW_WITHOUT_ROW
  :: d_step { phase[me] == DRAWS && !TICKET_LIVES(me) -> next++; wanted = true; seen[me] = next; phase[me] = DREW }
  :: d_step { phase[me] == DREW -> ticket[me] = seen[me]; fresh[me] = true; seen[me] = 0; phase[me] = MARKS;
       printf("waiter %d has ticket %d\n", me, ticket[me]) }
#else
  :: d_step { phase[me] == DRAWS -> draw(); phase[me] = (HEAD(me) -> MARKS : STANDS) }
  :: d_step { phase[me] == DRAWS && MAY_FAIL -> FAIL; draw() }
#endif

  /* Behind another in the line of its process; then the first. */
  :: d_step { phase[me] == STANDS && HEAD(me) -> wake() }
  :: d_step { phase[me] == SLEEPS && !HEAD(me) -> alarm[me] = false; phase[me] = STANDS }
  :: d_step { (phase[me] == STANDS || phase[me] == SLEEPS) && TICKET_DEAD(me) -> alarm[me] = false; phase[me] = DRAWS }

  /* The first of a line: it listens, marks, looks, sleeps. */
#ifdef LISTEN_AFTER_LOOK
  :: d_step { phase[me] == MARKS -> wanted = true; phase[me] = LOOKS }
#else
  :: d_step { phase[me] == MARKS && !listens[PROCESS(me)] -> listens[PROCESS(me)] = true;
       notified[PROCESS(me)] = true } /* a listener that is new may have missed anything */
#ifdef MARK_AFTER_LOOK
  :: d_step { phase[me] == MARKS && listens[PROCESS(me)] -> wanted = true; phase[me] = SLEEPS }
#else
  :: d_step { phase[me] == MARKS && listens[PROCESS(me)] -> wanted = true; phase[me] = LOOKS;
       printf("waiter %d marks\n", me) }
#endif
#endif
  :: d_step { phase[me] == LOOKS ->
       if
       :: TICKET_DEAD(me) -> alarm[me] = false; phase[me] = DRAWS
       :: !TICKET_DEAD(me) && !TAKEN_FROM(me) && !QUEUE_BEFORE(me) -> alarm[me] = false; phase[me] = ASKS
       :: else ->
          if
          :: ticket[me] == 0 && (fifo[me] || QUEUE_BEFORE(me)) -> alarm[me] = false; phase[me] = DRAWS
#ifdef MARK_AFTER_LOOK
          :: else -> phase[me] = MARKS
#else
          :: else -> phase[me] = TO_SLEEP; printf("waiter %d is going to sleep\n", me)
#endif
          fi
       fi }

#ifdef DEAF_WHILE_AWAKE
  :: d_step { phase[me] == DOZES -> phase[me] = SLEEPS }
#endif

  /* What ends its sleep. The connection on which it listens comes back: it looks again. */
  :: d_step { phase[me] == SLEEPS && HEARS(me) && notified[PROCESS(me)] -> notified[PROCESS(me)] = false; wake();
       printf("waiter %d hears a notification\n", me) }
#ifdef LISTEN_AFTER_LOOK
  :: d_step { phase[me] == SLEEPS && !listens[PROCESS(me)] -> listens[PROCESS(me)] = true }
#else
  :: d_step { phase[me] == SLEEPS && !listens[PROCESS(me)] -> listens[PROCESS(me)] = true; notified[PROCESS(me)] = true }
#endif
  :: d_step { phase[me] == SLEEPS && alarm[me] -> wake() }
  :: d_step { phase[me] == SLEEPS && LEAVE_SLEEP -> wake() }

  /* Its acquire: the reading part, then the row. */
  :: d_step { phase[me] == ASKS && FINDS_BUSY(me) -> be_busy() }
  :: d_step { phase[me] == ASKS && !FINDS_BUSY(me) -> seen[me] = next; phase[me] = TAKES;
       printf("waiter %d sees it free, %d tickets drawn\n", me, next) }
  :: d_step { phase[me] == TAKES ->
       if
       :: owner == me + 1 -> live = true; phase[me] = GRANTED
       :: owner != me + 1 && !TAKEN_FROM(me) &&
          (ticket[me] == 0 && SAME_QUEUE(seen[me]) || ticket[me] != 0 && NOT_SERVED(ticket[me])) ->
          chain = 0;
          grant(me, ticket[me], seen[me]);
          phase[me] = GRANTED;
          seen[me] = 0
       :: else -> be_busy()
       fi;
       look_around() }
  :: d_step { phase[me] == GRANTED && owner == me + 1 -> hold(me); look_around() }
  :: d_step { phase[me] == GRANTED && MAY_FAIL -> FAIL; phase[me] = ASKS }

  /* Giving up. What may have been granted is given back; a ticket that is thrown away may have been the first. */
  :: d_step { hasty[me] && (phase[me] == STANDS || phase[me] >= MARKS && phase[me] <= SLEEPS || phase[me] == RESERVED) ->
       phase[me] = DISCARDS; seen[me] = 0; alarm[me] = false;
       printf("waiter %d says no\n", me) }
  :: d_step { hasty[me] && (phase[me] == ASKS || phase[me] == GRANTED) -> phase[me] = WITHDRAWS; seen[me] = 0;
       printf("waiter %d says no\n", me) }
  :: d_step { phase[me] == WITHDRAWS ->
       if
       :: owner == me + 1 -> free_row(); printf("withdrawn by waiter %d\n", me)
       :: else
       fi;
       phase[me] = DISCARDS }
  :: d_step { phase[me] == DISCARDS ->
#ifdef SILENT_CANCEL
       if
       :: ticket[me] != 0 -> be_done()
       :: else -> phase[me] = NOTIFIES_NEXT
       fi;
#else
       phase[me] = NOTIFIES_NEXT;
#endif
       ticket[me] = 0;
       fresh[me] = false }
  :: d_step { phase[me] == NOTIFIES_NEXT ->
       if
       :: wanted -> notify()
       :: else
       fi;
       be_done();
       look_around() }

  /* The holder: it hands over to the first of its line, unless that one is asking; or frees. */
#define CAN_INHERIT(x) (IS_MATE(x, me) && HEAD(x) && !SENT(x) && phase[x] != DRAWS && phase[x] != DREW)
#define RESERVE(x) \
  :: d_step { phase[me] == HOLDS && MAY_HAND_OVER && CAN_INHERIT(x) -> \
       heir[me] = x + 1; \
       phase[x] = RESERVED; \
       alarm[x] = false; \
       phase[me] = HANDS; \
       printf("waiter %d hands over to waiter %d\n", me, x) }
  EACH(RESERVE)
  :: d_step { phase[me] == HOLDS -> phase[me] = FREES }

  :: d_step { phase[me] == HANDS ->
       if
#ifndef HAND_OVER_BLINDLY
       :: QUEUE_BEFORE(heir[me] - 1) -> phase[me] = FREES
       :: else ->
#else
       :: true ->
#endif
          seen[me] = next;
          sent[me] = ticket[heir[me] - 1];
          phase[me] = PASSES
       fi }
  :: d_step { phase[me] == PASSES ->
       hand_over(me + 1, held[me], heir[me] - 1, sent[me], seen[me], passed);
       if
       :: passed -> phase[me] = HANDED
       :: else -> phase[me] = FREES
       fi;
       passed = false;
       seen[me] = 0;
       sent[me] = 0;
       look_around() }
  :: d_step { phase[me] == HANDED && MAY_FAIL -> FAIL; phase[me] = HANDS }
  :: d_step { phase[me] == HANDED ->
       if
       :: phase[heir[me] - 1] == RESERVED && owner == heir[me] -> hold(heir[me] - 1); be_done()
#ifdef HAND_TO_LEAVER
       :: else -> be_done()
#else
       :: else -> phase[me] = FREES_HEIR
#endif
       fi;
       look_around() }
  /* In doubt for too long. Its own lease ends first: after that no late hand-over finds it. */
  :: d_step { (phase[me] == PASSES || phase[me] == HANDED) && stray_from == NOBODY && MAY_FAIL ->
       FAIL;
       if
       :: phase[me] == PASSES ->
          stray_from = me + 1; stray_token = held[me]; stray_heir = heir[me]; stray_ticket = sent[me];
          stray_seen = seen[me]
       :: else
       fi;
       seen[me] = 0;
       sent[me] = 0;
#ifdef WITHDRAW_HEIR_FIRST
       phase[me] = FREES_HEIR;
#else
       phase[me] = FREES;
#endif
       printf("waiter %d waits for its hand-over no longer\n", me) }

#ifdef RELEASE_READS
  :: d_step { phase[me] == FREES -> paused[me] = false; seen[me] = AS_READ; phase[me] = FREES_LATE;
       printf("waiter %d reads before it releases: %d\n", me, seen[me]) }
  :: d_step { phase[me] == FREES_LATE ->
       if
       :: owner == me + 1 && token == held[me] ->
          free_row();
          unreserve();
          printf("released by waiter %d\n", me);
          if
          :: seen[me] != 0 -> notify_as_read()
          :: else
          fi;
          be_done()
       :: else -> unreserve(); be_done()
       fi }
#else
  :: d_step { phase[me] == FREES ->
       paused[me] = false;
       if
       :: owner == me + 1 && token == held[me] ->
          free_row();
          printf("released by waiter %d\n", me);
          unreserve();
          if
          :: wanted -> phase[me] = NOTIFIES
          :: else -> be_done()
          fi
       :: heir[me] == 0 -> be_done() /* lost */
       :: heir[me] != 0 && phase[heir[me] - 1] == RESERVED -> phase[heir[me] - 1] = ASKS; be_done()
       :: else -> phase[me] = FREES_HEIR
       fi;
       look_around() }
#endif
  :: d_step { phase[me] == FREES_HEIR ->
       if
       :: owner == heir[me] -> free_row(); printf("withdrawn for waiter %d\n", heir[me] - 1)
       :: else
       fi;
#ifdef WITHDRAW_HEIR_FIRST
       phase[me] = (owner == me + 1 -> FREES : NOTIFIES);
#else
       phase[me] = NOTIFIES;
#endif
       unreserve();
       look_around() }
  :: d_step { phase[me] == NOTIFIES -> notify(); be_done() }
#ifdef DOUBT_IS_SILENT
  :: d_step { phase[me] == NOTIFIES && MAY_FAIL -> FAIL; be_done() }
#endif
  od
}

/* What goes wrong, as often as it may, or not at all; and what comes to an end by itself. */
#define CRASH(w) \
  if \
  :: PROCESS(w) == p && phase[w] != IDLE && phase[w] != GONE -> \
     if \
     :: phase[w] == DISCARDS || phase[w] == NOTIFIES_NEXT || phase[w] == NOTIFIES -> notify() \
     :: else \
     fi; \
     phase[w] = CRASHED \
  :: PROCESS(w) == p && phase[w] == IDLE -> phase[w] = GONE \
  :: else \
  fi;
#define PAUSE(w) \
  :: d_step { TRUSTS(w) && MAY_FAIL -> FAIL; paused[w] = true; live = false; WAKE_ALL; \
       printf("the lease of waiter %d ends\n", w) }
#define TICKET_ENDS(w) \
  :: d_step { fresh[w] && MAY_FAIL && !down[PROCESS(w)] -> FAIL; fresh[w] = false; WAKE_ALL; \
       printf("ticket %d ends\n", ticket[w]) } \
  :: d_step { fresh[w] && down[PROCESS(w)] -> fresh[w] = false; WAKE_ALL }

inline be_down() {
  listens[p] = false;
  notified[p] = false;
  down[p] = true;
  printf("process %d crashes\n", p);
  p = 0
}

inline forget_stray() {
  stray_from = NOBODY;
  stray_token = 0;
  stray_heir = NOBODY;
  stray_ticket = 0;
  stray_seen = 0
}

proctype World() {
  byte p;
  bool passed;
end:
  do
  :: d_step { MAY_FAIL -> mishaps = MISHAPS }
#ifdef FLOOR
  :: timeout && ANY(ASLEEP, WAITERS) -> d_step { WAKE_ALL; printf("who sleeps polls\n") }
#endif
  :: d_step { LOSE_NOTIFICATION && notified[0] -> notified[0] = false; printf("a notification is lost\n") }
  :: d_step { LOSE_NOTIFICATION && notified[1] -> notified[1] = false; printf("a notification is lost\n") }
  :: d_step { listens[0] && MAY_FAIL -> FAIL; listens[0] = false; notified[0] = false; printf("process 0 is deaf\n") }
  :: d_step { listens[1] && MAY_FAIL -> FAIL; listens[1] = false; notified[1] = false; printf("process 1 is deaf\n") }
  :: d_step { wanted && MAY_FAIL -> FAIL; wanted = false; EACH(MARK_AGAIN); printf("the mark ends\n") }
  EACH(PAUSE)
  EACH(TICKET_ENDS)
  :: d_step { MAY_FAIL -> FAIL; p = 0; EACH(CRASH); be_down() }
  :: d_step { MAY_FAIL -> FAIL; p = 1; EACH(CRASH); be_down() }
  :: d_step { live && owner != NOBODY && down[PROCESS(owner - 1)] -> live = false; WAKE_ALL }
  :: d_step { stray_from != NOBODY ->
       hand_over(stray_from, stray_token, stray_heir - 1, stray_ticket, stray_seen, passed);
       passed = false;
       forget_stray();
       look_around() }
  :: d_step { stray_from != NOBODY -> forget_stray() }
  od
}

/* When nothing moves any more, nobody is left waiting. */
#define OPEN(w, none) (!OVER(w))
proctype Quiet() {
end:
#ifdef FLOOR
  timeout && !ANY(ASLEEP, WAITERS);
#else
  timeout;
#endif
  d_step {
    nobody_waits = !ANY(OPEN, WAITERS);
    assert(nobody_waits)
  }
}

init {
  atomic {
    run Waiter(0);
    run Waiter(1);
    run Waiter(2);
#if WAITERS > 3
    run Waiter(3);
#endif
    run World();
#ifndef HASTE
    run Quiet()
#endif
  }
}

/* The fences of who holds a name together with others, on a cluster whose two servers both take writes. Each has a copy of
 * the rows. A transaction locks rows on its own server alone; when it commits it gets its place in one order for all, and
 * is refused if a row that it writes was written by one before it that had not reached its server. What is in that order
 * reaches the servers later, each by itself, and there ends whatever has locked its rows and has no place yet.
 * README.md beside it says which line stands for which statement, and what was left out and why.
 *
 * Two hold the name from the beginning; a third one wants to come in, and one wants it alone. There is no clock: a lease may
 * be found over at any moment, as it may be where the clocks of servers differ. Any of it may happen often, up to COMMITS. A
 * transaction that its server or its client gives up leaves nothing, and so is one that has never begun.
 * FENCE_TEXT: the fence that is one changed row, the gate. Wrong variants, each of which must be found out:
 * FENCE_LOCKS_GATE, DROP_LEAVES_GATE, and with FENCE_TEXT EVICT_LEAVES_GATE.
 */
#ifndef COMMITS
#define COMMITS 5
#endif

#define NOBODY 0
#define ALONE 1
#define GATE_OF(a_token) ((a_token) + 10) /* as it was when its first holder came in: no other gate is like it */

/* Rows, as sets of them. */
#define GATE 1
#define ROW(h) (2 << (h))
#define ALL_ROWS (GATE | ROW(0) | ROW(1) | ROW(2))
#ifdef EVICT_LEAVES_GATE
#define GATE_TOO 0
#else
#define GATE_TOO GATE
#endif

/* Who has a transaction: the fence of holder 0; who wants the name alone; holder 2, who wants to come in; and two of those
 * inside, who go. */
#define FENCER 0
#define WRITER 1
#define JOINER 2
#define LEAVER 3
#define ANOTHER_LEAVER 4

/* The rows, on each server: of holder h, under which gate it is. */
byte owner[2], token[2], inside[6];
#define IN(s, h) inside[3 * (s) + (h)]
#define INSIDE(s, h) (IN(s, h) != NOBODY && IN(s, h) == owner[s])

/* The order of commits: which rows were written, and what with. Up to where it has reached each server; and for each row,
 * its last one. */
byte commits, reached[2], last_gate, last_row[3];
byte rows_of[COMMITS], owner_of[COMMITS], token_of[COMMITS], inside_of[3 * COMMITS];

/* The transactions: on which server, which rows they have locked there, what they write, their place in the order. */
byte at[5], locked[5], place[5];
byte writes[5], new_owner[5], new_token[5], new_inside[15];
bool open[5];

/* Not in any program: what the promises are about. */
bool was_alone, was_taken_out, fenced_in_time = true, fenced_inside = true, somebody_inside = true;

#define LOCKED_BY(a, s, rows) (at[a] == (s) && (locked[a] & (rows)) != 0)
#define FREE(s, rows) \
  (!LOCKED_BY(0, s, rows) && !LOCKED_BY(1, s, rows) && !LOCKED_BY(2, s, rows) && !LOCKED_BY(3, s, rows) && \
   !LOCKED_BY(4, s, rows))
#define RESTS (!open[me] && place[me] == 0 && commits < COMMITS)

#define LATE_ROW(h) ((writes[me] & ROW(h)) != 0 && last_row[h] > reached[at[me]])
#define LATE ((writes[me] & GATE) != 0 && last_gate > reached[at[me]] || LATE_ROW(0) || LATE_ROW(1) || LATE_ROW(2))

/* Locks rows, and writes them as they are: what is to become of them is said next. */
inline begin(s, locks, written) {
  at[me] = s;
  locked[me] = (locks) | (written);
  writes[me] = written;
  new_owner[me] = owner[s];
  new_token[me] = token[s];
  new_inside[3 * me] = IN(s, 0);
  new_inside[3 * me + 1] = IN(s, 1);
  new_inside[3 * me + 2] = IN(s, 2);
  open[me] = true
}

inline forget(a) {
  writes[a] = 0;
  new_owner[a] = 0;
  new_token[a] = 0;
  new_inside[3 * a] = 0;
  new_inside[3 * a + 1] = 0;
  new_inside[3 * a + 2] = 0;
  open[a] = false
}

inline undo(a) {
  locked[a] = 0;
  at[a] = 0;
  forget(a)
}

#define PLACED(h) last_row[h] = ((writes[me] & ROW(h)) != 0 -> commits : last_row[h])

inline get_place() {
  rows_of[commits] = writes[me];
  owner_of[commits] = new_owner[me];
  token_of[commits] = new_token[me];
  inside_of[3 * commits] = new_inside[3 * me];
  inside_of[3 * commits + 1] = new_inside[3 * me + 1];
  inside_of[3 * commits + 2] = new_inside[3 * me + 2];
  commits++;
  last_gate = ((writes[me] & GATE) != 0 -> commits : last_gate);
  PLACED(0);
  PLACED(1);
  PLACED(2);
  place[me] = commits;
  forget(me)
}

/* What the place in the order, which is the commit, means to the promises. */
#define WAS_ALONE was_alone = was_alone || me == WRITER && new_owner[me] == ALONE
#define WAS_TAKEN_OUT \
  was_taken_out = was_taken_out || me == JOINER && (writes[me] & ROW(0)) != 0 && new_inside[3 * me] == NOBODY

inline commit() {
  if
  :: LATE -> printf("%d is refused\n", me); undo(me)
  :: else ->
     printf("%d commits, place %d: rows %d, owner %d, token %d\n", me, commits + 1, writes[me], new_owner[me], new_token[me]);
     fenced_in_time = me != FENCER || !was_alone;
     assert(fenced_in_time);
     fenced_inside = me != FENCER || !was_taken_out;
     assert(fenced_inside);
     WAS_ALONE;
     WAS_TAKEN_OUT;
     get_place()
  fi
}

#define ENDS :: d_step { open[me] && commits < COMMITS -> commit() }

/* The owner's and the row's gate are compared, and no clock is read. */
#ifdef FENCE_TEXT
#define WRITTEN GATE
#else
#ifdef FENCE_LOCKS_GATE
#define WRITTEN ROW(0)
#else
#define WRITTEN (GATE | ROW(0))
#endif
#endif

#define FENCES_ON(s) \
  :: d_step { RESTS && FREE(s, GATE | ROW(0)) && INSIDE(s, 0) -> \
       begin(s, GATE | ROW(0), WRITTEN); \
       printf("holder 0 has fenced on server %d\n", s) }

proctype Fencer(byte me) {
end:
  do
  FENCES_ON(0)
  FENCES_ON(1)
  ENDS
  od
}

#define TAKES_ON(s) \
  :: d_step { RESTS && FREE(s, GATE) -> \
       begin(s, GATE, GATE); \
       new_token[me] = (owner[s] == ALONE -> token[s] : token[s] + 1); \
       new_owner[me] = (owner[s] == ALONE -> NOBODY : ALONE); \
       printf("on server %d the name gets owner %d, token %d\n", s, new_owner[me], new_token[me]) }

proctype Writer(byte me) {
end:
  do
  TAKES_ON(0)
  TAKES_ON(1)
  ENDS
  od
}

/* The leases of all may be over, and so the gate is; or that of one of them, who is taken out; or none. */
#define MAY_COME_IN(s) (RESTS && FREE(s, ALL_ROWS) && IN(s, 2) == NOBODY && owner[s] != ALONE)
#define COMES_IN(s) \
  new_token[me] = token[s] + 1; \
  new_inside[3 * me + 2] = new_owner[me]; \
  printf("on server %d holder 2 comes in: gate %d, token %d\n", s, new_owner[me], new_token[me])
#define COMES_IN_ALONE_ON(s) \
  :: d_step { MAY_COME_IN(s) -> \
       begin(s, GATE, ALL_ROWS); \
       new_inside[3 * me] = NOBODY; \
       new_inside[3 * me + 1] = NOBODY; \
       new_owner[me] = GATE_OF(token[s] + 1); \
       COMES_IN(s) }
#define COMES_IN_FOR(s, h) \
  :: d_step { MAY_COME_IN(s) && INSIDE(s, h) -> \
       begin(s, GATE, GATE_TOO | ROW(h) | ROW(2)); \
       new_inside[3 * me + h] = NOBODY; \
       COMES_IN(s) }
#define COMES_IN_BESIDE_ON(s) \
  :: d_step { MAY_COME_IN(s) && owner[s] != NOBODY -> begin(s, GATE, GATE | ROW(2)); COMES_IN(s) }

proctype Joiner(byte me) {
end:
  do
  COMES_IN_ALONE_ON(0)
  COMES_IN_ALONE_ON(1)
  COMES_IN_FOR(0, 0)
  COMES_IN_FOR(1, 0)
  COMES_IN_FOR(0, 1)
  COMES_IN_FOR(1, 1)
  COMES_IN_BESIDE_ON(0)
  COMES_IN_BESIDE_ON(1)
  ENDS
  od
}

/* The gate ends with those who are left, which may be when it would have ended anyway: it is written all the same. Not that
 * of those who are out already. */
#ifdef DROP_LEAVES_GATE
#define WRITES_GATE(s, h) (INSIDE(s, h) && !OTHERS(s, h))
#else
#define WRITES_GATE(s, h) INSIDE(s, h)
#endif
#define OTHERS(s, h) (INSIDE(s, (h + 1) % 3) || INSIDE(s, (h + 2) % 3))
#define GOES_ON(s, h) \
  :: d_step { RESTS && FREE(s, GATE | ROW(h)) && IN(s, h) != NOBODY -> \
       begin(s, GATE, ROW(h) | (WRITES_GATE(s, h) -> GATE : 0)); \
       new_owner[me] = (INSIDE(s, h) && !OTHERS(s, h) -> NOBODY : owner[s]); \
       new_inside[3 * me + h] = NOBODY; \
       printf("on server %d holder %d goes: owner %d\n", s, h, new_owner[me]) }

proctype Leaver(byte me) {
end:
  do
  GOES_ON(0, 0)
  GOES_ON(1, 0)
  GOES_ON(0, 1)
  GOES_ON(1, 1)
  GOES_ON(0, 2)
  GOES_ON(1, 2)
  ENDS
  od
}

inline reaches(a) {
  if
  :: at[a] == me && place[a] == k + 1 -> place[a] = 0; locked[a] = 0; at[a] = 0 /* its own commit is done */
  :: at[a] == me && open[a] && (locked[a] & rows_of[k]) != 0 -> printf("%d is rolled back\n", a); undo(a)
  :: else
  fi
}

#define COPIED(h) IN(me, h) = ((rows_of[k] & ROW(h)) != 0 -> inside_of[3 * k + h] : IN(me, h))
#define FORGOTTEN(last) last = (last <= k + 1 -> 0 : last)

/* What has a place in the order reaches a server; once it has reached both, nothing asks for it any more. */
proctype Server(byte me) {
  byte k;
end:
  do
  :: d_step { reached[me] < commits ->
       k = reached[me];
       printf("place %d reaches server %d\n", k + 1, me);
       reaches(FENCER);
       reaches(WRITER);
       reaches(JOINER);
       reaches(LEAVER);
       reaches(ANOTHER_LEAVER);
       owner[me] = ((rows_of[k] & GATE) != 0 -> owner_of[k] : owner[me]);
       token[me] = ((rows_of[k] & GATE) != 0 -> token_of[k] : token[me]);
       COPIED(0);
       COPIED(1);
       COPIED(2);
       somebody_inside = owner[me] == NOBODY || owner[me] == ALONE || INSIDE(me, 0) || INSIDE(me, 1) || INSIDE(me, 2);
       assert(somebody_inside);
       reached[me]++;
       if
       :: reached[1 - me] >= reached[me] ->
          rows_of[k] = 0;
          owner_of[k] = 0;
          token_of[k] = 0;
          inside_of[3 * k] = 0;
          inside_of[3 * k + 1] = 0;
          inside_of[3 * k + 2] = 0;
          FORGOTTEN(last_gate);
          FORGOTTEN(last_row[0]);
          FORGOTTEN(last_row[1]);
          FORGOTTEN(last_row[2])
       :: else
       fi;
       k = 0 }
  od
}

init {
  atomic {
    token[0] = 2;
    token[1] = 2;
    owner[0] = GATE_OF(1);
    owner[1] = GATE_OF(1);
    IN(0, 0) = GATE_OF(1);
    IN(0, 1) = GATE_OF(1);
    IN(1, 0) = GATE_OF(1);
    IN(1, 1) = GATE_OF(1);
    run Fencer(FENCER);
    run Writer(WRITER);
    run Joiner(JOINER);
    run Leaver(LEAVER);
    run Leaver(ANOTHER_LEAVER);
    run Server(0);
    run Server(1)
  }
}

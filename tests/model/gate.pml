/* The gate and what it rests on, for three ranks: every job of a few buckets, in every order of
 * events. scripts/build/model.sh says which switches there are, and what each of them must show.
 *
 * A bucket has one source and one or two destinations, or two contributors and an owner. Each rank
 * holds one slot for it. Buckets of equal ends and lane are a channel, which has a tag of its own. Every
 * rank starts the runs in their order, at times of its own; a run is in one lane, which is fed in
 * the order of ids, a look-ahead at a time, whenever memory for the next bucket is there. A rank
 * admits as src/engine/admission.cc does. Fills, moves and drains end at any time. Messages of one
 * tag meet in the order in which each end has begun them, whatever they are for.
 *
 * With STREAMS, runs are data streams: each has a gate and slots of its own, and all ranks close
 * one before any opens the next. Any of them may close the first one before its end.
 */
#define RANKS 3
#ifndef BUCKETS
#define BUCKETS 3
#endif
/* With lanes, one too short for what a rank has, so that a lane may have to announce the rest. */
#ifdef LANES
#define LOOK_AHEAD 2
#else
#define LOOK_AHEAD BUCKETS
#endif
#define NONE 9

/* P(r, b, a) for all buckets `a`, or the sum of these. */
#if BUCKETS == 3
#define FOR_ALL(P, r, b) (P(r, b, 0) && P(r, b, 1) && P(r, b, 2))
#define SUM(P, r, b) (P(r, b, 0) + P(r, b, 1) + P(r, b, 2))
#else
#define FOR_ALL(P, r, b) (P(r, b, 0) && P(r, b, 1) && P(r, b, 2) && P(r, b, 3))
#define SUM(P, r, b) (P(r, b, 0) + P(r, b, 1) + P(r, b, 2) + P(r, b, 3))
#endif

/* ---- The job. */

byte src[BUCKETS]; /* sets of ranks: bit r is rank r */
byte dst[BUCKETS];
byte run_of[BUCKETS];
byte tag[BUCKETS];
byte lane_of[2]; /* runs */
byte runs;
byte slots;      /* of each rank */
byte cap;        /* at most so many of a channel are held */

#define HAS(set, r) (((set) >> (r)) & 1)
#define MEMBER(r, b) HAS(src[b] | dst[b], r)
#define LANE(b) lane_of[run_of[b]]
#ifdef STREAMS
#define SAME_GATE(a, b) (run_of[a] == run_of[b])
#else
#define SAME_GATE(a, b) (true)
#endif
#define SAME_ENDS(a, b) (src[a] == src[b] && dst[a] == dst[b] && LANE(a) == LANE(b))
#define SAME_CHANNEL(a, b) (SAME_ENDS(a, b) && SAME_GATE(a, b))

/* ---- The buckets, as each rank has them. */

#define UNFED 0
#define WAITING 1
#define HELD 2       /* has its slot; its move has not begun */
#define MOVING_TWO 3 /* two messages are under way */
#define MOVING 4     /* one is */
#define DRAINING 5
#define DONE 6
byte state[RANKS * BUCKETS];
#define STATE(r, b) state[(r) * BUCKETS + (b)]
#define IS_HELD(r, b) (STATE(r, b) >= HELD && STATE(r, b) < DONE)

byte started[RANKS]; /* runs */
bool closed[RANKS];  /* the first stream */
byte free[RANKS];    /* slots */

/* ---- The network: messages that wait for their other end, by tag and ends. */

#define LINKS (3 * RANKS)
short waiting[LINKS];    /* the buckets they are of, plus 1, the first one lowest, in octal */
bool sends_wait[LINKS];  /* otherwise receives do */
byte unasked[RANKS];     /* slots' worth of bytes that have come and that no receive is there for */

#ifdef SHARED_TAG
#define LINK(b, s, d) ((s) * RANKS + (d))
#else
/* Two for each tag: two destinations, or two contributors. */
#define ANY_BELOW(set, r) (((set) & ((1 << (r)) - 1)) != 0)
#define LINK(b, s, d) (2 * tag[b] + (ANY_BELOW(dst[b], d) || ANY_BELOW(src[b], s)))
#endif

hidden byte i;
hidden byte k;
hidden byte x;
hidden byte at;
hidden byte met;
hidden byte sent;
hidden byte wanted;
hidden byte at_link;
hidden byte smallest;
hidden byte credit;
hidden byte pick;

inline Append(on, b) {
  if
  :: waiting[on] < 1 -> waiting[on] = b + 1
  :: waiting[on] >= 1 && waiting[on] < 8 -> waiting[on] = waiting[on] + 8 * (b + 1)
  :: waiting[on] >= 8 && waiting[on] < 64 -> waiting[on] = waiting[on] + 64 * (b + 1)
  :: waiting[on] >= 64 -> waiting[on] = waiting[on] + 512 * (b + 1)
  fi
}

/* The first bucket whose message waits. */
inline TakeFirst(on) {
  met = waiting[on] % 8 - 1;
  waiting[on] = waiting[on] / 8
}

/* One message of a bucket is through. A destination goes on with its drain; others have ended. */
inline EndMessage(r, b) {
  if
  :: STATE(r, b) == MOVING_TWO -> STATE(r, b) = MOVING
  :: STATE(r, b) == MOVING && HAS(dst[b], r) -> STATE(r, b) = DRAINING
  :: STATE(r, b) == MOVING && !HAS(dst[b], r) ->
     STATE(r, b) = DONE;
     free[r]++
  :: else /* of a stream that its rank has closed */
  fi
}

/* A transport gives a receive the bytes of the send that it meets. */
inline RightBytes(given, asked) {
  sent = given;
  wanted = asked;
  assert(sent == wanted)
}

inline Send(b, s, d) {
  at_link = LINK(b, s, d);
  if
  :: waiting[at_link] != 0 && !sends_wait[at_link] ->
     TakeFirst(at_link);
     RightBytes(b, met);
     EndMessage(d, met);
     EndMessage(s, b)
  :: else ->
     sends_wait[at_link] = true;
     Append(at_link, b);
#ifdef EAGER
     unasked[d]++;
     EndMessage(s, b)
#endif
  fi
}

inline Receive(b, s, d) {
  at_link = LINK(b, s, d);
  if
  :: waiting[at_link] != 0 && sends_wait[at_link] ->
     TakeFirst(at_link);
     RightBytes(met, b);
#ifdef EAGER
     unasked[d]--;
#else
     EndMessage(s, met);
#endif
     EndMessage(d, b)
  :: else ->
     sends_wait[at_link] = false;
     Append(at_link, b)
  fi
}

/* ---- Admission at rank r, as far as it goes: Engine::Next. */

#define IS_ANNOUNCED(r, b) (MEMBER(r, b) && run_of[b] < started[r] && STATE(r, b) != DONE)
#ifdef NO_ANNOUNCEMENTS
#define MAY_BE_SMALLEST(r, b) (IS_ANNOUNCED(r, b) && STATE(r, b) != UNFED)
#else
#define MAY_BE_SMALLEST(r, b) IS_ANNOUNCED(r, b)
#endif
#define NO_EARLIER_ONE_WAITS(r, b, a) (a >= b || STATE(r, a) != WAITING || !SAME_CHANNEL(a, b))
#define IN_FLIGHT(r, b, a) (IS_HELD(r, a) && SAME_CHANNEL(a, b))
#define IS_OFFERED(r, b) \
  (STATE(r, b) == WAITING && FOR_ALL(NO_EARLIER_ONE_WAITS, r, b) && SUM(IN_FLIGHT, r, b) < cap)

/* The rule, for any bucket but the smallest. */
#ifdef NO_RESERVE
#define IS_ALLOWED(r, b) (free[r] >= 1)
#else
#define IS_ALLOWED(r, b) (credit >= 2)
#endif

#ifdef PLAIN
#define Next(r) skip
#else
inline Next(r) {
  do
  :: smallest = NONE;
     i = 0;
     do
     :: i < BUCKETS && MAY_BE_SMALLEST(r, i) -> smallest = i; break
     :: i < BUCKETS && !(MAY_BE_SMALLEST(r, i)) -> i++
     :: i == BUCKETS -> break
     od;
     credit = free[r];
     if
     :: smallest != NONE && IS_HELD(r, smallest) -> credit++
     :: else
     fi;
     pick = NONE;
     if
     :: smallest != NONE && STATE(r, smallest) == WAITING && free[r] >= 1 ->
        pick = smallest
     :: else ->
        k = 0;
        do
        :: k < 2 * BUCKETS ->
           i = k % BUCKETS;
           if
           :: LANE(i) == k / BUCKETS && IS_OFFERED(r, i) && IS_ALLOWED(r, i) ->
              pick = i;
              break
           :: else -> k++
           fi
        :: else -> break
        od
     fi;
#if !defined(NO_ANNOUNCEMENTS) && !defined(NO_RESERVE)
     /* What docs/gate.md proves. */
     assert(credit >= 1);
#endif
     if
     :: pick == NONE -> break
     :: else ->
        STATE(r, pick) = HELD;
        free[r]--
     fi
  od
}
#endif

/* ---- Feeding. */

#define EARLIER_ONE_IS_FED(r, b, a) \
  (a >= b || LANE(a) != LANE(b) || !(MEMBER(r, a)) || STATE(r, a) != UNFED)
#define HAS_ENDED_UP_TO(r, a, c) \
  (c > a || LANE(c) != LANE(a) || !(MEMBER(r, c)) || STATE(r, c) == DONE)
/* Bucket a lies in b's lane before it, and not before the first that has not ended. */
#define IS_AHEAD(r, b, a) \
  (a < b && LANE(a) == LANE(b) && MEMBER(r, a) && !(FOR_ALL(HAS_ENDED_UP_TO, r, a)))
#define MAY_FEED(r, b)                                              \
  (STATE(r, b) == UNFED && MEMBER(r, b) && run_of[b] < started[r] && \
   FOR_ALL(EARLIER_ONE_IS_FED, r, b) && SUM(IS_AHEAD, r, b) < LOOK_AHEAD)

inline FeedAll(r) {
  i = 0;
  do
  :: i < BUCKETS && MAY_FEED(r, i) -> STATE(r, i) = WAITING; i++
  :: i < BUCKETS && !(MAY_FEED(r, i)) -> i++
  :: i == BUCKETS -> break
  od
}

inline Settle() {
  at = 0;
  do
  :: at < RANKS ->
#ifndef LANES
     FeedAll(at);
#endif
     Next(at);
     at++
  :: else -> break
  od;
  /* No rank has more than its budget, what lies with it unasked included. */
  x = 0;
  do
  :: x < RANKS -> assert(free[x] <= slots && unasked[x] <= free[x]); x++
  :: else -> break
  od;
  x = 0
}

/* ---- What can happen at a rank. */

#ifdef OUT_OF_ORDER
#define MAY_BEGIN(r, b) (STATE(r, b) == HELD)
#else
#define EARLIER_ONE_MOVES(r, b, a) (a >= b || !SAME_CHANNEL(a, b) || STATE(r, a) >= MOVING_TWO)
#define MAY_BEGIN(r, b) (STATE(r, b) == HELD && FOR_ALL(EARLIER_ONE_MOVES, r, b))
#endif

inline Meet(r, b, other) {
  if
  :: HAS(src[b], r) && HAS(dst[b], other) -> Send(b, r, other)
  :: HAS(dst[b], r) && HAS(src[b], other) -> Receive(b, other, r)
  :: else
  fi
}

inline Begin(r, b) {
  STATE(r, b) = MOVING;
  if
  :: (HAS(src[b], r) && dst[b] != 1 && dst[b] != 2 && dst[b] != 4) ||
     (HAS(dst[b], r) && src[b] != 1 && src[b] != 2 && src[b] != 4) -> STATE(r, b) = MOVING_TWO
  :: else
  fi;
  x = 0;
  do
  :: x < RANKS -> Meet(r, b, x); x++
  :: else -> break
  od
}

#ifdef STREAMS
#define MAY_START(r) (started[r] < runs && (started[r] == 0 || (closed[0] && closed[1] && closed[2])))
#define MAY_CLOSE(r) (started[r] == 1 && runs == 2 && !closed[r])
#else
#define MAY_START(r) (started[r] < runs)
#endif

/* Receives that nothing has met are taken back; sends cannot be. Staging that they are in is kept. */
inline Withdraw(r, b, other) {
  if
  :: HAS(dst[b], r) && HAS(src[b], other) ->
     at_link = LINK(b, other, r);
     if
     :: !sends_wait[at_link] -> waiting[at_link] = 0
     :: else
     fi
  :: else
  fi
}

inline Close(r) {
  closed[r] = true;
  i = 0;
  do
  :: i < BUCKETS && run_of[i] == 0 ->
     if
     :: STATE(r, i) == MOVING || STATE(r, i) == MOVING_TWO ->
        x = 0;
        do
        :: x < RANKS -> Withdraw(r, i, x); x++
        :: else -> break
        od
     :: else
     fi;
     STATE(r, i) = DONE;
     i++
  :: i < BUCKETS && run_of[i] != 0 -> i++
  :: i == BUCKETS -> break
  od;
  free[r] = slots
}

#define FEED 0
#define ADMIT 1
#define BEGIN 2
#define END 3
#define START 4
#define CLOSE 5
hidden byte event;
hidden byte which;

#define MAY_HAPPEN(b)                                        \
  MAY_FEED_LATE(b) MAY_ADMIT(b)                              \
  :: MAY_BEGIN(r, b) -> event = BEGIN; which = b                \
  :: STATE(r, b) == DRAINING -> event = END; which = b
#ifdef LANES
#define MAY_FEED_LATE(b) :: MAY_FEED(r, b) -> event = FEED; which = b
#else
#define MAY_FEED_LATE(b)
#endif
#ifdef PLAIN
/* A semaphore: whoever finds a slot free may take it. */
#define MAY_ADMIT(b) :: IS_OFFERED(r, b) && free[r] >= 1 -> event = ADMIT; which = b
#else
#define MAY_ADMIT(b)
#endif

#define HAS_ENDED(r, b, a) (!(MEMBER(r, a)) || STATE(r, a) == DONE)

proctype Rank(byte r) {
  do
  :: atomic {
       if
       MAY_HAPPEN(0)
       MAY_HAPPEN(1)
       MAY_HAPPEN(2)
#if BUCKETS == 4
       MAY_HAPPEN(3)
#endif
       :: MAY_START(r) -> event = START
#ifdef STREAMS
       :: MAY_CLOSE(r) -> event = CLOSE
#endif
       fi;
       d_step {
         if
         :: event == FEED -> STATE(r, which) = WAITING
         :: event == ADMIT -> STATE(r, which) = HELD; free[r]--
         :: event == BEGIN -> Begin(r, which)
         :: event == END -> STATE(r, which) = DONE; free[r]++
         :: event == START -> started[r]++
#ifdef STREAMS
         :: event == CLOSE -> Close(r)
#endif
         fi;
         Settle()
       }
     }
  :: started[r] == runs && FOR_ALL(HAS_ENDED, r, 0) -> break
  od
}

/* ---- Which job. */

/* Ranks that the first bucket does not tell apart are numbered as the second one first names them. */
#define SWAPS_12 (src[0] == 1 && dst[0] == 6)
#define SWAPS_01 (src[0] == 3)

inline Choose(b) {
  if
  :: src[b] = 1; dst[b] = 2
#ifndef PAIRS
  :: src[b] = 1; dst[b] = 6
  :: src[b] = 3; dst[b] = 4
  :: b != 0 && !(b == 1 && SWAPS_01) -> src[b] = 2; dst[b] = 5
  :: b != 0 && !(b == 1 && SWAPS_12) -> src[b] = 4; dst[b] = 3
  :: b != 0 && !(b == 1 && SWAPS_12) -> src[b] = 5; dst[b] = 2
  :: b != 0 && !(b == 1 && SWAPS_01) -> src[b] = 6; dst[b] = 1
#endif
  :: b != 0 && !(b == 1 && SWAPS_12) -> src[b] = 1; dst[b] = 4
  :: b != 0 && !(b == 1 && SWAPS_01) -> src[b] = 2; dst[b] = 1
  :: b != 0 && !(b == 1 && SWAPS_01) -> src[b] = 2; dst[b] = 4
  :: b != 0 && !(b == 1 && SWAPS_12) -> src[b] = 4; dst[b] = 1
  :: b != 0 && !(b == 1 && (SWAPS_01 || SWAPS_12)) -> src[b] = 4; dst[b] = 2
  fi
}

#ifdef REUSED_CONTEXT
#define SAME_TAG(a, b) SAME_ENDS(a, b)
#else
#define SAME_TAG(a, b) SAME_CHANNEL(a, b)
#endif

inline NumberTags() {
  i = 0;
  do
  :: i < BUCKETS ->
     k = 0;
     do
     :: SAME_TAG(k, i) -> break
     :: else -> k++
     od;
     tag[i] = k;
     i++
  :: else -> break
  od
}

init {
  atomic {
    Choose(0);
    Choose(1);
    Choose(2);
#if BUCKETS == 4
    Choose(3);
#endif
    runs = 1;
#if defined(LANES) || defined(STREAMS)
    runs = 2;
    if
    :: run_of[1] = 1; run_of[2] = 1
    :: run_of[2] = 1
    fi;
#if BUCKETS == 4
    run_of[3] = 1;
#endif
#ifdef LANES
    if
    :: lane_of[0] = 1
    :: lane_of[1] = 1
    fi;
#endif
#endif
    if
    :: slots = 1
    :: slots = 2
    fi;
    cap = 1;
    if
    :: true
    :: SAME_CHANNEL(0, 1) || SAME_CHANNEL(0, 2) || SAME_CHANNEL(1, 2) -> cap = 2
    fi;
    d_step {
      NumberTags();
      free[0] = slots;
      free[1] = slots;
      free[2] = slots;
#if !defined(LANES) && !defined(STREAMS)
      started[0] = 1;
      started[1] = 1;
      started[2] = 1;
      Settle()
#endif
    }
    run Rank(0);
    run Rank(1);
    run Rank(2)
  }
}

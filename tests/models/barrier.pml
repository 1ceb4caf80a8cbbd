/* A barrier of N thread blocks, ROUNDS times: each adds one to a counter that never goes back, and
   waits until it has reached the next multiple of N.

   BROKEN 1: the last one to come sets the counter back to 0, and the others wait for that: a fast
             one comes again before a slow one has looked.
   BROKEN 2: fewer blocks are counted than come. */
#define N 3
#define ROUNDS 3
#if BROKEN == 2
#define MEMBERS (N - 1)
#else
#define MEMBERS N
#endif

byte arrived;
byte entered[N], gone[N]; /* rounds of each block */

inline meet() {
#if BROKEN == 1
  atomic {
    arrived++;
    if
    :: arrived == N -> arrived = 0
    :: else
    fi
  };
  arrived == 0
#else
  atomic { mine = arrived; arrived++ };
  arrived >= (mine / MEMBERS + 1) * MEMBERS
#endif
}

active [N] proctype block() {
  byte round, mine, other;
  for (round : 1 .. ROUNDS) {
    entered[_pid] = round;
    meet();
    for (other : 0 .. N - 1) { assert(entered[other] >= round) }
    gone[_pid] = round
  }
}

ltl together { [] (gone[0] <= entered[1] && gone[0] <= entered[2] && gone[1] <= entered[2]) }
ltl end_comes { <> (gone[0] == ROUNDS && gone[1] == ROUNDS && gone[2] == ROUNDS) }

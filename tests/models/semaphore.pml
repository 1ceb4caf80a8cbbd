/* Semaphores: blocks of one rank release and acquire. Two producers release once a round, two
   consumers acquire once a round; an acquire takes one, with compare-and-swap.

   BROKEN 1: an acquire looks and takes in two steps that others may come between. */
#define ROUNDS 3

byte count;                /* the semaphore */
byte released, acquired;   /* altogether */
byte ended;

active [2] proctype producer() {
  byte i;
  for (i : 1 .. ROUNDS) {
    atomic { count++; released++ }
  }
  ended++
}

active [2] proctype consumer() {
  byte i, seen;
  for (i : 1 .. ROUNDS) {
#if BROKEN == 1
    atomic { count > 0 -> seen = count };
    count = seen - 1;
#else
    do
    :: atomic { count > 0 -> seen = count };
       atomic {
         if
         :: count == seen -> count = seen - 1; break
         :: else
         fi
       }
    od;
#endif
    acquired++;
    assert(acquired <= released)
  }
  ended++;
  if
  :: ended == 4 -> assert(count == 0)
  :: else
  fi
}

ltl never_more { [] (acquired <= released) }
ltl end_comes { <> (ended == 4) }

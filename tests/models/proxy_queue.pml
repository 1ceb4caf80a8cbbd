/* A port channel: a block posts puts, signals and flushes into a queue of bounded depth, its proxy
   hands them to a lane in order and counts them handled. The lane does one after the other: it reads
   the source, and the network lands the data before the signal that was posted after it; at a flush
   it says so to the block, which then changes the source. The peer waits for the signal, checks the
   data, and signals that its chunk is free.

   BROKEN 1: a flush returns when the proxy has handed on what was posted.
   BROKEN 2: a full queue is not waited for, so an entry is overwritten.
   BROKEN 3: the network lets the signal overtake the data. */
#define CALLS 3
#define DEPTH 2
#define PUTS 3 /* a call: more entries than the queue has */
#define SIGNAL PUTS
#define FLUSH (PUTS + 1)

byte source[PUTS];
byte queue[DEPTH];          /* chunk to put, SIGNAL or FLUSH */
byte posted, handled;       /* entries, by all calls */
chan lane = [2] of { byte, byte }; /* an entry, and its number + 1 */
byte flushed;               /* the second of the last flush that is over */
byte in_flight[PUTS];       /* data on its way; 0: none */
byte there[PUTS];           /* the peer's chunks */
byte arrived, freed;        /* signals that have arrived at the peer, and at the block */
byte calls;                 /* ended at the peer */

inline post(entry) {
#if BROKEN != 2
  posted - handled < DEPTH;
#endif
  queue[posted % DEPTH] = entry;
  posted++
}

active proctype block() {
  byte call, i;
  for (call : 1 .. CALLS) {
    for (i : 0 .. PUTS - 1) { source[i] = call }
    for (i : 0 .. PUTS - 1) { post(i) }
    post(FLUSH);
#if BROKEN == 1
    handled == posted;
#else
    flushed == posted;
#endif
    for (i : 0 .. PUTS - 1) { source[i] = 99 }
    post(SIGNAL);
    freed == call
  }
}

active proctype proxy() {
end:
  do
  :: handled < posted ->
     lane ! queue[handled % DEPTH], handled + 1;
     handled++
  od
}

active proctype copies() {
  byte entry, number;
end:
  do
  :: lane ? entry, number ->
     if
     :: entry == SIGNAL ->
#if BROKEN != 3
        in_flight[0] == 0 && in_flight[1] == 0 && in_flight[2] == 0;
#endif
        arrived++
     :: entry == FLUSH -> flushed = number
     :: else ->
        in_flight[entry] == 0;
        in_flight[entry] = source[entry]
     fi
  od
}

active proctype network() {
end:
  do
  :: atomic { in_flight[0] != 0 -> there[0] = in_flight[0]; in_flight[0] = 0 }
  :: atomic { in_flight[1] != 0 -> there[1] = in_flight[1]; in_flight[1] = 0 }
  :: atomic { in_flight[2] != 0 -> there[2] = in_flight[2]; in_flight[2] = 0 }
  od
}

active proctype peer() {
  byte call, i;
  for (call : 1 .. CALLS) {
    arrived == call;
    for (i : 0 .. PUTS - 1) { assert(there[i] == call) }
    calls = call;
    freed++
  }
}

ltl bounded { [] (posted - handled <= DEPTH) }
ltl end_comes { <> (calls == CALLS) }

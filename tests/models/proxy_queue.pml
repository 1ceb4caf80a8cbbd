/* A port channel: a block posts puts and signals into a queue of bounded depth, its proxy serves
   them in order: it reads the source, and the network lands the data before the signal that was
   posted behind it. After a flush the block changes the source. The peer waits for the signal,
   checks the data, and tells that its chunk is free.

   BROKEN 1: a flush returns when the proxy has begun with what was posted, not ended.
   BROKEN 2: a full queue is not waited for, so an entry is overwritten.
   BROKEN 3: the network lets the signal overtake the data. */
#define CALLS 3
#define DEPTH 2
#define PUTS 3 /* a call: more entries than the queue has */

byte source[PUTS];
byte queue[DEPTH];          /* chunk to put; PUTS: a signal */
byte posted, begun, served; /* entries, by all calls */
byte in_flight[PUTS];       /* data on its way; 0: none */
byte there[PUTS];           /* the peer's chunks */
byte told, freed;           /* signals that have arrived at the peer, and at the block */
byte calls;                 /* ended at the peer */

inline post(entry) {
#if BROKEN != 2
  posted - served < DEPTH;
#endif
  queue[posted % DEPTH] = entry;
  posted++
}

active proctype block() {
  byte call, i;
  for (call : 1 .. CALLS) {
    for (i : 0 .. PUTS - 1) { source[i] = call }
    for (i : 0 .. PUTS - 1) { post(i) }
#if BROKEN == 1
    begun == posted;
#else
    served == posted; /* flush */
#endif
    for (i : 0 .. PUTS - 1) { source[i] = 99 }
    post(PUTS);
    freed == call
  }
}

active proctype proxy() {
  byte entry;
end:
  do
  :: served < posted ->
     entry = queue[served % DEPTH];
     begun++;
     if
     :: entry == PUTS ->
#if BROKEN != 3
        in_flight[0] == 0 && in_flight[1] == 0 && in_flight[2] == 0;
#endif
        told++
     :: else ->
        in_flight[entry] == 0;
        in_flight[entry] = source[entry]
     fi;
     served++
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
    told == call;
    for (i : 0 .. PUTS - 1) { assert(there[i] == call) }
    calls = call;
    freed++
  }
}

ltl bounded { [] (posted - served <= DEPTH) }
ltl end_comes { <> (calls == CALLS) }

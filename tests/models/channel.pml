/* Channels: signal and wait count. A rank puts two chunks to its peer, a signal after each, and
   waits until the peer has read both, CALLS times.

   A put is in flight until the memory lands it. A signal that is not relaxed lets its rank's puts
   land first: that stands for release and acquire, which this model cannot check.

   BROKEN 1: a signal sets a flag that a wait clears, instead of counting.
   BROKEN 2: the signals are relaxed, and say nothing about the puts. */
#define CALLS 3
#define CHUNKS 2

byte there[CHUNKS];      /* memory of the reader: the call whose data the chunk holds, from 1 */
byte in_flight[CHUNKS];  /* a put that has not landed; 0: none */
byte arrived, freed;     /* signals that have arrived, at the reader and at the writer */
byte written, reads;        /* ended so far, by all calls */
bool ended;

inline signal(count) {
#if BROKEN == 1
  count = 1
#else
  count++
#endif
}

inline wait(count, taken) {
#if BROKEN == 1
  atomic { count == 1 -> count = 0 }
#else
  atomic { count > taken -> taken++ }
#endif
}

active proctype memory() {
end:
  do
  :: atomic { in_flight[0] != 0 -> there[0] = in_flight[0]; in_flight[0] = 0 }
  :: atomic { in_flight[1] != 0 -> there[1] = in_flight[1]; in_flight[1] = 0 }
  od
}

active proctype writer() {
  byte call, taken, c;
  for (call : 1 .. CALLS) {
    for (c : 0 .. CHUNKS - 1) {
      in_flight[c] == 0;  /* stores to one place land in order */
      in_flight[c] = call;
      written++;
#if BROKEN != 2
      in_flight[0] == 0 && in_flight[1] == 0;
#endif
      signal(arrived)
    }
    wait(freed, taken)
  }
  ended = true
}

active proctype reader() {
  byte call, taken, c;
  for (call : 1 .. CALLS) {
    for (c : 0 .. CHUNKS - 1) {
      wait(arrived, taken);
      assert(there[c] == call);
      reads++
    }
    signal(freed)
  }
#if BROKEN != 1
  assert(arrived == taken)  /* counts balance: nothing is left for the next plan */
#endif
}

ltl order { [] (reads <= written) }
ltl end_comes { <> ended }

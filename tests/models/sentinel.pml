/* Sentinel packets: a word is there when it no longer holds the sentinel, and its reader puts the
   sentinel back. Two ranks swap a word, CALLS times, with two copies of the slot. The putting back
   is in flight until the memory lands it, but not beyond the end of the reader's call (a kernel's
   stores are done when it ends).

   BROKEN 1: one copy of the slot.
   BROKEN 2: the putting back may still be in flight when the next call begins. */
#define CALLS 4
#if BROKEN == 1
#define COPIES 1
#else
#define COPIES 2
#endif
#define EMPTY 0
#define AT(rank, call) ((rank) * COPIES + (call) % COPIES)
#define VALUE(rank, call) (10 * (call) + (rank))

byte word[2 * COPIES];       /* of both ranks' slots */
byte sent[2 * COPIES];       /* a packet in flight to it; 0: none */
bool emptied[2 * COPIES];    /* the sentinel in flight to it */
byte calls[2];               /* ended so far */

/* Lands what is in flight to one word. */
active [2 * COPIES] proctype memory() {
end:
  do
  :: atomic { sent[_pid] != 0 -> word[_pid] = sent[_pid]; sent[_pid] = 0 }
  :: atomic { emptied[_pid] -> word[_pid] = EMPTY; emptied[_pid] = false }
  od
}

active [2] proctype rank() {
  byte call;
  for (call : 1 .. CALLS) {
    atomic { sent[AT(1 - _pid % 2, call)] == 0;
             sent[AT(1 - _pid % 2, call)] = VALUE(_pid % 2, call) };
    word[AT(_pid % 2, call)] != EMPTY;
    assert(word[AT(_pid % 2, call)] == VALUE(1 - _pid % 2, call));
    emptied[AT(_pid % 2, call)] = true;
#if BROKEN != 2
    !emptied[AT(_pid % 2, call)];
#endif
    calls[_pid % 2] = call
  }
}

ltl near { [] (calls[0] <= calls[1] + 1 && calls[1] <= calls[0] + 1) }
ltl end_comes { <> (calls[0] == CALLS && calls[1] == CALLS) }

/* Packets with flags (LL8, LL16; LL128 with one flag a line): two ranks swap a slot of two units,
   CALLS times, without any other word between them. A unit's data and flag land at once, the units
   of a slot in any order, when they like. The flag is the number of the call, from 1.

   BROKEN 1: one copy of the slot instead of two: a rank that is a call ahead overwrites what the
             other has not read.
   BROKEN 2: a unit's flag lands before its data.
   BROKEN 3: the flag says only that something has come, not in which call. */
#define CALLS 4
#define UNITS 2
#if BROKEN == 1
#define COPIES 1
#else
#define COPIES 2
#endif
#if BROKEN == 3
#define FLAG(call) 1
#else
#define FLAG(call) (call)
#endif
#define AT(rank, call, u) ((rank) * COPIES * UNITS + ((call) % COPIES) * UNITS + (u))
#define FROM(at) (1 - (at) / (COPIES * UNITS))
#define VALUE(rank, call) (10 * (call) + (rank))

byte data[2 * COPIES * UNITS];  /* of both ranks' slots */
byte flag[2 * COPIES * UNITS];
byte in_flight[2 * COPIES * UNITS];  /* the call of a unit that has not landed; 0: none */
byte calls[2];                       /* ended so far */

/* Lands what is in flight to one unit. */
active [2 * COPIES * UNITS] proctype memory() {
  byte call;
end:
  do
#if BROKEN == 2
  :: in_flight[_pid] != 0 ->
     call = in_flight[_pid];
     flag[_pid] = FLAG(call);
     data[_pid] = VALUE(FROM(_pid), call);
     in_flight[_pid] = 0
#else
  :: atomic {
       in_flight[_pid] != 0 ->
       call = in_flight[_pid];
       flag[_pid] = FLAG(call);
       data[_pid] = VALUE(FROM(_pid), call);
       in_flight[_pid] = 0;
       call = 0
     }
#endif
  od
}

active [2] proctype rank() {
  byte call, u;
  for (call : 1 .. CALLS) {
    for (u : 0 .. UNITS - 1) {
      atomic { in_flight[AT(1 - _pid % 2, call, u)] == 0;
               in_flight[AT(1 - _pid % 2, call, u)] = call }
    }
    for (u : 0 .. UNITS - 1) {
      flag[AT(_pid % 2, call, u)] == FLAG(call);
      assert(data[AT(_pid % 2, call, u)] == VALUE(1 - _pid % 2, call))
    }
    calls[_pid % 2] = call
  }
}

ltl near { [] (calls[0] <= calls[1] + 1 && calls[1] <= calls[0] + 1) }
ltl end_comes { <> (calls[0] == CALLS && calls[1] == CALLS) }

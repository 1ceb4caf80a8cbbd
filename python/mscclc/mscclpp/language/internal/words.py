"""The records of a trace, by the numbers that libmscclc knows them by.

compiler/mscclpp/read_trace.h says what each has; ops are rows of op_names.def there, under the names
that the table of ops gives them (ir/ops/ops.def). compiler/mscclpp/words_test.cc compares them.
"""

FORMAT = 1
FUSION, AUTO_SYNC, LIMITS = 1, 2, 4  # flags

(
    SYNC, BARRIER, _PIPELINE, ACQUIRE, RELEASE, SIGNAL, RELAXED_SIGNAL, WAIT, RELAXED_WAIT, FLUSH,
    COPY, COPY_PACKETS, UNPACK_PACKETS, PUT, PUT_WITH_SIGNAL, PUT_WITH_SIGNAL_AND_FLUSH, PUT_PACKETS,
    READ_PUT_PACKETS, GET, REDUCE, REDUCE_PACKETS, READ_REDUCE, SWITCH_REDUCE, SWITCH_BROADCAST,
    SWITCH_BROADCAST_PACKETS,
) = range(25)  # fmt: skip

CODE, GROUP, CHANNEL, SWITCH, SEMAPHORE, LOOP, END_OF_LOOP = range(64, 71)

COUNT = 8  # from this bit on, the number of a sum has how many further sources there are
MEMORY, PORT, BY_SWITCH = 1, 2, 3  # kinds of channels
NO_PLACE = 2**64 - 1  # of the program itself

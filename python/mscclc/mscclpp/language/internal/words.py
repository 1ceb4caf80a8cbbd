"""The records of a trace, by the numbers that libmscclc knows them by.

compiler/mscclpp/read_trace.h says what each has. Ops and kinds of channels are numbered as the tables of
ir/ops have them, which compiler/mscclpp/words_test.cc compares.
"""

FORMAT = 3
FUSION, AUTO_SYNC, LIMITS = 1, 2, 4  # flags

(
    COPY, PUT, GET, PUT_WITH_SIGNAL, PUT_WITH_SIGNAL_AND_FLUSH, REDUCE, READ_REDUCE, REDUCE_SEND,
    READ_REDUCE_SEND, COPY_PACKETS, UNPACK_PACKETS, PUT_PACKETS, READ_PUT_PACKETS, REDUCE_PACKETS,
    REDUCE_SEND_PACKETS, REDUCE_PACKETS_PUT, REDUCE_COPY_PACKETS, REDUCE_COPY_SEND_PACKETS,
    SWITCH_BROADCAST, SWITCH_BROADCAST_PACKETS, SWITCH_REDUCE, SWITCH_REDUCE_BROADCAST, APPLY,
    SIGNAL, WAIT, FLUSH, RELEASE, ACQUIRE, BARRIER, SYNC, PIPELINE,
    AWAIT, NOTIFY,
) = range(33)  # fmt: skip
RELAXED = 128  # added to an op

CODE, GROUP, CHANNEL, SWITCH, SEMAPHORE, LOOP, END_OF_LOOP = range(64, 71)

COUNT = 8  # from this bit on, the number of a sum has how many further sources there are
MEMORY_CHANNEL, PORT_CHANNEL, SWITCH_CHANNEL = range(3)
NO_PLACE = 2**64 - 1  # of the program itself

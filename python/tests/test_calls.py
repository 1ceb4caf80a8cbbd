"""Collectives of communicators beyond those of test_communicator.py, sizes of buffers, and groups."""

import threading
import unittest

import mscclc
from rank_processes import run


class Rooted(unittest.TestCase):
    """Collectives whose root alone has a buffer."""

    def test_reduce(self):
        body = """if 1:
            root = ranks - 1
            out = floats(0, 0) if rank == root else None
            comm.reduce(floats(rank, 1), out, root=root).wait()
            assert out is None or list(out) == [sum(range(ranks)), ranks], out
            mine = floats(rank + 1, 7)
            comm.reduce(mine, op="prod").wait()  # at the root in place, others keep theirs
            expected = [6 if ranks == 3 else 2, 7**ranks] if rank == 0 else [rank + 1, 7]
            assert list(mine) == expected, mine
            if rank != 0:
                comm.reduce(b"1234", dtype="f32").wait()  # which may be read-only
            else:
                refused("read-only", comm.reduce, b"1234", dtype="f32")
                comm.reduce(floats(0)).wait()
            sums = floats(0)
            comm.reduce(floats(1e8, 1, -1e8)[rank % 3 : rank % 3 + 1], sums, order="ranks").wait()
            print(rank, sums[0])
        """
        self.assertEqual(run(3, body), ["0 0.0", "1 0.0", "2 0.0"])
        self.assertEqual(run(2, body), ["0 100000000.0", "1 0.0"])

    def test_gather_and_scatter(self):
        body = """if 1:
            all = array.array("i", [-1] * 2 * ranks)
            mine = array.array("i", [rank, 10 * rank])
            comm.gather(mine, all if rank == 1 else None, root=1).wait()
            expected = [f * r for r in range(ranks) for f in (1, 10)] if rank == 1 else [-1] * 2 * ranks
            assert list(all) == expected, all
            view = memoryview(array.array("h", range(rank, rank + 3 * ranks))).cast("B")
            own = view[6 * rank : 6 * rank + 6]
            comm.gather(own, view, dtype="f16").wait()  # the root's input is in its output
            part = array.array("q", [0, 0])
            parts = array.array("q", range(100, 100 + 2 * ranks))
            comm.scatter(parts if rank == 0 else None, part).wait()
            assert list(part) == [100 + 2 * rank, 101 + 2 * rank], part
            print(rank)
        """
        for ranks in (2, 3, 4):
            with self.subTest(ranks=ranks):
                self.assertEqual(run(ranks, body), [str(r) for r in range(ranks)])

    def test_who_needs_a_buffer(self):
        body = """if 1:
            if rank == 1:
                refused("gather: the root needs an output, and this one's is None", comm.gather,
                        floats(1), root=1)
                refused("scatter: the root needs an input, and this one's is None", comm.scatter,
                        None, floats(1), root=1)
            else:
                refused("scatter: each rank needs an output", comm.scatter, None, None, root=1)
                refused("gather: each rank needs an input", comm.gather, None, root=1)
            refused("allgather: each rank needs an output", comm.allgather, floats(1), None)
            refused("sendrecv: each rank needs an output", comm.sendrecv, floats(1), None)
            refused("the root is rank 5 of 2", comm.reduce, floats(1), root=5, error=mscclc.LibraryError)
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine", "fine"])


class ToOthers(unittest.TestCase):
    """Collectives in which a rank's data goes to some."""

    def test_sendrecv(self):
        body = """if 1:
            got = array.array("i", [0, 0])
            for shift in (1, -1, 2, ranks + 1):
                comm.sendrecv(array.array("i", [rank, shift]), got, shift).wait()
                assert list(got) == [(rank - shift) % ranks, shift], (shift, got)
            comm.sendrecv(array.array("i", [rank, 5]), got, shift=0).wait()
            assert list(got) == [rank, 5], got
            refused("the shift is 1.5", comm.sendrecv, got, array.array("i", [0, 0]), 1.5)
            print("fine")
        """
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.assertEqual(run(ranks, body), ["fine"] * ranks)

    def test_alltoallv(self):
        body = """if 1:
            counts = [[s + 2 * d for d in range(ranks)] for s in range(ranks)]
            sent = [100 * rank + p for p in range(ranks) for _ in range(counts[rank][p])]
            got = array.array("i", [0] * sum(row[rank] for row in counts))
            comm.alltoallv(array.array("i", sent), got, counts).wait()
            expected = [100 * p + rank for p in range(ranks) for _ in range(counts[p][rank])]
            assert list(got) == expected, got
            # Rows may lie anywhere: here last first, with gaps.
            begins = [10 * (ranks - 1 - p) for p in range(ranks)]
            spread, there = array.array("i", [-1] * 10 * ranks), array.array("i", [-1] * 10 * ranks)
            for p in range(ranks):
                for i in range(counts[rank][p]):
                    spread[begins[p] + i] = 100 * rank + p
            comm.alltoallv(spread, there, tuple(map(tuple, counts)), begins, begins).wait()
            for p in range(ranks):
                row = [100 * p + rank] * counts[p][rank] + [-1] * (10 - counts[p][rank])
                assert list(there[begins[p] : begins[p] + 10]) == row, there
            # One rank alone sends.
            some = [[0] * ranks for _ in range(ranks)]
            some[1][0] = 2
            out = array.array("i", [0, 0])
            comm.alltoallv(
                array.array("i", [3, 4]) if rank == 1 else None, out if rank == 0 else None, some,
                dtype="i32",
            ).wait()
            assert list(out) == ([3, 4] if rank == 0 else [0, 0]), out
            print("fine")
        """
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.assertEqual(run(ranks, body), ["fine"] * ranks)

    def test_alltoallv_with_wrong_counts(self):
        body = """if 1:
            def wrong(text, counts, *offsets):
                refused(text, comm.alltoallv, floats(1, 2, 3), floats(1, 2), counts, *offsets)
            wrong("counts has 1 entries; 2 ranks need 2", [[1, 1]])
            wrong("counts is no list", 5)
            wrong("a row of counts has 3 entries; 2 ranks need 2", [[1, 1], [1, 1, 1]])
            wrong("one of a row of counts is -1; allowed", [[1, -1], [1, 1]])
            wrong("one of a row of counts is 0.5; allowed", [[1, 0.5], [1, 1]])
            wrong("the row of rank 1 ends with element 4 of the input, which has 3",
                  [[1, 1], [1, 1]], [0, 3])
            wrong("input_offsets has 3 entries", [[1, 1], [1, 1]], [0, 1, 2])
            wrong("the row of rank 1 ends with element 3 of the output, which has 2",
                  [[1, 1], [1, 1]], None, [0, 2])
            wrong("alltoallv: the row of rank 1 ends with element 5 of the input, which has 3",
                  [[2, 3], [2, 3]])
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine", "fine"])


class Sizes(unittest.TestCase):
    def test_errors_say_how_many_elements_there_are(self):
        body = """if 1:
            def words(count):
                return array.array("i", [0] * count)
            for text, call, *counts in (
                ("allreduce: the input has 1 element, the output 2; they must have as many",
                 comm.allreduce, 1, 2),
                ("sendrecv: the input has 3 elements, the output 2; they must", comm.sendrecv, 3, 2),
                ("alltoall: the input has 4 elements, the output 2; they must", comm.alltoall, 4, 2),
                ("alltoall: the input has 3 elements, which is not as many for each of 2 ranks",
                 comm.alltoall, 3, 3),
                ("allgather: the input has 2 elements, the output 3; the output must have 4, 2 for"
                 " each of 2 ranks", comm.allgather, 2, 3),
                ("reducescatter: the output has 2 elements, the input 5; the input must have 4, 2"
                 " for each of 2 ranks", comm.reducescatter, 5, 2),
            ):
                refused(text, call, *map(words, counts))
            if rank == 0:
                refused("gather: the input has 1 element, the output 1; the output must have 2",
                        comm.gather, words(1), words(1))
                refused("scatter: the output has 1 element, the input 3; the input must have 2, 1 for",
                        comm.scatter, words(3), words(1))
            both = words(2)  # one object is one buffer
            refused("allgather: the input has 2 elements, the output 2; the output must have 4",
                    comm.allgather, both, both)
            refused("allreduce: the input's 6 bytes are not a whole number of 'f32'", comm.allreduce,
                    bytearray(6), dtype="f32")
            refused("allreduce: the input's elements are 'f32', the output's 'i32'; 'dtype' says",
                    comm.allreduce, floats(1), words(1))
            comm.allreduce(floats(1), words(1), dtype="f32").wait()
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine", "fine"])


def two_ranks():
    """Two communicators of this process, one of two ranks each."""
    id, made = mscclc.unique_id(), [None, None]

    def make(rank):
        made[rank] = mscclc.Communicator(2, id, rank, timeout=250)

    other = threading.Thread(target=make, args=(1,))
    other.start()
    make(0)
    other.join()
    return made


class Groups(unittest.TestCase):
    def setUp(self):
        self.comms = two_ranks()

    def tearDown(self):
        others = [threading.Thread(target=comm.close) for comm in self.comms]
        for other in others:
            other.start()
        for other in others:
            other.join()

    def test_one_thread_drives_several_ranks(self):
        """Without a group the first call of rank 0 would wait for rank 1, which comes after it."""
        data = [bytearray([rank + 1, 5]) for rank in range(2)]
        moved = [bytearray(2) for _ in range(2)]
        with mscclc.group():
            works = []
            for rank, comm in enumerate(self.comms):
                with mscclc.group():
                    works.append(comm.allreduce(data[rank], dtype="u8"))
                works.append(comm.sendrecv(data[rank], moved[rank], dtype="u8"))
                with self.assertRaisesRegex(mscclc.UsageError, "its group has not ended"):
                    works[-1].wait()
                with self.assertRaisesRegex(mscclc.UsageError, r"barrier\(\) waits, and so cannot"):
                    comm.barrier()
            self.assertEqual(data[0], bytearray([1, 5]))
        for work in works:
            work.wait()
        self.assertEqual(data, [bytearray([3, 10])] * 2)
        self.assertEqual(moved, [bytearray([3, 10])] * 2)

    def test_dropped_works_keep_their_buffers(self):
        out = [bytearray(4096) for _ in range(2)]
        with mscclc.group():
            for rank, comm in enumerate(self.comms):
                comm.allreduce(bytes([rank + 1]) * 4096, out[rank], dtype="u8")
                comm.synchronize()
        for comm in self.comms:
            comm.synchronize()
        self.assertEqual(out, [bytearray([3]) * 4096] * 2)

    def test_a_block_that_raises_launches_nothing(self):
        data = [bytearray([1]), bytearray([1])]
        with self.assertRaisesRegex(ValueError, "here"):
            with mscclc.group():
                work = self.comms[0].allreduce(data[0], dtype="u8")
                raise ValueError("here")
        with self.assertRaisesRegex(mscclc.UsageError, "not been launched: its group has failed"):
            work.wait()
        with mscclc.group():  # the thread may begin anew
            works = [comm.allreduce(one, dtype="u8") for comm, one in zip(self.comms, data)]
        for work in works:
            work.wait()
        self.assertEqual(data, [bytearray([2])] * 2)

    def test_a_call_that_is_refused_ends_the_group(self):
        data = bytearray([1])
        with self.assertRaisesRegex(mscclc.LibraryError, "as a call of it was refused: .*rank 2 of 2"):
            with mscclc.group():
                work = self.comms[0].allreduce(data, dtype="u8")
                with self.assertRaisesRegex(mscclc.LibraryError, "the root is rank 2 of 2"):
                    self.comms[1].broadcast(data, root=2, dtype="u8")
        with self.assertRaisesRegex(mscclc.UsageError, "its group has failed"):
            work.wait()
        self.assertEqual(data, bytearray([1]))

    def test_other_threads_are_in_no_group(self):
        said = []

        def call(rank):
            data = bytearray([rank])
            self.comms[rank].allreduce(data, dtype="u8").wait()
            said.append(data[0])

        with mscclc.group():
            threads = [threading.Thread(target=call, args=(rank,)) for rank in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(said, [1, 1])


if __name__ == "__main__":
    unittest.main()

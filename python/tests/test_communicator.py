"""Communicators: ranks as processes on the host device."""

import signal
import subprocess
import sys
import unittest

import mscclc
from rank_processes import PATIENCE, RANK, run, start


class Collectives(unittest.TestCase):
    def test_all_of_them(self):
        body = """if 1:
            data = floats(rank, 1, 2)
            comm.allreduce(data).wait()
            assert list(data) == [sum(range(ranks)), ranks, 2 * ranks], data
            out = floats(0, 0, 0)
            comm.allreduce(floats(rank, -rank, 7), out, op="max").wait()
            assert list(out) == [ranks - 1, 0, 7], out
            all = array.array("i", [0] * 2 * ranks)
            comm.allgather(array.array("i", [rank, 10 * rank]), all).wait()
            assert list(all) == [f * r for r in range(ranks) for f in (1, 10)], all
            part = floats(0)
            comm.reducescatter(floats(*range(ranks)), part).wait()
            assert part[0] == rank * ranks, part
            moved = array.array("q", [0] * ranks)
            comm.alltoall(array.array("q", [100 * rank + p for p in range(ranks)]), moved).wait()
            assert list(moved) == [100 * p + rank for p in range(ranks)], moved
            word = bytearray(b"rank%d" % rank)
            comm.broadcast(word, root=1).wait()
            assert word == b"rank1", word
            comm.barrier()
            print(comm.rank, comm.size)
        """
        for ranks in (2, 3, 4):
            with self.subTest(ranks=ranks):
                self.assertEqual(run(ranks, body), [f"{r} {ranks}" for r in range(ranks)])

    def test_many_calls_may_be_queued_and_forgotten(self):
        body = """if 1:
            data = [floats(*[rank + i] * 1000) for i in range(20)]
            for one in data:
                comm.allreduce(one)
            comm.synchronize()
            print(all(list(one) == [2 * i + 1] * 1000 for i, one in enumerate(data)))
        """
        self.assertEqual(run(2, body), ["True", "True"])

    def test_read_only_inputs_types_and_empty_buffers(self):
        body = """if 1:
            out = bytearray(4)
            comm.allreduce(bytes([rank, 1, 2, 3]), out, dtype="u8").wait()
            comm.allreduce(array.array("f")).wait()
            half = bytearray(4)
            comm.allreduce(bytes([0, 0x3c, 0, 0x40]), half, dtype="f16").wait()
            print(list(out), half.hex())
        """
        self.assertEqual(run(2, body), ["[1, 2, 4, 6] 00400044"] * 2)

    def test_split(self):
        body = """if 1:
            child = comm.split(rank % 2, key=-rank)
            data = floats(rank)
            child.allreduce(data).wait()
            assert comm.split(-1) is None
            print(child.rank, child.size, data[0])
            child.close()
        """
        self.assertEqual(run(4, body), ["1 2 2.0", "1 2 4.0", "0 2 2.0", "0 2 4.0"])


class Mistakes(unittest.TestCase):
    def test_wrong_buffers(self):
        body = """if 1:
            def refused(text, call, *arguments, **more):
                try:
                    call(*arguments, **more)
                except mscclc.UsageError as error:
                    assert text in str(error), error
                else:
                    raise AssertionError(text)
            refused("differ in size", comm.allreduce, floats(1), floats(1, 2))
            refused("read-only", comm.allreduce, b"1234", dtype="f32")
            refused("whole number", comm.allreduce, bytearray(3), dtype="f32")
            refused("no element type 'c'", comm.allreduce, memoryview(bytearray(4)).cast("c"))
            refused("no reduction 'add'", comm.allreduce, floats(1), op="add")
            refused("not contiguous", comm.allreduce, memoryview(floats(1, 2, 3, 4))[::2])
            refused("each rank", comm.allgather, floats(1), floats(1))
            comm.barrier()
            comm.close()
            refused("closed", comm.allreduce, floats(1))
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine", "fine"])

    def test_a_wrong_id(self):
        with self.assertRaisesRegex(mscclc.UsageError, "128 bytes, this one 3"):
            mscclc.Communicator(2, b"abc", 0)

    def test_an_exception_in_one_rank_ends_the_others(self):
        body = """if 1:
            comm.barrier()
            if rank == 0:
                raise ValueError("here")
            comm.barrier()
        """
        processes = start(2, body)
        errors = [process.communicate(timeout=PATIENCE)[1] for process in processes]
        self.assertIn("ValueError: here", errors[0])
        self.assertIn("ValueError in Python", errors[1])

    def test_ctrl_c_ends_a_wait(self):
        body = """if 1:
            comm.barrier()
            print("waiting", flush=True)
            if rank == 0:
                comm.barrier()
            else:
                sys.stdin.read()
        """
        id = mscclc.unique_id().hex()
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", RANK, "2", str(rank), id, body],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        for process in processes:
            self.assertEqual(process.stdout.readline(), "waiting\n")
        processes[0].send_signal(signal.SIGINT)
        errors = processes[0].communicate(timeout=PATIENCE)[1]
        self.assertIn("KeyboardInterrupt", errors)
        processes[1].communicate(timeout=PATIENCE)

    def test_a_child_of_fork_may_not_use_it(self):
        body = """if 1:
            import os
            child = os.fork()
            if child == 0:
                try:
                    comm.barrier()
                except mscclc.UsageError as error:
                    os._exit(7 if "fork" in str(error) else 1)
                os._exit(1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            comm.barrier()
            print(status)
        """
        self.assertEqual(run(2, body), ["7", "7"])


if __name__ == "__main__":
    unittest.main()

"""Symmetric memory of Communicators: ranks as processes on the host device."""

import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import mscclc
from mscclc import symmetric
from mscclc._tool import call
from rank_processes import PATIENCE, run, start


def loads(ranks, body):
    """What the ranks of a program that prints "fine" log of the plans that they load."""
    with tempfile.TemporaryDirectory() as folder:
        debug = {"MSCCLC_DEBUG": "INFO", "MSCCLC_DEBUG_SUBSYS": "LOAD"}
        found = run(ranks, body, MSCCLC_DEBUG_FILE=os.path.join(folder, "%p"), **debug)
        if found != ["fine"] * ranks:
            raise AssertionError(found)
        lines = []
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as log:
                lines += [line for line in log if " executable " in line]
        return lines


class Memory(unittest.TestCase):
    def test_every_rank_reads_every_peer(self):
        """256 x 512 floats of each rank."""
        body = """if 1:
            count = 256 * 512
            with mscclc.SymmetricMemory(4 * count, comm) as memory:
                assert (memory.rank, memory.ranks, memory.bytes) == (rank, ranks, 4 * count)
                memory.buffer().cast("f")[:] = floats(rank + 200) * count
                memory.barrier()
                for peer in range(ranks):
                    assert memory.buffer(peer) == (floats(peer + 200) * count).tobytes(), peer
                memory.barrier()
            print(memory.backend)
        """
        for ranks in (2, 3, 8):
            with self.subTest(ranks=ranks):
                self.assertEqual(run(ranks, body), ["native"] * ranks)

    def test_who_sees_a_write(self):
        """A write to the own buffer changes no peer's, one to a peer's changes only that peer's."""
        body = """if 1:
            memory = mscclc.SymmetricMemory(4 * ranks, comm)
            def seen():
                memory.barrier()
                found = [list(memory.buffer(p).cast("i")) for p in range(ranks)]
                memory.barrier()
                return found
            expected = [[0] * ranks for p in range(ranks)]
            assert seen() == expected                         # it begins as zeros
            memory.buffer().cast("i")[0] = 10 + rank
            for p in range(ranks):
                expected[p][0] = 10 + p
            assert seen() == expected, seen()
            to = (rank + 1) % ranks
            memory.buffer(to).cast("i")[rank] = 100 + rank
            for p in range(ranks):
                expected[(p + 1) % ranks][p] = 100 + p
            assert seen() == expected, seen()
            print(list(memory.buffer().cast("i")))
        """
        self.assertEqual(run(2, body), ["[10, 101]", "[100, 0]"])
        self.assertEqual(run(3, body), ["[10, 0, 102]", "[100, 0, 0]", "[12, 101, 0]"])

    def test_memory_that_there_is(self):
        """A part of an allocation, at the same place on all ranks; no copy is made."""
        body = """if 1:
            whole = mscclc.SymmetricMemory(64, comm)
            part = mscclc.SymmetricMemory.of(whole.buffer()[16:32], comm)
            assert part.bytes == 16 and part.address() == whole.address() + 16
            part.buffer(1 - rank)[3] = 7 + rank
            part.barrier()
            assert whole.buffer()[19] == 8 - rank and sum(whole.buffer()) == 8 - rank
            whole.close()
            assert part.buffer(1 - rank)[3] == 7 + rank       # it keeps the whole
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine"] * 2)

    def test_no_bytes(self):
        body = """if 1:
            memory = mscclc.SymmetricMemory(0, comm)
            memory.barrier()
            print(memory.address(), memory.address(1), len(memory.buffer()), len(memory.buffer(1)))
        """
        self.assertEqual(run(2, body), ["0 0 0 0"] * 2)

    def test_collectives_go_on_with_it(self):
        body = """if 1:
            memory = mscclc.SymmetricMemory(8, comm)
            memory.buffer().cast("f")[:] = floats(rank, 1)
            comm.allreduce(memory.buffer().cast("f")).wait()
            memory.barrier()
            print(list(memory.buffer(1 - rank).cast("f")))
        """
        self.assertEqual(run(2, body), ["[1.0, 2.0]"] * 2)

    def test_collectives_use_it_where_it_lies(self):
        """Whole, in parts, in place and not: no plan is loaded with staging. Those in packets have none."""
        body = """if 1:
            count = 1 << 20                                   # plans that read peers' buffers
            def floats_of(memory, first, many):
                return memory.buffer().cast("f")[first : first + many]
            def each(name, *buffers):
                getattr(comm, name)(*buffers, symmetric=True).wait()
            def rows(wanted):
                return b"".join((floats(one) * (count // ranks)).tobytes() for one in wanted)
            memory = mscclc.SymmetricMemory(4 * (2 * ranks + 1) * count, comm)
            some, more = floats_of(memory, 5, count), floats_of(memory, ranks * count, ranks * count)
            some[:] = floats(rank + 1) * count
            each("allreduce", some)
            assert some.tobytes() == rows([sum(range(ranks + 1))] * ranks)
            some[:] = floats(rank + 1) * count
            each("allgather", some, more)
            assert [more[one * count + 7] for one in range(ranks)] == list(range(1, ranks + 1))
            each("allgather", more[rank * count : (rank + 1) * count], more)
            each("reducescatter", more, some)
            assert some.tobytes() == rows([(rank + 1) * ranks] * ranks)
            some[:] = floats(rank + 1) * count
            each("alltoall", some, more[:count])
            assert more[:count].tobytes() == rows(range(1, ranks + 1))
            some[:] = floats(rank + 1) * count
            each("sendrecv", some, more[:count])
            assert more[:count].tobytes() == rows([(rank - 1) % ranks + 1] * ranks)
            print("fine")
        """
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                log = loads(ranks, body.replace("1 << 20", f"{ranks} << 19"))
                self.assertTrue(any("zero copy" in line for line in log), log)
                others = [line for line in log if "zero copy" not in line]
                self.assertEqual([line for line in others if "_packets'" not in line], [])

    def test_without_the_promise_they_copy(self):
        """Ranks may give any parts of it then."""
        body = """if 1:
            count = 1 << 20
            memory = mscclc.SymmetricMemory(8 * count, comm)
            part = memory.buffer().cast("f")[rank * count : (rank + 1) * count]
            part[:] = floats(rank + 1) * count
            comm.allreduce(part).wait()
            assert part[0] == part[-1] == 3
            print("fine")
        """
        self.assertEqual([line for line in loads(2, body) if "zero copy" in line], [])

    def test_a_promise_that_is_not_kept(self):
        body = """if 1:
            memory = mscclc.SymmetricMemory(8, comm)
            part = memory.buffer().cast("f")
            def refused(input, output):
                try:
                    comm.allgather(input, output, symmetric=True)
                except mscclc.UsageError as error:
                    return "symmetric memory" in str(error)
            assert refused(floats(1), part) and refused(part[:1], floats(0) * 2)
            memory.close()
            del memory, part
            plain = floats(1)
            comm.allreduce(plain).wait()                      # all goes on
            print(plain[0])
        """
        self.assertEqual(run(2, body), ["2.0"] * 2)


class Lifetimes(unittest.TestCase):
    def test_all_orders_of_the_end(self):
        """A view, the memory and the communicator go in any order."""
        body = """if 1:
            import itertools
            import os
            def descriptors():
                return len(os.listdir("/proc/self/fd"))
            for i, order in enumerate(itertools.permutations(range(3))):
                part = comm.split(0)
                memory = mscclc.SymmetricMemory(4096, part)
                view = memory.buffer(1 - rank)
                view[5] = 50 + rank
                memory.barrier()
                for step in order:
                    if step == 0:
                        assert memory._own is None or memory.buffer()[5] == 51 - rank
                        del view
                    elif step == 1:
                        memory.close()
                    else:
                        part.close()
                    if "view" in dir():
                        assert view[5] == 50 + rank
                        view[6] = 1
                del memory
                comm.barrier()
                if i == 0:
                    before = descriptors()
            assert descriptors() <= before, (before, descriptors())
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine"] * 2)

    def test_it_is_freed(self):
        """A hundred times, no mapping stays."""
        body = """if 1:
            def mapped():
                with open("/proc/self/maps") as maps:
                    return sum("memfd" in line for line in maps)
            for i in range(100):
                with mscclc.SymmetricMemory(4096, comm) as memory:
                    memory.buffer(1 - rank)[0] = 1
                    memory.barrier()
                if i == 5:
                    before = mapped()
            comm.barrier()
            assert mapped() <= before + 3, (before, mapped())
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine"] * 2)

    def test_the_interpreter_ends_with_it(self):
        body = """if 1:
            sys.keep = mscclc.SymmetricMemory(64, comm)
            sys.view = sys.keep.buffer(1 - rank)
            comm.barrier()
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine"] * 2)


class Mistakes(unittest.TestCase):
    def test_calls(self):
        body = """if 1:
            make, of = mscclc.SymmetricMemory, mscclc.SymmetricMemory.of
            refused("not negative, not -1", make, -1, comm)
            refused("not negative, not '4'", make, "4", comm)
            refused("not negative, not True", make, True, comm)
            refused("Communicator has 'native'", make, 4, comm, backend="cuda")
            refused("not in the group", make, 4, comm.split(-1))
            refused("has its own", make, 4, comm, device="cuda")
            refused("4 on rank 0 and 5 on rank 1", make, 4 + rank, comm)
            refused("the buffer is read-only", of, b"1234", comm)
            refused("cannot map 64 bytes", of, bytearray(64), comm, error=mscclc.LibraryError)
            memory = make(4, comm)
            refused("no rank 2 among 2", memory.buffer, 2)
            refused("no rank -1 among 2", memory.address, -1)
            refused("no rank True among 2", memory.address, True)
            memory.close()
            memory.close()
            refused("is closed", memory.buffer)
            comm.barrier()
            last = make(4, comm)
            comm.close()
            refused("the communicator is closed", last.barrier)
            refused("the communicator is closed", make, 4, comm)
            print(mscclc.symmetric.chosen())
        """
        self.assertEqual(run(2, body), ["native"] * 2)

    def test_names(self):
        names = "there are: native, torch, cuda, nccl, nvshmem"
        for name in ("", "CUDA", "native "):
            with self.assertRaisesRegex(mscclc.UsageError, f"memory '{name}'; {names}"):
                mscclc.SymmetricMemory(4, None, backend=name)
            with mock.patch.dict(os.environ, MSCCLC_SYMMETRIC_MEMORY=name):
                with self.assertRaisesRegex(
                    mscclc.UsageError, f"^MSCCLC_SYMMETRIC_MEMORY: no .*'{name}'; {names}"
                ):
                    mscclc.SymmetricMemory(4, None)

    def test_the_names_are_those_of_the_table_of_variables(self):
        reference, _ = call("env", "--format=markdown")
        row = f"| `MSCCLC_SYMMETRIC_MEMORY` | {', '.join(symmetric.choice.BACKENDS)} | `native` |"
        self.assertIn(row, reference)

    def test_a_second_name(self):
        with mock.patch.object(symmetric.choice, "_kept", "native"):
            with self.assertRaisesRegex(mscclc.UsageError, "'native'; it cannot be 'nccl', too"):
                mscclc.SymmetricMemory(4, None, backend="nccl")
            with mock.patch.dict(os.environ, MSCCLC_SYMMETRIC_MEMORY="cuda"):
                with self.assertRaisesRegex(
                    mscclc.UsageError, "^MSCCLC_SYMMETRIC_MEMORY: .*cannot be 'cuda', too"
                ):
                    mscclc.SymmetricMemory(4, None)

    def test_without_torch(self):
        program = (
            "import sys; sys.modules['torch'] = None\n"
            "import mscclc\n"
            "try: mscclc.SymmetricMemory(4, 'group', backend='nccl')\n"
            "except mscclc.UsageError as error: print(error)\n"
        )
        found = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        self.assertRegex(found.stdout, "torch.distributed, which is not here")

    def test_a_peer_that_dies(self):
        """A barrier ends with an error."""
        body = """if 1:
            memory = mscclc.SymmetricMemory(4, comm)
            memory.barrier()
            if rank == 1:
                import os
                os._exit(0)
            memory.barrier()
        """
        processes = start(2, body)
        errors = [process.communicate(timeout=PATIENCE)[1] for process in processes]
        self.assertIn("peer failed", errors[0])


if __name__ == "__main__":
    unittest.main()

"""Communicators: ranks as processes on the host device."""

import ctypes
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import mscclc
from mscclc import _waiting, buffers, communicator
from rank_processes import PATIENCE, WAITS, end_by_ctrl_c, run, start


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

    def test_a_dropped_communicator_keeps_what_its_calls_use(self):
        body = """if 1:
            import weakref
            child, data = comm.split(0), floats(rank)
            kept = weakref.ref(data)
            child.allreduce(data)
            del child, data
            print(kept() is not None)
        """
        self.assertEqual(run(2, body), ["True", "True"])

    def test_read_only_inputs_types_and_empty_buffers(self):
        body = """if 1:
            out = bytearray(4)
            comm.allreduce(bytes([rank, 1, 2, 3]), out, dtype="u8").wait()
            comm.allreduce(array.array("f")).wait()
            half = bytearray(4)
            comm.allreduce(bytes([0, 0x3c, 0, 0x40]), half, dtype="f16").wait()
            words = (ctypes.c_float * 2)(1.5, 2)
            comm.allreduce(words).wait()
            print(list(out), half.hex(), list(words))
        """
        self.assertEqual(run(2, body), ["[1, 2, 4, 6] 00400044 [3.0, 4.0]"] * 2)

    def test_orders(self):
        body = """if 1:
            values = [1e8, 1.0, -1e8]  # from the left: 0; exactly: 1
            data = array.array("f", [values[rank]])
            comm.allreduce(data, order="ranks").wait()
            exact = array.array("f", [values[rank]])
            comm.allreduce(exact, order="exact").wait()
            refused("no order 'sorted'; there are: any, replicated, ranks, tree, exact",
                    comm.allreduce, floats(rank), order="sorted")
            refused("exact", comm.allreduce, floats(rank), op="prod", order="exact",
                    error=mscclc.LibraryError)
            print(data[0], exact[0])
        """
        self.assertEqual(run(3, body), ["0.0 1.0"] * 3)

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


class Makers(unittest.TestCase):
    """Communicators from what other libraries have."""

    def test_a_communicator_of_mpi(self):
        body = """if 1:
            import os, time
            class Mpi:  # what of mpi4py's communicators is called
                def Get_rank(self): return rank
                def Get_size(self): return ranks
                def bcast(self, value, root):
                    path = os.environ["ROOM"] + "/bcast"
                    if rank == root:
                        with open(path + ".part", "wb") as file: file.write(value)
                        os.rename(path + ".part", path)
                    while not os.path.exists(path): time.sleep(0.01)
                    return open(path, "rb").read()
            with mscclc.Communicator.from_mpi(Mpi(), timeout=250) as world:
                data = floats(rank)
                world.allreduce(data).wait()
                print(world.rank, world.size, data[0])
        """
        with tempfile.TemporaryDirectory() as room:
            self.assertEqual(run(2, body, ROOM=room), ["0 2 1.0", "1 2 1.0"])

    def test_a_store(self):
        body = """if 1:
            import os, time
            class Store:  # what of c10d's stores is called
                def path(self, key): return os.environ["ROOM"] + "/" + key.replace("/", "-")
                def set(self, key, value):
                    with open(self.path(key) + ".part", "w") as file: file.write(value)
                    os.rename(self.path(key) + ".part", self.path(key))
                def get(self, key):
                    while not os.path.exists(self.path(key)): time.sleep(0.01)
                    return open(self.path(key), "rb").read()
            for name in ("a", "b"):
                with mscclc.Communicator.from_store(Store(), ranks, rank, name) as world:
                    data = floats(rank)
                    world.allreduce(data).wait()
            with mscclc.Communicator.from_store(Store(), ranks, rank, "c", order="exact") as world:
                refused("exact", world.allreduce, floats(rank), op="prod", error=mscclc.LibraryError)
            print(rank, data[0])
        """
        with tempfile.TemporaryDirectory() as room:
            self.assertEqual(run(3, body, ROOM=room), ["0 3.0", "1 3.0", "2 3.0"])


    def test_where_rank_0_makes_no_id_all_have_an_error(self):
        class Room:
            """MPI, a store and torch.distributed: what rank 0 has said is there for rank 1."""

            rank, said = 0, None

            def Get_rank(self):
                return self.rank

            def Get_size(self):
                return 2

            def bcast(self, value, root):
                self.said = self.said if value is None else value
                return self.said

            def set(self, key, value):
                self.said = value

            def get(self, key):
                return self.said.encode()

            def get_rank(self, group):
                return self.rank

            def broadcast_object_list(self, ids, group, group_src):
                ids[0] = self.bcast(ids[0], group_src)

        failure = mscclc.LibraryError(9, "no sockets")
        torch = types.ModuleType("torch")
        with mock.patch.object(communicator, "unique_id", side_effect=failure):
            for meet in (
                mscclc.Communicator.from_mpi,
                lambda room: mscclc.Communicator.from_store(room, 2, room.rank, "x"),
                lambda room: communicator.id_of_group("a group"),
            ):
                room = torch.distributed = Room()
                modules = {"torch": torch, "torch.distributed": room}
                with mock.patch.dict(sys.modules, modules):
                    with self.assertRaisesRegex(mscclc.LibraryError, "^no sockets$"):
                        meet(room)
                    room.rank = 1
                    with self.assertRaisesRegex(mscclc.LibraryError, "rank 0 has made no id: no s"):
                        meet(room)


class Buffers(unittest.TestCase):
    """What offers its memory by other ways than the buffer protocol."""

    def test_tensors_that_stand_for_other_values(self):
        """As those of torch that are negated, or conjugate, where they are read."""
        body = """if 1:
            memory = comm.allocate(3, "f32")
            class Lazy:
                neg = conj = False
                __dlpack__, __dlpack_device__ = memory.__dlpack__, memory.__dlpack_device__
                def is_neg(self): return self.neg
                def is_conj(self): return self.conj
            lazy = Lazy()
            comm.allreduce(lazy).wait()
            for bit, name in (("neg", "negative"), ("conj", "conjugate")):
                lazy.neg, lazy.conj = bit == "neg", bit == "conj"
                text = f"torch's {name} bit, so its memory has other values than the tensor: give tensor.resolve_{bit}()"
                refused(text, comm.allreduce, lazy)
                refused(text, comm.allgather, floats(1), lazy)
                refused(text, comm.allocate(12).write, lazy)
            print("refused")
        """
        self.assertEqual(run(2, body), ["refused", "refused"])

    def test_dlpack(self):
        body = """if 1:
            try:
                import numpy
            except ImportError:
                print("no numpy")
                sys.exit()
            class OnlyDlpack:
                def __init__(self, array): self.array = array
                def __dlpack__(self, **more): return self.array.__dlpack__(**more)
                def __dlpack_device__(self): return self.array.__dlpack_device__()
            data = numpy.full((3, 4), rank + 1, numpy.float32)
            comm.allreduce(OnlyDlpack(data)).wait()
            assert (data == 3).all(), data
            half = numpy.ones(8, numpy.float16)[2:]
            comm.allreduce(OnlyDlpack(half), op="sum").wait()
            assert (half == 2).all(), half
            all = numpy.zeros((2, 4), numpy.int64)
            comm.allgather(OnlyDlpack(numpy.arange(4) + rank), OnlyDlpack(all)).wait()
            assert (all == [[0, 1, 2, 3], [1, 2, 3, 4]]).all(), all
            comm.allreduce(OnlyDlpack(numpy.zeros((0, 3)))).wait()
            try:
                comm.allreduce(OnlyDlpack(data[:, ::2]))
            except mscclc.UsageError as error:
                print(error)
            comm.barrier()
        """
        found = run(2, body)
        if found[0] == "no numpy":
            self.skipTest("NumPy is not installed")
        self.assertEqual(found, ["the buffer is not contiguous"] * 2)

    def test_dlpack_of_any_library(self):
        """A tensor as DLPack lays it out, with elements that Python's buffers do not have."""
        data = (ctypes.c_uint16 * 8)()

        class Tensor:
            """bf16[2, 3], two bytes from the beginning of the data."""

            def __init__(self, strides=None, device=(1, 0), code=4, bits=16, lanes=1):
                self.device = device
                self.fields = struct.pack(
                    "PiiiBBHPPQPP", ctypes.addressof(data), *device, 2, code, bits, lanes,
                    self.numbers(2, 3), self.numbers(*strides) if strides else 0, 2, 0, 0,
                )  # fmt: skip

            def numbers(self, *values):
                self.kept = [*getattr(self, "kept", []), (ctypes.c_int64 * len(values))(*values)]
                return ctypes.addressof(self.kept[-1])

            def __dlpack_device__(self):
                return self.device

            def __dlpack__(self, stream=None):
                new = ctypes.pythonapi.PyCapsule_New
                new.restype = ctypes.py_object
                new.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
                return new(self.fields, b"dltensor", None)

        def of(of_comm=-1, **fields):
            return buffers.buffer_of(Tensor(**fields), of_comm, True)

        self.assertEqual(of()[:3], (ctypes.addressof(data) + 2, 12, "bf16"))
        self.assertEqual(of(strides=(3, 1)).bytes, 12)
        for refusal in (BufferError, ValueError):  # bf16: of JAX, and of NumPy with ml_dtypes
            refused = mock.Mock(side_effect=refusal("cannot include dtype 'E' in a buffer"))
            with mock.patch.object(buffers, "memoryview", refused, create=True):
                self.assertEqual(of()[:3], (ctypes.addressof(data) + 2, 12, "bf16"))
        self.assertEqual(of(code=12, bits=8)[1:3], (6, "e5m2"))
        self.assertEqual(of(code=5, bits=64).dtype, None)
        for text, fields in (
            ("not contiguous", {"strides": (1, 2)}), ("vectors", {"lanes": 4}),
            ("is of a GPU", {"device": (2, 0)}), ("not of GPU 0", {"device": (2, 1), "of_comm": 0}),
        ):  # fmt: skip
            with self.subTest(fields=fields), self.assertRaisesRegex(mscclc.UsageError, text):
                of(**fields)
        self.assertEqual(of(device=(2, 1), of_comm=1).dtype, "bf16")
        both = Tensor(device=(2, 1))
        both.__cuda_array_interface__ = {
            "shape": (2, 3), "typestr": "<V2", "data": (4096, False), "version": 3,
        }  # fmt: skip
        self.assertEqual(buffers.buffer_of(both, 1, True).dtype, "bf16")

    def test_what_other_libraries_refuse_is_wrong_usage(self):
        class Array:
            """Its elements are none of DLPack's, nor of Python's buffers."""

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self):
                raise refusal("no bf16")

        why = "^Array does not give its memory: no bf16; .* view it as u16 or u8 and give dtype$"
        for refusal in (BufferError, ValueError, RuntimeError):
            with self.subTest(refusal=refusal), self.assertRaisesRegex(mscclc.UsageError, why):
                buffers.buffer_of(Array(), -1, True)
        with mock.patch.object(Array, "__dlpack__", lambda self: "no capsule"):
            with self.assertRaisesRegex(mscclc.UsageError, "^Array does not give its memory: "):
                buffers.buffer_of(Array(), -1, True)
        with mock.patch.object(Array, "__cuda_array_interface__", property(lambda self: 1 / 0), create=True):
            with self.assertRaisesRegex(mscclc.UsageError, why):
                buffers.buffer_of(Array(), -1, True)
        released = memoryview(b"1234")
        released.release()
        with self.assertRaisesRegex(mscclc.UsageError, "^memoryview does not give its memory: .*released"):
            buffers.buffer_of(released, -1, True)

    def test_cuda_arrays(self):
        """Of a GPU, as the interface describes them: nothing is called, so none is needed."""

        class Array:
            def __init__(self, **fields):
                self.__cuda_array_interface__ = {
                    "shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3, **fields,
                }  # fmt: skip

        def of(device=0, writable=True, **fields):
            return buffers.buffer_of(Array(**fields), device, writable)

        self.assertEqual(of()[:3], (4096, 24, "f32"))
        self.assertEqual(of(strides=(12, 4), typestr="<i4")[:3], (4096, 24, "i32"))
        self.assertEqual(of(shape=(1, 3), strides=(7777, 4))[:3], (4096, 12, "f32"))
        self.assertEqual(of(shape=(0, 3), data=(0, False))[:3], (None, 0, "f32"))
        self.assertEqual(of(typestr=">f4").dtype, None)
        self.assertEqual(of(typestr="|b1").dtype, None)
        self.assertEqual(of(writable=False, data=(8192, True)).address, 8192)
        for text, fields in (
            ("not contiguous", {"strides": (16, 4)}), ("not contiguous", {"strides": (4, 8)}),
            ("not contiguous", {"strides": (12, 6)}), ("read-only", {"data": (4096, True)}),
            ("a mask", {"mask": Array()}), ("is of a GPU", {"device": -1}),
        ):  # fmt: skip
            with self.subTest(fields=fields), self.assertRaisesRegex(mscclc.UsageError, text):
                of(**fields)
        with self.assertRaisesRegex(mscclc.UsageError, "of the host, the communicator of GPU 0"):
            buffers.buffer_of(bytearray(4), 0, True)
        wrong = (("data", 3), ("typestr", 5), ("typestr", "f"), ("shape", 3), ("strides", 3))
        for field, value in wrong:
            with self.assertRaisesRegex(mscclc.UsageError, "array_interface__ is wrong: "):
                of(**{field: value})
        lacking = Array()
        for fields in ({}, 5, {"data": (4096, False), "shape": (1,)}):
            lacking.__cuda_array_interface__ = fields
            with self.assertRaisesRegex(mscclc.UsageError, "lacks 'data', 'shape' or 'typestr'"):
                buffers.buffer_of(lacking, 0, True)


class Ends(unittest.TestCase):
    """The interpreter ends, or something else that a communicator does not survive."""

    def test_pickling_is_refused(self):
        body = """if 1:
            import copy, pickle
            for one in (pickle.dumps, copy.copy, copy.deepcopy):
                try:
                    one(comm)
                except TypeError as error:
                    print(error)
            comm.barrier()
        """
        text = "a communicator belongs to its process and cannot be pickled"
        self.assertEqual(run(2, body), [text] * 2)

    def test_the_interpreter_may_end_with_a_communicator(self):
        """Open, with works that were never waited for: neither a crash nor a hang."""
        body = """if 1:
            import builtins, os, time
            world = comm.split(0)
            kept = world.allreduce(floats(*[1] * 100000))
            world.allreduce(floats(1, 2))
            world.synchronize()
            builtins.world, builtins.kept = world, kept
            open(f"{os.environ['ROOM']}/{rank}", "w").close()
            while len(os.listdir(os.environ["ROOM"])) < ranks:  # the first to end has died to the other
                time.sleep(0.01)
            print("end")
        """
        with tempfile.TemporaryDirectory() as room:
            self.assertEqual(run(2, body, ROOM=room), ["end", "end"])

    def test_a_variable_that_nothing_reads_is_warned_of_once(self):
        body = """if 1:
            comm.split(0).close()
            print("end")
        """
        for process in start(2, body, MSCCLC_TIMOUT="5"):
            out, errors = process.communicate(timeout=PATIENCE)
            text = "'MSCCLC_TIMOUT'; did you mean 'MSCCLC_TIMEOUT'?\n"
            self.assertEqual((process.returncode, out), (0, "end\n"), errors)
            self.assertRegex(errors, rf"^\S+ \[\d\] mscclc WARN ENV nothing reads .* {re.escape(text)}$")

    def test_contents_of_variables_are_looked_at_when_it_is_made(self):
        for name, value, text in (
            ("MSCCLC_IB_HCA", "mlx5_0:0", "MSCCLC_IB_HCA is 'mlx5_0:0'; '0' is not a port"),
            ("MSCCLC_ID", "mscclc1/1.2.3.4/5", "has 3 parts between '/', not 4"),
        ):
            with mock.patch.dict(os.environ, {name: value}):
                with self.assertRaisesRegex(mscclc.LibraryError, text):
                    mscclc.Communicator(1, mscclc.unique_id(), 0)


class Mistakes(unittest.TestCase):
    def test_buffers_that_overlap(self):
        """With any number of ranks."""
        body = """if 1:
            values = floats(*range(8))
            view = memoryview(values)
            refused = ""
            try:
                comm.allreduce(view[0:4], view[1:5]).wait()
            except mscclc.LibraryError as error:
                refused = str(error)
            comm.allreduce(view[0:4], view[0:4]).wait()
            whole = list(values)[4:] == [4, 5, 6, 7]
            print("refused" if whole and "input and output overlap" in refused else refused or values)
        """
        for ranks in (1, 2):
            self.assertEqual(run(ranks, body), ["refused"] * ranks)

    def test_a_collective_beside_a_split(self):
        body = """if 1:
            try:
                if comm.rank == 0:
                    comm.allreduce(floats(1, 2)).wait()
                else:
                    comm.split(0)
            except mscclc.LibraryError as error:
                own = "an allreduce of 2 elements of 'f32', sum" if comm.rank == 0 else "'split'"
                said = str(error)
                print("fine" if "ranks make different calls: " in said and own in said else said)
        """
        self.assertEqual(run(2, body), ["fine"] * 2)

    def test_wrong_buffers(self):
        body = """if 1:
            refused("they must have as many", comm.allreduce, floats(1), floats(1, 2))
            refused("read-only", comm.allreduce, b"1234", dtype="f32")
            refused("whole number", comm.allreduce, bytearray(3), dtype="f32")
            refused("it has neither", comm.allreduce, [1, 2])
            refused("no element type 'c'", comm.allreduce, memoryview(bytearray(4)).cast("c"))
            refused("no element type 'w'", comm.allreduce, array.array("u", "ab"))
            refused("no element type '>f'", comm.allreduce, (ctypes.c_float.__ctype_be__ * 2)())
            refused("no reduction 'add'", comm.allreduce, floats(1), op="add")
            refused("not contiguous", comm.allreduce, memoryview(floats(1, 2, 3, 4))[::2])
            refused("1 for each of 2 ranks", comm.allgather, floats(1), floats(1))
            comm.barrier()
            comm.close()
            refused("closed", comm.allreduce, floats(1))
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine", "fine"])

    def test_streams_and_devices(self):
        body = """if 1:
            try:
                comm.allreduce(floats(1), stream=0)
            except mscclc.UsageError as error:
                print(error)
        """
        self.assertEqual(run(2, body), ["the host device has no streams"] * 2)
        for device in (-2, 1 << 32, "cuda", 0.0, True):
            with self.assertRaisesRegex(mscclc.UsageError, f"the GPU is {device!r}"):
                mscclc.Communicator(1, mscclc.unique_id(), 0, device=device)

    def test_a_gpu_needs_the_gpu_part(self):
        try:
            mscclc.Communicator(1, mscclc.unique_id(), 0, device=0).close()
            error = "none"
        except mscclc.LibraryError as refused:
            error = str(refused)
        if "without the GPU part" not in error:
            self.skipTest(f"libmscclc has it: {error}")
        self.assertIn("bazel build --config=cuda //tools:mscclc //runtime/doors/c:libmscclc.so.0", error)

    def test_a_wrong_id(self):
        with self.assertRaisesRegex(mscclc.UsageError, "128 bytes, this one 3"):
            mscclc.Communicator(2, b"abc", 0)
        with self.assertRaisesRegex(mscclc.UsageError, "an id is bytes, not NoneType"):
            mscclc.Communicator(2, None, 0)

    def test_ranks_that_cannot_be(self):
        with self.assertRaisesRegex(mscclc.LibraryError, "rank 2 of 2 ranks"):
            mscclc.Communicator(2, mscclc.unique_id(), 2)
        for ranks, rank in ((0, 0), (-1, 0), ((1 << 32) + 1, 0), ("1", 0), (True, 0)):
            with self.assertRaisesRegex(mscclc.UsageError, "number of ranks is .*from 1 to 65536"):
                mscclc.Communicator(ranks, mscclc.unique_id(), rank)
        for rank in (-1, 1 << 32, 0.0, None):
            with self.assertRaisesRegex(mscclc.UsageError, f"the rank is {rank}; .* 0 to 65535"):
                mscclc.Communicator(2, mscclc.unique_id(), rank)

    def test_variables_that_are_wrong(self):
        for name, value in (("MSCCLC_TIMEOUT", "soon"), ("MSCCLC_CHECK_CALLS", "2")):
            (process,) = start(1, "pass", **{name: value})
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertIn(f"LibraryError: invalid usage: error: {name} is '{value}'", errors)

    def test_variables_that_are_wrong_at_one_rank(self):
        """Before its ranks have met, and of a child: all learn which rank it is, and why."""
        run(2, """if 1:
            import os
            def wrong(at, name, make):
                if rank == at:
                    os.environ[name] = "abc"
                try:
                    make()
                except mscclc.LibraryError as error:
                    assert f"{name} is 'abc'" in str(error), error
                    assert rank == at or f"rank {at}" in str(error), error
                else:
                    raise AssertionError(name)
                os.environ.pop(name, None)
            launched = mscclc.Communicator.from_environment
            os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", TORCHELASTIC_RUN_ID=id.hex())
            wrong(1, "MSCCLC_TIMEOUT", lambda: launched("a"))
            wrong(0, "MSCCLC_SILENCE", lambda: launched("b"))
            with launched("c") as parent:
                wrong(1, "MSCCLC_TIMEOUT", lambda: parent.split(0))
                wrong(0, "MSCCLC_SILENCE", lambda: parent.split(0))
                parent.split(0).close()
            other = bytes.fromhex("%s")
            wrong(1, "MSCCLC_TIMEOUT", lambda: mscclc.Communicator(ranks, other, rank))
            print("fine")
        """ % mscclc.unique_id().hex())  # fmt: skip

    def test_numbers_that_do_not_fit(self):
        # Truncated to 32 bits, 2**32 + 1 would be rank 1, and 2**32 the color 0.
        body = """if 1:
            for root in (-1, 2**32 + 1, "0", 1.0):
                refused("the root is", comm.broadcast, floats(rank), root)
            for color in (2**32, -(2**31) - 1, None):
                refused("the color is", comm.split, color)
            refused("the key is", comm.split, 0, 2**40)
            for most in (-1, 2**64 + 16, "1K"):
                refused("max_bytes is", comm.load, "{}", most)
            refused("more than any machine", mscclc.SymmetricMemory, 2**64 + 64, comm)
            comm.barrier()
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine", "fine"])
        for seconds in (-1, 1 << 33, float("nan"), "5"):
            with self.assertRaisesRegex(mscclc.UsageError, "the timeout is"):
                mscclc.Communicator(1, mscclc.unique_id(), 0, timeout=seconds)
        self.assertEqual(communicator._milliseconds(1e-6), 1)  # 0 would be the default

    def test_texts_that_c_would_cut(self):
        body = """if 1:
            for text in ("a\\0b", "", 5, "\\ud800"):
                refused("the reason is", comm.abort, text)
            comm.barrier()
            print("fine")
        """
        self.assertEqual(run(2, body), ["fine", "fine"])
        for name in ("a\0b", 5, None):
            with self.assertRaisesRegex(mscclc.UsageError, "the name is"):
                mscclc.Communicator.from_environment(name)

    def test_a_shape_with_a_negative_size(self):
        with self.assertRaisesRegex(mscclc.UsageError, "-5 elements in a dimension"):
            buffers._count([2, -5], None, 1)

    def test_a_rank_that_does_not_come(self):
        # The maker of the id says how long its ranks are waited for.
        body = """if 1:
            if rank == 0:
                try:
                    mscclc.Communicator(3, mscclc.unique_id(), 0)
                except mscclc.LibraryError as error:
                    print(str(error).replace(chr(10), " "))
            else:
                print()
        """
        self.assertRegex(run(2, body, MSCCLC_TIMEOUT="3")[0], "rank.* 1.*2.*")

    def test_other_threads_go_on_while_a_rank_waits(self):
        with tempfile.TemporaryDirectory() as folder:
            body = f"""if 1:
            import os, threading, time
            comm.barrier()
            path = {folder!r} + "/written"
            def write():
                time.sleep(0.3)  # by then the rank most likely waits
                open(path, "w").close()
            if rank == 0:
                threading.Thread(target=write).start()
            else:
                while not os.path.exists(path):
                    time.sleep(0.01)
            comm.barrier()
            print("met")
            """
            self.assertEqual(run(2, body), ["met", "met"])

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
            if rank == 0:
                say_when_waiting()
                comm.barrier()
            else:
                print("waiting", flush=True)
                sys.stdin.read()
        """
        end_by_ctrl_c(self, WAITS + body)

    def test_ctrl_c_ends_the_wait_of_an_end(self):
        body = """if 1:
            comm.allreduce(floats(1)).wait()
            if rank == 0:
                say_when_waiting()
                comm.allreduce(floats(1))  # rank 1 makes none, and the end of the block waits for it
            else:
                print("waiting", flush=True)
                sys.stdin.read()
        """
        end_by_ctrl_c(self, WAITS + body)

    def test_ctrl_c_ends_the_wait_of_an_end_without_a_stream(self):
        """As on a GPU."""
        body = """if 1:
            comm.allreduce(floats(1)).wait()
            if rank == 0:
                comm.allreduce(floats(1))
                comm._stream = None
                say_when_waiting()
            else:
                print("waiting", flush=True)
                sys.stdin.read()
        """
        end_by_ctrl_c(self, WAITS + body)

    def test_a_wait_where_no_thread_begins(self):
        """As where a program closes its communicator at the end of the interpreter."""
        waited = []
        with mock.patch.object(_waiting, "_idle", []):
            with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("at interpreter shutdown")):
                _waiting.wait_for(lambda: waited.append(True), None)
        self.assertEqual(waited, [True])

    def test_a_communicator_that_ends_with_its_module(self):
        """Other threads stand still then, as does one that has waited before."""
        body = """if 1:
            import mscclc
            class Ends:
                def __del__(self, comm=mscclc.Communicator(1, mscclc.unique_id(), 0)):
                    comm.close()
                    print("closed", flush=True)
            {before}
            kept = Ends()
        """
        for before in ("pass", "Ends.__del__.__defaults__[0].synchronize()"):
            done = subprocess.run(
                [sys.executable, "-c", body.format(before=before)], timeout=PATIENCE, capture_output=True, text=True
            )
            self.assertEqual((done.stdout, done.returncode), ("closed\n", 0), done.stderr)

    def test_a_handler_that_ends_the_program_ends_a_wait(self):
        body = """if 1:
            def leave(*_):
                sys.exit(0)
            comm.barrier()
            if rank == 0:
                say_when_waiting()
                signal.signal(signal.SIGINT, leave)
                try:
                    comm.barrier()
                except SystemExit:
                    comm.close()  # an error while a thread is inside
                    raise KeyboardInterrupt
            else:
                print("waiting", flush=True)
                sys.stdin.read()
        """
        end_by_ctrl_c(self, WAITS + body)

    def test_ctrl_c_ends_the_wait_for_ranks_that_load_a_plan(self):
        allreduce = "comm.allreduce(floats(1))"
        unknown = f"library().mscclc_waits = lambda *_: 2; {allreduce}"  # as when another thread was inside just then
        for call in ("comm.barrier()", allreduce, unknown):
            body = f"""if 1:
                if rank == 0:
                    say_when_waiting()
                    {call}
                else:
                    print("waiting", flush=True)
                    sys.stdin.read()
            """
            with self.subTest(call=call):
                end_by_ctrl_c(self, WAITS + body)

    def test_a_second_thread_is_refused_and_nothing_is_disturbed(self):
        # Rank 0's first call waits in the library until rank 1 comes: when a second thread of rank
        # 0 has been refused.
        with tempfile.TemporaryDirectory() as folder:
            body = f"""if 1:
            import os
            path, said = {folder!r} + "/refused", []
            def is_refused(function):
                try:
                    function()
                except mscclc.LibraryError as error:
                    return "another thread is inside" in str(error)
            def enter():
                wait_until_a_wait_is_inside()
                said.append(is_refused(lambda: comm.allreduce(floats(7))))
                said.append(is_refused(comm.synchronize))
                said.append(is_refused(comm.close))
                open(path, "w").close()
            data = floats(rank, 1)
            if rank == 0:
                threading.Thread(target=enter).start()
            while rank != 0 and not os.path.exists(path):
                time.sleep(0.001)
            retried(comm.allreduce, data).wait()
            assert list(data) == [1, 2], data
            print(said)
            """
            self.assertEqual(run(2, WAITS + body), ["[True, True, True]", "[]"])

    def test_a_block_that_the_end_of_the_program_leaves_is_no_failure(self):
        for end in ("0", ""):
            body = f"""if 1:
                import os
                child = os.fork()
                if child == 0:
                    sys.exit({end})
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                comm.barrier()
                print(status, flush=True)
                if comm.rank == 0:
                    sys.exit({end})
                import time
                time.sleep(0.2)  # by now an abort would be here
                assert comm._handle is not None
                """
            with self.subTest(end=end):
                self.assertEqual(run(2, body), ["0", "0"])

    def test_a_block_that_ends_with_an_error_code_is_a_failure(self):
        body = """if 1:
            if comm.rank == 0:
                comm.barrier()  # by then the other is inside its block
                sys.exit(3)
            try:
                comm.barrier()
                comm.barrier()
            except mscclc.LibraryError as error:
                assert "SystemExit" in str(error), error
                print("heard")
                sys.exit(0)
            """
        processes = start(2, body)
        outcomes = [process.communicate(timeout=PATIENCE) for process in processes]
        self.assertEqual([process.returncode for process in processes][0], 3)
        self.assertIn("heard", outcomes[1][0])

    def test_plans_as_bytes(self):
        body = """if 1:
            refused("a plan is a Plan or its text, not int", comm.load, 7, 64)
            refused("a plan is a Plan or its text, not NoneType", comm.load, None, 64)
            for text in ("not a plan", b"not a plan", bytearray(b"not a plan")):
                refused("not JSON", comm.load, text, 64, error=mscclc.LibraryError)
            print("done")
            """
        self.assertEqual(run(2, body), ["done", "done"])

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

"""Memory of devices: what takes it, how long it lives, and what of GPUs can be seen without one."""

import ctypes
import gc
import os
import unittest
import weakref
from unittest import mock

import mscclc
from mscclc import _library, buffers, dlpack
from mscclc.memory import DeviceMemory

from rank_processes import run


class Stub:
    """What memory asks of a communicator."""

    def __init__(self, device):
        self._device = device


class Host(unittest.TestCase):
    def test_collectives(self):
        body = """if 1:
            memory = comm.allocate(6, "f32")
            assert memory.view().tolist() == [0] * 6 and memory.bytes == 24 and len(memory) == 6
            memory.view()[:] = floats(*range(rank, rank + 6))
            comm.allreduce(memory).wait()
            assert memory.view().tolist() == [1, 3, 5, 7, 9, 11]
            whole = comm.allocate(4, "f32")
            comm.allgather(memory[4:], whole).wait()
            print(whole.view().tolist(), memory[1:3].view().tolist(), memory)
        """
        wanted = "[9.0, 11.0, 9.0, 11.0] [3.0, 5.0] <DeviceMemory: 6 f32 of the host>"
        self.assertEqual(run(2, body), [wanted] * 2)

    def test_copies_and_types(self):
        body = """if 1:
            for dtype in ("f16", "bf16", "f64", "u32", "i64", "u8", "e4m3", "e4m3b15"):
                memory = comm.allocate(3, dtype)
                data = bytes(range(memory.bytes))
                memory.write(data)
                assert memory.read() == data == bytes(memory.view()), dtype
                assert len(memory[2:]) == 1 and len(memory[3:1]) == 0 and len(memory[-2:]) == 2
            none = comm.allocate(0, "f32")
            none.write(b"")
            comm.allreduce(none).wait()
            assert none.read() == b"" and len(none.view()) == 0
            refused("2 bytes for memory of 12", memory.__class__.write, comm.allocate(3, "f32"), b"12")
            refused("int is not a buffer", memory.write, 7)
            refused("a slice", memory.__getitem__, 1)
            refused("a slice", memory.__getitem__, slice(0, 2, 2))
            refused("no element type 'f8'", comm.allocate, 1, "f8")
            refused("the number of elements", comm.allocate, -1)
            print("fine")
        """
        self.assertEqual(run(1, body), ["fine"])

    def test_copies_wait_for_what_is_queued(self):
        body = """if 1:
            sent, come = comm.allocate(1 << 20), comm.allocate(1 << 20)
            for byte in range(1, 51):
                sent.write(bytes([byte]) * len(sent))
                comm.alltoall(sent, come)
                sent.write(bytes(len(sent)))
                assert come.read() == bytes([byte]) * len(come), byte
            print("fine")
        """
        self.assertEqual(run(1, body), ["fine"])

    def test_more_than_the_machine_has(self):
        body = """if 1:
            refused("out of memory: ", comm.allocate, 1 << 46, error=mscclc.LibraryError)
            refused("the machine has ", comm.allocate, 1 << 46, error=mscclc.LibraryError)
            print(comm.allocate(1000).bytes)
        """
        self.assertEqual(run(1, body), ["1000"])

    def test_it_outlives_the_communicator(self):
        body = """if 1:
            view = comm.allocate(1 << 20)[5:].view()
            view[0] = 7
            comm.close()
            view[-1] = 8
            print(view[0], sum(view), len(view))
        """
        self.assertEqual(run(1, body), ["7 15 1048571"])

    def test_numpy_takes_it(self):
        body = """if 1:
            try:
                import numpy
            except ImportError:
                print("no numpy")
                sys.exit()
            from mscclc import dlpack
            memory = comm.allocate(5, "i32")
            memory.view()[:] = array.array("i", range(5))
            arrays = [numpy.from_dlpack(memory[1:]) for _ in range(3)]
            del memory
            assert all(one.tolist() == [1, 2, 3, 4] and one.dtype == "i4" for one in arrays)
            assert len(dlpack._given) == 3
            del arrays
            print(len(dlpack._given))
        """
        found = run(1, body)
        if found == ["no numpy"]:
            self.skipTest("NumPy is not installed")
        self.assertEqual(found, ["0"])


class Protocols(unittest.TestCase):
    def memory(self, dtype, device=3):
        return DeviceMemory(Stub(device), 4096, 10, dtype, None)

    def test_the_array_interface_of_gpus(self):
        memory = self.memory("f32")
        self.assertEqual(
            memory.__cuda_array_interface__,
            {"shape": (10,), "typestr": "<f4", "data": (4096, False), "version": 3, "stream": None},
        )
        self.assertEqual(memory[2:4].__cuda_array_interface__["data"], (4104, False))
        self.assertEqual(memory[4:4].__cuda_array_interface__["data"], (0, False))
        for other in (self.memory("f32", -1), self.memory("bf16")):
            self.assertFalse(hasattr(other, "__cuda_array_interface__"))
        with self.assertRaisesRegex(mscclc.UsageError, "no memoryview"):
            memory.view()

    def test_it_is_a_buffer_of_calls(self):
        for dtype, width in (("f32", 4), ("bf16", 2), ("e5m2", 1), ("u64", 8)):
            found = buffers.buffer_of(self.memory(dtype)[1:], 3, True)
            self.assertEqual(found[:3], (4096 + width, 9 * width, dtype))
        host = buffers.buffer_of(self.memory("u8", -1), -1, True)
        self.assertEqual(host[:3], (4096, 10, "u8"))
        for device, dtype in ((-1, "f32"), (2, "bf16"), (-1, "bf16")):
            with self.assertRaisesRegex(mscclc.UsageError, "is of a GPU|not of GPU 2"):
                buffers.buffer_of(self.memory(dtype), device, True)

    def test_dlpack(self):
        memory = self.memory("f16")
        self.assertEqual(memory.__dlpack_device__(), (2, 3))
        capsule = memory.__dlpack__(stream=-1, max_version=(1, 0), dl_device=(2, 3), copy=False)
        self.assertEqual(len(dlpack._given), 1)
        del capsule
        self.assertEqual(len(dlpack._given), 0)
        for more in ({"copy": True}, {"dl_device": (1, 0)}):
            with self.assertRaisesRegex(BufferError, "without a copy"):
                memory.__dlpack__(**more)
        with self.assertRaisesRegex(BufferError, "no elements of type 'e4m3b15'"):
            self.memory("e4m3b15").__dlpack__()

    def test_a_tensor_that_is_taken_over_lives_until_its_deleter(self):
        capsule = self.memory("u8").__dlpack__()
        (address,) = dlpack._given
        rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_SetName", ctypes.pythonapi)
        )
        used = b"used_dltensor"
        rename(capsule, used)
        del capsule
        self.assertIn(address, dlpack._given)
        deleter = dlpack._given[address][0].deleter
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)
        self.assertEqual(len(dlpack._given), 0)


class FakeLibrary:
    """Memory and calls of a GPU: addresses that are never read."""

    def __init__(self):
        self.released, self.deregistered, self.calls = [], [], []
        self.marks = self.reached = 0
        self.order = []  # of waits and copies

    def mscclc_stream_synchronize(self, comm, stream):
        self.order.append(("wait", stream.value))
        return 0

    def mscclc_read(self, comm, target, address, bytes):
        self.order.append("read")
        return 0

    def mscclc_write(self, comm, address, source, bytes):
        self.order.append("write")
        return 0

    def mscclc_memory_create(self, comm, bytes, memory):
        memory._obj.value = 5
        return 0

    def mscclc_memory_address(self, memory):
        return 1 << 20

    def mscclc_memory_release(self, memory):
        self.released.append(memory.value)
        return 0

    def mscclc_register(self, comm, address, bytes, number):
        number._obj.value = 11
        return 0

    def mscclc_registered_address(self, comm, number, rank, address, bytes):
        address._obj.value, bytes._obj.value = (1 << 20) * (1 + rank), 64
        return 0

    def mscclc_deregister(self, comm, number):
        self.deregistered.append(number)
        return 0

    def mscclc_stream_mark(self, comm, stream, mark, reached):
        self.marks += 1
        mark._obj.value, reached._obj.value = self.marks, self.reached
        return 0

    def mscclc_comm_rank(self, comm, number):
        number._obj.value = 0
        return 0

    def mscclc_comm_size(self, comm, number):
        number._obj.value = 2
        return 0

    def mscclc_waits(self, comm, call, stream, waits):
        return 0

    def mscclc_collective(self, comm, call, stream):
        fields = call._obj
        self.calls.append((fields.input, fields.output, fields.count, fields.registered))
        return 0


class OnAGpu:
    """An array of another package."""

    def __init__(self):
        self.__cuda_array_interface__ = {
            "data": (1 << 20, False), "shape": (4,), "typestr": "<f4", "version": 3,
        }  # fmt: skip


class OfAGpu(unittest.TestCase):
    def setUp(self):
        self.library = FakeLibrary()
        loaded = mock.patch.object(_library, "_loaded", self.library)
        loaded.start()
        self.addCleanup(loaded.stop)
        self.comm = comm = mscclc.Communicator.__new__(mscclc.Communicator)
        comm._device, comm._process, comm._unfinished = 1, os.getpid(), []
        comm._take(ctypes.c_void_p(3))

    def test_memory_is_released_once(self):
        memory = self.comm.allocate(16, "f32")
        part = memory[8:]
        self.assertEqual(part.__cuda_array_interface__["data"], ((1 << 20) + 32, False))
        del memory
        gc.collect()
        self.assertEqual(self.library.released, [])
        del part
        gc.collect()
        self.assertEqual(self.library.released, [5])

    def test_copies_wait_for_the_default_stream(self):
        memory = self.comm.allocate(4)
        memory.write(b"four")
        memory.read()
        self.assertEqual(self.library.order, [("wait", None), "write", ("wait", None), "read"])

    def use(self, arrays, stream):
        """Calls whose works are dropped; how many of their arrays are gone."""
        gone = []
        for _ in range(arrays):
            array = OnAGpu()
            weakref.finalize(array, gone.append, None)
            self.comm.allreduce(array, stream=stream)
        return gone

    def test_buffers_go_when_their_stream_has_come_past_their_calls(self):
        gone = self.use(40, stream=7)
        self.assertEqual(len(gone), 0, "no mark is reached")
        self.library.reached = self.library.marks
        self.use(9, stream=8)
        self.assertEqual(len(gone), 0, "the marks are of another stream")
        self.use(9, stream=7)
        self.assertGreaterEqual(len(gone), 32)

    def test_buffers_do_not_pile_up_where_a_program_waits_by_other_means(self):
        for _ in range(20):
            self.library.reached = self.library.marks
            self.use(8, stream=7)
        self.assertLess(len(self.comm._unfinished) + sum(len(b) for _, b in self.comm._marked[7]), 32)

    def test_collectives_use_symmetric_memory_where_it_lies(self):
        memory = mscclc.SymmetricMemory(64, self.comm)
        own, other = memory.buffer(), memory.buffer(1)
        self.assertEqual((own.address, other.address), (1 << 20, 2 << 20))
        self.assertEqual(own.__cuda_array_interface__["shape"], (64,))
        self.comm.allreduce(own[16:32], dtype="f32", symmetric=True)
        self.comm.allreduce(own[:32], own[32:], dtype="f32")
        begin = 1 << 20
        self.assertEqual(
            self.library.calls, [(begin + 16, begin + 16, 4, 1), (begin, begin + 32, 8, 0)]
        )
        with self.assertRaisesRegex(mscclc.UsageError, "not in the communicator's symmetric memory"):
            self.comm.allreduce(other, dtype="f32", symmetric=True)
        memory.close()
        del memory, own
        self.comm._unfinished.clear()
        self.comm.rank  # frees what is not needed
        self.assertEqual(self.library.deregistered, [], "a buffer is still there")
        del other
        gc.collect()
        self.comm.rank
        self.assertEqual(self.library.deregistered, [11])


if __name__ == "__main__":
    unittest.main()

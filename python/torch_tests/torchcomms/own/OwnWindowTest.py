"""Windows: what TorchComms' own test does on GPUs, and more, on the host device."""

import copy
import gc
import unittest

import torch
import torch.distributed._symmetric_memory as symm
from ranks import DEVICE, RANK, SIZE, comm, in_cpp, meet, on_host
from torchcomms import ReduceOp, TorchCommWinAccessType

import mscclc.torch.symmetric  # noqa: F401  # it registers itself

if DEVICE.type == "cuda":
    symm.set_backend("MSCCLC")  # for the host torch has no other
AHEAD, BACK = (RANK + 1) % SIZE, (RANK - 1) % SIZE


def symmetric(*shape, dtype=torch.float32):
    """A tensor that windows take."""
    return symm.empty(*shape, dtype=dtype, device=DEVICE)


@in_cpp
class OwnWindowTest(unittest.TestCase):
    def setUp(self):
        self.comm = comm(self.id())

    def tearDown(self):
        self.comm.finalize()

    def test_put_and_signal(self):
        for dtype in (torch.float32, torch.int32, torch.int8, torch.bfloat16):
            for wait in (False, True):
                tensor = symmetric(SIZE, 1000, dtype=dtype).fill_(-1)
                window = self.comm.new_window(tensor)
                for i in range(10):
                    given = torch.full((1000,), 10 * RANK + i, dtype=dtype)
                    window.put(given, AHEAD, RANK * 1000, wait).wait()
                    window.signal(AHEAD, wait).wait()
                    window.wait_signal(BACK, wait).wait()
                    self.assertTrue(torch.equal(tensor[BACK], torch.full_like(given, 10 * BACK + i)))
                    self.comm.barrier(False)  # before the next one writes there
                window.tensor_deregister()

    def test_in_the_order_of_collectives(self):
        """What is put is what the collective before it has made."""
        tensor = symmetric(4).zero_()
        window = self.comm.new_window(tensor)
        given = torch.ones(4)
        works = [self.comm.all_reduce(given, ReduceOp.SUM, True), window.put(given, AHEAD, 0, True),
                 window.signal(AHEAD, True), window.wait_signal(BACK, True)]  # fmt: skip
        works[-1].wait()
        self.assertTrue(torch.equal(tensor, torch.full((4,), float(SIZE))))
        window.tensor_deregister()

    def test_signals_are_counted(self):
        """A rank that signals does not wait for those that wait."""
        window = self.comm.new_window(symmetric(1))
        for _ in range(5):
            window.signal(AHEAD, False)
        self.comm.barrier(False)
        for _ in range(5):
            window.wait_signal(BACK, False)
        window.tensor_deregister()

    def test_peers_memory(self):
        parts = symmetric(2 * SIZE, 3)  # windows need not begin where allocations do
        tensor = parts[SIZE:]
        tensor.fill_(RANK)
        window = self.comm.new_window()
        window.tensor_register(tensor)
        for rank in range(SIZE):
            self.assertEqual(window.get_attr(rank).access_type,
                             TorchCommWinAccessType.WIN_ACCESS_TYPE_UNIFIED)  # fmt: skip
            there = window.map_remote_tensor(rank)
            self.assertTrue(torch.equal(there, torch.full((SIZE, 3), float(rank))))
        self.comm.barrier(False)
        window.map_remote_tensor(AHEAD)[RANK] = 100.0 + RANK
        self.comm.barrier(False)
        self.assertTrue(torch.equal(tensor[BACK], torch.full((3,), 100.0 + BACK)))
        window.tensor_deregister()
        window.tensor_register(parts[:SIZE].fill_(7))
        self.assertTrue(torch.equal(window.map_remote_tensor(AHEAD), torch.full((SIZE, 3), 7.0)))
        window.tensor_deregister()

    def test_clone(self):
        tensor = symmetric(3).fill_(RANK)
        window = self.comm.new_window(tensor)
        other = copy.deepcopy(window)
        tensor.fill_(-1)
        self.comm.barrier(False)
        there = other.map_remote_tensor(AHEAD)
        self.assertTrue(torch.equal(there, torch.full((3,), float(AHEAD))))
        for one in (other, window):
            one.tensor_deregister()

    def test_refusals(self):
        """Those of registrations are on all ranks, whichever gives the wrong tensor."""
        ours, alien = symmetric(4), torch.zeros(4)
        last = RANK == SIZE - 1
        with self.assertRaisesRegex(RuntimeError, f"rank {SIZE - 1} is of another allocator.*empty"):
            self.comm.new_window(alien if last else ours)
        if SIZE > 1:
            with self.assertRaisesRegex(RuntimeError, f"ranks 0 and {SIZE - 1} give"):
                self.comm.new_window(ours[:3] if last else ours)
        window = self.comm.new_window()
        with self.assertRaisesRegex(RuntimeError, "contiguous"):
            window.tensor_register(symmetric(4, 2).t())
        for call in (lambda: window.put(alien, AHEAD, 0, False), window.tensor_deregister,
                     lambda: window.signal(AHEAD, False)):  # fmt: skip
            with self.assertRaisesRegex(RuntimeError, "has no tensor"):
                call()
        window.tensor_register(ours)
        with self.assertRaisesRegex(RuntimeError, "has a tensor already"):
            window.tensor_register(ours)
        for call, words in (
            (lambda: window.put(alien, AHEAD, 1, False), "16 bytes from byte 4 of a window of 16"),
            (lambda: window.put(alien, AHEAD, 2**62, False), "of a window of 16"),
            (lambda: window.put(alien, SIZE, 0, False), f"no rank {SIZE} among {SIZE}"),
            (lambda: window.get_device_window(), "map_remote_tensor"),
        ):
            with self.assertRaisesRegex(RuntimeError, words):
                call()
        window.tensor_deregister()

    @on_host
    def test_a_wait_ends_when_the_communicator_is_aborted(self):
        one = comm("aborted", abort_process_on_timeout_or_error=False)  # another rank may be first
        window = one.new_window(symmetric(4))
        work = window.wait_signal(BACK, True)  # no rank signals
        meet()
        one.abort()
        with self.assertRaises(RuntimeError):
            work.wait()
        with self.assertRaisesRegex(RuntimeError, "was aborted"):
            window.signal(AHEAD, False)
        one.finalize()
        with self.assertRaisesRegex(RuntimeError, "was finalized"):
            window.tensor_deregister()
        del window
        gc.collect()


if __name__ == "__main__":
    unittest.main()

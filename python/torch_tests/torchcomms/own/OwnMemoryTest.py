"""Persistent all-gathers, registered tensors, hints, and what is refused."""

import unittest

import torch
from ranks import RANK, SIZE, comm, in_cpp, total


@in_cpp
class OwnMemoryTest(unittest.TestCase):
    def setUp(self):
        self.comm = comm(self.id())

    def tearDown(self):
        self.comm.finalize()

    def test_persistent_all_gathers(self):
        outputs = [torch.zeros(SIZE * count) for count in (1000, 3)]
        handles = [self.comm.all_gather_p_init(output) for output in outputs]
        for i in range(3):
            for output, handle in zip(outputs, handles):
                given = torch.full((output.numel() // SIZE,), 10.0 * RANK + i)
                self.comm.all_gather_p_exec(handle, given, i % 2 == 0).wait()
                wanted = torch.arange(float(SIZE)).repeat_interleave(given.numel()) * 10 + i
                self.assertTrue(torch.equal(output, wanted))
        with self.assertRaisesRegex(RuntimeError, "elements"):
            self.comm.all_gather_p_exec(handles[0], torch.zeros(7), False)
        for handle in handles:
            self.comm.all_gather_p_free(handle)
            with self.assertRaisesRegex(RuntimeError, "freed before"):
                self.comm.all_gather_p_free(handle)
            with self.assertRaisesRegex(RuntimeError, "no such handle"):
                self.comm.all_gather_p_exec(handle, torch.zeros(3), False)
        if SIZE > 1:
            with self.assertRaisesRegex(RuntimeError, "no equal parts"):
                self.comm.all_gather_p_init(torch.zeros(SIZE + 1))

    def test_registered_tensors(self):
        """On some ranks, as no other takes part."""
        tensor = torch.full((5,), float(RANK))
        if RANK == 0:
            self.comm.tensor_register(tensor)
            self.comm.tensor_register(tensor)
        self.comm.broadcast(tensor, SIZE - 1, False)
        self.assertTrue(torch.equal(tensor, torch.full((5,), SIZE - 1.0)))
        if RANK == 0:
            self.comm.tensor_deregister(tensor)
            self.comm.tensor_deregister(tensor)
        with self.assertRaisesRegex(RuntimeError, "no such tensor"):
            self.comm.tensor_deregister(tensor)

    def test_hints(self):
        self.comm.set_hints({"a": "b"})
        self.assertEqual(self.comm.get_options().hints, {"a": "b"})
        self.assertEqual(total(self.comm), SIZE)

    def test_no_handle_for_kernels(self):
        with self.assertRaisesRegex(RuntimeError, "mscclc get_device_transport.*map_remote_tensor"):
            self.comm.get_device_transport()


if __name__ == "__main__":
    unittest.main()

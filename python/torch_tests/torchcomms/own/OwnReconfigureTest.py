"""reconfigure(): TorchComms' own tests, on the host device, too, where they try only gloo; and ours."""

import os
import unittest
from datetime import timedelta

from ranks import DEVICE, PATIENCE, RANK, SIZE, comm, in_cpp, store, total
from torchcomms.tests.integration.py import ReconfigureTest as theirs


@in_cpp
class OwnReconfigureTest(theirs.ReconfigureTest):
    SUPPORTED_BACKENDS = {"mscclc"}

    def setUp(self):
        self.backend, self.device = os.environ["TEST_BACKEND"], DEVICE
        self.rank, self.world_size, self.store = RANK, SIZE, store()

    def made(self, name):
        """A communicator without ranks yet, and the handles of all."""
        one = comm(name, store=self.store, enable_reconfigure=True)
        return one, self._collect_handles(one, name)

    def test_any_order(self):
        one, handles = self.made("set")
        one.reconfigure(uuid=1, init_handles=set(handles), timeout=PATIENCE)
        self.assertEqual(total(one), SIZE)
        one.finalize()

    def test_the_order_of_the_handles_is_that_of_the_ranks(self):
        one, handles = self.made("order")
        one.reconfigure(uuid=1, init_handles=handles[::-1])
        self.assertEqual((one.get_rank(), one.get_size()), (SIZE - 1 - RANK, SIZE))
        one.finalize()

    def test_splits_of_ranks_that_came_at_different_times(self):
        one, handles = self.made("splits")
        if RANK == 0:
            one.reconfigure(uuid=1, init_handles=handles[:1])
            one.split([0], "alone").finalize()
        one.reconfigure(uuid=2, init_handles=handles)
        child = one.split(list(range(SIZE)), "all")
        self.assertEqual(total(child), SIZE)
        child.finalize()
        one.finalize()

    def test_refusals(self):
        one, handles = self.made("refusals")
        for words, members, uuid in (
            ("is not one of those given", ["mscclc/refusals/absent"], 1),
            ("is named twice", [*handles, handles[0]], 2),
        ):
            with self.assertRaisesRegex(RuntimeError, words):
                one.reconfigure(uuid=uuid, init_handles=members)
        with self.assertRaisesRegex(RuntimeError, "has no ranks: reconfigure"):
            one.barrier(False)
        one.reconfigure(uuid=3, init_handles=handles)
        with self.assertRaisesRegex(RuntimeError, "uuid 3 was used before"):
            one.reconfigure(uuid=3, init_handles=handles)
        self.assertEqual(total(one), SIZE)
        one.finalize()
        other = comm("fixed")
        with self.assertRaisesRegex(RuntimeError, "without enable_reconfigure"):
            other.reconfigure(uuid=1, init_handles=[other.get_init_handle()])
        other.finalize()

    def test_who_does_not_come_is_waited_for_no_longer_than_said(self):
        """An error, after which others may be asked."""
        one, handles = self.made("late")
        absent = "mscclc/late/absent"
        with self.assertRaisesRegex(RuntimeError, f"{absent} has not come within 15000 ms"):
            one.reconfigure(
                uuid=1, init_handles=[*handles, absent], timeout=timedelta(seconds=15)
            )
        one.reconfigure(uuid=2, init_handles=handles, timeout=PATIENCE)
        self.assertEqual(total(one), SIZE)
        one.finalize()


if __name__ == "__main__":
    unittest.main()

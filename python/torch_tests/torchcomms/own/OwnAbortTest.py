"""abort(): from any thread; what waits ends with an error, and hooks are called first."""

import threading
import unittest

import torch
import torchcomms
from ranks import RANK, SIZE, comm, in_cpp, meet, on_host, store, total


@in_cpp
class OwnAbortTest(unittest.TestCase):
    def test_another_thread_ends_what_waits(self):
        """Only rank 0 makes calls, so that they would never end; its process goes on."""
        one = comm("waits")
        self.assertTrue(one.is_abort_supported())
        self.assertFalse(one.is_aborted())
        words = []
        one.register_abort_hook(lambda: words.append("first"))
        one.register_abort_hook(lambda: words.append("second"))
        one.register_abort_hook(lambda: words.append("removed")).remove()
        works = []
        if RANK == 0:
            works = [one.all_reduce(torch.ones(5), torchcomms.ReduceOp.SUM, True) for _ in range(3)]
        threads = [threading.Thread(target=one.abort) for _ in range(2)]
        meet()  # or another rank might still be about to make the communicator
        if RANK != 0:
            meet()  # news from another rank would end rank 0's process
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if RANK == 0:
            meet()
        for work in works:
            with self.assertRaises(RuntimeError):
                work.wait()
            self.assertFalse(work.is_completed())
        self.assertEqual(words, ["first", "second"])
        self.assertTrue(one.is_aborted())
        for call in (one.barrier, lambda wait: one.split([RANK], "none")):
            with self.assertRaisesRegex(RuntimeError, "'waits' was aborted; finalize.. it"):
                call(False)
        one.finalize()
        with self.assertRaisesRegex(RuntimeError, "was finalized"):
            one.finalize()
        self.assertEqual(words, ["first", "second"])

    @on_host
    @unittest.skipIf(SIZE < 2, "needs two ranks")
    def test_the_others_learn_of_it(self):
        one = comm("learns", abort_process_on_timeout_or_error=False)
        meet()
        if RANK == 0:
            one.abort()
        else:
            with self.assertRaisesRegex(RuntimeError, "was aborted"):
                one.barrier(False)
            self.assertTrue(one.is_aborted())
            one.abort()
        one.finalize()

    def test_other_communicators_go_on(self):
        both = store()
        one, other = comm("one", store=both), comm("other", store=both)
        meet()
        one.abort()
        self.assertEqual(total(other), SIZE)
        self.assertFalse(other.is_aborted())
        other.finalize()
        one.finalize()

    def test_a_hook_that_fails_does_no_harm(self):
        one, words = comm("fails"), []

        def fails():
            raise ValueError("of the hook")

        one.register_abort_hook(fails)
        one.register_abort_hook(lambda: words.append("after it"))
        meet()
        one.abort()
        self.assertEqual(words, ["after it"])
        one.finalize()


if __name__ == "__main__":
    unittest.main()

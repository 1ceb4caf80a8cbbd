"""Calls on devices. Events: none is made on the steady path, and only so many are kept.

The device is one in name only that counts them: COUNTED_EVENTS names the library of counted_events.cc,
which `event_pool.py LIBRARY` builds.
"""

import os
import sys

import torch

from mscclc.torch import adapter

ALONE = True


def build(library):
    """Takes as long as the machine needs: no check waits for it."""
    here = os.path.dirname(os.path.abspath(__file__))
    more = ["-I", os.path.join(here, "..", ".."), adapter.path()]
    more.append(f"-Wl,-rpath,{os.path.dirname(adapter.path())}")
    adapter.compile_library([os.path.join(here, "counted_events.cc")], library, more)


def no_event_on_the_steady_path(ranks):
    adapter.load()
    torch.ops.load_library(os.environ["COUNTED_EVENTS"])
    calls = torch.ops.mscclc_tests.events_of_calls
    made, alive = calls(1, 1, 1)
    assert made == alive == 2, (made, alive)  # one before the call, one after it
    assert calls(1, 1000, 1) == [made, made]
    # Each call that was not waited for has one, and one more is on its way.
    assert calls(1, 1000, 10) == [11, 11]
    assert calls(1, 1000, 10) == [11, 11]


def several_threads(ranks):
    """Each has up to ten calls, and so eleven events."""
    made, alive = torch.ops.mscclc_tests.events_of_calls(4, 500, 10)
    assert made == alive <= 44, (made, alive)


def only_so_many_are_kept(ranks):
    most = torch.ops.mscclc_tests.most_events()
    made, alive = torch.ops.mscclc_tests.events_of_calls(1, 3 * most, 3 * most)
    assert made > 3 * most and alive == most, (made, alive, most)


def a_barrier_is_where_all_ranks_have_called(ranks):
    """Two ranks that sent each other messages on a GPU meet the others on the host. Of several GPUs, the one of the
    first call, as it is one call on all ranks, whatever the GPU's index on each."""
    barrier_after = torch.ops.mscclc_tests.barrier_after
    assert barrier_after([], []) == "cpu"
    assert barrier_after(["cuda:1"], [0]) == "cpu"
    assert barrier_after(["cuda:1"], [-1]) == "cuda:1"
    assert barrier_after(["cuda:1", "cuda:1"], [-1, 0]) == "cuda:1"
    assert barrier_after(["cuda:2", "cuda:0", "cuda:2"], [-1, -1, -1]) == "cuda:2"
    assert barrier_after(["cuda:0", "cuda:1", "cuda:3"], [0, -1, -1]) == "cuda:1"


def a_barrier_waits_for_the_current_gpu(ranks):
    """Before the group's first call there, too; but a process that does not use the GPU gets no context."""
    waits = torch.ops.mscclc_tests.waits_of_barrier
    assert waits("cpu", [], True) == waits("cpu", ["cpu"], True) == 1
    assert waits("cpu", [], False) == 0
    # What is on the barrier's own GPU is before it anyway, and none is waited for twice.
    assert waits("privateuseone:0", ["privateuseone:0"], True) == 0
    assert waits("cpu", ["privateuseone:0", "privateuseone:0"], True) == 1


def a_call_that_fails_midway(ranks):
    """What it has put on its stream keeps its tensors, and what the caller does next is after that."""
    kept, waited = torch.ops.mscclc_tests.uses_of_failed(False)
    assert (kept, waited) == (2, 1), (kept, waited)
    kept, waited = torch.ops.mscclc_tests.uses_of_failed(True)
    assert kept == 2, kept


CHECKS = [
    no_event_on_the_steady_path, several_threads, only_so_many_are_kept,
    a_barrier_is_where_all_ranks_have_called, a_barrier_waits_for_the_current_gpu,
    a_call_that_fails_midway,
]  # fmt: skip

if __name__ == "__main__":
    build(sys.argv[1])

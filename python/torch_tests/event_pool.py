"""Events of devices: none is made on the steady path, and only so many are kept.

The device is one in name only that counts them (counted_events.cc), which is built here.
"""

import os

import torch

from mscclc.torch import adapter

ALONE = True


def no_event_on_the_steady_path(ranks):
    here = os.path.dirname(os.path.abspath(__file__))
    of_adapter = [adapter.path(), f"-Wl,-rpath,{os.path.dirname(adapter.path())}"]
    adapter.load()
    torch.ops.load_library(
        adapter.compile_library(
            [os.path.join(here, "counted_events.cc")], f"{ranks.folder}/libevents.so", of_adapter
        )
    )
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


CHECKS = [no_event_on_the_steady_path, several_threads, only_so_many_are_kept]

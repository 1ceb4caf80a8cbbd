"""Works of TorchComms make no event on the steady path, and see failed ranks (counted_works.cc, which is built here)."""

import os
import tempfile
import unittest

import torch
import torchcomms
from ranks import in_cpp

from mscclc.torch import adapter


@in_cpp
class OwnEventsTest(unittest.TestCase):
    def test_works(self):
        here = os.path.dirname(os.path.abspath(__file__))
        core = os.path.dirname(torchcomms.__file__)
        libraries = [
            os.environ["TORCHCOMMS_BACKEND_LIB_PATH_MSCCLC"], adapter.path(),
            os.path.join(core, "libtorchcomms.so"),
        ]  # fmt: skip
        more = ["-I", os.path.join(here, *[".."] * 4), "-isystem", os.path.join(core, "..", "..")]
        more += libraries
        more += [f"-Wl,-rpath,{os.path.dirname(os.path.abspath(path))}" for path in libraries]
        adapter.load()
        with tempfile.TemporaryDirectory() as folder:
            torch.ops.load_library(
                adapter.compile_library(
                    [os.path.join(here, "counted_works.cc")], f"{folder}/libworks.so", more
                )
            )
        works = torch.ops.mscclc_own_tests.events_of_works
        self.assertEqual(works(1), [2, 2])  # one for the call, and one to wait for the device
        self.assertEqual(works(1000), [2, 2])
        self.assertEqual(torch.ops.mscclc_own_tests.failed_work(),
                         "mscclc: ranks have failed, and a call has not been done; the watch sees it")  # fmt: skip


if __name__ == "__main__":
    unittest.main()

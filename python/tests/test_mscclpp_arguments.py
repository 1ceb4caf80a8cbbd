"""Arguments of MSCCL++'s language that are wrong: each is one error at its line, which says what it must be."""

import contextlib
import io
import os
import signal
import tempfile
import unittest

from mscclc.mscclpp.command import main

PROGRAM = """\
from mscclpp.language import *
from mscclpp.language.internal.types import *
with CollectiveProgram("wrong", AllReduce(2, 1, True), 2):
    rank, own, peer = Rank(0), Rank(0).get_input_buffer(), Rank(1).get_input_buffer()
    scratch, channel = Buffer(0, 4), MemoryChannel(1, 0)
    switch = SwitchChannel([0, 1], BufferType.input)
    """
BLOCK = "is not a thread block; allowed are 0 to 65535"
BLOCKS = "it must be a list of whole numbers"
CHUNKS = "allowed are 1 to 2147483647"
FIRST = "allowed are 0 to 2147483647"
RANK = "of 2 ranks, which begin with 0"
REDUCTION = "it must be a ReduceOperationType"
SYNC = "it must be a SyncType"

CASES = {
    # Thread blocks
    "channel.signal(tb=True)": f"True {BLOCK}",
    "channel.wait(tb=0.0)": f"0.0 {BLOCK}",
    "channel.signal(tb=[0])": f"[0] {BLOCK}",
    "channel.put(peer[0:1], own[0:1], tb='0')": f"'0' {BLOCK}",
    "rank.copy(scratch[0:1], own[0:1], tb=True)": f"True {BLOCK}",
    "rank.copy(scratch[0:1], own[0:1], tb_group=[0])": "'tb_group' is [0]; it must be a ThreadBlockGroup",
    "Semaphore(0, 1).acquire(tb=True)": f"True {BLOCK}",
    "rank.barrier(tb_list=5)": f"'tb_list' is 5; {BLOCKS}",
    "rank.barrier([0, 0])": "the barrier has 0 twice; each may be there once",
    "rank.barrier([0, True])": f"True {BLOCK}",
    "ThreadBlockGroup(5)": f"'tb_list' is 5; {BLOCKS}",
    "ThreadBlockGroup([0, 0])": "the group has 0 twice; each may be there once",
    "ThreadBlockGroup([0, 1.0])": f"1.0 {BLOCK}",
    # Ranks
    "Rank(True)": f"rank True {RANK}",
    "PortChannel('1', 0)": f"rank '1' {RANK}",
    "SwitchChannel(5, BufferType.input)": f"'rank_list' is 5; {BLOCKS}",
    "SwitchChannel([0, 0], BufferType.input)": "the switch channel has 0 twice; each may be there once",
    "switch.at_rank(True).reduce(0, 1, own[0:1], 0)": f"rank True {RANK}",
    "switch.at_rank([0])": "'rank' is [0]; it must be a whole number",
    # Chunks
    "own[0]": "'buffer[0]': a slice is needed, as in 'buffer[a:b]'",
    "own[0.0:1]": f"the first chunk of a slice is 0.0; {FIRST}",
    "own[0:True]": f"the end of a slice is True; {FIRST}",
    "Chunk(0, BufferType.input, -1, 1)": f"'index' of a chunk is -1; {FIRST}",
    "Chunk(0, BufferType.input, 0, 0)": f"'size' of a chunk is 0; {CHUNKS}",
    "Chunk(0, 'input', 0, 1)": "'buffer' of a chunk is 'input'; it must be a BufferType",
    "Buffer(0, True)": "the size of a buffer is True; allowed are 0 to 2147483643",
    "channel.put(5, own[0:1], tb=0)": "'dst_chunk' is 5; it must be a Chunk",
    "channel.reduce(own[0:1], peer[0:1], tb=0)":
        "'remote_src_chunks' is Chunk(rank=1, input[0:1]); it must be a list of Chunks",
    "switch.reduce(0, True, 1, own[0:1], 0)": f"the first chunk is True; {FIRST}",
    "switch.reduce(0, 0, 1.0, own[0:1], 0)": f"the number of chunks is 1.0; {CHUNKS}",
    # What an op is
    "channel.signal(0, data_sync='both')": f"'data_sync' is 'both'; {SYNC}",
    "Semaphore(0, 1).release(0, data_sync=1)": f"'data_sync' is 1; {SYNC}",
    "channel.signal(0, relaxed='no')": "'relaxed' is 'no'; it must be True or False",
    "channel.reduce(own[0:1], [peer[0:1]], 0, reduce_op='sum')": f"'reduce_op' is 'sum'; {REDUCTION}",
    "rank.reduce(own[0:1], [scratch[0:1]], 0, reduce_op=None)": f"'reduce_op' is None; {REDUCTION}",
    "rank.reduce(own[0:1], [scratch[0:1]], 0, packet='')": "'packet' is ''; it must be True or False",
    "SwitchChannel([0, 1], 'output')": "'buffer_type' is 'output'; it must be a BufferType",
    "CollectiveProgram.from_spec(5)": "'spec' is 5; it must be an AlgoSpec",
}  # fmt: skip


class Arguments(unittest.TestCase):
    maxDiff = 2000

    def run_line(self, line):
        """Exit code, standard output and standard error of a program whose last line it is."""
        with open("wrong.py", "w", encoding="utf-8") as file:
            file.write(PROGRAM + line + "\n")
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            return main(["wrong.py"]), out.getvalue(), errors.getvalue()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_wrong_arguments(self):
        for line, text in CASES.items():
            with self.subTest(line):
                error = f"wrong.py:7:5: error: {text}\n    {line}\n    ^\n"
                self.assertEqual(self.run_line(line), (1, "", error))

    def test_an_interrupt_says_where(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
        self.addCleanup(signal.signal, signal.SIGINT, before)
        stopped = self.run_line("import signal; signal.raise_signal(signal.SIGINT)")
        self.assertEqual(stopped, (130, "", "wrong.py:7:5: note: interrupted here\n"))


if __name__ == "__main__":
    unittest.main()

"""Programs of MSCCL++'s language that are unusual Python, or rely on what its modules happen to give."""

import gc
import json
import os
import tempfile
import textwrap
import unittest
import weakref

from mscclc.mscclpp.language import AllReduce, CollectiveProgram, Rank
from mscclc.mscclpp.failures import text_of_failure
from mscclc.mscclpp.run import trace

IMPORTS = """\
from mscclpp.language.channel import *
from mscclpp.language.collectives import *
from mscclpp.language.general import *
from mscclpp.language.loop import *
from mscclpp.language.program import *
from mscclpp.language.rank import *
"""
TWO_RANKS = """\
with CollectiveProgram("p", AllReduce(2, 1, True), 2, instances=2) as program:
    a, b = MemoryChannel(1, 0), MemoryChannel(0, 1)
    here, there = Rank(0).get_input_buffer(), Rank(1).get_input_buffer()
"""
MEET = "a.signal(tb=0); b.wait(tb=0)"

# What programs get by `import *` besides what a module is about: their public names are all that they import.
TYPES = {"SyncType", "ReduceOperationType", "Chunk", "ChannelType", "BufferType", "ThreadBlockGroup", "List"}
CHANNELS = {"MemoryChannel", "PortChannel", "SwitchChannel"}
COLLECTIVES = {"Collective", "TestCollective", "AllGather", "AllReduce", "ReduceScatter", "AllToAll", "SendRecv"}
NAMES = {
    "channel": CHANNELS | TYPES | {"get_program", "defaultdict", "Dict"},
    "collectives": COLLECTIVES | {"BaseBuffer", "BufferType"},
    "general": {"JSON", "get_program"},
    "internal.types": TYPES - {"ThreadBlockGroup"} | {"ReplicationPolicy", "Enum", "Set"},
    "loop": {"LoopIterationContext", "get_program"},
    "program": CHANNELS | COLLECTIVES | TYPES | {
        "CollectiveProgram", "MSCCLPPProgram", "Semaphore", "BaseBuffer", "AlgoSpec", "ReplicationPolicy", "get_program", "json",
    },
    "rank": TYPES | {"Rank", "BaseBuffer", "Buffer", "Semaphore", "get_program", "defaultdict"},
    "thread_block_group": {"ThreadBlockGroup", "Dict", "List"},
    "utils": {"AlgoSpec", "ReplicationPolicy"},
}  # fmt: skip


class Programs(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "program.py")

    def trace(self, text):
        """The programs that a program's text traces, and what it prints."""
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)
        return trace(self.path, [])

    def plan(self, *lines, head=TWO_RANKS):
        """The plan of lines inside a program."""
        text = IMPORTS + head + "".join(f"    {line}\n" for line in lines)
        (program,) = self.trace(text)[0]
        return json.loads(program.to_json())

    def error(self, text):
        """What is printed of an error that a program's text makes."""
        try:
            self.trace(text)
        except Exception as error:
            return text_of_failure(error)
        return self.fail("no error")

    def test_import_star_gives_what_programs_rely_on(self):
        for module, names in NAMES.items():
            with self.subTest(module):
                lines = [f"from mscclpp.language.{module} import *", *sorted(names)]
                self.trace("\n".join(lines))

    def test_names_of_earlier_versions(self):
        text = """
            from mscclpp.language import *
            with CollectiveProgram("old", AllToAll(2, 1, True), 2, protocol="LL"):
                for r in range(2):
                    own, end, box = Rank(r), MemoryChannel(1 - r, r), Buffer(r, 3)
                    there = Buffer(1 - r, 3)
                    data = own.get_input_buffer()
                    own.copy_packets(box[0:1], data[1 - r : 2 - r], tb=0)
                    end.read_put_packets(there[0:1], box[0:1], tb=0)
                    end.put_packets(there[1:2], data[1 - r : 2 - r], tb=0)
                    own.unpack_packets(data[1 - r : 2 - r], box[1:2], tb=0)
                    PortChannel(1 - r, r).read_put_packets(there[2:3], box[1:2], tb=1)
                    PortChannel(1 - r, r).put_packets(there[2:3], box[1:2], tb=1)
            """
        text = textwrap.dedent(text)
        (new,), _ = self.trace(text)
        (old,), _ = self.trace(text.replace("_packets", "_packet").replace("Collective", "MSCCLPP", 1))
        self.assertEqual(old.to_json(), new.to_json())

    def test_a_call_that_fails_leaves_nothing(self):
        wrong = (
            "a.put(here[0:1], here[0:1], tb_group=g)",
            "a.put(there[0:2], here[0:1], tb_group=g)",
            "Rank(0).reduce(here[0:1], [], tb_group=g)",
            "Rank(0).copy(here[0:1], here[1:2], tb=7, tb_group=g)",
            "Rank(0).copy(here[0:1], here[1:2])",
            "MemoryChannel(5, 0)",
            "Buffer(0, -1)",
            "here[0:9]",
        )
        group = "g = ThreadBlockGroup([0, 1])"
        caught = [
            f"try: {call}; raise KeyError\n    except (RuntimeError, ValueError): pass" for call in wrong
        ]
        after = [MEET, "a.put(there[0:1], here[0:1], tb_group=g)"]
        self.assertEqual(self.plan(group, *caught, *after), self.plan(group, *after))

    def test_a_loop_that_an_exception_ends_keeps_its_ops(self):
        loop = "with LoopIterationContext(unit=1024, num_chunks=1): "
        raising = f"try:\n        {loop}{MEET}; raise KeyError\n    except KeyError: pass"
        self.assertEqual(self.plan(raising, MEET), self.plan(loop + MEET, MEET))

    def test_words_are_their_values(self):
        self.plan(
            MEET,
            "assert [str(word) for word in SyncType] == ['none', 'before', 'after', 'both']",
            "assert SyncType('both') is SyncType['both'] is SyncType.before | SyncType.after",
            "assert SyncType.both & SyncType.after is SyncType.both ^ SyncType.before is SyncType.after",
            "assert f'{ReduceOperationType.max} {BufferType.scratch} {ChannelType.port}' == 'max s port'",
            "assert str(ReplicationPolicy.none) == 'none' and f'{SyncType.before}' == 'before'",
            "assert Rank(1) == Rank(1) and Rank(1) != Rank(0)",
            "assert here[1:2] == Chunk(0, BufferType.input, 1, 1) and here[1:2] != here[0:1]",
            "assert here[1:2].to_dict() == {'rank': 0, 'type': 'i', 'index': 1, 'size': 1}",
        )

    def test_syncs_that_are_computed(self):
        computed = "a.signal(0, SyncType.before | SyncType.after); b.wait(0, SyncType.both & SyncType.after)"
        plain = "a.signal(0, SyncType.both); b.wait(0, SyncType.after)"
        self.assertEqual(self.plan(computed), self.plan(plain))

    def test_classes_of_the_program(self):
        text = IMPORTS + (
            "class Pair(MemoryChannel):\n"
            "    def meet(self, tb):\n"
            "        super().signal(tb)\n"
            "        self.wait(tb=tb)\n"
            "class Mine(Collective):\n"
            "    name = 'mine'\n"
            "    def init_buffers(self):\n"
            "        kinds = BufferType.input, BufferType.output\n"
            "        return [{kind: BaseBuffer(r, kind, 0, 2) for kind in kinds} for r in range(2)]\n"
            "with CollectiveProgram('p', Mine(2, 1, False), 2) as program:\n"
            "    Pair(1, 0).meet(0)\n"
            "    Pair(0, 1).meet(tb=0)\n"
        )
        (program,) = self.trace(text)[0]
        plan = json.loads(program.to_json())
        self.assertEqual((plan["collective"], plan["gpus"][1]["output_chunks"]), ("mine", 2))
        names = [op["name"] for op in plan["gpus"][0]["threadblocks"][0]["ops"]]
        self.assertEqual(names, ["nop", "signal", "nop", "wait", "nop"])

    def test_a_program_that_is_entered_again(self):
        text = IMPORTS + TWO_RANKS + "    a.signal(tb=0)\nwith program:\n    b.wait(tb=0)\n"
        (program,) = self.trace(text)[0]
        self.assertEqual(json.loads(program.to_json()), self.plan(MEET))

    def test_ranks_outlive_their_program(self):
        head = 'with CollectiveProgram("first", AllReduce(2, 1, True), 2):\n    rank = Rank(0)\n'
        line = "    rank.copy(here[0:1], here[1:2], tb=0)\n"
        first, second = self.trace(IMPORTS + head + TWO_RANKS + line)[0]
        self.assertEqual(json.loads(second.to_json()), self.plan("Rank(0)" + line.strip()[4:]))
        with self.assertRaisesRegex(RuntimeError, "the program has no ops"):
            first.to_json()

    def test_sources_that_can_be_read_once(self):
        call = "Rank(0).reduce(here[0:1], (here[i : i + 1] for i in (1,)), tb=0)"
        self.assertRegex(
            self.error(IMPORTS + TWO_RANKS + f"    {call}\n"),
            r"program\.py:10:5: error: 'other_chunks' is <generator .*>; it must be a list of Chunks",
        )

    def test_a_program_of_the_process_is_not_kept(self):
        with CollectiveProgram("p", AllReduce(2, 1, True), 2) as program:
            Rank(0).barrier([0])
        self.assertEqual(len(json.loads(program.to_json())["gpus"]), 2)
        left = weakref.ref(program)
        del program
        gc.collect()
        self.assertIsNone(left())

    def test_threads_may_trace(self):
        text = IMPORTS + "import threading\ndef run():\n" + "".join(
            f"    {line}\n" for line in (TWO_RANKS + f"    {MEET}").splitlines()
        )
        text += "    globals().update(program=program)\n"
        text += "one = threading.Thread(target=run); one.start(); one.join()\n"
        (program,) = self.trace(text)[0]
        self.assertEqual(json.loads(program.to_json()), self.plan(MEET))

    def test_what_is_flushed_twice_is_flushed_once(self):
        flushes = "; ".join(f"p{i}.flush(tb=0)" for i in (0, 0, 1, 0))
        plan = self.plan(MEET, "p0, p1 = PortChannel(1, 0), PortChannel(1, 0)", flushes)
        ops = plan["gpus"][0]["threadblocks"][0]["ops"]
        self.assertEqual([op["channel_ids"] for op in ops if op["name"] == "flush"], [[0, 1]])

    def test_switches_come_after_other_channels(self):
        plan = self.plan(MEET, head=TWO_RANKS.replace(
            "    a, b", "    switch, port = SwitchChannel([0, 1], BufferType.input), PortChannel(1, 0)\n    a, b"
        ))  # fmt: skip
        kinds = [channel["channel_type"] for channel in plan["gpus"][0]["channels"]]
        self.assertEqual(kinds, ["port", "memory", "switch", "switch"])

    def test_json_is_laid_out_as_python_does(self):
        text = IMPORTS + TWO_RANKS.replace('"p"', '"p \\" \\u00e9 \\"gpus\\": null"') + f"    {MEET}\n"
        (program,) = self.trace(text)[0]
        plan = json.loads(program.to_json())
        for options in (
            {}, {"indent": None}, {"indent": 0}, {"indent": 4}, {"indent": "\t"}, {"sort_keys": True},
            {"indent": None, "separators": (",", ":")}, {"ensure_ascii": False},
        ):  # fmt: skip
            with self.subTest(options):
                expected = json.dumps(plan, **{"indent": 2, **options})
                self.assertEqual(program.to_json(**options), expected)


if __name__ == "__main__":
    unittest.main()

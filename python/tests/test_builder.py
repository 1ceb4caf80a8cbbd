"""The builder gives the plans that the language gives, and reports mistakes at lines of Python."""

import inspect
import os
import unittest

import mscclc
from mscclc.builder import Program

PLANS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "plans")


def allreduce_1shot(ranks, blocks):
    """plans/allreduce_1shot.mscl in Python."""
    program = Program(
        "allreduce_1shot",
        "allreduce",
        ranks,
        chunks=blocks,
        select={"sizes": "1KiB..64KiB", "nodes": 1},
        launch={"threads": 512},
    )
    for r in range(ranks):
        rank = program.rank(r)
        others = [p for p in range(ranks) if p != r]
        inbox = rank.buffer("inbox", others, blocks, packets="LL16", copies=2)
        ch = {p: rank.memory("ch", p, key=p) for p in others}
        for b in range(blocks):
            with rank.tb(b):
                for p in others:
                    rank.put_packets(ch[p].at("inbox")[r, b], rank.input[b])
                parts = [inbox[p, b] for p in others]
                rank.reduce_packets(rank.output[b], rank.input[b], *parts)
    return program


def allreduce_2shot(ranks, instances):
    """plans/allreduce_2shot.mscl in Python."""
    program = Program(
        "allreduce_2shot",
        "allreduce",
        ranks,
        chunks=ranks,
        order="ranks",
        select={"sizes": "1MiB..", "nodes": 1},
        launch={"threads": 1024, "instances": instances},
    )
    for r in range(ranks):
        rank = program.rank(r)
        others = [p for p in range(ranks) if p != r]
        partial = rank.buffer("partial", others)
        up = {p: rank.memory("up", p, key=p) for p in others}
        down = {p: rank.memory("down", p, key=p) for p in others}
        with rank.pipeline(unit="512KiB"):
            with rank.tb(0):
                for p in others:
                    rank.put(up[p].at("partial")[r], rank.input[p])
                rank.signal(*up.values())
            with rank.tb(1):
                rank.wait(*up.values())
                before, after = others[:r], others[r:]
                shares = [partial[p] for p in before], [partial[p] for p in after]
                rank.reduce(rank.output[r], *shares[0], rank.input[r], *shares[1])
                for p in others:
                    rank.put(down[p].at("output")[r], rank.output[r])
                rank.signal(*down.values())
            with rank.tb(2):
                rank.wait(*down.values())
    return program


def gemm_reducescatter(ranks, chunks, raises):
    """plans/overlap/gemm_reducescatter.mscl in Python."""
    program = Program(
        "gemm_reducescatter",
        "reducescatter",
        ranks,
        chunks=chunks,
        order="ranks",
        launch={"threads": 1024, "instances": 1},
    )
    tiles = program.flags("tiles", ranks * chunks, of="input", raises=raises, tiles="own_last")
    for r in range(ranks):
        rank = program.rank(r)
        others = [(r + i) % ranks for i in range(1, ranks)]
        partial = rank.buffer("partial", [p for p in range(ranks) if p != r], chunks)
        opened, data = (
            {(c, p): rank.memory(name, p, key=(c, p), to=f"{name}[{c}, {r}]")
             for c in range(chunks) for p in others}
            for name in ("open", "data")
        )  # fmt: skip
        for c in range(chunks):
            with rank.tb(c):
                for p in others:
                    rank.await_(tiles[p * chunks + c])
                    rank.wait(opened[c, p], relaxed=True)
                    rank.put(data[c, p].at("partial")[r, c], rank.input[p, c])
                    rank.signal(data[c, p])
            with rank.tb(chunks + c):
                rank.signal(*(opened[c, p] for p in others), relaxed=True)
                rank.await_(tiles[r * chunks + c])
                rank.wait(*(data[c, p] for p in others))
                parts = [rank.input[r, c] if p == r else partial[p, c] for p in range(ranks)]
                rank.reduce(rank.output[c], *parts)
    return program


def without_places(plan):
    """A plan without what says where its text stands."""
    plan = plan.to_dict()
    extra = plan["mscclc"]
    for member in ("description", "files", "variables", "sites", "hash"):
        extra.pop(member, None)
    for rank in extra["ranks"]:
        rank.pop("loc", None)
    return plan


def line_of(function, text):
    """The number of the line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


class SamePlans(unittest.TestCase):
    maxDiff = 2000

    def check(self, program, folder="", **params):
        name = program._head[0][0][8:] + ".mscl"
        expected = mscclc.compile(os.path.join(PLANS, folder, name), **params)
        got = program.compile()
        self.assertEqual(without_places(got), without_places(expected))
        return got

    def test_one_shot(self):
        for ranks, blocks in ((2, 1), (4, 2), (8, 8)):
            with self.subTest(ranks=ranks, blocks=blocks):
                self.check(allreduce_1shot(ranks, blocks), R=ranks, B=blocks)

    def test_two_shot_with_a_pipeline_and_instances(self):
        self.check(allreduce_2shot(4, 2), R=4, I=2)

    def test_flags_that_a_gemm_raises(self):
        for ranks, chunks, raises in ((2, 1, 1), (3, 2, 4)):
            with self.subTest(ranks=ranks, chunks=chunks, raises=raises):
                program = gemm_reducescatter(ranks, chunks, raises)
                self.check(program, "overlap", R=ranks, C=chunks, K=raises)

    def test_the_plan_knows_the_lines_of_the_python_program(self):
        plan = allreduce_1shot(2, 1).compile().to_dict()
        extra = plan["mscclc"]
        self.assertEqual({extra["files"][site[0]] for site in extra["sites"]}, {__file__})
        put = line_of(allreduce_1shot, "rank.put_packets(")
        reduce = line_of(allreduce_1shot, "rank.reduce_packets(")
        self.assertEqual([site[1] for site in extra["sites"]], [put, reduce])

    def test_the_same_calls_give_the_same_bytes(self):
        first, second = allreduce_1shot(4, 2).compile(), allreduce_1shot(4, 2).compile()
        self.assertEqual(first.to_json(), second.to_json())


class Statements(unittest.TestCase):
    def test_groups_barriers_semaphores_ports_and_switches(self):
        program = Program("all", "allgather", 2, launch={"threads": 256})
        for r in range(2):
            rank = program.rank(r)
            net = rank.port("net", 1 - r)
            ready, done = rank.semaphore("ready"), rank.semaphore("done", 1, key=(0, 1))
            with rank.tb(0):
                rank.acquire(done)
                rank.signal(net)
                rank.wait(net)
                rank.put(net.at("output")[r], rank.input)
                rank.signal(net)
                rank.flush(net)
                rank.wait(net)
                rank.release(ready)
            with rank.group(range(1, 3)):
                rank.copy(rank.output[r], rank.input)
            with rank.tb(3):
                rank.acquire(ready)
                rank.sync()
                rank.release(done)
                rank.barrier([3, 4])
            with rank.tb(4):
                rank.barrier([3, 4])
        plan = program.compile()
        self.assertEqual([result.wrong for result in plan.run(0, 1000, "64K")], [0, 0, 0])
        self.assertIn("group [1, 2] {", program.source())

        program = Program("ahead", "allgather", 2)
        program.rank(0).port("net", 1, to="net", credits=2)
        self.assertIn("channel net = port(1) to net credits: 2", program.source())

        program = Program("sw", "allreduce", 2, chunks=2, inplace=True)
        for r in range(2):
            rank = program.rank(r)
            switch = rank.switch("sw", [0, 1])
            peer = rank.memory("peer", 1 - r)
            with rank.tb(0):
                rank.signal(peer)
                rank.wait(peer)
                rank.op("switch_reduce_broadcast", [switch.at("input")[r]], [switch.at("input")[r]])
                rank.signal(peer)
                rank.wait(peer)
        self.assertEqual([result.wrong for result in program.compile().run("64K")], [0])


    def test_flags_of_input_and_output(self):
        program = Program("through", "sendrecv", 2, chunks=2, shift=0)
        ready = program.flags("ready", 2, of="output", bits=64, scope="system")
        made = program.flags("made", 2, of="input")
        for r in range(2):
            rank = program.rank(r)
            for c in range(2):
                with rank.tb(c):
                    rank.await_(made[c])
                    rank.copy(rank.output[c], rank.input[c])
                    rank.notify(ready[c])
        flags = program.compile().to_dict()["mscclc"]["flags"]
        self.assertEqual([one[0] for one in flags], ["ready", "made"])

        program = Program("after", "sendrecv", 2, chunks=2, shift=0)
        program.flags("made", 2, of="input", after=program.flags("ready", 2, of="output"))
        self.assertIn("external flags made[2] of: input, after: ready\n", program.source())


class Mistakes(unittest.TestCase):
    def broken(self, change):
        """An exchange of two ranks; `change` adds what is wrong to rank 0."""
        program = Program("broken", "allgather", 2)
        for r in range(2):
            rank = program.rank(r)
            ch = rank.memory("ch", 1 - r)
            with rank.tb(0):
                rank.copy(rank.output[r], rank.input)
                rank.put(ch.at("output")[r], rank.input)
                rank.signal(ch)
                rank.wait(ch)
                if r == 0:
                    change(rank, ch)
        with self.assertRaises(mscclc.CompileError) as caught:
            program.compile()
        return caught.exception

    def test_a_mistake_that_the_compiler_finds(self):
        def change(rank, ch):
            rank.put(ch.at("nothing")[0], rank.input)

        error = self.broken(change).diagnostics[0]
        self.assertEqual((error.file, error.line), (__file__, line_of(change, "rank.put")))
        self.assertIn("nothing", error.message)

    def test_a_mistake_that_the_prover_finds(self):
        def change(rank, ch):
            rank.put(ch.at("output")[0], rank.output[1])  # too late, and wrong

        error = self.broken(change)
        self.assertIn(f"{__file__}:{line_of(change, 'rank.put')}:13: ", str(error))
        self.assertIn('rank.put(ch.at("output")[0], rank.output[1])', str(error))

    def test_what_is_no_name_or_value_never_gets_into_the_text(self):
        for wrong in ("x }", "", "1x", "a\nb", 'x"', "é"):
            with self.subTest(wrong), self.assertRaises(ValueError):
                Program(wrong, "allgather", 2)
        program = Program("p", "allgather", 2)
        with self.assertRaises(ValueError):
            program.rank(0).buffer("b", 1, packets="LL16\n}")
        with self.assertRaises(ValueError):
            program.rank(0).memory("ch", 1, to="x }")
        with self.assertRaises(ValueError):
            program.flags("f", 1, of="input }")
        with self.assertRaises(ValueError):
            program.rank(2)
        with self.assertRaises(TypeError):
            program.rank(0).op("put", ["output[0] <- input"], [])


if __name__ == "__main__":
    unittest.main()

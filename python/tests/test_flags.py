"""Plans with flags, from Python: ranks as processes on the host device, and what raises their flags."""

import os
import unittest

import mscclc
from rank_processes import WAITS, end_by_ctrl_c, run

HERE = os.path.dirname(os.path.abspath(__file__))
GATHER = os.path.join(HERE, "..", "..", "plans", "overlap", "allgather_gemm.mscl")

PROGRAM = """
program    through
external   flags made[2] of: input
external   flags ready[2] of: output, bits: 64
collective sendrecv(ranks: 2, chunks: 2, shift: 0)
rank r in 0..2 {
  tb c in 0..2 {
    await made[c]
    copy output[c] <- input[c]
    notify ready[c]
  }
}
"""


class FlagsOfPlans(unittest.TestCase):
    def test_calls_and_what_is_refused(self):
        body = f"""if 1:
            plan = comm.load({mscclc.compile(PROGRAM).to_json()!r}, 1 << 12)
            made, ready = array.array("I", [0, 0]), array.array("Q", [0, 0])
            words = dict(made=made, ready=ready)
            for call in range(3):
                given, out = floats(*[rank + call + i for i in range(6)]), floats(*[0] * 6)
                work = plan.run(given, out, flags=words, launch_order="plan_first", budget=2)
                for c in (1, 0):
                    made[c] += 1
                work.wait()
                assert out == given, out
                assert list(ready) == [call + 1] * 2, ready
            run = lambda **changed: plan.run(given, out, flags={{**words, **changed}})
            refused("the plan's flags 'made' are missing: 2 words of 32 bits", plan.run, given, out)
            refused("the flags 'made' are words of 32 bits, not u64", run, made=ready)
            refused("the flags 'ready' are words of 64 bits, not f64", run,
                    ready=array.array("d", [0, 0]))
            refused("the buffer is read-only", run, made=bytes(8))
            refused("the flags 'made' have 1 words: the call needs 2 words of 32 bits", run,
                    made=array.array("I", [0]), error=mscclc.LibraryError)
            refused("and at", run, made=array.array("I", [0, 0]), error=mscclc.LibraryError)
            refused("launch_order is one of other_first, plan_first", plan.run, given, out,
                    flags=words, launch_order="last")
            refused("no flags 'more'; it has 'made', 'ready'", plan.run, given, out,
                    flags=dict(more=made, **words))
            refused("flags are a dict of arrays by name, not list", plan.run, given, out, flags=[made])
            plain = comm.load({mscclc.compile("allreduce_1shot_ordered", R=2).to_json()!r}, 1 << 12)
            refused("the plan has no flags 'x'; it has none", plain.run, floats(1, 2, 3, 4),
                    flags=dict(x=made))
            print("ok")
        """
        self.assertEqual(run(2, body), ["ok", "ok"])

    def test_ctrl_c_ends_the_wait_of_a_call_whose_ranks_meet(self):
        body = f"""if 1:
            plan = comm.load({mscclc.compile(GATHER, R=2, C=1).to_json()!r}, 1 << 12)
            ready = array.array("I", [0] * ranks)
            run = lambda: plan.run(floats(1, 2), floats(*[0] * 4), flags=dict(ready=ready), launch_order="plan_first")
            if rank == 0:
                say_when_waiting()
                run()
            else:
                print("waiting", flush=True)
                sys.stdin.read()
        """
        end_by_ctrl_c(self, WAITS + body)

    def test_buffers_in_symmetric_memory(self):
        """No rank waits for another one before it launches a call."""
        body = f"""if 1:
            plan = comm.load({mscclc.compile(GATHER, R=2, C=1).to_json()!r}, 1 << 12)
            memory = mscclc.SymmetricMemory(4096, comm)
            out = memory.buffer().cast("f")[: 2 * ranks]
            ready = array.array("I", [0] * ranks)
            for call in range(1, 4):
                given = floats(call, rank)
                plan.run(given, out, flags=dict(ready=ready), launch_order="plan_first",
                         symmetric=True).wait()
                assert list(out) == [x for r in range(ranks) for x in (call, r)], list(out)
                assert list(ready) == [call] * ranks, ready
                memory.barrier()
            refused("does not lie in one registered buffer", plan.run, given, floats(*[0] * 2 * ranks),
                    flags=dict(ready=ready), launch_order="plan_first", symmetric=True,
                    error=mscclc.LibraryError)
            refused("nothing else can do one of them", plan._leave, 16, "f32", None, error=mscclc.LibraryError)
            print("ok")
        """
        self.assertEqual(run(2, body), ["ok", "ok"])


if __name__ == "__main__":
    unittest.main()

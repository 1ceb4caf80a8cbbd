"""Plans with row functions, from Python: ranks as processes on the host device."""

import json
import unittest

import mscclc
from mscclc import externals
from rank_processes import run

PROGRAM = """
row step(x: row T, residual: row T, gain: columns f32, scale: scalar f32) {
  let stream = T(T(x) + residual)
  out residual_out: row T = stream
  out q: row e4m3 = stream
  out s: groups(4) e8m0 = max(abs(stream) for 4)
  out total: token f32 = sum(stream)
  out y: row T = stream * gain * scale
}
program    mine
external   residual: row T inout, gain: columns f32 replicated, scale: scalar f32 replicated
external   q: row e4m3 out, s: groups(4) e8m0 out, total: token f32 out
collective allreduce(ranks: 2, columns: 8, then: step)
rank r in 0..2 {
  let p = 1 - r
  buffer inbox[1] packets: LL16, copies: 2
  buffer all[1]
  channel to = memory(p)
  tb 0 {
    put_packets to.inbox[0] <- input[0]
    reduce_packets all[0] <- inbox[0], input[0]
    apply step residual[0], q[0], s[0], total[0], output[0] <- all[0], residual[0], gain, scale
  }
}
"""


class Externals(unittest.TestCase):
    def test_of_all_kinds(self):
        body = f"""if 1:
            plan = comm.load({mscclc.compile(PROGRAM).to_json()!r}, 1 << 12)
            rows, columns = 3, 8
            given = [float(rank + i % 5) for i in range(rows * columns)]
            stream = [2.0 * (i % 5) + 1 + i for i in range(rows * columns)]
            def externals(**other):
                return dict(
                    residual=floats(*range(rows * columns)), gain=floats(*[2] * columns), scale=0.5,
                    q=bytearray(rows * columns), s=bytearray(rows * 2), total=floats(*[0] * rows),
                    **other)
            for scale in (0.5, floats(4)):
                outside = {{**externals(), "scale": scale}}
                out = floats(*[0] * rows * columns)
                plan.run(array.array("f", given), out, externals=outside).wait()
                assert list(outside["residual"]) == stream, outside["residual"]
                factor = 2 * (scale if scale == 0.5 else scale[0])
                assert list(out) == [x * factor for x in stream], out
                of_row = [stream[i : i + columns] for i in range(0, len(stream), columns)]
                assert list(outside["total"]) == [sum(row) for row in of_row]
                assert outside["q"][:3] == bytes([0x38, 0x48, 0x4e]), outside["q"]  # 1, 4, 7
                assert outside["s"][0] == 127 + 4, outside["s"]  # of 1, 4, 7, 10: 2 ** 4
            run = lambda **changed: plan.run(
                array.array("f", given), externals={{**externals(), **changed}})
            refused("the plan's external 'residual' is missing: row T", plan.run, array.array("f", given))
            refused("no external 'more'; it has 'residual', 'gain'", run, more=1.0)
            refused("'residual' is of f32, not of f64", run,
                    residual=array.array("d", range(rows * columns)))
            refused("'gain' has 9 elements; the plan declares 8 f32", run, gain=floats(*range(9)))
            refused("'residual' has 12 elements; the plan declares 8 f32 a row", run,
                    residual=floats(*range(12)))
            refused("'total' is of f32, not of u8", run, total=bytearray(12))
            refused("the external 'residual': the buffer is read-only", run, residual=bytes(96))
            refused("the external 'residual' has 2 rows: the call needs 3 x 8 f32", run,
                    residual=floats(*range(16)), error=mscclc.LibraryError)
            refused("the external 'residual': the buffer is not contiguous", run,
                    residual=memoryview(floats(*range(48)))[::2])
            refused("the external 'gain': float is not a buffer", run, gain=2.0)
            for scale in ("1e-5", [1e-5]):
                refused("the external 'scale' takes a number, as in scale=1e-5, or a buffer of one f32", run,
                        scale=scale)
            refused("of up to 31 bytes, and a row of 8 f32 takes 32", comm.load, mscclc.compile("allreduce_bias_1shot",
                    R=2, N=8, B=1, T=32), 31, error=mscclc.LibraryError)
            misspelt = externals()
            misspelt["gian"] = misspelt.pop("gain")
            refused("no external 'gian'; it has 'residual', 'gain'", plan.run,
                    array.array("f", given), externals=misspelt)
            plain = comm.load({mscclc.compile("allreduce_1shot_ordered", R=2).to_json()!r}, 1 << 12)
            refused("the plan has no external 'x'; it has none", plain.run, floats(1, 2, 3, 4),
                    externals=dict(x=1))
            print("ok")
        """
        self.assertEqual(run(2, body), ["ok", "ok"])

    def test_shapes(self):
        """The last of several dimensions are a row; one dimension holds any rows."""
        body = f"""if 1:
            plan = comm.load({mscclc.compile(PROGRAM).to_json()!r}, 1 << 12)
            rows, columns = 4, 8
            def of(*shape, words=range(32), type="f"):
                return memoryview(array.array(type, words)).cast("B").cast(type, shape)
            def externals(**other):
                return dict(residual=of(4, 8), gain=of(8, words=range(8)), scale=0.5,
                            q=of(2, 2, 8, type="B"), s=of(4, 2, words=range(8), type="B"),
                            total=of(2, 2, words=range(4)), **other)
            def run(input=None, output=None, **changed):
                plan.run(of(2, 2, 8) if input is None else input, output,
                         externals={{**externals(), **changed}}).wait()
            for shape in ((4, 8), (2, 2, 8), (1, 4, 8), (4, 2, 4), (4, 2, 1, 4), (32,)):
                run(of(*shape), of(*shape), residual=of(*shape))
            run(gain=of(1, 8, words=range(8)))
            for shape in ((2, 16), (8, 4), (32, 1), (2, 8, 2)):
                text = f"has the shape {{shape}}, and should have (..., 8)"
                refused("the input " + text, run, of(*shape), of(4, 8))
                refused("the output " + text, run, of(4, 8), of(*shape))
                refused("the external 'residual' " + text, run, residual=of(*shape))
            refused("the external 'q' has the shape (8, 4)", run, q=of(8, 4, type="B"))
            refused("the external 's' has the shape (2, 4), and should have (..., 2)", run,
                    s=of(2, 4, words=range(8), type="B"))
            run(gain=of(4, 2, words=range(8)))
            for shape in ((4, 1), (1, 4), (1, 4, 1), (4,), (8,), (8, 1)):  # more are not read
                run(total=of(*shape, words=range(4 * (1 + (8 in shape)))))
            for shape, count in (((4, 2), 8), ((2, 4), 8), ((1, 2), 2)):
                refused(f"the external 'total' has the shape {{shape}}, and should have (4,) or (4, 1): a value for each"
                        " row", run, total=of(*shape, words=range(count)))
            refused("the external 'gain' has the shape (2, 3)", run, gain=of(2, 3, words=range(6)))
            print("ok")
        """
        self.assertEqual(run(2, body), ["ok", "ok"])

    def test_rows_of_a_rank(self):
        """Where each has its own, of any number of chunks."""
        for chunks, ranks, rows, own in (([3, 2], 3, 7, [3, 2, 2]), ([4], 2, 6, [4, 2]), ([2, 2], 4, 5, [2, 1, 1, 1])):
            contract = {"kind": "allreduce", "ranks": ranks, "chunks": chunks, "columns": 8}
            found = externals.rows_of(json.dumps({"mscclc": {"contract": contract}}).encode())
            self.assertEqual([found.of_call(rows * 32, "f32", rank).own for rank in range(ranks)], own)

    def test_numbers(self):
        """What f32 has no finite number for is refused; infinity itself is a number as others."""
        body = f"""if 1:
            plan = comm.load({mscclc.compile(PROGRAM).to_json()!r}, 1 << 12)
            def run(scale):
                out = floats(*[0] * 8)
                plan.run(floats(*[1] * 8), out, externals=dict(
                    residual=floats(*[0] * 8), gain=floats(*[1] * 8), scale=scale, q=bytearray(8),
                    s=bytearray(2), total=floats(0))).wait()
                return list(out)
            inf = float("inf")
            assert run(inf) == [inf] * 8 and run(-inf) == [-inf] * 8 and run(3) == [6.0] * 8
            assert run(1.5e38) == [2 * floats(1.5e38)[0]] * 8
            refused("the external 'scale' is 1e+300, which is not finite in f32", run, 1e300)
            refused("the external 'scale' is -3.5e+38, which is not", run, -3.5e38)
            refused("'scale' is a number of 1329 bits, which is not finite in f32", run, 10 ** 400)
            refused("'scale' is a number of 133 bits", run, 10 ** 40)
            print("ok")
        """
        self.assertEqual(run(2, body), ["ok", "ok"])


if __name__ == "__main__":
    unittest.main()

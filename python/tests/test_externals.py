"""Plans with row functions, from Python: ranks as processes on the host device."""

import unittest

import mscclc
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
            refused("the plan's external 'residual' is missing", plan.run, array.array("f", given))
            refused("no external 'more'; it has 'residual', 'gain'", run, more=1.0)
            refused("'residual' is of f32, not of f64", run,
                    residual=array.array("d", range(rows * columns)))
            refused("'gain' has 9 elements; it has 8 f32", run, gain=floats(*range(9)))
            refused("'residual' has 12 elements; it has 8 f32 a row", run,
                    residual=floats(*range(12)))
            refused("'total' is of f32, not of u8", run, total=bytearray(12))
            refused("the buffer is read-only", run, residual=bytes(96))
            refused("the external 'residual' has 2 rows: the call needs 3 x 8 f32", run,
                    residual=floats(*range(16)), error=mscclc.LibraryError)
            plain = comm.load({mscclc.compile("allreduce_1shot_ordered", R=2).to_json()!r}, 1 << 12)
            refused("the plan has no external 'x'; it has none", plain.run, floats(1, 2, 3, 4),
                    externals=dict(x=1))
            print("ok")
        """
        self.assertEqual(run(2, body), ["ok", "ok"])


if __name__ == "__main__":
    unittest.main()

"""Plans of the library for collectives of rows, by name and shape: ranks as processes on the host device."""

import unittest

import mscclc
from rank_processes import run

SHAPE = {"ranks": 2, "columns": 64, "dtype": "f32"}
ANY_COLUMNS = """
row biased(x: row T, bias: columns T) {
  out y: row T = T(x) + bias
}
program    biased
external   bias: columns T
collective allreduce(ranks: 2, columns: 8.., then: biased)
rank r in 0..2 {
  buffer inbox[1] packets: LL16, copies: 2
  buffer sum[1]
  channel to = memory(1 - r)
  tb 0 {
    put_packets to.inbox[0] <- input[0]
    reduce_packets sum[0] <- inbox[0], input[0]
    apply biased output[0] <- sum[0], bias
  }
}
"""
# The bits of rows by themselves, and in batches whose rows are of KINDS kinds; what a rank has of them.
BATCHES = """if 1:
    import hashlib, random
    KINDS, some = 5, random.Random(7)
    def values(count, width):
        numbers = floats(*[some.gauss(0, 1) for _ in range(count)])
        if width == 4:
            return numbers
        halves = array.array("H", numbers.tobytes())
        return halves[1::2]  # in bf16
    def rows_of(kinds, choice):
        out = array.array(kinds[0].typecode)
        for k in choice:
            out.extend(kinds[k])
        return out
    def check(name, columns, dtype, batches):
        width = {"f32": 4, "bf16": 2}[dtype]
        given = [[values(columns, width) for _ in range(KINDS)] for _ in range(ranks)][rank]
        residuals, weight = [values(columns, width) for _ in range(KINDS)], values(columns, width)
        plan, seen, programs = comm.load_rows(name, columns, batches[-1], dtype), {}, set()
        for rows in batches:
            choice = [rows * i % 7 % KINDS for i in range(rows)] if rows > 1 else None
            for turn in range(KINDS if rows == 1 else 1):
                choice = [turn] if rows == 1 else choice
                # The first ranks have one row more of those that are sharded.
                begin = rows // ranks * rank + min(rank, rows % ranks)
                own = slice(begin, begin + rows // ranks + (rank < rows % ranks)) if "sharded" in name else slice(rows)
                x, residual = rows_of(given, choice), rows_of(residuals, choice[own])
                out = array.array(x.typecode, bytes(len(x) * width))
                outside = dict(residual=residual, weight=weight, eps=1e-5)
                if "token" in name:
                    q, scale = bytearray(rows * columns), floats(*[0] * rows)
                    outside.update(q=q, scale=scale, least=1e-10)
                plan.run(x, out, dtype=dtype, externals=outside).wait()
                programs.add(mscclc.choose_rows(name, ranks=ranks, columns=columns, rows=rows, dtype=dtype).program)
                out, residual, step = out.tobytes(), residual.tobytes(), columns * width
                for i, kind in enumerate(choice):
                    found = [out[i * step : (i + 1) * step]]
                    if "token" in name:
                        found += [bytes(q[i * columns : (i + 1) * columns]), scale[i]]
                    assert seen.setdefault((kind, "all"), found) == found, (name, rows, i)
                for i, kind in enumerate(choice[own]):
                    found = residual[i * step : (i + 1) * step]
                    assert seen.setdefault((kind, "residual"), found) == found, (name, rows, i)
        assert len(programs) > 1, programs
        print(hashlib.sha256(repr([seen[k, "all"] for k in range(KINDS)]).encode()).hexdigest())
"""


class RowPlans(unittest.TestCase):
    def test_choice(self):
        shape = {"ranks": 4, "columns": 2880, "dtype": "bf16"}
        found = mscclc.choose_rows("allreduce_norm", rows=2, **shape)
        self.assertEqual(found, ("allreduce_norm_1shot", {"R": "4", "N": "2880", "B": "8", "T": "384"}, 8))
        self.assertEqual(mscclc.choose_rows("allreduce_norm", rows=1000, **shape).most_rows, (1 << 64) - 1)
        plan = mscclc.row_plan("allreduce_norm", rows=2, **shape)
        self.assertEqual(plan.to_dict()["name"], "allreduce_norm_1shot")
        self.assertIn("output = y of add_rmsnorm", plan.verify())

    def test_refused(self):
        for text, name, changed in (
            ("'norm' is none of the collectives of rows: allreduce_norm, ", "norm", {}),
            ("one rank has nothing to add up", "allreduce_norm", {"ranks": 1}),
            ("9 columns of f32: rows of .allreduce_norm. have a multiple of 4 columns.* 8 and 12 are served", "allreduce_norm", {"columns": 9}),
            ("0 rows are no message", "allreduce_norm", {"rows": 0}),
            ("plans of rows are for up to 72 ranks, not 1000", "allreduce_norm", {"ranks": 1000}),
        ):
            with self.assertRaisesRegex(mscclc.LibraryError, text):
                mscclc.choose_rows(name, **{"rows": 1, **SHAPE, **changed})
        with self.assertRaisesRegex(mscclc.UsageError, "rows"):
            mscclc.choose_rows("allreduce_norm", rows=-1, **SHAPE)

    def test_calls_that_something_else_makes(self):
        """They are compared, and nothing is launched, whatever their size."""
        run(2, """if 1:
            import time
            plan = comm.load_rows("allreduce_norm", 64, 8)._loaded[-1][1]
            for _ in range(2):
                plan._leave(1 << 20, "f32", None)
                comm.synchronize()
            try:
                plan._leave(1 << 20 + rank, "f32", None)
                for _ in range(1000):
                    comm.synchronize()
                    time.sleep(0.05)
                raise AssertionError("calls of other sizes are taken for the same")
            except mscclc.LibraryError as error:
                assert " 1048576 bytes of f32" in str(error) and " 2097152 bytes of f32" in str(error), error
            print("fine")
        """)  # fmt: skip

    def test_orders(self):
        """Sums are in the order of the ranks, which of two ranks is every order."""
        four = {**SHAPE, "ranks": 4, "rows": 1}
        for order in ("any", "replicated", "ranks", None):
            mscclc.choose_rows("allreduce_norm", order=order, **four)
        for order in ("tree", "exact"):
            mscclc.row_plan("allreduce_norm", rows=1, order=order, **SHAPE)
            with self.assertRaisesRegex(mscclc.LibraryError, f"no plan serves allreduce_norm .* under '{order}'"):
                mscclc.row_plan("allreduce_norm", order=order, **four)
        with self.assertRaisesRegex(mscclc.UsageError, "no order 'trees'"):
            mscclc.choose_rows("allreduce_norm", order="trees", **four)
        run(3, """if 1:
            comm.load_rows("allreduce_norm", 64, 8)
            refused("under 'tree'", comm.load_rows, "allreduce_norm", 64, 8, "f32", "tree", error=mscclc.LibraryError)
            child = comm.split(0)
            child._order = "exact"  # as if it were made so
            refused("under 'exact'", child.load_rows, "allreduce_norm", 64, 8, error=mscclc.LibraryError)
            refused("under 'exact'", child.split(0).load_rows, "allreduce_norm", 64, 8, error=mscclc.LibraryError)
            child.load_rows("allreduce_norm", 64, 8, order="ranks").check_order("replicated")
            print("fine")
        """)

    def test_one_rank_without_a_plan(self):
        """All ranks learn of it at once, whatever the reason, and load others."""
        run(3, """if 1:
            for order, why in (("tree", "under 'tree'"), ("trees", "no order 'trees'")):
                try:
                    comm.load_rows("allreduce_norm", 64, 8, order=order if rank == 1 else None)
                    raise AssertionError("loaded")
                except (mscclc.LibraryError, mscclc.UsageError) as error:
                    assert (why if rank == 1 else "rank 1 cannot take the plan") in str(error), error
            comm.load_rows("allreduce_norm", 64, 8).check_order("ranks")
            print("fine")
        """)  # fmt: skip

    def test_calls(self):
        """A call takes the plan for its rows: one shot up to 512, and reads of what the other has beyond."""
        run(2, """if 1:
            columns, most = 64, 513
            norm = comm.load_rows("allreduce_norm", columns, most)
            kinds = [one.program for one in map(lambda rows: mscclc.choose_rows(
                "allreduce_norm", ranks=2, columns=columns, rows=rows), (1, 8, 512, most))]
            assert kinds[0] == kinds[1] == kinds[2] != kinds[3], kinds
            for rows in (1, 3, 33, most):
                given = floats(*[float(rank + 1)] * rows * columns)
                out, residual = floats(*[0] * rows * columns), floats(*[1] * rows * columns)
                outside = dict(residual=residual, weight=floats(*[2] * columns), eps=0.0)
                norm.run(given, out, externals=outside).wait()
                assert set(residual) == {4.0} and set(out) == {2.0}, (rows, set(residual), set(out))
            outside = dict(residual=floats(), weight=floats(*[2] * columns), eps=0.0)
            norm.run(floats(), floats(), externals=outside).wait()  # a batch of no rows
            refused("are 514 rows of 64 f32; loaded are plans for whole rows, 513 at most",
                    norm.run, floats(*[1] * (most + 1) * columns))
            refused("max_rows is 1000000000000000000; allowed are whole numbers from 1 to", comm.load_rows,
                    "allreduce_norm", columns, 10**18)
            refused("1.01562 rows of 64 f32", norm.run, floats(*[1] * 65))
            refused("the input is of 'f64', and the call takes it for 'f32'", norm.run,
                    array.array("d", [1] * 64), externals=outside)
            print("fine")
        """)

    def test_calls_for_other_rows(self):
        """Ranks whose rows are on two sides of a threshold take different plans: an error with both calls, as of ranks
        that take plans of their own in another order."""
        said = run(2, """if 1:
            columns = 64
            norm = comm.load_rows("allreduce_norm", columns, 513)
            rows = 512 + rank
            given = [floats(*[1] * rows * columns) for _ in range(3)]
            outside = dict(residual=given[1], weight=floats(*[2] * columns), eps=0.0)
            try:
                norm.run(given[0], given[2], externals=outside).wait()
            except mscclc.LibraryError as error:
                assert "ranks launch different calls, which differ in the plan" in str(error), error
                for name, bytes in ("allreduce_norm_1shot", 131072), ("allreduce_norm_read", 131328):
                    assert f"call 1 of '{name}'" in str(error) and f"{bytes} bytes of f32" in str(error), error
                print("differ")
        """)
        self.assertEqual(said, ["differ", "differ"])
        said = run(2, f"""if 1:
            plans = [comm.load(text, 1 << 12) for text in [{mscclc.compile(ANY_COLUMNS).with_columns(8).to_json()!r}] * 2]
            outside = dict(bias=floats(*[1] * 8))
            try:
                plans[rank].run(floats(*[1] * 8), externals=outside).wait()
            except mscclc.LibraryError as error:
                assert "(load 1), 32 bytes of f32" in str(error) and "(load 2), 32 bytes of f32" in str(error), error
                print("differ")
        """)
        self.assertEqual(said, ["differ", "differ"])

    def test_a_call_and_a_load(self):
        """A rank that loads a plan has no call by name."""
        said = run(2, """if 1:
            try:
                if rank == 0:
                    comm.allreduce(floats(1)).wait()
                else:
                    comm.load_rows("allreduce_norm", 64, 8)
            except mscclc.LibraryError as error:
                assert "rank 0 makes an allreduce of 1 element" in str(error) and "rank 1 loads a plan by itself" in str(error), error
                print("differ")
        """)
        self.assertEqual(said, ["differ", "differ"])

    def test_close(self):
        """Plans end before their communicator; what is queued ends first."""
        run(2, f"""if 1:
            text, columns = {mscclc.compile(ANY_COLUMNS).with_columns(64).to_json()!r}, 64
            def call(plan, rows, **more):
                return plan.run(floats(*[1] * rows * columns), floats(*[0] * rows * columns), **more)
            outside = dict(bias=floats(*[1] * columns))
            outside_norm = dict(residual=floats(*[1] * 513 * columns), weight=outside["bias"], eps=0.0)
            kept = comm.load(text, 1 << 12)
            for _ in range(3):
                with comm.load(text, 1 << 12) as plan:
                    for work in [call(plan, 2, externals=outside) for _ in range(5)]:
                        work.wait()
                    out = floats(*[0] * columns)
                    queued = plan.run(floats(*[1] * columns), out, externals=outside)
                queued.wait()
                assert set(out) == {{3.0}}, out
                refused("the plan is closed", call, plan, 2, externals=outside)
                plan.close()
                with comm.load_rows("allreduce_norm", columns, 513) as norm:
                    assert len(comm._plans) > 2
                    for rows in (1, 513):
                        call(norm, rows, externals=outside_norm)
                refused("the plans are closed", call, norm, 1, externals=outside_norm)
                norm.close()
                assert len(comm._plans) == 1, comm._plans
            call(kept, 1, externals=outside).wait()
            last = comm.load_rows("allreduce_norm", columns, 8)
            comm.close()
            refused("the communicator is closed", call, kept, 1, externals=outside)
            refused("the communicator is closed", call, last, 1, externals=outside_norm)
            for one in (kept, last):
                one.close()
            print("fine")
        """)

    def test_scales(self):
        """Rows by owner come in e4m3, with their scales, to all ranks: 448 times what a row's scale is."""
        for kind, type, columns, scale in (
            ("token", "f", 1, 2 / 448), ("groups", "f", 2, 2 / 448), ("mxfp8", "B", 6, 120)
        ):  # fmt: skip
            run(2, f"""if 1:
                import array
                load = comm.load_rows("allreduce_norm_quantize_{kind}_sharded", 192, 2000)
                for rows in (1, 5, 2000):
                    own = rows // 2 + (rows % 2 if rank == 0 else 0)
                    out, residual = array.array("B", bytes(rows * 192)), floats(*[1] * own * 192)
                    scale = array.array({type!r}, [0] * rows * {columns})
                    outside = dict(residual=residual, weight=floats(*[2] * 192), eps=0.0, scale=scale)
                    if {kind!r} == "token":
                        outside["least"] = 1e-10
                    load.run(floats(*[float(rank + 1)] * rows * 192), out, externals=outside).wait()
                    assert set(residual) <= {{4.0}}, set(residual)
                    assert all(abs(one - {scale}) < 1e-6 for one in scale), scale[:8]
                    # 2 / 2**-7 is 256; 2 / (2 / 448) is rounded to 448.
                    assert set(out) == {{{0x78 if kind == "mxfp8" else 0x7E}}}, set(out)
                print("fine")
            """)

    def test_batches(self):
        """A row has the bits that it has alone, wherever it is in a batch, by all plans of the table, and on all ranks."""
        sizes = [1, 2, 3, 5, 8, 9, 31, 33, 64, 65, 129, 500, 513, 1024, 1500]
        for name in "allreduce_norm", "allreduce_norm_quantize_token", "allreduce_norm_sharded":
            for ranks in 2, 3, 5:
                bits = run(ranks, BATCHES + f"    check({name!r}, 512, 'f32', {sizes})")
                self.assertEqual(len(set(bits)), 1, (name, ranks))

    def test_8192_rows(self):
        """The most tokens of a batch, of a model whose columns are no power of two."""
        bits = run(3, BATCHES + "    check('allreduce_norm_sharded', 2880, 'bf16', [1, 8192])")
        self.assertEqual(len(set(bits)), 1)

    def test_columns(self):
        plan = mscclc.compile(ANY_COLUMNS)
        with self.assertRaisesRegex(mscclc.LibraryError, "63 is none: 56 is the last, and 64 is the next"):
            plan.with_columns(63)
        run(2, f"""if 1:
            from mscclc import Plan
            refused("mscclc_plan_columns", comm.load, {plan.to_json()!r}, 1 << 12, error=mscclc.LibraryError)
            plan = comm.load(Plan({plan.to_json()!r}).with_columns(24), 1 << 12)
            out = floats(*[0] * 48)
            plan.run(floats(*range(48)), out, externals=dict(bias=floats(*range(24)))).wait()
            assert list(out) == [2.0 * i + i % 24 for i in range(48)], out
            print("fine")
        """)

    def test_narrower(self):
        """Rows of a narrower type than the one that a plan was loaded for, also an odd number of them."""
        quantized = ANY_COLUMNS.replace("y: row T", "y: row e4m3")
        run(2, f"""if 1:
            from mscclc import Plan
            def words(value, rows, type="H"):
                return array.array(type, [value] * 64 * rows)
            one, two, four = 0x3F80, 0x4000, 0x4080  # of bf16
            for text, type, result in (
                ({mscclc.compile(ANY_COLUMNS).to_json()!r}, "H", four),
                ({mscclc.compile(quantized).to_json()!r}, "B", 0x48),
            ):
                plan = comm.load(Plan(text).with_columns(64), 1 << 12, "f32")
                more = dict(dtype="bf16", externals=dict(bias=words(two, 1)))
                for rows in (1, 3, 6):
                    out = words(0, rows, type)
                    plan.run(words(one, rows), out, **more).wait()
                    assert set(out) == {{result}}, (rows, set(out))
                for rows in (2, 4):
                    refused("the plan needs", plan.run, words(one, 3), words(0, rows, type), **more)
            # The library picks by the width of a row.
            norm = comm.load_rows("allreduce_norm", 64, 600)
            for rows in (0, 3, 600):
                refused("the plans were loaded for 'f32', and the call is of 'bf16', which is of another width",
                        norm.run, words(one, rows), words(0, rows), dtype="bf16",
                        externals=dict(residual=words(two, rows), weight=words(two, 1), eps=0.0))
            print("fine")
        """)


if __name__ == "__main__":
    unittest.main()

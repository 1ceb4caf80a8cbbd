"""The tables of _numbers.py, against what they repeat: mscclc.h and collectives.def."""

import os
import re
import unittest

from mscclc import UsageError, _numbers, _overlap

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(path):
    """A file of the source tree."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def enum(name):
    """An enum of the header, as its names without what they begin with, in lower case."""
    body = re.search(rf"enum mscclc_{name} \{{(.*?)\}};", read("runtime/doors/c/mscclc.h"), re.DOTALL)
    words = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL)
    found, following = {}, 0
    for word, value in re.findall(r"MSCCLC_(\w+)(?: = (-?\d+))?", words):
        following = int(value) if value else following
        found[word.lower()] = following
        following += 1
    return found


def members(name):
    """The names of a struct's members in the header, in order."""
    header = read("runtime/doors/c/mscclc.h")
    body = re.search(rf"typedef struct mscclc_{name} \{{(.*?)\}} mscclc_{name}_t;", header, re.DOTALL)
    lines = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL).split(";")
    return [re.search(r"(\w+)$", word.strip())[1] for line in lines if line.strip() for word in line.split(",")]


class Numbers(unittest.TestCase):
    def test_they_are_those_of_the_header(self):
        types = {"dtype_default": _numbers.DTYPE_DEFAULT}
        types.update((name, number) for name, (number, _) in _numbers.DTYPES.items())
        orders = {f"order_{name or 'default'}": n for name, n in _numbers.ORDERS.items()}
        self.assertEqual(enum("dtype"), types)
        self.assertEqual(enum("op"), _numbers.OPS)
        self.assertEqual(enum("order"), orders)
        self.assertEqual(enum("kind"), {name: k.number for name, k in _numbers.KINDS.items()})
        self.assertEqual(enum("overlap_kind"), _numbers.OVERLAPS)

    def test_structs_are_those_of_the_header(self):
        for name, struct in (
            ("gemm", _overlap.Gemm), ("overlap_config", _overlap.Config), ("overlap_call", _overlap.OverlapCall),
        ):  # fmt: skip
            self.assertEqual([name for name, _ in struct._fields_], members(name))

    def test_shapes_are_those_of_the_table_of_collectives(self):
        rows = re.findall(
            r"^COLLECTIVE\((\w+), +([\w()]+), +([\w()]+),", read("ir/contract/collectives.def"), re.M
        )
        table = {name: sides for name, *sides in rows if name not in ("none", "custom")}
        shapes = {name: [kind.input, kind.output] for name, kind in _numbers.KINDS.items()}
        self.assertEqual(shapes, table)
        numbers = {name: number for number, (name, *_) in enumerate(rows) if name in table}
        self.assertEqual(enum("kind"), numbers)

    def test_widths(self):
        for name, (_, width) in _numbers.DTYPES.items():
            bits = int(re.match(r"[a-z]+(\d+)$", name)[1]) if name[0] != "e" else 8
            self.assertEqual(8 * width, bits, name)

    def test_names_that_are_none(self):
        for function, name, text in (
            (_numbers.element_type, "c64", "no element type 'c64'; there are: f32, f16, "),
            (_numbers.op_number, [], r"no reduction '\[\]'; there are: sum, min, max, prod, avg$"),
            (_numbers.order_number, "sorted", "no order 'sorted'; there are: any, replicated, "),
        ):
            with self.assertRaisesRegex(UsageError, text):
                function(name)


if __name__ == "__main__":
    unittest.main()

"""Everything public has a docstring and types: what py.typed promises to users who check their programs.

Read from the sources, so that no torch is needed. Modules of the package's own are left out.
"""

import ast
import os
import unittest

import mscclc
import mscclc.mscclpp

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mscclc")
# No program imports these.
INTERNAL = {
    "mscclpp/command.py", "mscclpp/failures.py", "mscclpp/places.py", "mscclpp/run.py",
    "mscclpp/language/internal", "source_lines.py", "symmetric/native.py", "symmetric/of_torch.py",
    "symmetric/teams.py", "torch/backend.py",
}  # fmt: skip


def public_modules():
    """Paths of the modules, relative to the package."""
    for folder, _, names in os.walk(PACKAGE):
        place = os.path.relpath(folder, PACKAGE)
        for name in sorted(names):
            path = os.path.normpath(os.path.join(place, name))
            private = name.startswith("_") and not name.startswith("__")
            if name.endswith(".py") and not private and not {path, place} & INTERNAL:
                yield path


def is_public(node):
    """A class or function that programs use."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, kinds) and not node.name.startswith("_")


def missing_types(function, in_class):
    """The arguments without a type, and "return"."""
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)
    if in_class and not static:
        arguments = arguments[1:]
    missing = [a.arg for a in arguments if a is not None and a.annotation is None]
    return missing + (["return"] if function.returns is None else [])


def faults(body, name, in_class=False):
    """What the public names of a module or class lack."""
    for node in filter(is_public, body):
        whole = f"{name}.{node.name}"
        if ast.get_docstring(node) is None:
            yield f"{whole}: no docstring"
        if isinstance(node, ast.ClassDef):
            yield from faults(node.body, whole, True)
        else:
            yield from (f"{whole}: no type of {what}" for what in missing_types(node, in_class))


class Interface(unittest.TestCase):
    def test_everything_has_a_docstring_and_types(self):
        found, modules = [], list(public_modules())
        for path in modules:
            with open(os.path.join(PACKAGE, path), encoding="utf-8") as file:
                module = ast.parse(file.read())
            if ast.get_docstring(module) is None:
                found.append(f"{path}: no docstring")
            found += faults(module.body, path)
        self.assertEqual(found, [])
        for path in ("__init__.py", "builder.py", "torch/ops.py", "mscclpp/language/rank.py"):
            self.assertIn(path, modules)

    def test_names_that_are_imported_when_they_are_used_are_shown(self):
        for module in (mscclc, mscclc.mscclpp):
            self.assertLessEqual(set(module.__all__), set(dir(module)))
            for name in module.__all__:
                self.assertIsNotNone(getattr(module, name), name)

    def test_what_lacks_them_is_found(self):
        module = ast.parse("class A:\n  def f(self, x, *, y: int): pass\n  def _g(self): pass\n")
        self.assertEqual(
            list(faults(module.body, "m")),
            ["m.A: no docstring", "m.A.f: no docstring", "m.A.f: no type of x", "m.A.f: no type of return"],
        )  # fmt: skip


if __name__ == "__main__":
    unittest.main()

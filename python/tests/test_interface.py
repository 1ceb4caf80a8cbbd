"""Everything public has a docstring and types: what py.typed promises to users who check their programs.
Names that modules import from each other are there.

Read from the sources, so that neither torch nor vLLM is needed. Modules of the package's own are left out of
the first.
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


def parsed(path):
    """The tree of a module, by its path in the package."""
    with open(os.path.join(PACKAGE, path), encoding="utf-8") as file:
        return ast.parse(file.read())


def module_path(dotted):
    """The path of a module of the package from its name below the package; None: there is none."""
    stem = dotted.replace(".", "/")
    paths = [stem + ".py", os.path.join(stem, "__init__.py")] if stem else ["__init__.py"]
    return next((p for p in paths if os.path.exists(os.path.join(PACKAGE, p))), None)


def defined(module):
    """The names that a module binds, wherever it does; None: any, since it has a __getattr__."""
    names = set()
    for node in ast.walk(module):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(a.asname or a.name.split(".")[0] for a in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return None if "__getattr__" in names else names


def missing_imports(path, module):
    """What a module imports from the package and is not there."""
    folders = path.split("/")[:-1]
    for node in ast.walk(module):
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        above = folders[: len(folders) - node.level + 1]
        source = ".".join(above + ([node.module] if node.module else []))
        found = module_path(source)
        names = defined(parsed(found)) if found else set()
        for alias in node.names:
            inside = module_path(f"{source}.{alias.name}" if source else alias.name)
            if names is not None and alias.name not in names and inside is None and alias.name != "*":
                yield f"{path}:{node.lineno}: no {alias.name} in {found or source}"


def all_modules():
    """Paths of all modules, relative to the package."""
    for folder, _, names in os.walk(PACKAGE):
        place = os.path.relpath(folder, PACKAGE)
        yield from (os.path.normpath(os.path.join(place, n)) for n in sorted(names) if n.endswith(".py"))


class Interface(unittest.TestCase):
    def test_everything_has_a_docstring_and_types(self):
        found, modules = [], list(public_modules())
        for path in modules:
            module = parsed(path)
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

    def test_names_that_modules_import_from_each_other_are_there(self):
        modules = list(all_modules())
        self.assertIn("vllm/groups.py", modules)
        self.assertEqual([f for path in modules for f in missing_imports(path, parsed(path))], [])

    def test_a_name_that_is_not_there_is_found(self):
        module = ast.parse("def f():\n  from ..torch.fusion.groups import Group, group_of\n  from ..torch import none")
        self.assertEqual(
            list(missing_imports("vllm/groups.py", module)),
            ["vllm/groups.py:2: no Group in torch/fusion/groups.py", "vllm/groups.py:3: no none in torch/__init__.py"],
        )

    def test_what_lacks_them_is_found(self):
        module = ast.parse("class A:\n  def f(self, x, *, y: int): pass\n  def _g(self): pass\n")
        self.assertEqual(
            list(faults(module.body, "m")),
            ["m.A: no docstring", "m.A.f: no docstring", "m.A.f: no type of x", "m.A.f: no type of return"],
        )  # fmt: skip


if __name__ == "__main__":
    unittest.main()

"""docs/python.md as a test: its Python runs, its commands print what stands there.

    `mine.py`:        a line like this, then a block: the file of that name
    >>> 1 + 1         Python and what it shows, as of the module doctest
    $ mscclc …        commands of the shell, and what they print; `mscclc` is the package's
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
DOCUMENT = os.path.join(ROOT, "docs", "python.md")
_BLOCK = re.compile(r"^(?:`(?P<file>[\w.]+)`:\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


class Document(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        shutil.copytree(os.path.join(ROOT, "plans"), os.path.join(folder.name, "plans"))
        os.chdir(folder.name)

    def test_it_is_true(self):
        with open(DOCUMENT, encoding="utf-8") as file:
            text = file.read()
        names, counts = {}, {"file": 0, "python": 0, "command": 0}
        for block in _BLOCK.finditer(text):
            body = block["text"]
            line = text.count("\n", 0, block.start()) + 1
            if block["file"]:
                counts["file"] += 1
                with open(block["file"], "w", encoding="utf-8") as file:
                    file.write(body)
            elif body.startswith(">>> "):
                counts["python"] += 1
                self.run_python(body, names, line)
            elif body.startswith("$ "):
                counts["command"] += 1
                self.run_commands(body, line)
        self.assertTrue(all(counts.values()), counts)

    def run_python(self, body, names, line):
        test = doctest.DocTestParser().get_doctest(body, names, "python.md", DOCUMENT, line)
        said = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        runner.run(test, out=said.append, clear_globs=False)
        names.update(test.globs)
        self.assertEqual("".join(said), "")

    def run_commands(self, body, line):
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, _, expected = part.partition("\n")
            done = subprocess.run(
                ["bash", "-c", f'mscclc() {{ "{sys.executable}" -m mscclc "$@"; }}; {command}'],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            with self.subTest(command, line=line):
                self.assertEqual(done.stdout, expected)


if __name__ == "__main__":
    unittest.main()

"""Programs to plans: `compile`, and what can be asked of a Plan."""

import json
import operator
import os
from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Union

from ._files import read_file, replace_file
from ._tool import call
from .effects import Effect, effects_of
from .errors import UsageError

Parameter = Union[int, bool, str, Iterable[int]]


@dataclass(frozen=True)
class Result:
    """A line of the table that `Plan.run` gives: a message size, and how its calls went."""

    size: int  #: bytes, the larger of input and output
    count: int  #: elements
    dtype: str
    op: str  #: the reduction; "none" where nothing is reduced
    in_place: bool
    microseconds: float  #: a call on this machine, which simulates all ranks
    wrong: int  #: elements that are not what the collective promises


class Plan:
    """An execution plan: what the executor runs, with the record of its proof."""

    __slots__ = ("_json", "warnings")

    def __init__(self, text: str, warnings: str = ""):
        self._json = text.strip()
        self.warnings = warnings.rstrip("\n")

    @classmethod
    def load(cls, path: Union[str, os.PathLike]) -> "Plan":
        """Reads a plan from a file."""
        try:
            return cls(read_file(path).decode())
        except UnicodeDecodeError as error:
            raise UsageError(f"cannot read '{path}': it is no text in UTF-8: {error.reason}") from None

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the plan to a file, as the compiler does. Where that fails, a file that was there is as it was."""
        replace_file(path, (self._json + "\n").encode())

    def to_json(self) -> str:
        """The plan as the compiler writes it: JSON in one line."""
        return self._json

    def to_dict(self) -> Any:
        """The plan as Python's `json` reads it."""
        return json.loads(self._json)

    def to_ir(self) -> str:
        """The plan as IR text, which is easier to read."""
        return call("compile", "-", "--emit=ir", "--no-verify", text=self._json)[0]

    def summary(self) -> str:
        """The plan at a glance."""
        return call("compile", "-", "--emit=summary", text=self._json)[0]

    def verify(self, target: Optional[str] = None) -> str:
        """Proves the plan and says what is proved; raises CompileError if it is refused."""
        options = [] if target is None else ["--target", target]
        out, _ = call("verify", "-", *options, text=self._json)
        return out.strip().partition("proved: ")[2]

    def with_columns(self, columns: int) -> "Plan":
        """A plan whose rows may have any multiple of some columns (`columns: 64..`), for so many, as it must be
        loaded. Its proof is that of the loading."""
        from .row_plans import with_columns

        return with_columns(self._json, columns)

    def effects(self) -> List[Effect]:
        """For each op, in order, what it reads, what it writes and what it does to channels."""
        return effects_of(self.to_ir())

    def run(
        self,
        *sizes: Union[int, str],
        dtype: str = "f32",
        op: str = "sum",
        in_place: Optional[bool] = None,
        seed: Optional[int] = None,
        iterations: int = 3,
        device: str = "host",
    ) -> List[Result]:
        """Runs the plan with messages of these sizes (default: 1M) and checks what comes out.

        Sizes are bytes, or words as of `mscclc run --bytes`. `seed` decides which block runs next; only
        the device "host" takes one. A run that hangs or gives wrong data raises RunError.
        """
        options = ["--bytes", ",".join(map(str, sizes))] if sizes else []
        options += ["--dtype", dtype, "--op", op, "--iters", str(iterations)]
        options += ["--device", device]
        if seed is not None:
            options += ["--schedule-seed", str(seed)]
        if in_place:
            options.append("--in-place")
        out, _ = call("run", "-", *options, text=self._json)
        return _results(out)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        plan = self.to_dict()
        return f"<Plan {plan['name']}: {plan['collective']} over {len(plan['gpus'])} ranks>"


def compile(
    program: Union[str, os.PathLike],
    params: Optional[Mapping[str, Parameter]] = None,
    *,
    target: Optional[str] = None,
    max_thread_blocks: Optional[int] = None,
    verify: bool = True,
    **more: Parameter,
) -> Plan:
    """Compiles a program to a plan, proved right unless `verify` is False.

    `program` is a path, the name of one of the library's ("allreduce_1shot"), or the text of a
    program: a string with more than one line. Parameters of the program are keywords, or in
    `params` where their names are those of other arguments here.
    """
    options = [f"-D{name}={_value(name, value)}" for name, value in {**(params or {}), **more}.items()]
    if target is not None:
        options += ["--target", target]
    if max_thread_blocks is not None:
        options += ["--max-thread-blocks", str(max_thread_blocks)]
    if not verify:
        options.append("--no-verify")
    if isinstance(program, str) and "\n" in program:
        return Plan(*call("compile", "-", *options, text=program))
    return Plan(*call("compile", *options, "--", os.fspath(program)))


def _value(name: str, value: Parameter) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    try:
        return str(operator.index(value))
    except TypeError:
        pass
    try:  # several numbers
        return ",".join(str(operator.index(element)) for element in value)
    except TypeError:
        raise UsageError(
            f"the parameter '{name}' is {value!r}; allowed are whole numbers, several of them, and texts"
        ) from None


def _results(table: str) -> List[Result]:
    """The rows of a table of `mscclc run`: a time, two rates, a count in each group of columns."""
    results = []
    groups = []
    for line in table.splitlines():
        words = line.split()
        if line.startswith("#"):
            found = [word == "in-place" for word in words if word in ("in-place", "out-of-place")]
            groups = found or groups
            continue
        size, count, dtype, op, _, *cells = words
        for i, in_place in enumerate(groups):
            time, _, _, wrong = cells[4 * i : 4 * i + 4]
            results.append(
                Result(int(size), int(count), dtype, op, in_place, float(time), int(wrong))
            )
    return results

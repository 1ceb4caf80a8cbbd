"""mscclc mscclpp: a program of MSCCL++'s language to a plan."""

import argparse
import json
import re
import sys

from .._tool import call
from ..errors import CompileError, UsageError
from .language.internal.write_plan import compact_plan
from .places import at_program, with_places
from .run import trace

_PASSES = "fuse,sync,split,complete_sums"
_INTERRUPTED = 130  # as shells say it


def compile_program(program, emit="mscclpp", verify=True):
    """The text of a traced program's plan ('mscclpp': MSCCL++'s, 'plan': ours) or IR.

    Raises CompileError, at the lines of the program, where the plan is not proved right.
    """
    plan = compact_plan(program, emit == "mscclpp")
    try:
        if emit == "mscclpp" and not verify:
            return plan
        ir = with_places(call("compile", "-", "--emit=ir", "--no-verify", text=plan)[0], program)
        if emit == "mscclpp":
            call("verify", "-", text=ir)
            return plan
        options = [] if verify or emit == "ir" else ["--no-verify"]
        return call(
            "compile", "-", f"--emit={emit}", f"--passes={_PASSES}", *options, text=_open(ir)
        )[0].rstrip("\n")
    except CompileError as error:
        raise CompileError(at_program(error.text, program)) from None


def main(arguments):
    """Runs the command; its exit code."""
    options = _parse(arguments)
    try:
        text = _plan_of_file(options)
        if options.output == "-":
            print(text)
        else:
            _write(options.output, text + "\n")
        return 0
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    except UsageError as error:
        print(f"mscclc: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        from .failures import interrupted

        print(interrupted(stop, options.program), file=sys.stderr)
        return _INTERRUPTED
    except OSError as error:  # of standard output
        print(f"mscclc: cannot write standard output: {error.strerror}", file=sys.stderr)
        return 2


def _write(path, text):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def _plan_of_file(options):
    try:
        programs, printed = trace(options.program, options.arguments, options.emit == "mscclpp")
    except UsageError:
        raise
    except Exception as error:
        raise _failure(error) from None
    if len(programs) != 1:
        found = ", ".join(f"'{program.name}'" for program in programs) or "none"
        raise UsageError(f"'{options.program}' must trace one program; it traces: {found}")
    _show(printed)
    try:
        return compile_program(programs[0], options.emit, not options.no_verify)
    except RuntimeError as error:
        raise _failure(error) from None


def _failure(error):
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "msccl":
        return CompileError(
            f"{error.name}: the program is for MSCCL, or MSCCL++ before 0.7: write it with "
            "mscclpp.language, or import the XML that it writes ('mscclc import')"
        )
    from .failures import text_of_failure

    return CompileError(text_of_failure(error))


def _show(printed):
    """What a program prints besides its plan goes to standard error: the output is the plan."""
    at = 0
    while at < len(printed):
        end = _end_of_plan(printed, at)
        if end is None:
            end = printed.find("\n", at) + 1 or len(printed)
            print(printed[at:end], end="", file=sys.stderr)
        at = end


def _end_of_plan(printed, at):
    """The end of the plan, and its line, that begins here; None: there is none."""
    try:
        plan, end = json.JSONDecoder().raw_decode(printed, at)
    except ValueError:
        return None
    return end + 1 if isinstance(plan, dict) and "gpus" in plan else None


def _open(ir):
    """IR text of a plan as that of a program that passes may still change."""
    of_plan = re.compile(r"^(launch .*)\bsplit: true, foreign: true$", re.MULTILINE)
    ir = of_plan.sub(r"\1", ir, count=1)
    return re.sub(r"^launch +\n|,? +$", "", ir, flags=re.MULTILINE)


class _Help(argparse.Action):
    """The compiler's help, which has that of this command."""

    def __call__(self, parser, *_):
        print(call("mscclpp", "--help")[0], end="")
        parser.exit()


def make_parser():
    """The command's arguments, which the compiler's command line describes, too."""
    parser = argparse.ArgumentParser(prog="mscclc mscclpp", add_help=False)
    parser.add_argument("-h", "--help", action=_Help, nargs=0)
    parser.add_argument("-o", "--output", metavar="FILE", default="-")
    parser.add_argument("--emit", choices=("mscclpp", "plan", "ir", "summary"), default="mscclpp")
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument("program", metavar="PROGRAM.py")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER)
    return parser


def _parse(arguments):
    options = make_parser().parse_args(arguments)
    if len(options.arguments) >= 2 and options.arguments[-2] in ("-o", "--output"):
        options.output = options.arguments[-1]
        del options.arguments[-2:]
    return options

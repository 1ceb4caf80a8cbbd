"""The compiler's completion scripts, with the command that is Python's."""

from .mscclpp.command import make_parser

DESCRIPTION = "write the plan of a program in MSCCL++'s Python language"


def with_mscclpp(script):
    """`script` is what `mscclc completion SHELL` prints."""
    rows = _zsh_rows() if script.startswith("#compdef") else _bash_rows()
    for place, row, before in rows:
        if place not in script:
            raise AssertionError(f"the compiler's script has no {place!r}")
        script = script.replace(place, row + place if before else place + row, 1)
    return script


def _options():
    """Those of the command, as argparse has them: only they begin with a dash."""
    return [action for action in make_parser()._actions if action.option_strings]


def _bash_rows():
    """As (a place in the script, what comes there, before it?)."""
    values = ""
    for option in _options():
        if option.nargs != 0:
            pattern = "|".join(f"'mscclpp {name}'" for name in option.option_strings)
            words = f"words='{' '.join(option.choices)}'" if option.choices else "files=1"
            values += f"    {pattern}) {words} ;;\n"
    names = " ".join(name for option in _options() for name in option.option_strings)
    return [
        ("--help --version' --", "mscclpp ", True),
        ('    *) case "$command" in\n', values, True),
        ("    esac ;;\n", f"    mscclpp) options='{names}'; files=1 ;;\n", True),
    ]


def _zsh_rows():
    rows = ""
    for option in _options():
        text = (option.help or "the plan's file").split("\n")[0].split(":")[0]
        for name in option.option_strings:
            sign, value = "", ""
            if option.nargs != 0:
                sign = "=" if name.startswith("--") else "+"
                value = f":word:({' '.join(option.choices)})" if option.choices else ":FILE:_files"
            rows += f"        '{name}{sign}[{text}]{value}' \\\n"
    command = f"    mscclpp)\n      _arguments \\\n{rows}        '*:PROGRAM.py:_files' \\\n"
    text = DESCRIPTION.replace("'", "'\\''")
    return [
        ("    local -a commands=(\n", f"      'mscclpp:{text}'\n", False),
        ("  case $command in\n", f"{command}        && return 0 ;;\n", False),
    ]

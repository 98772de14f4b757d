"""Pages of the documentation, played as a reader types them: Python, commands, what they print.

A ``text`` block right after a ``python`` block is what that block prints, with its warnings at the
end; lines of a ``console`` block without ``$`` are what the command above them prints. "..." stands
for anything, and numbers may differ a little: the last digits depend on machine and versions.
"""

import io
import re
import shlex
import subprocess
import sys
import types
import warnings
from contextlib import redirect_stdout

FENCE = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"
PIECE = re.compile(rf"(\.\.\.|{NUMBER}|\s+)")
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
READERS = {"head", "cat", "ls"}


def play(text, name, monkeypatch, shell=False):
    """Run the blocks of a page in turn in the current folder, and return its Python names."""
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    end, printed = 0, None
    for block in FENCE.finditer(text):
        kind, code = block.groups()
        follows = not text[end : block.start()].strip()
        if kind == "python":
            printed = python(code, name, module.__dict__)
        elif kind == "console" and shell:
            console(code)
        elif kind == "text" and printed is not None and follows:
            check(code, printed, f"{name}:\n{printed}")
        printed, end = printed if kind == "python" else None, block.end()
    return module.__dict__


def python(code, name, names):
    """What a block prints, and after that its warnings."""
    out = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(out):
        warnings.simplefilter("always", UserWarning)
        exec(compile(code, name, "exec"), names)
    told = [f"{w.category.__name__}: {w.message}" for w in caught]
    return "\n".join([out.getvalue(), *told])


def console(code):
    for command, shown in COMMAND.findall(code):
        program, *arguments = shlex.split(command.replace("\\\n", " "))
        if program == "dipedl":
            printed = dipedl(arguments, allowed=(0, 3) if not shown else (0, 1, 2, 3))
        elif program in READERS:
            printed = subprocess.run(
                [program, *arguments], capture_output=True, text=True, check=True
            ).stdout
        else:
            continue
        if shown:
            check(shown, printed, f"$ {command}\n{printed}")


def dipedl(arguments, allowed):
    from typer.testing import CliRunner

    from dipedl.apps.cli.app import app

    with warnings.catch_warnings(record=True):
        done = CliRunner().invoke(app, arguments)
    assert done.exit_code in allowed, (arguments, done.output, done.exception)
    return done.output


def check(shown, printed, message):
    """`printed` is what the page shows, but for whitespace and the last digits of numbers."""
    pieces = PIECE.split(shown.strip())
    found = re.fullmatch("".join(map(_pattern, pieces)), printed.strip(), re.DOTALL)
    assert found, f"the page shows\n{shown}\nand not what is printed by {message}"
    numbers = [piece for piece in pieces if re.fullmatch(NUMBER, piece)]
    for told, real in zip(numbers, found.groups(), strict=True):
        assert close(told, real), f"the page shows {told} for {real} in {message}"


def _pattern(piece):
    if piece == "...":
        return ".*?"
    if re.fullmatch(NUMBER, piece):
        return f"({NUMBER})"
    return r"\s+" if piece.isspace() else re.escape(piece)


def close(told, real):
    """Within a twentieth, or one unit of the last digit shown."""
    mantissa, _, exponent = told.replace(",", "").partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    value, other = (float(n.replace(",", "")) for n in (told, real))
    return abs(value - other) <= max(1.001 * unit, 0.05 * abs(value))

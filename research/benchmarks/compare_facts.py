"""Facts about a library, each with a line of code that runs in that library's interpreter."""

import ast
import importlib.util
import re
import tomllib
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

FACTS = Path(__file__).parent / "compare" / "facts.toml"


def facts_shown(library: str) -> dict[str, dict[str, str]]:
    """By question: the answer and the line that shows it, run just now in one namespace."""
    names = {"mentions": mentions, "holds": holds, **example()}
    return {
        fact["about"]: run_line(fact, names) for fact in tomllib.loads(FACTS.read_text())[library]
    }


def licence(package: str) -> str:
    """As the metadata of the installed package says it: expression, classifier or free text."""
    metadata = distribution(package).metadata
    classified = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    stated = metadata["License-Expression"] or metadata["License"]
    return stated or classified[0].rpartition(" :: ")[2]


def run_line(fact: dict[str, str], names: dict) -> dict[str, str]:
    """The fact, after its line has run without an error and did not come out false."""
    *steps, last = ast.parse(fact["shows"]).body
    exec(compile(ast.Module(steps, []), "fact", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "fact", "eval"), names)
    if value is None or value is False:
        raise SystemExit(f"not so any more: {fact}")
    return fact


def mentions(package: str, pattern: str) -> list[str]:
    """Files of the installed package whose code matches, whatever the case."""
    # A line of facts.toml is no raw string: Python reads its \b, the end of a word, as a backspace.
    found = re.compile(pattern.replace("\b", r"\b"), re.IGNORECASE)
    return [name for name, text in sources(package) if found.search(text)]


def holds(package: str, file: str) -> bool:
    """Whether the installed package has that file; for parts that need torch."""
    return (package_folder(package) / file).exists()


def package_folder(package: str) -> Path:
    return Path(importlib.util.find_spec(package).origin).parent


@cache
def sources(package: str) -> list[tuple[str, str]]:
    folder = package_folder(package)
    paths = [path for path in folder.rglob("*.py") if "tests" not in path.parts]
    return [(str(p.relative_to(folder)), p.read_text("utf-8", "ignore")) for p in paths]


def example() -> dict[str, np.ndarray]:
    """Two classes of 60 rows in four columns."""
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 60)
    return {"np": np, "X": rng.normal(size=(120, 4)) + 3 * y[:, None], "y": y}

"""One library of the comparison, in an interpreter of its own; started by compare_libraries.py.

Facts about it each have a line of code, in compare/facts.toml, that runs here.
"""

import ast
import importlib.util
import json
import platform
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path

import numpy as np
from harness import paired_seconds

HERE = Path(__file__).parent / "compare"
REPEATS = 5


def main(task_path: str, out: str) -> None:
    task = json.loads(Path(task_path).read_text())
    found = {"python": platform.python_version(), "version": version(task["package"])}
    found |= {"facts": run_facts(task["library"]), "licence": licence(task["package"])}
    found["snippets"] = {name: run_snippet(name, task) for name in task["snippets"]}
    Path(out).write_text(json.dumps(found))


def run_snippet(name: str, task: dict) -> dict:
    path = HERE / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"snippet_{name}", path)
    snippet = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(snippet)
    data = [dict(np.load(path)) for path in task["data"]]
    return {
        "lines": code_lines(path.read_text()),
        "methods": {m: of_method(snippet, m, kind, data) for m, kind in snippet.METHODS.items()},
    }


def of_method(snippet, method: str, kind: str, data: list[dict]) -> dict:
    """Answers to the known and unknown rows of each seed; seconds beside the bare classifier's."""
    answers = []
    for seed, parts in enumerate(data):
        model = fit_snippet(snippet, method, parts, seed)
        answers.append(
            {key: as_lists(snippet.answer(model, parts[key])) for key in ("known", "unknown")}
        )
    return {
        "classifier": kind,
        "answers": answers,
        "seconds": seconds(snippet, method, kind, data[0]),
    }


def fit_snippet(snippet, method: str, parts: dict, seed: int):
    np.random.seed(seed)  # noqa: NPY002  what clones without a seed draw from
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    return snippet.fit(parts["X"], parts["y"], method, seed)


def as_lists(answer) -> list[list]:
    labels, scores, flags = (np.asarray(part) for part in answer)
    return [labels.tolist(), scores.astype(float).tolist(), flags.astype(bool).tolist()]


def seconds(snippet, method: str, kind: str, parts: dict) -> dict[str, float]:
    X, y, known = parts["X"], parts["y"], parts["known"]
    fit, predict = BARE[kind]()
    bare, model = fit(X, y), fit_snippet(snippet, method, parts, 0)
    calls = {"bare_fit": lambda: fit(X, y), "fit": lambda: fit_snippet(snippet, method, parts, 0)}
    found = paired_seconds(calls, REPEATS)
    calls = {
        "bare_answer": lambda: predict(bare, known),
        "answer": lambda: snippet.answer(model, known),
    }
    return found | paired_seconds(calls, REPEATS)


def bare_forest():
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0).fit, lambda clf, X: clf.predict_proba(X)


def bare_perceptron():
    from sklearn.neural_network import MLPClassifier

    clf = MLPClassifier((128, 128), random_state=0)
    return clf.fit, lambda clf, X: clf.predict_proba(X)


def bare_network():
    import torch
    from compare.network import train

    predict = torch.no_grad()(lambda net, X: net(torch.tensor(X)).softmax(dim=1))
    return lambda X, y: train(torch.tensor(X), torch.tensor(y), 0), predict


BARE = {"forest": bare_forest, "perceptron": bare_perceptron, "network": bare_network}


def code_lines(text: str) -> int:
    """Lines with code, but for the docstring and the names of the methods compared."""
    left = [node for node in ast.parse(text).body if not left_out(node)]
    lines = text.splitlines()
    kept = [line for node in left for line in lines[node.lineno - 1 : node.end_lineno]]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in kept)


def left_out(node: ast.stmt) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or (isinstance(node, ast.Assign) and node.targets[0].id == "METHODS")


def run_facts(library: str) -> dict[str, dict[str, str]]:
    """Return by question the answer and the line that shows it, run just now in one namespace."""
    facts = tomllib.loads((HERE / "facts.toml").read_text())[library]
    names = {"mentions": mentions, "holds": holds, **example()}
    return {fact["about"]: run_line(fact, names) for fact in facts}


def licence(package: str) -> str:
    """Return what the metadata of the installed package say: expression, classifier or text."""
    metadata = distribution(package).metadata
    classified = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    stated = metadata["License-Expression"] or metadata["License"]
    return stated or classified[0].rpartition(" :: ")[2]


def run_line(fact: dict[str, str], names: dict) -> dict[str, str]:
    """Return the fact once its line has run without an error and did not come out false."""
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
    """Return whether the installed package has that file; for parts that need torch."""
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


if __name__ == "__main__":
    main(*sys.argv[1:])

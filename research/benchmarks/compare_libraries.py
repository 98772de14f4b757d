"""dipedl beside six other libraries: what each offers, and one small task that all are given.

    python benchmarks/compare_libraries.py --python pyod=PATH mapie=PATH ...

Each library runs in an interpreter of its own, given as LIBRARY=PATH, ``--libraries_at_once`` of
them (1 where nothing else runs); install there what INSTALLED names (torch for the CPU first, where
a library needs torch; scikit-learn beside it). dipedl runs in this one. Set OMP_NUM_THREADS=1. The
snippets lie under benchmarks/compare: every line of them but the docstring and the names of the
methods is counted. Facts: benchmarks/compare/facts.toml.

Task: scikit-learn's digits 0 to 7, split anew for each seed; 8 and 9 are unknown. Every method is
given the training rows, answers with labels, scores and flags, and sees no unknown row before.
"""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from dipedl.datasets import load_digits

HERE = Path(__file__).parent
SEEDS, FALSE_ALARM_RATE, THREADS = (0, 1, 2, 3, 4), 0.05, os.environ.get("OMP_NUM_THREADS")
FACTS_CHECKED = tomllib.loads((HERE / "compare" / "facts.toml").read_text())["checked"]
INSTALLED = {
    "dipedl": "dipedl",
    "probly": "probly==0.9.1",
    "torch_uncertainty": "torch-uncertainty[cpu]==0.13.0",
    "pytorch_ood": "pytorch-ood==0.4.0",
    "pyod": "pyod==3.6.7",
    "mapie": "mapie==1.6.0",
    "uncertainty_toolbox": "uncertainty-toolbox==0.1.1",
}
SNIPPETS = {"dipedl": ["plain", "dipedl", "dipedl_network"], "uncertainty_toolbox": []}


def measure(python: tuple[str, ...] = (), libraries_at_once: int = 1) -> harness.Values:
    load = os.getloadavg()
    pythons = {"dipedl": sys.executable} | dict(pair.split("=", 1) for pair in python)
    if missing := [f"{name}=PATH" for name in INSTALLED if name not in pythons]:
        raise SystemExit(f"no interpreter for some libraries: add --python {' '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        labels = [save_split(Path(folder), seed) for seed in SEEDS]
        with ThreadPoolExecutor(libraries_at_once) as pool:
            runs = pool.map(lambda name: answers(name, pythons[name], Path(folder)), INSTALLED)
            found = dict(zip(INSTALLED, runs, strict=True))
    about = ("version", "python", "licence", "facts")
    return {
        "libraries": {name: {key: run[key] for key in about} for name, run in found.items()},
        "task": {k: v for run in found.values() for k, v in of_task(run, labels).items()},
        "load_average": {"start": load, "end": os.getloadavg(), "cores": os.cpu_count()},
    }


def save_split(folder: Path, seed: int) -> np.ndarray:
    """Write the rows that methods may see; returns the labels of the known test rows."""
    data = load_digits(random_state=seed)
    rows = {"X": data.X_train, "y": data.y_train, "known": data.X_test}
    np.savez(folder / f"{seed}.npz", **rows, unknown=data.ood["held_out"])
    return data.y_test


def answers(name: str, python: str, folder: Path) -> dict:
    task, out = folder / f"{name}.task.json", folder / f"{name}.out.json"
    package = INSTALLED[name].partition("==")[0].partition("[")[0]
    about = {"library": name, "package": package, "snippets": SNIPPETS.get(name, [name])}
    task.write_text(json.dumps(about | {"data": [str(folder / f"{s}.npz") for s in SEEDS]}))
    print("==", name, flush=True)
    subprocess.run([python, str(HERE / "compare_worker.py"), str(task), str(out)], check=True)
    return json.loads(out.read_text())


def of_task(run: dict, labels: list[np.ndarray]) -> dict[str, dict]:
    return {
        f"{snippet}: {method}": {"lines": found["lines"], **of_method(of, labels)}
        for snippet, found in run["snippets"].items()
        for method, of in found["methods"].items()
    }


def of_method(of: dict, labels: list[np.ndarray]) -> dict:
    """Means and standard deviations over the seeds; seconds over those of the bare classifier."""
    seeds = [of_seed(answer, y) for answer, y in zip(of["answers"], labels, strict=True)]
    means = {key: spread([seed[key] for seed in seeds]) for key in seeds[0]}
    seconds = of["seconds"]
    return means | {
        "classifier": of["classifier"],
        "fit_ratio": round(seconds["fit"] / seconds["bare_fit"], 2),
        "answer_ratio": round(seconds["answer"] / seconds["bare_answer"], 2),
        "seconds": {key: float(f"{value:.3g}") for key, value in seconds.items()},
    }


def spread(values: list[float]) -> list[float]:
    return [round(float(np.mean(values)), 4), round(float(np.std(values, ddof=1)), 4)]


def of_seed(answer: dict, y: np.ndarray) -> dict[str, float]:
    labels, known, alarms = map(np.asarray, answer["known"])
    _, unknown, flags = map(np.asarray, answer["unknown"])
    is_unknown, scores = np.repeat([0, 1], [len(known), len(unknown)]), np.r_[known, unknown]
    rates, shares, _ = roc_curve(is_unknown, scores)
    return {
        "accuracy": float(np.mean(labels == y)),
        "auroc": roc_auc_score(is_unknown, scores),
        "false_alarms": float(np.mean(alarms)),
        "flagged": float(np.mean(flags)),
        "flagged_at_rate": float(np.interp(FALSE_ALARM_RATE, rates, shares)),
    }


if __name__ == "__main__":
    harness.main(__file__, measure)

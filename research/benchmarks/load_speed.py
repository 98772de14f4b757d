"""Time to load a saved forest of 200 trees, every part checked, beside joblib's unpickling."""

import tempfile
import time
from pathlib import Path

import harness
import joblib
import numpy as np
from harness import paired_seconds
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from dipedl import DIPClassifier, load, save

TREES, REPEATS = 200, 9
_DATA = {"iris": load_iris, "digits": load_digits}


def models(X: np.ndarray, y: np.ndarray):
    forest = RandomForestClassifier(TREES, random_state=0)
    return {
        "forest": make_pipeline(forest).fit(X, y),
        "DIPClassifier": DIPClassifier(forest, random_state=0).fit(X, y),
    }


def loading(model, folder: Path) -> dict[str, float]:
    ours, theirs = folder / "model.dipedl", folder / "model.joblib"
    save(model, ours)
    joblib.dump(model, theirs)
    seconds = paired_seconds(
        {"ours": lambda: load(ours), "joblib": lambda: joblib.load(theirs)},
        REPEATS,
        time.process_time,
    )
    return {
        "ours_ms": round(1000 * seconds["ours"], 1),
        "joblib_ms": round(1000 * seconds["joblib"], 1),
        "ratio": round(seconds["ours"] / seconds["joblib"], 2),
        "ours_kb": round(ours.stat().st_size / 1000),
        "joblib_kb": round(theirs.stat().st_size / 1000),
    }


def measure() -> harness.Values:
    values = {}
    for name, data in _DATA.items():
        for kind, model in models(*data(return_X_y=True)).items():
            with tempfile.TemporaryDirectory() as folder:
                values[f"{kind}, {name}"] = loading(model, Path(folder))
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)

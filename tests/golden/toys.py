"""The two toy experiments in small, and as published: rows of numbers."""

import importlib
import json
from pathlib import Path

import dipedl
from dipedl.density import KernelDensity

SOURCE = Path(dipedl.__file__).parent
PUBLISHED = SOURCE.parents[1] / "research/results/bench/toys"


def study(name):
    """The module of an experiment."""
    return importlib.import_module(f"dipedl_bench.studies.{name}")


def small_rows():
    """Both experiments in seconds."""
    moons = study("two_moons")
    fitted = moons.run(KernelDensity(), n_points=150, epochs=10, step=0.5)
    vacuity = study("toy_vacuity").run([1, 10], n_points=100, steps=60)
    return numbers([*vacuity, *moons.rows(fitted)])


def moons_rows():
    """The published rows of the second experiment, trained again; a minute."""
    moons = study("two_moons")
    return numbers(moons.rows(moons.run()))


def published(name):
    return numbers(json.loads((PUBLISHED / f"{name}.json").read_text(encoding="utf-8")))


def numbers(rows):
    """Row by name; what time, place and versions add to it is left out."""
    kept = {}
    for row in rows:
        name = f"nu = {row['nu']:g}" if "nu" in row else row["method"]
        kept[name] = {
            key: value
            for key, value in row.items()
            if isinstance(value, float | int | list) and key not in ("seconds", "threads")
        }
    return kept

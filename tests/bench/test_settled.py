"""Rows of older versions stand for today's settings exactly where these are the same."""

from pathlib import Path

import pytest

pytest.importorskip("pydantic")

from dipedl.bench import load_rows, load_suite
from dipedl.bench.results.receipt import config_hash
from dipedl.bench.results.settled import changes, settled, standing
from dipedl.bench.results.store import Store
from dipedl.bench.spec.plan import plan
from dipedl.bench.tables.table import latest

ROOT = Path(__file__).parent.parent.parent / "results" / "bench"
ROWS = [row for suite in ("mnist", "cifar10", "spectra") for row in load_rows(suite, out=ROOT)]
#: Settings of published rows that the suites no longer have.
CHANGED = {
    "`training.amp` was true and is false now",
    "`annealing_epochs` was 10 and is 1.0 now",
    '`library_defaults` was "0.1" and is "0.2" now',
}
YOUNGER = (
    *("label_smoothing", "calibrator", "verbose", "cv", "normalizer"),
    *("residual", "mirrored", "shifted", "cutout"),
)


def today(row):
    where = f"{row['suite']}.toml"
    ood = row["config"]["data"]["ood"]
    return plan(load_suite(row["suite"]), row["profile"], [row["method"]], where, ood)[0]


@pytest.fixture(scope="module")
def pairs():
    kinds = {(row["suite"], row["profile"], row["config_hash"]): row for row in ROWS}
    return [(row, today(row)) for row in kinds.values()]


def test_published_rows_keep_their_configuration_and_its_hash():
    assert all(config_hash(row["config"]) == row["config_hash"] for row in ROWS)


def test_a_published_row_stands_for_the_suite_or_says_what_has_changed(pairs):
    for row, part in pairs:
        told = changes(row["config"], part.config)
        assert (standing(row) == part.standing) == (not told)
        assert set(told) <= CHANGED, (row["method"], told)


def leaves(config, place=()):
    """Every setting with its place."""
    if not isinstance(config, dict):
        return {place: config}
    return {k: v for key, item in config.items() for k, v in leaves(item, (*place, key)).items()}


def test_only_settings_younger_than_the_row_are_settled(pairs):
    """Where a row stands for today's settings, all others are equal as they were written."""
    equal = [(row, part) for row, part in pairs if standing(row) == part.standing]
    renamed = [row["suite"] for row, part in equal if row["config_hash"] != part.digest]
    assert (renamed.count("mnist"), renamed.count("cifar10")) == (0, 20)
    for row, part in equal:
        old, new = leaves(row["config"]), leaves(part.config)
        differ = {place for place in old.keys() | new.keys() if old.get(place) != new.get(place)}
        assert all(set(place) & set(YOUNGER) for place in differ)


def dip(stored=True, **arguments):
    found = {"estimator": "DIPClassifier", "arguments": arguments, "format": 1}
    return found | ({"below": {"density": {"estimator": "KNN", "arguments": {}}}} if stored else {})


def test_defaults_of_another_version_are_other_settings():
    z = {"class": "ZScore", "settings": {}}
    old, new = dip(normalizer=None, cv=5), dip(normalizer=z, calibrator="passthrough", verbose=0)
    assert settled(old) == settled(new) and changes(old, new) == []
    theirs = dip(normalizer=None, calibrator=None), dip(normalizer=None, calibrator=None, verbose=0)
    assert settled(theirs[0]) != settled(theirs[1])
    of_selection = [dip(stored=False, normalizer=z, cv=n, **v) for n, v in ((5, {}), (9, {}))]
    assert settled(of_selection[0]) != settled(
        of_selection[1]
    )  # folds matter to a density's choice


def test_tables_join_rows_of_both_hashes_and_runs_find_the_older(tmp_path):
    where = ("cifar10", "short", "ddu", 10)
    (old,) = (r for r in ROWS if (r["suite"], r["profile"], r["method"], r["seed"]) == where)
    part = today(old)
    new = {**old, "seed": 50, "config": part.config, "config_hash": part.digest}
    assert new["config_hash"] != old["config_hash"]
    assert [row["seed"] for row in latest([old, new])] == [10, 50]
    store = Store(tmp_path, "cifar10", "short")
    store.append(old)
    assert store.has_row("ddu", part.standing, 10) and not store.has_row("ddu", part.standing, 50)
    other = {**new, "config": {**part.config, "sees": "pixels"}, "config_hash": "other"}
    assert [row["seed"] for row in latest([old, other])] == [50]

"""Spectra as rows of a suite: the split, the features that are kept, suites that extend others."""

import os
import shutil

import numpy as np
import pytest

from dipedl.apps.spectra import spectral_features, toy_spectra
from dipedl.baselines import EDL
from dipedl_bench import datasets, load_suite, run
from dipedl_bench.datasets.spectra_splits import draw_objects, split_spectra
from dipedl_bench.datasets.splits import make_splits
from dipedl_bench.running.runner import StoppedError
from dipedl_bench.spec.build import describe
from dipedl_bench.spec.plan import data_config, method_parts
from dipedl_bench.spec.suite import parse_suite

CONFIG = {
    "dataset": "toy-spectra",
    "ood": ["stars"],
    "limit": {"train": None, "validation": None, "test": None, "ood": 70},
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    return folder, make_splits(CONFIG, 7, folder)


def test_the_papers_split_and_features_of_training_rows_alone(kept):
    """Written out once more, step by step, as the paper's code has it."""
    splits = kept[1]
    every = toy_spectra(1500)
    known = np.flatnonzero(every.label < 2)
    order = np.random.default_rng(7).permutation(len(known))
    n = int(0.2 * len(known))
    rows = dict(
        zip(
            ("train", "validation", "test"),
            np.split(known[order], [len(known) - 2 * n, len(known) - n]),
            strict=True,
        )
    )
    features = spectral_features(n_components=40).fit(every.flux[rows["train"]])
    for split, at in rows.items():
        np.testing.assert_array_equal(splits.y[split], every.label[at])
        np.testing.assert_allclose(splits.X[split], features.transform(every.flux[at]), atol=1e-5)
    stars = np.flatnonzero(every.label == 2)
    chosen = np.sort(np.random.default_rng(0).permutation(len(stars))[:70])  # for every seed
    expected = features.transform(every.flux[stars[chosen]])
    np.testing.assert_allclose(splits.X["ood/stars"], expected, atol=1e-5)
    assert "ood/stars" not in splits.y
    assert not np.array_equal(make_splits(CONFIG, 8).y["test"], splits.y["test"])


def test_what_is_kept_is_read_again_and_what_is_damaged_made_again(kept, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("joblib.memory.MemorizedFunc.warn", lambda self, text: told.append(text))
    folder, splits = kept
    keep = shutil.copytree(folder, tmp_path / "features")
    (path,) = keep.rglob("output.pkl")
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    again = make_splits(CONFIG, 7, keep)
    assert path.stat().st_mtime_ns == stamp and not told
    for split, rows in splits.X.items():
        np.testing.assert_array_equal(again.X[split], rows)
    path.write_bytes(before[: len(before) // 2] + b"!" + before[len(before) // 2 + 1 :])
    again = make_splits(CONFIG, 7, keep)
    assert "while loading results" in "".join(told) and path.read_bytes() == before
    for split, rows in splits.X.items():
        np.testing.assert_array_equal(again.X[split], rows)


def test_no_object_is_on_two_sides():
    every = toy_spectra(90)
    group = np.arange(90) // 3
    spectra = type(every)(every.flux, every.wavelength, every.label % 2, every.target_names)
    object.__setattr__(spectra, "group", group)
    found = split_spectra(spectra, CONFIG, 3)
    objects = [set(group[found[split]]) for split in ("train", "validation", "test")]
    assert sum(map(len, objects)) == len(set.union(*objects)) == 30
    assert sum(len(found[split]) for split in ("train", "validation", "test")) == 90


def test_rows_are_drawn_as_published_where_each_is_of_another_object():
    for objects in (np.arange(10), 10 - np.arange(10)):  # whatever their numbers
        order, _ = draw_objects(objects, 3)
        np.testing.assert_array_equal(order, np.random.default_rng(3).permutation(10))


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("DIPEDL_DATA"), reason="DIPEDL_DATA is not set")
def test_sets_from_elsewhere(tmp_path):
    config = {**CONFIG, "ood": ["stars", "supernovae", "real_stars"], "shifted": ["real"]}
    splits = make_splits(config, 7, tmp_path)
    real = datasets.real_spectra()
    assert len(splits.X["shifted/real"]) == (real.label < 2).sum() == len(splits.y["shifted/real"])
    np.testing.assert_array_equal(splits.y["shifted/real"], real.label[real.label < 2])
    assert len(splits.X["ood/supernovae"]) == 70


def test_a_suite_that_extends_another():
    spectra, lamost = load_suite("spectra"), load_suite("lamost")
    assert lamost.methods == spectra.methods and lamost.densities == spectra.densities
    ours = {
        m.name: m.table for m in method_parts(lamost, "paper", lamost.method_names("paper"), "x")
    }
    theirs = spectra.method_names("published")
    assert ours == {m.name: m.table for m in method_parts(spectra, "published", theirs, "x")}
    data = data_config(lamost, lamost.profile("paper"))
    assert data["dataset"] == "lamost-published" and data["limit"]["ood"] is None
    assert "shifted" not in data
    with pytest.raises(ValueError, match=r"x.toml: extends: unknown suite 'spectrum'.*spectra"):
        parse_suite('[suite]\nname = "a"\nextends = "spectrum"\n', "x.toml")
    text = '[suite]\nname = "a"\nextends = "spectra"\n[profiles.p]\nextends = "publish"\n'
    with pytest.raises(ValueError, match=r"profiles.p.extends: unknown name above it 'publish'"):
        parse_suite(text, "x.toml")


def test_settings_younger_than_published_rows_change_no_config():
    assert "class_weight" not in describe(EDL())["settings"]
    assert describe(EDL(class_weight="balanced"))["settings"]["class_weight"] == "balanced"


@pytest.mark.parametrize("kind", [0, 1])
def test_spectra_without_a_known_class_are_refused_in_words(kind):
    """As when the first of the paper's files, which has all galaxies and quasars, is missing."""
    every = toy_spectra(60)
    with pytest.raises(ValueError, match=r"must hold galaxies and quasars, got .*files missing"):
        split_spectra(every.select(every.label != kind), CONFIG, 0)


FILES = ("ood_supernovae", "real_spectra", "sim_ingredients")


@pytest.mark.parametrize("lacking", [FILES, FILES[:1], FILES[1:2]])
@pytest.mark.parametrize("cached", [True, False])
def test_missing_files_are_all_named_before_a_process_starts(
    tmp_path, monkeypatch, lacking, cached
):
    folder = tmp_path / "data" / "spectra"
    folder.mkdir(parents=True)
    for name in set(FILES) - set(lacking):
        (folder / f"{name}.npz").touch()
    monkeypatch.setattr("dipedl_bench.running.runner.run_in_process", None)
    monkeypatch.setenv("DIPEDL_DATA", "" if cached else str(folder.parent))
    monkeypatch.setenv("DIPEDL_CACHE", str(folder.parent if cached else tmp_path))
    axes = {"profile": "scarce", "methods": ["max-softmax"], "seeds": [10]}
    with pytest.raises(StoppedError, match="DIPEDL_DATA, or --data, must name") as caught:
        run("spectra", out=tmp_path / "out", **axes)
    told = str(caught.value)
    assert str(folder.parent) in told
    named = [name for name in FILES if f"'spectra/{name}.npz'" in told.partition(", but")[0]]
    assert named == list(lacking)

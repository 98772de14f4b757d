"""The section of spectra on the benchmark's page: whose, in which order, and what is missing."""

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("pydantic")

from scipy.special import expit

from dipedl.apps.spectra import Spectra, paper_grid
from dipedl.plots import unknown_counts
from dipedl_bench.datasets import spectra_splits as spectra_data
from dipedl_bench.datasets.spectra_splits import Looked
from dipedl_bench.report import spectra as report
from dipedl_bench.report.page import render
from dipedl_bench.report.spectra import Shelf
from dipedl_bench.results.receipt import config_hash
from dipedl_bench.results.store import Store
from dipedl_bench.running.runner import make_row
from headless import Page, chromium

SIZES = {"validation": 60, "test": 90, "ood/stars": 400, "ood/real_stars": 40, "shifted/real": 30}
DATA = {"dataset": "semi-real-scarce", "ood": ["stars", "real_stars"], "shifted": ["real"]}
COST = {"seconds": {"train": 2.0, "score": 0.5}, "cpu_seconds": {"train": 3.0, "score": 0.6}}
COST |= {"peak_memory_mb": 300.0, "forward_passes": 1, "n_parameters": 10, "n": SIZES}


def answers(rng, split, n):
    y = rng.integers(2, size=n)
    log_evidence = rng.normal(-4 if split.startswith("ood/") else 4, 2, n)
    c, p = np.exp(log_evidence)[:, None], rng.dirichlet([1, 1], n)
    p[np.arange(n), y] += 1
    concentration = 1 + c * p / 2
    found = {
        "probabilities": concentration / concentration.sum(axis=1, keepdims=True),
        "uncertainty": -log_evidence,
        "log_evidence": log_evidence,
    }
    return found if split.startswith("ood/") else {**found, "y": y}


def write(root, methods=("dip-edl-default", "edl"), seeds=(20, 10), suite="spectra", data=DATA):
    store = Store(root, suite, "scarce")
    for seed in seeds:
        for method in methods:
            rng = np.random.default_rng([seed, *method.encode()])
            arrays = {split: answers(rng, split, n) for split, n in SIZES.items()}
            config = {"estimator": method, "data": data}
            digest = config_hash(config)
            store.save_arrays(method, digest, seed, arrays, COST)
            row = {"suite": suite, "profile": "scarce", "method": method, "title": method.upper()}
            row |= {"seed": seed, "config": config, "config_hash": digest}
            store.append(make_row(row, arrays, COST, {}, 0))
    return store


def looked_at(config, seed, keep=None):
    """What would be known of the rows: some of it is not."""
    rng = np.random.default_rng(seed)
    known = {}
    for split, n in SIZES.items():
        snr = np.full(n, np.nan) if split == "shifted/real" else rng.uniform(3, 40, n)
        snr[:2] = np.nan
        known[split] = Looked(np.arange(n) + 1000, np.zeros(n, int), snr, rng.uniform(0, 2, n))
    return known


def flux_of(config, split, rows, seed, keep=None):
    at = looked_at(config, seed)[split]
    rows = np.asarray(rows)
    flux = np.random.default_rng(0).normal(1, 0.2, (len(rows), 3000)).astype(np.float32)
    return Spectra(flux, paper_grid(), snr=at.snr[rows], redshift=at.redshift[rows])


@pytest.fixture
def there(monkeypatch):
    monkeypatch.setattr(spectra_data, "looked_at", looked_at)
    monkeypatch.setattr(spectra_data, "flux_of", flux_of)
    monkeypatch.setattr(report, "SHOWN", 1)


@pytest.fixture
def undrawn(there, monkeypatch):
    """Spectra are asked for, but not drawn: that takes most of the time."""
    monkeypatch.setattr(report, "shelf", lambda title, *_: Shelf(title, (), ()))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def arrays(store):
    return store.arrays_of(next(row for row in store.rows() if row["seed"] == 10))


@pytest.fixture(scope="module")
def section(store):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectra_data, "looked_at", looked_at)
        patch.setattr(spectra_data, "flux_of", flux_of)
        patch.setattr(report, "SHOWN", 2)
        return section_of(store)


@pytest.fixture(scope="module")
def page(store, section):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "spectra_section", lambda *_: section)
        return render(store)


def section_of(store):
    return report.spectra_section(store, store.rows())


@pytest.fixture
def nowhere(monkeypatch):
    def gone(*_, **__):
        raise FileNotFoundError("no ingredients in 'somewhere'; set DIPEDL_DATA")

    monkeypatch.setattr(spectra_data, "looked_at", gone)
    monkeypatch.setattr(spectra_data, "flux_of", gone)


def vacuity(named, rows):
    return expit(np.log(2) - named["log_evidence"][rows])


def test_the_ends_of_the_ranking_are_shown_of_every_set(section, arrays):
    assert (section.method, section.seed, section.left_out) == ("DIP-EDL-DEFAULT", 10, ())
    order = ["test", "shifted/real", "ood/stars", "ood/real_stars"]
    assert section.shelves[0].title == "Test spectra"
    for split, shelf in zip(order, section.shelves, strict=True):
        ranked = np.argsort(arrays[split]["uncertainty"])
        for rows, shown in ((ranked[:2], shelf.most), (ranked[::-1][:2], shelf.least)):
            for row, one in zip(rows, shown, strict=True):
                u, z = vacuity(arrays[split], row), looked_at({}, 10)[split].redshift[row]
                stated = float(re.match(r"vacuity ([\d.e-]+)", one.facts)[1])
                assert stated == pytest.approx(u, rel=0.05)
                assert f"z {z:.3f}" in one.facts
                assert one.title.startswith("is ") == (not split.startswith("ood/"))
                assert f"{one.title}; {one.facts}" in one.svg


def test_the_threshold_comes_from_validation_rows_alone(section, arrays):
    test = arrays["test"]
    foreign = {
        s: (arrays[f"ood/{s}"]["probabilities"], arrays[f"ood/{s}"]["uncertainty"])
        for s in ("stars", "real_stars")
    }
    found = unknown_counts(
        test["y"],
        test["probabilities"],
        test["uncertainty"],
        held_out=arrays["validation"]["uncertainty"],
        ood=foreign,
    )
    assert section.threshold.n_held_out == 60
    assert section.threshold.threshold == found.threshold
    np.testing.assert_array_equal(section.threshold.counts, found.counts)
    # what the picture shows is said in words too
    assert f"{found.counts[0, 2]:,} called unknown" in section.matrices[0].svg
    assert len(section.matrices) == 2


def test_made_spectra_and_real_ones_have_panels_of_their_own(section):
    test, real = section.trends
    for group in (test, real):
        assert [panel.title.partition(": ")[2] for panel in group.panels] == ["S/N", "redshift"]
    assert [entry.label for entry in test.legend][:2] == ["Galaxy", "Quasar"]
    assert len(test.legend) == 3


def test_a_panel_without_any_value_is_left_out(store, undrawn, monkeypatch):
    def without(*_):
        found = looked_at({}, 10)
        return {s: at._replace(redshift=np.full(len(at.row), np.nan)) for s, at in found.items()}

    monkeypatch.setattr(spectra_data, "looked_at", without)
    test, real = section_of(store).trends
    assert [len(group.panels) for group in (test, real)] == [1, 1]


def test_the_page_has_the_section_and_speaks_of_spectra(page):
    body = page[page.index("<body>") :]
    assert re.search(r'<a href="#spectra">.*<section id="spectra"', body, re.DOTALL)
    words = re.sub(r"<svg.*?</svg>", " ", body, flags=re.DOTALL)
    assert "image" not in re.sub(r"<[^>]*>", " ", words)
    assert "Not here: the spectra" not in body
    assert "Recall of Galaxy" in words and "Known spectra: 90 of the test set" in words
    assert "paper prints" not in words
    assert "more uncertain than all but 5 % of the 60 validation spectra" in " ".join(words.split())
    drawings = re.findall(r"<svg[^>]*>", body)
    assert all("aria-label" in tag or "aria-hidden" in tag for tag in drawings)
    ids = re.findall(r'\bid="([^"]*)"', body)
    assert len(ids) == len(set(ids))


def test_without_the_data_the_answers_are_still_shown(store, nowhere, monkeypatch):
    section = section_of(store)
    monkeypatch.setattr(report, "spectra_section", lambda *_: section)
    assert section.shelves == section.trends == ()
    assert section.left_out[0].endswith("set DIPEDL_DATA")
    assert len(section.matrices) == len(section.rejection.panels) == 2
    page = render(store)
    assert "Not here: The spectra themselves: no ingredients in &#39;somewhere&#39;" in page
    assert "What it trusts most and least" not in page


def test_data_of_other_rows_is_not_shown(store, there, monkeypatch):
    fewer = {split: Looked(*(v[:-1] for v in at)) for split, at in looked_at({}, 10).items()}
    monkeypatch.setattr(spectra_data, "looked_at", lambda *_: fewer)
    section = section_of(store)
    assert section.shelves == () and "rows, but the data has" in section.left_out[0]


def test_one_set_that_cannot_be_had_does_not_take_the_others_along(store, undrawn, monkeypatch):
    def no_stars(config, split, *rest):
        if split == "ood/stars":
            raise FileNotFoundError("no stars")
        return flux_of(config, split, *rest)

    monkeypatch.setattr(spectra_data, "flux_of", no_stars)
    section = section_of(store)
    assert len(section.shelves) == 3
    assert len(section.left_out) == 1 and section.left_out[0].endswith(": no stars")


def test_without_the_method_or_its_arrays_the_page_says_so(tmp_path, there):
    page = render(write(tmp_path / "a", methods=("edl",)))
    assert "Not here: none of dip-edl-default, dip-edl was run." in page


def test_answers_without_a_rank_are_said_not_drawn(store, there, monkeypatch):
    changed = store.arrays_of(store.rows()[0])
    changed["validation"]["uncertainty"][0] = np.nan
    monkeypatch.setattr(Store, "arrays_of", lambda *_: changed)
    assert re.search(r"Not here: [^<]*NaN", render(store))


def test_other_suites_have_no_such_section(tmp_path, there):
    page = render(write(tmp_path, suite="mnist", data={"dataset": "mnist"}))
    assert 'id="spectra"' not in page and "#spectra" not in page


@pytest.mark.browser
def test_fits_narrow_screens(tmp_path, page):
    pytest.importorskip("websocket")
    if chromium() is None:
        pytest.skip("no Chromium found")
    path = tmp_path / "spectra.html"
    path.write_text(page, encoding="utf-8")
    with Page(tmp_path / "profile") as browser:
        for width in (360, 1280):
            browser.open(path.as_uri(), width)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            empty = "[...document.querySelectorAll('svg')].filter(s => !s.clientHeight).length"
            assert browser.evaluate(empty) == 0
        assert browser.problems == []

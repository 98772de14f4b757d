"""The page of the benchmark: complete, self-contained, its numbers those of the table."""

import html
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store

from dipedl import Dirichlet
from dipedl_bench import load_rows
from dipedl_bench.report.figures import confidence, vacuity
from dipedl_bench.report.page import render
from dipedl_bench.results.paper import Published
from dipedl_bench.results.store import Store
from dipedl_bench.studies.toys import FOLDER, load_toys
from dipedl_bench.tables.findings import headline, meets_paper
from dipedl_bench.tables.table import Estimate, bench_table

METHODS = ("edl", "edl-published", "mc-dropout", "dip-edl", "max-softmax")
SECTIONS = (
    "short protocol tables differences ablation gamma sigma histograms limits again"
).split()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_synthetic_store(folder, profile="cpu", methods=METHODS)
    return folder


@pytest.fixture(scope="module")
def page(root):
    return render(Store(root, "mnist", "cpu"))


def text_of(page):
    """The words of a page, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).split())


def test_loads_nothing(page):
    assert "<script" not in page and "@import" not in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert all(a.startswith(("#", "data:")) for a in re.findall(r'href="([^"]*)"', page))


def test_all_sections_are_there_and_linked(page):
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert re.findall(r'<section id="([^"]*)"', page) == SECTIONS
    drawings = re.findall(r"<svg[^>]*>", page)
    assert len(drawings) > 12 and all("aria-" in one for one in drawings)
    for tag in ("table", "section", "tr", "td", "th", "div", "figure", "details", "ul"):
        assert len(re.findall(rf"<{tag}\b", page)) == page.count(f"</{tag}>"), tag


def test_numbers_are_those_of_the_table(root, page):
    table, text = bench_table(load_rows("mnist", "cpu", root)), text_of(page)
    for line in table.lines:
        for name, cell in line.cells.items():
            scale, form = (1000, ".3f") if name.startswith(("aurc", "augrc")) else (1, ".4f")
            assert f"{scale * cell.mean:{form}} ±{scale * cell.sd:{form}}" in text
    assert all(text_of(sentence) in text for sentence in headline(table))
    assert "paper 0.9166 ±0.0498" in text and "paper 0.994 ±0.000" in text


def test_what_is_missing_is_said(tmp_path):
    write_synthetic_store(tmp_path, profile="cpu", methods=["edl"], seeds=[10])
    text = render(Store(tmp_path, "mnist", "cpu"))
    assert text.count("Not here: DIP-EDL was not run.") == 3
    assert "No detectors without a model here" in text
    assert load_toys(tmp_path).vacuity == []
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "two_moons.json").write_text("[{")
    with pytest.raises(ValueError, match=r"two_moons\.json' is damaged .*run: dipedl-bench toys"):
        load_toys(tmp_path)


def test_rows_without_arrays_make_a_page_that_names_the_command(tmp_path):
    store = write_synthetic_store(tmp_path, profile="cpu", methods=["edl", "dip-edl"], seeds=[10])
    for file in tmp_path.rglob("arrays/**/*.*"):
        file.unlink()
    page = render(store)
    assert page.count("dipedl-bench run mnist --profile cpu --methods dip-edl --out FOLDER") == 3
    assert "Not here, without predictions: EDL, DIP-EDL." in page and 'class="legend"' not in page
    assert "<figure>" not in page


@pytest.mark.parametrize(
    ("name", "ours", "paper", "expected"),
    [
        ("accuracy", 0.99526, 0.9953, True),  # as printed
        ("accuracy", 0.99524, 0.9953, False),
        ("auroc/kmnist", 0.99966, 0.9997, True),
        ("brier_id", 0.00814, 0.0081, True),
        ("brier_id", 0.00816, 0.0081, False),
        ("brier_ood/kmnist", 0.0, 0.0013, True),
    ],
)
def test_met(name, ours, paper, expected):
    assert meets_paper(name, Estimate(ours, 0.0, (ours,), paper=Published(paper, 0.0))) is expected


def test_headline_says_what_was_met_and_who_ranks_better(root):
    rows = [
        {**row, "metrics": {**row["metrics"], **changed}}
        for row in load_rows("mnist", "cpu", root)
        for changed in (GOOD if row["method"] == "dip-edl" else {"auroc/omniglot": 1.0},)
    ]
    lines = headline(bench_table(rows))
    assert "accuracy of 0.9963 ±0.0000 (paper: 0.9953 ±0.0003)" in lines[0]
    assert lines[1] == (
        "It meets or beats the paper's DIP-EDL in 7 of 8 metrics that it has; it falls short here: "
        "on Omniglot (as published) OOD Brier."
    )
    assert any(line.startswith("On Omniglot (as published) its AUROC of 1.0") for line in lines)
    assert not any("K-MNIST its AUROC" in line for line in lines)
    assert headline(bench_table([r for r in rows if r["method"] == "edl"])) == []


GOOD = {
    "accuracy": 0.9963,
    "brier_id": 0.006,
    "auroc/kmnist": 1.0,
    "auroc/omniglot": 0.9999,
    "aupr/kmnist": 1.0,
    "aupr/omniglot": 1.0,
    "brier_ood/kmnist": 0.0012,
    "brier_ood/omniglot": 0.0004,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    store = write_synthetic_store(tmp_path_factory.mktemp("results"), methods=["dip-edl"])
    return [store.arrays_of(row) for row in store.rows()]


def test_confidence_by_a_loop(runs):
    expected = [max(row) for run in runs for row in run["ood/kmnist"]["probabilities"]]
    np.testing.assert_array_equal(confidence(runs)["kmnist"], expected)


def test_vacuity_is_that_of_the_dirichlet(runs):
    expected = [Dirichlet(run["test"]["concentration"]).vacuity for run in runs]
    np.testing.assert_allclose(vacuity(runs)["test"], np.concatenate(expected), rtol=1e-9)


def test_vacuity_of_huge_and_of_no_evidence():
    named = {"probabilities": np.eye(10)[:3], "log_evidence": np.array([800.0, -np.inf, -50.0])}
    values = vacuity([{"test": named}])["test"]
    assert values[0] == 0.0 < 1e-300 and values[1] == 1.0 and values[2] == 1.0

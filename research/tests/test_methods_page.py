"""The page of all methods: complete, self-contained, its numbers those of the tables."""

import gzip
import json
import re
import shutil
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store
from typer.testing import CliRunner

from dipedl_bench import Store, load_suite, score
from dipedl_bench.commands.run import bench as app
from dipedl_bench.report.methods_page import KINDS, kind_of, render_methods
from dipedl_bench.tables.table import bench_table
from headless import Page, chromium

PUBLISHED = Path(__file__).parents[1] / "results" / "bench"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Published rows of two suites, one of them crossed."""
    folder = tmp_path_factory.mktemp("results")
    for suite in ("mnist", "second-order"):
        (folder / suite / "cpu").mkdir(parents=True)
        shutil.copy(PUBLISHED / suite / "cpu" / "rows.jsonl", folder / suite / "cpu")
    return folder


@pytest.fixture(scope="module")
def page(root):
    return render_methods(root)


def content(page, name):
    found = re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', page, re.DOTALL)
    return found[1]


@pytest.fixture(scope="module")
def data(page):
    return json.loads(content(page, "data"))


@pytest.fixture(scope="module")
def receipts(page):
    return json.loads(gzip.decompress(b64decode(content(page, "receipts"))))


def test_loads_nothing(page):
    assert "@import" not in page and "fetch(" not in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert not re.search(r"<script[^>]*\bsrc", page)
    assert all(a.startswith(("#", "data:")) for a in re.findall(r'\bhref="([^"$]*)"', page))


def test_numbers_are_those_of_the_tables(root, data):
    assert [(of["suite"], of["profile"]) for of in data["suites"]] == [
        ("mnist", "cpu"),
        ("second-order", "cpu"),
    ]
    mnist, crossed = data["suites"]
    table = bench_table(Store(root, "mnist", "cpu").rows())
    assert [line["m"] for line in mnist["lines"]] == [line.name for line in table.lines]
    keys = [column["key"] for column in mnist["columns"]]
    titles = {column["key"]: column["title"] for column in mnist["columns"]}
    assert titles["aurc"] == "AURC × 1000"
    assert {"accuracy", "price", "auroc/near_ood", "fpr95/omniglot", "forward_passes"} <= set(keys)
    for shown, line in zip(mnist["lines"], table.lines, strict=True):
        assert shown["s"] == len(line.seeds)
        for key, mean, sd in zip(keys, shown["v"], shown["d"], strict=True):
            if key in line.cells:
                scale = 1000 if key.startswith(("aurc", "augrc")) else 1
                assert mean == pytest.approx(scale * line.cells[key].mean, rel=1e-5)
                assert sd == pytest.approx(scale * line.cells[key].sd, rel=1e-5, abs=1e-9)
    of_all = bench_table(Store(root, "second-order", "cpu").rows()).by_place
    i = [column["key"] for column in crossed["columns"]].index("auroc")
    for shown in crossed["lines"]:
        line = of_all[(*shown["p"].split(", "), shown["m"])]
        means = [line.cells[f"auroc/{name}"].mean for name in line.ood]
        assert shown["v"][i] == pytest.approx(np.mean(means), rel=1e-5)


def test_rows_older_than_the_default_are_named(root, tmp_path):
    store = Store(tmp_path, "mnist", "cpu")
    (tmp_path / "mnist" / "cpu").mkdir(parents=True)
    (row,) = (
        of
        for of in Store(root, "mnist", "cpu").rows()
        if (of["method"], of["seed"]) == ("dip-edl", 10)
    )
    row["config"]["arguments"]["calibrator"] = None  # as our default has it
    for time, older in (("2026-11-27T00:00:00+00:00", True), ("2026-11-29T00:00:00+00:00", False)):
        store.replace({**row, "time": time})
        (shown,) = json.loads(content(render_methods(tmp_path), "data"))["suites"]
        assert (f"{row['title']} (seeds 10)" in shown["note"]) is older


def test_each_line_has_its_receipt_and_a_command_of_names_that_are_there(root, data, receipts):
    hashes = {row["config_hash"] for of in data["suites"] for row in rows_of(root, of)}
    for of in data["suites"]:
        suite = load_suite(of["suite"])
        for line in of["lines"]:
            receipt = receipts[line["r"]]
            assert receipt["hash"] in hashes and len(receipt["rows"]) == line["s"]
            words = receipt["run"].split()
            assert words[:5] == ["dipedl-bench", "run", of["suite"], "--profile", of["profile"]]
            options = dict(zip(words[5::2], words[6::2], strict=True))
            assert suite.choose_methods(of["profile"], [options["--methods"]])
            if line["p"]:
                assert [options["--datasets"], options["--classifiers"]] == line["p"].split(", ")
            seeds = [str(row["seed"]) for row in receipt["rows"]]
            assert options["--seeds"].split(",") == seeds
            assert f" verify {of['suite']} " in receipt["verify"]


def test_rows_of_outputs_name_the_command_that_makes_them(rng, tmp_path):
    labels = np.arange(60) % 3
    arrays = {"labels": labels, "logits": rng.normal(size=(60, 3)) + 3 * np.eye(3)[labels]}
    arrays["ood_far_logits"] = rng.normal(size=(40, 3))
    fit_on = {f"calibration_{key}": arrays[key] for key in ("labels", "logits")}
    for methods in (None, ["energy"]):
        score(arrays | fit_on, name="own", methods=methods, out=tmp_path)
    packed = content(render_methods(tmp_path), "receipts")
    of = {r["run"]: r["verify"] for r in json.loads(gzip.decompress(b64decode(packed)))}
    assert of == {
        "dipedl-bench import FILE.npz --name own --out FOLDER": "",
        "dipedl-bench score FILE.npz --name own --method energy --out FOLDER": "",
    }


def rows_of(root, of):
    return Store(root, of["suite"], of["profile"]).rows()


def test_kinds_of_published_methods():
    kinds = {
        "training-free": "dip-edl max-softmax entropy energy mahalanobis ddu knn dip-edl-default",
        "one pass": "edl r-edl re-edl postnet daedl dip-edl-maf",
        "ensemble": "mc-dropout deep-ensemble",
    }
    expected = {name: kind for kind, names in kinds.items() for name in names.split()}
    found = {row["method"]: kind_of(row) for row in Store(PUBLISHED, "mnist", "gpu").rows()}
    assert {name: found[name] for name in expected} == expected
    crossed = {
        row["method"]: kind_of(row) for row in Store(PUBLISHED, "second-order", "cpu").rows()
    }
    expected = {"default": "training-free", "edl": "one pass", "bootstrap": "ensemble"}
    expected |= {"mc-dropout": "ensemble", "postnet": "one pass", "evidence": "training-free"}
    assert {name: crossed[name] for name in expected} == expected
    assert set(found.values()) == set(KINDS)


def test_a_value_cannot_end_its_script(tmp_path):
    store = write_synthetic_store(tmp_path, methods=["edl"], seeds=[10], n_resamples=0)
    text = store.rows_file.read_text().replace('"EDL"', '"</script><b>&"')
    store.rows_file.write_text(text)
    page = render_methods(tmp_path)
    titles = [line["t"] for line in json.loads(content(page, "data"))["suites"][0]["lines"]]
    assert titles == ["</script><b>&"] and page.count("</script>") == 3


def test_command(root, page, tmp_path):
    file = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["page", "--out", str(root), "--file", str(file)])
    assert done.exit_code == 0, done.output
    assert file.read_text(encoding="utf-8") == page
    for options in (["--out", str(tmp_path)], ["--file", str(tmp_path / "no" / "page.html")]):
        done = CliRunner().invoke(app, ["page", *options])
        assert done.exit_code == 2 and done.stderr.startswith("dipedl-bench: ")


ROWS = "[...document.querySelectorAll('tbody tr th button')].map(b => b.textContent)"
HEAD = "[...document.querySelectorAll('thead button')].find(b => b.textContent.startsWith('AUROC'))"


@pytest.mark.browser
def test_it_sorts_filters_and_opens_receipts_in_a_browser(page, data, receipts, tmp_path):
    pytest.importorskip("websocket")
    if chromium() is None:
        pytest.skip("no Chromium found")
    path = tmp_path / "methods.html"
    path.write_text(page, encoding="utf-8")
    mnist = data["suites"][0]
    i = [column["key"] for column in mnist["columns"]].index("auroc/near_ood")
    best_first = sorted(mnist["lines"], key=lambda line: -line["v"][i])
    assert len({line["v"][i] for line in best_first}) > 15
    with Page(tmp_path / "profile") as browser:
        for width in (390, 1280):
            for address in ("#suite=mnist/cpu", "#suite=second-order/cpu"):
                browser.open("about:blank", width)
                browser.open(path.as_uri() + address, width)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
        browser.open("about:blank", 1280)
        browser.open(path.as_uri() + "#suite=mnist/cpu", 1280, dark=True)
        titles = [line["t"] for line in best_first]
        assert browser.evaluate(ROWS) == titles
        browser.evaluate(f"{HEAD}.click()")
        best_last = sorted(mnist["lines"], key=lambda line: line["v"][i])
        assert browser.evaluate(ROWS) == [line["t"] for line in best_last]
        browser.evaluate("document.querySelectorAll('[name=kind]')[1].click()")
        left = [line["t"] for line in best_last if line["k"] != 1]
        assert browser.evaluate(ROWS) == left and len(left) < len(titles)
        assert browser.evaluate("document.querySelectorAll('#plot g.point').length") == len(left)
        address = browser.evaluate("location.href")
        browser.open("about:blank", 1280)
        browser.open(address, 1280)
        assert browser.evaluate(ROWS) == left
        for opener in ("tbody button", "#plot g.point"):
            event = "new MouseEvent('click', {bubbles: true})"
            browser.evaluate(f"document.querySelector('{opener}').dispatchEvent({event})")
            browser.evaluate("new Promise(done => setTimeout(done, 500))")
            title = browser.evaluate("document.querySelector('dialog[open] h2').textContent")
            (line,) = (one for one in mnist["lines"] if one["t"] == title)
            text = browser.evaluate("document.querySelector('dialog[open]').textContent")
            assert receipts[line["r"]]["run"] in text and receipts[line["r"]]["hash"] in text
            browser.evaluate("document.querySelector('dialog[open] .close').click()")
        outside = [
            url for url in browser.requests if not url.startswith(("data:", "file:", "about:"))
        ]
        assert (browser.problems, outside) == ([], [])

"""The demo, and the page that it shares with ``dipedl report``."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from dipedl.apps import demo
from dipedl.apps.cli.app import app
from dipedl.apps.table.page import render
from dipedl.datasets import load_mini_mnist
from headless import Page, chromium


@pytest.fixture(scope="module")
def data():
    whole = demo.halved_digits()
    return replace(
        whole,
        X_train=whole.X_train[::4],
        y_train=whole.y_train[::4],
        X_test=whole.X_test[::2],
        y_test=whole.y_test[::2],
        ood={name: X[::2] for name, X in whole.ood.items()},
    )


@pytest.fixture(scope="module")
def found(data):
    return demo.run_demo(data)


@pytest.fixture(scope="module")
def page(found, data):
    return render(found, "new digits", "a model", data.provenance)


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def test_halved_images_are_means_of_four_pixels():
    image = load_mini_mnist().ood["kmnist"][3].reshape(28, 28)
    naive = [
        [image[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for j in range(14)] for i in range(14)
    ]
    half = demo.halved_digits().ood["kmnist"][3].reshape(14, 14)
    np.testing.assert_allclose(half, naive, rtol=1e-6)


def test_the_entropy_flags_at_as_many_false_alarms(found, data):
    clf, test = found.model.classifier, found.test
    P = clf.classifier_proba(test.X)
    entropies = np.sort(-(P * np.log(P)).sum(axis=1))[::-1]
    allowed = int(test.answers.flagged.sum())
    assert allowed == (clf.predict_ood(test.X) == -1).sum()
    assert test.flagged_by_entropy(test.entropy_limit).sum() == allowed
    for score, other in zip(found.unknown, found.others, strict=True):
        Q = clf.classifier_proba(other.X)
        of_other = -(Q * np.log(Q)).sum(axis=1)
        assert score.rows == len(other) == 100
        assert score.flagged == (clf.predict_ood(other.X) == -1).mean()
        assert score.flagged_by_entropy == (of_other > entropies[allowed]).mean()
        truth = np.repeat([0, 1], [len(test), len(other)])
        u = np.concatenate([clf.uncertainty(X, "log_density") for X in (test.X, other.X)])
        assert score.auroc == pytest.approx(roc_auc_score(truth, u))
        ranked = roc_auc_score(truth, np.concatenate([entropies, of_other]))
        assert score.auroc_of_entropy == pytest.approx(ranked)


@pytest.mark.parametrize(("alarms", "flagged"), [(0, 0), (4, 4)])
def test_no_alarm_and_all_alarms_are_matched_too(found, alarms, flagged):
    few = replace(
        found.test,
        rows=np.arange(4),
        bare=found.test.bare[:4],
        answers=replace(found.test.answers[:4], flagged=np.arange(4) < alarms),
    )
    assert few.flagged_by_entropy(few.entropy_limit).sum() == flagged


def test_the_page_loads_nothing_and_every_figure_has_words(page):
    tags = Tags(page).tags
    assert len(page.encode()) < 1_000_000 and "<script" not in page and "@import" not in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    images = [a for t, a in tags if t == "img"]
    assert len(images) == 4 * 10 + 12
    assert all(a["src"].startswith("data:image/png;base64,") and a["alt"] for a in images)
    assert all(a.get("aria-label") or a.get("aria-hidden") for t, a in tags if t == "svg")
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(ids) == len(set(ids)) and set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(ids)
    names = [t for t, _ in tags]
    assert names.count("figure") == names.count("figcaption") and names.count("h1") == 1
    assert page.count('class="swipe"') == page.count('class="scroll"')


def test_marks_are_the_flags_of_the_images_shown(found, page):
    marks = re.findall(r'<i class="mark c([01])( on)?"></i>', page)[4:]  # after the legend
    expected = []
    for side in (found.test, *found.others):
        alone = side.flagged_by_entropy(found.test.entropy_limit)
        for i in np.linspace(0, len(side) - 1, 10).astype(int):
            expected += [("1", " on" * int(alone[i])), ("0", " on" * int(side.answers.flagged[i]))]
    assert marks == expected


def test_every_finding_and_every_source_is_on_the_page(found, data, page):
    text = html.unescape(page)
    assert all(finding.text in text for finding in found.diagnosis.findings)
    assert all(source.licence in text for source in data.provenance)


def test_the_command_prints_what_the_page_says(data, found, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "halved_digits", lambda: data)
    monkeypatch.setattr(demo, "run_demo", lambda given, *_: found if given is data else None)
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["demo", "--out", str(out), "--quiet"])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert html.escape(done.stdout.splitlines()[0]).replace("&#x27;", "&#39;") in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "tree"], 2, "--model must be one of"),
        (["--out", "no/such/report.html"], 1, "no/such does not exist; create it"),
        (["--out", "."], 1, "it is a folder; name a file in it"),
        (["--out", "numbers.json"], 2, "must end in .html"),
    ],
)
def test_mistakes_end_at_once_in_one_line(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "run_demo", lambda *_: pytest.fail("began to compute"))
    done = CliRunner().invoke(app, ["demo", *arguments])
    assert done.exit_code == code and not done.stdout and list(tmp_path.iterdir()) == []
    assert message in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.browser
def test_renders_in_a_browser(page, tmp_path):
    pytest.importorskip("websocket")
    if chromium() is None:
        pytest.skip("no Chromium found")
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    with Page(tmp_path / "profile") as browser:
        for width in (390, 500, 1280):
            browser.open(path.as_uri(), width)
            broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).length"
            assert browser.evaluate("document.images.length") > 50
            assert browser.evaluate(broken) == 0
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            empty = "[...document.querySelectorAll('svg')].filter(s => !s.clientHeight).length"
            assert browser.evaluate(empty) == 0
            wide = "[...document.querySelectorAll('.facts li, .facts li *')]"
            wide += ".filter(e => e.scrollWidth > e.clientWidth).length"
            assert browser.evaluate(wide) == 0
        browser.open(path.as_uri(), 1280, dark=True)
        outside = [url for url in browser.requests if not url.startswith(("data:", "file:"))]
        assert (browser.problems, outside) == ([], [])


@pytest.mark.browser
def test_the_browser_check_can_fail(tmp_path):
    pytest.importorskip("websocket")
    if chromium() is None:
        pytest.skip("no Chromium found")
    path = tmp_path / "bad.html"
    path.write_text(
        '<img src="gone.png"><div style="width:3000px">.</div>'
        "<script>console.error(1); x.y</script>"
    )
    with Page(tmp_path / "profile") as browser:
        browser.open(path.as_uri(), 390)
        assert browser.evaluate("document.images[0].naturalWidth") == 0
        assert browser.evaluate("document.documentElement.scrollWidth") > 390
        kinds = {problem["method"] for problem in browser.problems}
        assert {"Runtime.exceptionThrown", "Runtime.consoleAPICalled"} <= kinds

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from markupsafe import Markup
from matplotlib.figure import Figure

from dipedl.apps.demo import report
from dipedl.apps.demo.report import figures
from dipedl.apps.demo.report.inline import png_uri, svg
from dipedl.apps.demo.rows import BARE, DIP, flagged
from dipedl.apps.demo.summary import headline
from headless import Page, chromium
from small_demo import linear_only


@pytest.fixture(scope="module")
def result(demo_run):
    return demo_run[0]


@pytest.fixture(scope="module")
def page(result):
    return report.render(result)


class Collector(HTMLParser):
    """Tags with their attributes, ids and table cells."""

    def __init__(self):
        super().__init__()
        self.tags, self.cells, self.inside = [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("td", "th"):
            self.inside = True
            self.cells.append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def parsed(page):
    collector = Collector()
    collector.feed(page)
    return collector


def test_loads_nothing(page, parsed):
    assert len(page.encode()) < 3_000_000
    assert "<script" not in page and "@import" not in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert all(a["src"].startswith("data:image/png;base64,") for t, a in parsed.tags if t == "img")
    assert all(
        address.startswith(("#", "data:")) for address in re.findall(r'href="([^"]*)"', page)
    )
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))


def test_ids_are_unique_and_links_lead_somewhere(page, parsed):
    ids = [a["id"] for _, a in parsed.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(ids)


def test_every_figure_has_words(parsed):
    assert all(a.get("alt") for t, a in parsed.tags if t == "img")
    drawings = [a for t, a in parsed.tags if t == "svg"]
    assert drawings and all(a.get("aria-label") or a.get("aria-hidden") for a in drawings)
    names = [t for t, _ in parsed.tags]
    assert names.count("figure") == names.count("figcaption") == 7
    assert names.count("h1") == 1


def test_numbers_are_those_of_the_rows(result, page, parsed):
    assert html.escape(headline(result), quote=True).replace("&#x27;", "&#39;") in page
    cells = [" ".join(cell.split()) for cell in parsed.cells]
    at = 0
    for name in result.receipt.n_ood:
        for row in result.rows:
            score = row.ood[name]
            auroc = f"{score.auroc:.3f} {score.auroc_low:.3f}–{score.auroc_high:.3f}"
            at = cells.index(auroc, at) + 1
            assert cells[at - 2] == {DIP: "dipedl: vacuity"}.get(row.method, row.method)
            assert cells[at] == f"{score.aupr:.3f}"
            assert cells[at + 1] == f"{score.fpr95:.3f}"
            assert cells[at + 2] == ("" if score.brier is None else f"{score.brier:.3f}")


def test_every_finding_and_every_card_is_on_the_page(result, page):
    text = html.unescape(page)
    for model in result.models:
        assert len(model.diagnosis.findings) >= 8
        assert all(finding.text in text for finding in model.diagnosis.findings)
    explained = result.models[0].explained
    assert [one.key for one in explained] == ["ID", *result.receipt.n_ood]
    for one in explained:
        answer = one.card.summary()
        parts = str(one.card).removeprefix(answer).strip("\n")
        assert answer in text and parts and parts in text


def test_one_thing_has_one_name(page):
    assert "DIP-EDL" not in page and page.count("dipedl") > 20


def test_images_come_before_tables(page):
    order = re.findall(r'<section id="(\w+)"', page)
    assert order[:3] == ["short", "look", "alarms"]
    assert order.index("gallery") < order.index("moons") < order.index("table")
    assert page.index("<img") < page.index("<table")


def test_marks_are_the_flags_of_the_images_shown(result, page):
    model, marks = result.models[-1], re.findall(r'<i class="mark c([01])( on)?"></i>', page)
    shown = marks[4:]  # after the legend
    expected = []
    for key, predictions in model.on.items():
        for i in np.linspace(0, len(predictions.flagged) - 1, 10).astype(int):
            for colour, method in (("1", BARE[1]), ("0", DIP)):
                expected.append((colour, " on" if flagged(model, method, key)[i] else ""))
    assert shown == expected


def test_tables_say_that_they_go_on(page):
    assert page.count('class="swipe"') == page.count('class="scroll"') == 4


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are drawn once, for `page`; others are empty."""
    monkeypatch.setattr(figures, "svg", lambda figure, alt, name: Markup("<svg></svg>"))


def test_renders_without_torch(result, undrawn):
    versions = {k: v for k, v in result.receipt.versions.items() if k != "torch"}
    bare = replace(result, receipt=replace(result.receipt, versions=versions))
    text = report.render(bare)
    assert "and torch" not in text and "torch " not in text.split("Computed with")[1][:200]


def test_one_classifier_is_enough(result, undrawn, tmp_path):
    path = tmp_path / "one.html"
    report.write(linear_only(result), path)
    text = path.read_text(encoding="utf-8")
    assert "The classifier alone, flagging the drawings it is least sure of" in text
    assert text.rstrip().endswith("</html>")


def test_svg_takes_the_colours_of_the_page():
    figure = Figure()
    figure.add_subplot().plot([0, 1], color="#0072B2")
    text = svg(figure, 'a "line" <b>', "name")
    assert text.startswith("<svg") and "xmlns" not in text and "<metadata" not in text
    assert "#000000" not in text and "currentColor" in text
    assert "#0072b2" not in text and "var(--c0)" in text
    assert 'aria-label="a &#34;line&#34; &lt;b&gt;"' in text
    assert all(name.startswith("name-") for name in re.findall(r'\bid="([^"]*)"', text))


def test_png_holds_the_image():
    import io
    from base64 import b64decode

    from matplotlib.image import imread

    image = np.linspace(0, 1, 12).reshape(3, 4)
    stored = imread(io.BytesIO(b64decode(png_uri(image).partition(",")[2])))
    np.testing.assert_allclose(stored[..., 0], image, atol=1 / 255)


@pytest.mark.browser
def test_renders_in_a_browser(page, tmp_path):
    pytest.importorskip("websocket")
    if chromium() is None:
        pytest.skip("no Chromium found")
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    with Page(tmp_path / "profile") as browser:
        for width in (390, 1280):
            browser.open(path.as_uri(), width)
            broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).length"
            assert browser.evaluate("document.images.length") > 30
            assert browser.evaluate(broken) == 0
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            empty = "[...document.querySelectorAll('svg')].filter(s => !s.clientHeight).length"
            assert browser.evaluate(empty) == 0
            cues = "[...document.querySelectorAll('.swipe')].filter(s => s.clientHeight).length"
            assert browser.evaluate(cues) == (4 if width < 600 else 0)
            wide = "[...document.querySelectorAll('.scroll')]"
            wide += ".filter(s => s.scrollWidth > s.clientWidth).length"
            assert browser.evaluate(wide) == browser.evaluate(cues)
            browser.screenshot(tmp_path / f"{width}.png")
            assert (tmp_path / f"{width}.png").stat().st_size > 100_000
        for width in (500, 520):
            browser.open(path.as_uri(), width)
            beyond = "[...document.querySelectorAll('.facts li, .facts li *')]"
            beyond += ".filter(e => e.scrollWidth > e.clientWidth).length"
            assert browser.evaluate(beyond) == 0
        ink = "getComputedStyle(document.querySelector('.moons svg image')).filter"
        assert browser.evaluate(ink) == "none"
        browser.open(path.as_uri(), 1280, dark=True)
        assert browser.evaluate(ink) == "invert(1)"
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

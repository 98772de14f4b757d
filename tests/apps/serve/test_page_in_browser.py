"""The page in headless Chromium: drawn on, typed into, given files; read back from its elements."""

import base64
import io
import json
import shutil
import subprocess
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("fastapi")

import uvicorn
from typer.testing import CliRunner

from dipedl.apps import demo as digits
from dipedl.apps.cli.app import app as command
from dipedl.apps.serve import Settings, create_app, process
from dipedl.datasets import load_mini_mnist
from headless import Page, chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium"),
]
AXE = "axe-core@4.14.1"
SEVEN = [(0.25, 0.2), (0.75, 0.2), (0.4, 0.85)]
HEADER = "sepal length (cm),sepal width (cm),petal length (cm),petal width (cm),who"
TABLE = f"""{HEADER}
5,3,1.4,.2,=1+1
60,3,4.5,1.5,"b, ""c"", d"
x,3,4.5,1.5,d
6,,4.5,1.5,e
"""
#: What the page asks for, and the files that it gives.
RECORD = """
window.asked = []; const really = fetch;
window.fetch = (path, options) => {
  asked.push([path, options.body]);
  return really(path, options);
};
window.given = []; const url = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  blob.text().then((text) => given.push(text));
  return url(blob);
};
"""
READY = "document.querySelectorAll('#examples button').length > 10"
ROWS = "[...document.querySelectorAll('{} tbody tr')].map((r) => r.cells[{}].innerText)"


class Demo:
    """`dipedl serve --demo`, of fewer digits, in this process."""

    def __init__(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(digits, "load_mini_mnist", few_digits)
            patch.setattr(process, "run", lambda app, *_: setattr(self, "app", app))
            done = CliRunner().invoke(command, ["serve", "--demo", "--port", "0"])
            assert done.exit_code == 0 and "Fitting" in done.output, done.output
        self.models = self.app.state.service.models
        self.clf = self.models.find("digits").model.classifier


def few_digits():
    data = load_mini_mnist()
    return replace(data, X_train=data.X_train[::2], y_train=data.y_train[::2])


class Server:
    """An application at a port of its own."""

    def __init__(self, app):
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, ws="none"))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join()


class Visitor(Page):
    """Somebody at the page."""

    def visit(self, url, width=1280, **options):
        self.open(url, width, **options)
        self.evaluate(RECORD)

    def until(self, condition):
        for _ in range(400):
            if self.evaluate(condition):
                return
            time.sleep(0.02)
        raise TimeoutError(condition)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def click(self, selector):
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def choose(self, model):
        self.until("document.getElementById('model').options.length === 2")
        value = f"document.getElementById('model').value = '{model}'"
        event = "document.getElementById('model').dispatchEvent(new Event('change'))"
        self.evaluate(f"{value}; {event}; 0")

    def on_pad(self, points, left=0.0, top=0.0, size=1.0):
        """Places in the window of points in the unit square."""
        box = "document.getElementById('pad').getBoundingClientRect().toJSON()"
        at = self.evaluate(box)
        x = [at["left"] + (left + size * p[0]) * at["width"] for p in points]
        y = [at["top"] + (top + size * p[1]) * at["height"] for p in points]
        steps = np.linspace(0, len(points) - 1, 8 * len(points))
        return list(zip(*(np.interp(steps, range(len(points)), v) for v in (x, y)), strict=True))

    def stroke(self, points, **where):
        kinds = ["mousePressed", "mouseMoved", "mouseReleased"]
        places = self.on_pad(points, **where)
        for i, (x, y) in enumerate([places[0], *places, places[-1]]):
            kind = kinds[(i > 0) + (i > len(places))]
            at = {"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
            self.call("Input.dispatchMouseEvent", **at)

    def point_at(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more
            )

    def drop(self, selector, name, content):
        """A file, let go over an element."""
        text = base64.b64encode(content).decode()
        self.evaluate(
            f"""(() => {{
            const data = new DataTransfer();
            const bytes = Uint8Array.from(atob('{text}'), (c) => c.charCodeAt(0));
            data.items.add(new File([bytes], '{name}'));
            const options = {{ dataTransfer: data, bubbles: true, cancelable: true }};
            document.querySelector('{selector}').dispatchEvent(new DragEvent('drop', options));
            }})()"""
        )

    def last_row(self):
        """The last drawing that was asked for, once its answer is shown."""
        self.until("document.querySelector('#why').hidden === false")
        bodies = [body for path, body in self.evaluate("asked") if path == "v1/predict"]
        return json.loads(bodies[-1])["matrix"][0]


@pytest.fixture(scope="module")
def shown():
    return Demo()


@pytest.fixture(scope="module")
def url(shown):
    with Server(shown.app) as server:
        yield server.url


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    with Visitor(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(autouse=True)
def nothing_goes_wrong(visitor, url):
    visitor.problems, visitor.requests = [], []
    yield
    assert visitor.problems == []
    assert [one for one in visitor.requests if not one.startswith((url, "blob:"))] == []


def test_a_drawn_digit_is_answered_as_python_answers_it(visitor, url, shown):
    visitor.visit(url)
    visitor.until(READY)
    visitor.stroke(SEVEN)
    row = visitor.last_row()
    answers = shown.clf.answers(np.array([row]))
    assert answers.labels[0] == 7 and visitor.text("#verdict") == "It says 7."
    told = visitor.evaluate("[...document.querySelectorAll('#facts dd')].map((e) => e.innerText)")
    dirichlet = answers.dirichlet
    expected = (dirichlet.vacuity[0], answers.p_values[0], np.exp(dirichlet.log_evidence[0]))
    got = [float(text.replace(",", "")) for text in told[:3]]
    assert got == pytest.approx(expected, rel=0.01) and told[3] == "no"
    cells = visitor.evaluate(ROWS.format("#classes", 3))
    alpha = [float(text.replace(",", "")) for text in cells]
    worth = np.exp(dirichlet.log_evidence[0]) + shown.clf.prior_.sum()
    assert alpha == pytest.approx(worth * dirichlet.mean[0], rel=0.01)
    near = shown.clf.explain(np.array([row]), top=5)[0].to_dict()["parts"]
    rows = next(part["neighbours"] for part in near if part["kind"] == "neighbours")[:5]
    labels = shown.app.state.service.pictures["digits"].labels
    assert visitor.text("#nearest").split()[::2] == [labels[one["row"]] for one in rows]


def test_where_and_how_large_one_draws_changes_little(visitor, url):
    rows = []
    for where in ({}, {"left": 0.3, "top": 0.35, "size": 0.6}):
        visitor.visit(url)
        visitor.until(READY)
        visitor.stroke(SEVEN, **where)
        rows.append(np.reshape(visitor.last_row(), (14, 14)))
    for row in rows:
        place = np.arange(14) + 0.5
        assert row.sum(axis=0) @ place / row.sum() == pytest.approx(7, abs=0.5)
        assert row.sum(axis=1) @ place / row.sum() == pytest.approx(7, abs=0.5)
        assert np.ptp(np.flatnonzero(row.sum(axis=1) > 0.3)) in (9, 10)
    assert np.corrcoef(rows[0].ravel(), rows[1].ravel())[0, 1] > 0.8


def test_fingers_and_keys_draw_too(visitor, url):
    visitor.visit(url, 390)
    visitor.until(READY)
    places = visitor.on_pad(SEVEN)
    for i, (x, y) in enumerate(places):
        kind = "touchStart" if i == 0 else "touchMove"
        visitor.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y}])
    visitor.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    by_finger = visitor.last_row()
    assert visitor.evaluate("scrollY") == 0 and sum(by_finger) > 10
    visitor.click("#clear")
    assert visitor.text("#verdict") == "Draw something."
    visitor.evaluate("document.getElementById('pad').focus()")
    visitor.press(" ", 32, " ")
    for _ in range(4):
        visitor.press("ArrowDown", 40)
    assert visitor.text("#pen") == "Pen down, row 11, column 7 of 14"
    row = np.reshape(visitor.last_row(), (14, 14))
    assert row[:, [6, 7]].sum() > 0.8 * row.sum() and 9 <= (row[:, 6] > 0.5).sum() <= 10
    visitor.press("Delete", 46)
    assert visitor.text("#verdict") == "Draw something."


def test_an_image_is_read_whichever_of_ground_and_ink_is_dark(visitor, url):
    images, drawing = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.ImageDraw")
    rows = []
    for ground, ink in (("white", "black"), ("navy", "yellow")):
        visitor.visit(url)
        visitor.until(READY)
        image, file = images.new("RGB", (90, 60), ground), io.BytesIO()
        line = [(15 + 60 * x, 60 * y) for x, y in SEVEN]
        drawing.Draw(image).line(line, ink, 5)
        image.save(file, "PNG")
        visitor.drop("#drawing", "seven.png", file.getvalue())
        rows.append(visitor.last_row())
        assert visitor.text("#verdict").rstrip(".").endswith("7")
    np.testing.assert_allclose(rows[0], rows[1], atol=0.1)
    visitor.drop("#drawing", "no.png", b"no image")
    visitor.until("!document.getElementById('trouble').hidden")
    assert visitor.text("#trouble") == "no.png is no image that this browser can read."


def test_a_letter_is_not_known_and_its_pixels_are_red(visitor, url):
    visitor.visit(url)
    visitor.until(READY)
    visitor.click("#examples h4 + button[aria-label^=Japanese]")
    visitor.last_row()
    assert visitor.text("#verdict").startswith("It does not know")
    heat = "document.getElementById('heat').getContext('2d').getImageData(0, 0, 14, 14)"
    pixels = visitor.evaluate(f"Array.from({heat}.data)")
    r, g, _, _ = np.reshape(pixels, (-1, 4)).T
    assert (r > g + 60).sum() > 5


def test_a_form_follows_its_fields(visitor, url):
    visitor.visit(url)
    visitor.choose("iris")
    visitor.until("document.querySelector('#verdict').innerText.startsWith('It says')")
    assert visitor.text("#field-2-hint").startswith("seen: 1 to 6.9")
    visitor.evaluate("document.getElementById('field-2').focus()")
    visitor.evaluate("document.getElementById('field-2').select()")
    for digit in "40":
        visitor.press(digit, ord(digit), digit)
    visitor.until("document.querySelector('#verdict').innerText.startsWith('It does not')")
    visitor.until("document.querySelector('#reasons').innerText.includes('petal length')")
    assert visitor.evaluate("document.querySelector('#field-2 + input').value") == "9.85"
    assert visitor.text("#facts dd") == "1"


def test_a_table_opens_on_an_ordinary_row_and_live_speaks_of_rows(visitor, models):
    with Server(create_app(models)) as server:
        visitor.visit(server.url)
        visitor.until("document.querySelector('#verdict').innerText.startsWith('It says')")
        assert "no" in visitor.text("#facts [data-term=flagged] dd")
        assert visitor.evaluate("document.querySelector('#fields select').value") == "male"
        assert "stroke" not in visitor.evaluate("document.getElementById('live').textContent")
    assert all(one.startswith(server.url) for one in visitor.requests)
    visitor.requests = []


def test_a_dropped_table_is_answered_sorted_and_taken_home(visitor, url, shown):
    visitor.visit(url)
    visitor.choose("iris")
    visitor.click("#tab-table")
    visitor.drop("#drop", "some.csv", TABLE.encode())
    visitor.until("!document.getElementById('answered').hidden")
    assert visitor.text("#progress") == "3 rows answered, 2 flagged, 1 refused."
    visitor.click("#refused summary")
    assert visitor.text("#refused li").startswith("Row 3, sepal length (cm): 'x' is no finite")
    for _ in range(2):
        visitor.click("#rows th:nth-child(6) button")
    values = [float(text) for text in visitor.evaluate(ROWS.format("#rows", 5))]
    assert values == sorted(values, reverse=True) and len(values) == 3
    sort = "document.querySelector('#rows th:nth-child(6)').getAttribute('aria-sort')"
    assert visitor.evaluate(sort) == "descending"
    visitor.click("#download")
    visitor.until("given.length")
    (text,) = visitor.evaluate("given")
    assert '"b, ""c"' in text and ",'=1+1," in text and ",=1+1" not in text
    visitor.click("#only-flagged")
    assert visitor.evaluate(ROWS.format("#rows", 0)) == ["2", "4"]
    visitor.drop("#drop", "odd.csv", b"a,b\n1\n")
    visitor.until("!document.getElementById('trouble').hidden")
    assert visitor.text("#trouble") == "Row 1 of odd.csv has 1 cells, and the header 2."


def test_windows_come_and_an_alarm_with_them(visitor, url):
    visitor.visit(url)
    visitor.until(READY)
    visitor.evaluate("document.getElementById('tab-try').focus()")
    visitor.press("ArrowRight", 39)
    assert visitor.evaluate("document.activeElement.id") == "tab-live"
    visitor.until("document.querySelectorAll('#send button').length === 3")
    visitor.click("#send button:nth-child(2)")
    visitor.until("document.querySelectorAll('#windows tbody tr').length > 0")
    assert visitor.text("#alarm").startswith("Alarm, by p-values")
    last = visitor.text("#windows tbody tr")
    assert "\tp-values, " in last and last.endswith(" more columns")
    rows = visitor.text("#stream dd")
    visitor.evaluate("document.querySelector('#stream .term').focus()")
    visitor.click("#send button")
    visitor.until(f"document.querySelector('#stream dd').innerText !== '{rows}'")
    assert visitor.evaluate("document.activeElement.innerText") == "Rows", "the focus stays"


def test_each_number_says_what_it_means_on_focus_and_on_hover(visitor, url):
    visitor.visit(url, 390)
    visitor.until(READY)
    visitor.stroke(SEVEN)
    visitor.last_row()
    numbers = "#facts dd, #classes td.number"
    assert visitor.evaluate(
        f"[...document.querySelectorAll('{numbers}')].every((e) => e.closest('[data-term]'))"
    )
    for i in range(6):
        term = f"document.querySelectorAll('#try .term')[{i}]"
        visitor.evaluate(f"{term}.focus()")
        tip = "(() => { const tip = document.getElementById('tip').getBoundingClientRect(); return "
        shown = f"{tip} tip.width > 50 && tip.left >= 0 && tip.right <= innerWidth }})()"
        visitor.until(shown)
        told = visitor.evaluate(
            f"document.getElementById({term}.getAttribute('aria-describedby')).textContent"
        )
        assert told == visitor.text("#tip") and len(told) > 20
    visitor.press("Escape", 27)
    for y in (300, 200):
        visitor.point_at(5, y)
        assert visitor.evaluate("document.getElementById('tip').hidden"), "Escape outlasts a move"
    at = visitor.evaluate("document.querySelector('#facts dd').getBoundingClientRect().toJSON()")
    visitor.point_at(at["x"] + 2, at["y"] + 2)
    visitor.until("!document.getElementById('tip').hidden")


def test_the_token_is_asked_for_and_levels_are_chosen(visitor, models, nothing_goes_wrong):
    token = "0123456789abcdef"
    with Server(create_app(models, Settings(token))) as server:
        visitor.visit(server.url)
        visitor.until("!document.getElementById('token').hidden")
        visitor.evaluate(f"document.getElementById('token-text').value = '{token}'")
        visitor.click("#token button")
        visitor.until("document.getElementById('verdict').innerText.startsWith('It says')")
        sex = "document.querySelector('[data-column=sex]')"
        levels = ["female", "male", "no value", "a value that was never seen"]
        assert visitor.evaluate(f"[...{sex}.options].map((one) => one.text)") == levels
        visitor.evaluate(f"{sex}.selectedIndex = 3")
        visitor.evaluate(f"{sex}.dispatchEvent(new Event('input', {{ bubbles: true }}))")
        visitor.until("document.getElementById('verdict').innerText.startsWith('It does not')")
        assert visitor.text("#reasons").startswith("never in the training data: sex")
    # The refusal that it began with is one of the console too.
    assert {p["method"] for p in visitor.problems} == {"Log.entryAdded"}
    visitor.problems, visitor.requests = [], []


def violations(visitor):
    """Names and elements of serious faults."""
    found = json.loads(visitor.evaluate("axe.run().then((r) => JSON.stringify(r.violations))"))
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], one["nodes"][0]["html"]) for one in serious]


def test_nothing_keeps_readers_out(visitor, url, tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("axe-core needs npm")
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", tmp_path, AXE]
    if subprocess.run(install, capture_output=True, timeout=120).returncode:
        pytest.skip("axe-core could not be installed")
    axe = (tmp_path / "node_modules/axe-core/axe.min.js").read_text("utf-8")
    for width, dark in ((1280, False), (390, True)):
        visitor.visit(url, width, dark=dark)
        visitor.evaluate(axe + "; 0")
        visitor.until(READY)
        visitor.click("#examples h4 + button[aria-label^=Japanese]")
        visitor.last_row()
        assert violations(visitor) == []
        assert visitor.evaluate("document.documentElement.scrollWidth") <= width
        visitor.click("#tab-live")
        visitor.until("document.querySelectorAll('#send button').length === 3")
        assert violations(visitor) == []
        visitor.choose("iris")
        visitor.click("#tab-table")
        visitor.drop("#drop", "some.csv", TABLE.encode())
        visitor.until("!document.getElementById('answered').hidden")
        assert violations(visitor) == []
        assert visitor.evaluate("document.documentElement.scrollWidth") <= width
        visitor.click("#tab-try")
        assert violations(visitor) == []
    visitor.evaluate("document.querySelector('label[for=field-1]').remove()")
    assert "label" in dict(violations(visitor)), "the check can fail"

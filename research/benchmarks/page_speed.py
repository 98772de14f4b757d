"""`dipedl serve --demo` in headless Chromium: start, first paint, stroke to answer."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import receipt

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from headless import Page

VISITS, STROKES = 9, 60
WATCH = """
window.strokes = [];
let from = 0;
const classes = document.getElementById("classes");
document.addEventListener("pointermove", () => (from = performance.now()), true);
new MutationObserver(() => requestAnimationFrame(() => {
  if (from) strokes.push(performance.now() - from);
  from = 0;
})).observe(classes, { childList: true, subtree: true });
"""
READY = "document.querySelectorAll('#examples button').length > 10"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def until(page: Page, condition: str) -> None:
    for _ in range(500):
        if page.evaluate(condition):
            return
        time.sleep(0.01)
    raise TimeoutError(condition)


def mouse(page: Page, kind: str, x: float, y: float) -> None:
    at = {"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
    page.call("Input.dispatchMouseEvent", **at)


def strokes(page: Page) -> list[float]:
    """Milliseconds from each move of the pen until its answer is painted."""
    page.evaluate(WATCH)
    box = page.evaluate("document.getElementById('pad').getBoundingClientRect().toJSON()")
    at = np.random.default_rng(0).uniform(0.2, 0.8, (STROKES + 1, 2))
    places = at * [box["width"], box["height"]] + [box["left"], box["top"]]
    mouse(page, "mousePressed", *places[0])
    for i, place in enumerate(places[1:], start=1):
        mouse(page, "mouseMoved", *place)
        until(page, f"strokes.length >= {i}")
        time.sleep(0.05)
    mouse(page, "mouseReleased", *places[-1])
    found: list[float] = page.evaluate("strokes")
    return found


def measured(url: str, folder: Path) -> dict[str, float]:
    paints = []
    with Page(folder) as page:
        for _ in range(VISITS):
            page.open(url, 1280)
            until(page, READY)
            paints.append(page.evaluate(PAINT))
        answered = strokes(page)
    return {
        "first_paint_ms": round(float(np.median(paints)), 1),
        "stroke_to_answer_p50_ms": round(float(np.median(answered)), 1),
        "stroke_to_answer_p95_ms": round(float(np.quantile(answered, 0.95)), 1),
    }


def main() -> None:
    command = [sys.executable, "-m", "dipedl", "serve", "--demo", "--port", "0"]
    start = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as service,
    ):
        try:
            line = next(text for text in service.stdout if "http://" in text)
            url = next(word for word in line.split() if word.startswith("http://"))
            begun = time.perf_counter() - start
            values = {"start_s": round(begun, 1)} | measured(url, Path(folder))
        finally:
            service.terminate()
    config = {"visits": VISITS, "strokes": STROKES}
    receipt.write("page_speed", config, values, time.perf_counter() - start)


if __name__ == "__main__":
    main()

"""Checks the site that `make docs` has built: links, outside files, public names, search.

    python scripts/check_docs.py docs/_build/html

Every link leads to a page that exists and to a target on it. No page loads a file from another
machine. Every public name has a page. The name of a test in an explanation leads to its function.
In headless Chromium, if there is one, the search finds what a reader would look for on the right
page first, and pages fit a phone.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from urllib.parse import quote, unquote, urlsplit

from sphinx.util.inventory import InventoryFile

import dipedl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from headless import Page, chromium
from test_search_words import PHRASES

#: What a reader looks for, and the page that must come first.
SEARCHES = {
    "threshold": "how-to/threshold.html",
    "imbalanced": "how-to/imbalanced.html",
    "ONNX": "how-to/onnx.html",
    "saving": "how-to/saving.html",
    "torch": "how-to/pretrained.html",
    "exit code": "reference/command-line.html",
    "prediction set": "how-to/decisions.html",
    "GDADensity": "reference/api/names/dipedl.density.GDADensity.html",
} | {words: f"how-to/{page}.html" for words, page in PHRASES.items()}


#: Pages of long names and wide tables: on a phone nothing of them may be cut off.
NARROW = (
    "index.html",
    "explanation/method.html",
    "reference/commands/fit.html",
    "reference/api/names/dipedl.DIPClassifier.html",
)
#: By how many pixels an article is wider than the window.
_WIDER = (
    "(document.querySelector('.bd-article-container') ?? document.body).scrollWidth - innerWidth"
)
TEST = re.compile(r"test_[a-z0-9_]+\*?")


class Links(HTMLParser):
    """Targets, links and loaded files of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = {""}
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        #: Names of tests that are no links.
        self.tests: set[str] = set()
        self._inside = False
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names, links to or loads."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self._inside = self._inside or tag == "a"
        if tag in ("a", "area") and "href" in given:
            self.links.add(given["href"])
        elif tag in ("img", "script", "source", "iframe") and given.get("src"):
            self.loaded.add(given["src"])
        elif tag == "link" and given.get("rel") not in ("canonical", "search", "author"):
            self.loaded.add(given["href"])

    def handle_endtag(self, tag: str) -> None:
        """Note the end of a link."""
        self._inside = self._inside and tag != "a"

    def handle_data(self, data: str) -> None:
        """Note the name of a test outside of a link."""
        if not self._inside and TEST.fullmatch(data):
            self.tests.add(data)


@cache
def links_of(page: Path) -> Links:
    """What a page holds; each is read once."""
    return Links(page)


def wrong_links(site: Path) -> Iterator[str]:
    """Links and files that lead nowhere, and files of other machines."""
    for page in sorted(p for p in site.rglob("*.html") if "_static" not in p.parts):
        found = links_of(page)
        for url in sorted(found.links | found.loaded):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                if url in found.loaded and parts.scheme != "data":
                    yield f"{page.relative_to(site)} loads {url}"
                continue
            file = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
            if not file.is_file():
                yield f"{page.relative_to(site)}: no file for {url}"
            elif file.suffix == ".html" and unquote(parts.fragment) not in links_of(file).ids:
                yield f"{page.relative_to(site)}: no target for {url}"


def unlinked_tests(site: Path) -> Iterator[str]:
    """Tests that an explanation names and does not lead to."""
    for page in sorted((site / "explanation").glob("*.html")):
        for name in sorted(links_of(page).tests):
            yield f"{page.relative_to(site)}: {name} leads to no function"


def public_objects() -> Iterator[tuple[object, str]]:
    """Every public class and function with each of its names; some have two."""
    homes = [
        found.name
        for found in iter_modules(dipedl.__path__)
        if found.ispkg and found.name != "writing"
    ]
    for module in (dipedl, *(import_module(f"dipedl.{home}") for home in homes)):
        for name in getattr(module, "__all__", ()):
            if not isinstance(getattr(module, name), ModuleType):
                yield getattr(module, name), f"{module.__name__}.{name}"


def names_without_page(site: Path) -> Iterator[str]:
    """Public classes and functions that the site describes by none of their names."""
    known = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    described = {name for kind, names in known.items() if kind.startswith("py:") for name in names}
    names: dict[int, list[str]] = {}
    for item, name in public_objects():
        names.setdefault(id(item), []).append(name)
    yield from (f"no page for {of[0]}" for of in names.values() if described.isdisjoint(of))


def wrong_answers(site: Path) -> Iterator[str]:
    """Searches whose first result is not the page expected, and what the browser complains of."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing of each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Page(Path(folder)) as page,
    ):
        for words, expected in SEARCHES.items():
            first = first_result(page, f"{home}search.html?q={quote(words)}").removeprefix(home)
            if urlsplit(first).path != expected:
                yield f"search for {words!r} gives {first or 'nothing'}, not {expected}"
        for path in NARROW:
            page.open(home + path, width=390)
            if (wider := page.evaluate(_WIDER)) > 0:
                yield f"{path} is {wider} px too wide for a phone of 390 px"
        page.open(home, width=1200)
        yield from (f"a page asks {url}" for url in page.requests if not url.startswith(home))
        yield from (f"the browser says {problem}" for problem in page.problems)
    server.shutdown()


def first_result(page: Page, url: str) -> str:
    """Address of the first result: the browser lists them in their order."""
    page.open(url, width=1200)
    for _ in range(100):
        if found := page.evaluate("document.querySelector('#search-results li a')?.href"):
            return found
        time.sleep(0.1)
    return ""


def main() -> None:
    """Print what is wrong, and fail if anything is."""
    site = Path(sys.argv[1]).resolve()
    problems = [*wrong_links(site), *unlinked_tests(site), *names_without_page(site)]
    if chromium():
        problems += wrong_answers(site)
    else:
        print("no chromium: the search was not tried")
    print("\n".join(problems) or f"{len(list(site.rglob('*.html')))} pages in order")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

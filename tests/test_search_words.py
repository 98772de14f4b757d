"""Words that a user would type lead to the right page, by titles and headings.

The site is not built here: a page is scored as `docs/_static/search_order.js` says, with plain
stems. `scripts/check_docs.py` asks the built site.
"""

import re
from functools import cache
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FOLDERS = {"how-to": 30, "tutorials": 25, "explanation": 20, "reference": 10}
PHRASES = {
    "threshold": "threshold",
    "set threshold": "threshold",
    "threshold budget": "threshold",
    "budget of looks": "threshold",
    "false alarm rate": "threshold",
    "imbalanced": "imbalanced",
    "imbalanced data": "imbalanced",
    "rare class": "imbalanced",
    "class weights": "imbalanced",
    "which columns": "tables",
    "leave out columns": "tables",
    "retrain": "retrain",
    "retrain month": "retrain",
    "compare models": "retrain",
    "groups": "groups",
    "patients": "groups",
    "groups devices sites": "groups",
    "costs": "costs",
    "cost of errors": "costs",
    "decide by costs": "costs",
}
STOP = {"of", "by", "the", "a"}


def stem(word):
    return re.sub(r"(ing|ed|es|s|e)$", "", word.lower())


def stems(text):
    return [stem(word) for word in re.findall(r"[\w-]+", text)]


@cache
def pages():
    found = {}
    for path in DOCS.glob("*/*.md"):
        if path.stem == "index" or path.parent.name not in FOLDERS:
            continue
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        found[path] = headings[0], set(stems(" ".join(headings))), stems(text)
    return found


def score(path, query):
    title, headings, text = pages()[path]
    words = [stem(word) for word in query.split() if word not in STOP]
    if not set(words) <= {*headings, *text}:
        return 0
    name = 40 * (query.lower() in title.lower())
    of_title = sum(15 for word in words if word in stems(title))
    in_headings = 60 * (set(words) <= headings)
    return of_title + sum(5 for _ in words) + FOLDERS[path.parent.name] + name + in_headings


@pytest.mark.parametrize("query", PHRASES)
def test_the_page_that_answers_comes_first(query):
    ranked = sorted(pages(), key=lambda path: -score(path, query))
    best = score(ranked[0], query)
    first = [path.stem for path in ranked if score(path, query) == best]
    assert first == [PHRASES[query]]

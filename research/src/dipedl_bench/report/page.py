"""The report of a suite: one HTML page with every table and figure, which loads nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

from jinja2 import Environment

from dipedl.apps.demo.report.inline import templates

from ..results.store import Store
from ..spec.captions import captions_of
from ..tables.crossed.markdown import number as three_decimals
from ..tables.crossed.markdown import selected, verdict
from ..tables.formatting import (
    difference,
    duration,
    measured,
    metric_title,
    number,
    printed,
    set_title,
)
from . import crossed, one_data_set

#: What a section that both kinds of suites have shows of one kind only.
_ABSENT: dict[str, Any] = {
    "note": "",
    "headline": [],
    "trivial": [],
    "measures": [],
    "about": {"profile": ""},
    "methods": "",
    "sizes": {},
}


def render(store: Store) -> str:
    """The page as HTML text, made of the rows and arrays of a store; nothing is trained.

    Needs matplotlib and jinja2: ``pip install 'dipedl[report]'``.
    """
    rows = store.rows()
    is_crossed = any("classifier" in row for row in rows)
    values = _ABSENT | (crossed.values(rows) if is_crossed else one_data_set.values(store))
    titles = (crossed if is_crossed else one_data_set).sections(values)
    captions = captions_of(store.suite, "crossed" if is_crossed else "every_suite")
    sizes = {"rows": captions.rows, **values["sizes"]}
    values |= {"suite": store.suite, "profile": store.profile, "captions": captions}
    values |= {"split": captions.split.format(**sizes), "scores": captions.scores.format(**sizes)}
    template = _environment(store.suite).get_template("report.html.j2")
    return template.render(values, sections=list(titles.items()))


def _environment(suite: str) -> Environment:
    environment = templates("dipedl_bench.report")
    environment.filters |= {
        "measured": measured,
        "printed": printed,
        "difference": difference,
        "number": number,
        "number3": three_decimals,
        "duration": duration,
        "metric": metric_title,
        "title_case": lambda text: text[:1].upper() + text[1:],
        "set_title": partial(set_title, suite=suite),
        "verdict": verdict,
        "selected": selected,
    }
    return environment

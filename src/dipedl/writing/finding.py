"""Findings about a model, with numbers and a remedy, and the page that they make."""

from __future__ import annotations

import sys
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

#: Packages between a line of the user and a warning: this one, and those that call it.
_PASSED_THROUGH = {"dipedl", "dipedl_bench", "sklearn", "joblib"}
Number = float | int | str
#: In the order in which a reader wants them.
_SEVERITIES = ("warning", "note", "ok")
_WIDTH = 88


@dataclass(frozen=True)
class Finding:
    """One thing that the held-out data say about a model.

    Attributes
    ----------
    code : str
        Name of the finding for programs, such as "evidence_never_moves".
    severity : {"ok", "note", "warning"}
        "warning": an answer is not what it seems; "note": worth knowing; "ok": was checked.
    text : str
        The finding in plain words, with the numbers that matter.
    numbers : dict of str to float, int or str
        Every number behind the text.
    remedy : str
        What to do about it, or "".
    """

    code: str
    severity: str
    text: str
    numbers: dict[str, Number] = field(default_factory=dict)
    remedy: str = ""

    def __str__(self) -> str:
        """Return the finding as a paragraph."""
        lines = [f"[{self.severity}] {self.code}", *_wrap(self.text)]
        if self.remedy:
            lines += _wrap(f"Remedy: {self.remedy}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the finding for a notebook."""
        from .notebook import frame

        return frame(_list([self]))


class FindingWarning(UserWarning):
    """Warning of a finding, its only argument."""

    def __str__(self) -> str:
        """Return the finding and its remedy."""
        return f"{self.args[0].text} {self.args[0].remedy}"


def warn_caller(message: str | UserWarning) -> None:
    """Warn in the name of the first line on the way here that is of none of these packages."""
    frame, level = sys._getframe(1), 2
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").split(".")[0] in _PASSED_THROUGH
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


@dataclass(frozen=True)
class Diagnosis:
    """Findings of the held-out data about a model, worst first; ``str()`` gives a page.

    Attributes
    ----------
    findings : tuple of Finding
        Warnings, then notes, then checks that found nothing.
    source : str
        Source of the held-out data.
    caution : dipedl.explanation.CautionCurve or None
        What each value of `caution` costs and buys; None without pseudo-outliers.
    """

    findings: tuple[Finding, ...]
    source: str
    caution: Any = None

    def __post_init__(self) -> None:
        ordered = sorted(self.findings, key=lambda f: _SEVERITIES.index(f.severity))
        object.__setattr__(self, "findings", tuple(ordered))

    def of(self, severity: str) -> tuple[Finding, ...]:
        """Return the findings of one severity."""
        return tuple(f for f in self.findings if f.severity == severity)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings that should change what is done."""
        return self.of("warning")

    @property
    def codes(self) -> tuple[str, ...]:
        """Names of the findings, in their order."""
        return tuple(f.code for f in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that ``json.dump`` takes."""
        curve = None if self.caution is None else self.caution.to_dict()
        findings = [asdict(f) for f in self.findings]
        return {"source": self.source, "findings": findings, "caution": curve}

    def __str__(self) -> str:
        """Return a page for readers."""
        curve = [] if self.caution is None else [str(self.caution)]
        head = f"{self._counts()}\nFrom: {self.source}"
        return "\n\n".join([head, *map(str, self.findings), *curve])

    def _repr_html_(self) -> str:
        """Return the page for a notebook; checks that found nothing are folded away."""
        from .notebook import frame

        passed = self.of("ok")
        others = (*self.of("warning"), *self.of("note"))
        head = f"<p><strong>{escape(self._counts())}</strong><br>From: {escape(self.source)}</p>"
        folded = f"<details><summary>{len(passed)} ok</summary>{_list(passed)}</details>"
        curve = "" if self.caution is None else f"<p>{escape(str(self.caution))}</p>"
        return frame(head, _list(others) if others else "", folded if passed else "", curve)

    def _counts(self) -> str:
        counts = [
            f"{len(some)} {name}{'s' * (len(some) > 1 and name != 'ok')}"
            for name in _SEVERITIES
            if (some := self.of(name))
        ]
        return f"Diagnosis: {', '.join(counts) or 'nothing to say'}"


def _wrap(text: str) -> list[str]:
    indent = "    "
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def _list(findings: Sequence[Finding]) -> str:
    """Findings as a list of HTML."""
    entries = (
        f"<dt><mark>{finding.severity}</mark> <code>{escape(finding.code)}</code></dt>"
        f"<dd>{escape(finding.text)}{_remedy(finding)}</dd>"
        for finding in findings
    )
    return f"<dl>{''.join(entries)}</dl>"


def _remedy(finding: Finding) -> str:
    return f"<br><em>Remedy:</em> {escape(finding.remedy)}" if finding.remedy else ""

"""What a diagnosis consists of: findings with numbers and a remedy, and the page they make."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass, field
from typing import Any

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
        What was found, in plain words, with the numbers that matter.
    numbers : dict of str to float, int or str
        Every number behind the text.
    remedy : str
        What to do about it; "" where nothing is to be done.
    """

    code: str
    severity: str
    text: str
    numbers: dict[str, Number] = field(default_factory=dict)
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.severity not in _SEVERITIES:
            raise ValueError(f"severity must be one of {_SEVERITIES}, got {self.severity!r}")

    def __str__(self) -> str:
        """The finding as a paragraph."""
        lines = [f"[{self.severity}] {self.code}", *_wrapped(self.text)]
        if self.remedy:
            lines += _wrapped(f"Remedy: {self.remedy}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Diagnosis:
    """What the held-out data say about a model, worst first; ``str()`` gives a page.

    Attributes
    ----------
    findings : tuple of Finding
        Warnings, then notes, then what was checked and is in order.
    source : str
        Which data the findings rest on.
    """

    findings: tuple[Finding, ...]
    source: str

    def __post_init__(self) -> None:
        ordered = sorted(self.findings, key=lambda f: _SEVERITIES.index(f.severity))
        object.__setattr__(self, "findings", tuple(ordered))

    def of(self, severity: str) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(f for f in self.findings if f.severity == severity)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that should change what is done."""
        return self.of("warning")

    @property
    def codes(self) -> tuple[str, ...]:
        """Names of the findings, in their order."""
        return tuple(f.code for f in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``json.dump`` takes."""
        return {"source": self.source, "findings": [asdict(f) for f in self.findings]}

    def __str__(self) -> str:
        """A page for readers."""
        counts = ", ".join(
            f"{len(found)} {name}" for name in _SEVERITIES if (found := self.of(name))
        )
        head = f"Diagnosis: {counts or 'nothing to say'}\nFrom: {self.source}"
        return "\n\n".join([head, *map(str, self.findings)])


def _wrapped(text: str) -> list[str]:
    indent = "    "
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)

"""Drift of the rows that a service answers: a monitor for each model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from prometheus_client.core import GaugeMetricFamily

from ...answers import Answers
from ..monitor import DriftMonitor
from ..table.watch import start_monitor
from .batching import merged
from .models import Served

#: Rows that a monitor takes at once: one by one would cost more than the answers.
_AT_ONCE = 50
_RATE, _KEPT = 0.01, 100
_NOTHING: dict[str, Any] = {"problem": None, "report": None, "windows": []}
_log = logging.getLogger("dipedl.apps.serve")


class Watching:
    """Answers since a model was loaded, as its monitor sees them.

    Parameters
    ----------
    window : int
        Rows of a window.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._streams: dict[str, _Stream] = {}

    def see(self, served: Served, X: Any, found: Answers) -> None:
        """Take rows that were answered, always in one thread; what fails is only logged."""
        try:
            stream = self._streams.get(served.name)
            if stream is None or stream.served is not served:
                stream = self._streams[served.name] = _Stream(served, self._window)
            stream.take(X, found)
        except Exception:
            _log.exception("drift", extra={"model": served.name})

    def told(self, served: Served) -> dict[str, Any]:
        """The report of a model and its last windows, as plain values."""
        stream = self._streams.get(served.name)
        facts = {"model": served.name, "version": served.version, "window_rows": self._window}
        if stream is None or stream.served is not served:
            return facts | _NOTHING
        return facts | stream.told

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges of all models, for the registry of Prometheus."""
        families: dict[str, GaugeMetricFamily] = {}
        for model, stream in list(self._streams.items()):
            for name, value in stream.gauges.items():
                full = f"dipedl_{name}"
                if full not in families:
                    families[full] = GaugeMetricFamily(full, "Of the monitor.", labels=["model"])
                families[full].add_metric([model], value)
        yield from families.values()


class _Stream:
    """The rows of one model, of which a few wait for the others."""

    def __init__(self, served: Served, window: int) -> None:
        self.served = served
        self.gauges: dict[str, float] = {}
        self.told = _NOTHING
        self._waiting: list[tuple[Any, Answers]] = []
        self._newest: Any = None
        self._monitor: DriftMonitor | None = None
        try:
            self._monitor = start_monitor(served.model, None, _RATE, window)
        except (ValueError, TypeError) as error:
            self.told = _NOTHING | {"problem": str(error)}

    def take(self, X: Any, found: Answers) -> None:
        if self._monitor is None:
            return
        self._waiting.append((X, found))
        if sum(len(one.labels) for _, one in self._waiting) >= _AT_ONCE:
            inputs, answers = zip(*self._waiting, strict=True)
            self._waiting = []
            report = self._monitor.update_answers(Answers.concatenate(answers), merged(inputs))
            self.gauges = report.gauges()
            windows = self.told["windows"]
            if report.window is not None and report.window is not self._newest:
                self._newest = report.window
                windows = [*windows, asdict(report.window)][-_KEPT:]
            self.told = {"problem": None, "report": report.to_dict(), "windows": windows}

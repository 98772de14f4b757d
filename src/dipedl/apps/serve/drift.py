"""Drift of the rows that a service answers: a monitor for each model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from prometheus_client.core import GaugeMetricFamily

from ...answers import Answers
from ..monitor import DriftMonitor
from ..table.score import start_monitor
from .batching import stack_inputs
from .models import ServedModel

#: Rows that a monitor takes at once: one by one would cost more than the answers.
_AT_ONCE = 50
_RATE, _MOST_WINDOWS = 0.01, 100
_EMPTY: dict[str, Any] = {"problem": None, "report": None, "windows": []}
_log = logging.getLogger("dipedl.apps.serve")


class ModelMonitors:
    """Monitors of the answers since each model was loaded; a window has `window` rows."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._streams: dict[str, _Stream] = {}

    def observe(self, served: ServedModel, X: Any, answers: Answers) -> None:
        """Take rows that were answered, always in one thread; what fails is only logged."""
        try:
            stream = self._streams.get(served.name)
            if stream is None or stream.served is not served:
                stream = self._streams[served.name] = _Stream(served, self._window)
            stream.take(X, answers)
        except Exception:
            _log.exception("drift", extra={"model": served.name})

    def state(self, served: ServedModel) -> dict[str, Any]:
        """Return the report of a model and its last windows, as plain values."""
        stream = self._streams.get(served.name)
        facts = {"model": served.name, "version": served.version, "window_rows": self._window}
        return facts | (_EMPTY if stream is None or stream.served is not served else stream.state)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges of all models, for the registry of Prometheus."""
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

    def __init__(self, served: ServedModel, window: int) -> None:
        self.served = served
        self.gauges: dict[str, float] = {}
        self.state = _EMPTY
        self._waiting: list[tuple[Any, Answers]] = []
        self._last_window: Any = None
        self._monitor: DriftMonitor | None = None
        try:
            self._monitor = start_monitor(served.model, None, _RATE, window)
        except (ValueError, TypeError) as error:
            self.state = _EMPTY | {"problem": str(error)}

    def take(self, X: Any, answers: Answers) -> None:
        if self._monitor is None:
            return
        self._waiting.append((X, answers))
        if sum(len(some) for _, some in self._waiting) < _AT_ONCE:
            return
        inputs, parts = zip(*self._waiting, strict=True)
        self._waiting = []
        report = self._monitor.update_answers(Answers.concatenate(parts), stack_inputs(inputs))
        self.gauges = report.gauges()
        windows = self.state["windows"]
        if report.window is not None and report.window is not self._last_window:
            self._last_window = report.window
            windows = [*windows, asdict(report.window)][-_MOST_WINDOWS:]
        self.state = {"problem": None, "report": report.to_dict(), "windows": windows}

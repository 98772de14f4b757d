"""Telemetry of a service: counts and histograms for Prometheus, one line of JSON per request."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import HistogramMetricFamily

from ...answers import Answers
from ...writing.numbers import plain

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_VACUITY = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
_P_VALUES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
#: Attributes of a record of `logging` that are not ours.
_KNOWN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class Telemetry:
    """Metrics of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        to: Any = {"registry": self.registry}
        of_route = ("method", "route", "status")
        self.requests = Counter("dipedl_requests", "Requests.", of_route, **to)
        self.seconds = Histogram(
            "dipedl_request_seconds", "Duration of a request.", ("route",), buckets=_SECONDS, **to
        )
        self.running = Gauge("dipedl_requests_running", "Requests with rows, now.", **to)
        self.rows = Counter("dipedl_rows", "Rows that were answered.", ("model",), **to)
        self.refused = Counter("dipedl_rows_refused", "Rows that were refused.", ("model",), **to)
        self.flagged = Counter("dipedl_rows_flagged", "Rows that were flagged.", ("model",), **to)
        self.reloads = Counter("dipedl_reloads", "Reloads of a model.", ("model", "ok"), **to)
        self._vacuity = _Spread("dipedl_vacuity", "Vacuity of answered rows.", _VACUITY)
        self._p_values = _Spread("dipedl_p_value", "p-values of answered rows.", _P_VALUES)
        self.registry.register(self._vacuity)
        self.registry.register(self._p_values)

    def count(self, model: str, answers: Answers, refused: int) -> None:
        """Count the rows of a request."""
        self.rows.labels(model).inc(len(answers))
        self.refused.labels(model).inc(refused)
        self.flagged.labels(model).inc(int(answers.flagged.sum()))
        self._vacuity.add(model, answers.vacuity)
        self._p_values.add(model, answers.p_values)


class _Spread:
    """A histogram by model that takes all rows of a request at once."""

    def __init__(self, name: str, text: str, bounds: tuple[float, ...]) -> None:
        self._name, self._text, self._bounds = name, text, bounds
        self._counts: dict[str, np.ndarray] = {}
        self._sums: dict[str, float] = {}

    def add(self, model: str, values: np.ndarray) -> None:
        at = np.searchsorted(self._bounds, values)
        counts = np.bincount(at, minlength=len(self._bounds) + 1)
        self._counts[model] = self._counts.get(model, 0) + counts
        self._sums[model] = self._sums.get(model, 0.0) + float(values.sum())

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield the histograms, for the registry."""
        family = HistogramMetricFamily(self._name, self._text, labels=["model"])
        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for model, counts in self._counts.items():
            buckets = list(zip(bounds, np.cumsum(counts).tolist(), strict=True))
            family.add_metric([model], buckets, self._sums[model])
        yield family


class JsonLines(logging.Formatter):
    """Records as lines of JSON; of an exception its type and places, not its words or values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": when,
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _KNOWN}
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            line["at"] = [
                f"{place.filename}:{place.lineno} {place.name}"
                for place in traceback.extract_tb(record.exc_info[2])
            ]
        return json.dumps(plain(line), ensure_ascii=False, allow_nan=False, default=str)


def log_as_json(stream: Any) -> None:
    """Send what the service and its server say to a stream; one that fails is not waited for."""
    logging.raiseExceptions = False
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    for name in ("dipedl.apps.serve", "uvicorn", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    logging.captureWarnings(True)

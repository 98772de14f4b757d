"""Telemetry of a service: counts and histograms for Prometheus, one line of JSON per request."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ...answers import Answers
from ...writing.text import plain

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
        self._vacuity = Histogram(
            "dipedl_vacuity", "Vacuity of answered rows.", ("model",), buckets=_VACUITY, **to
        )
        self._p_values = Histogram(
            "dipedl_p_value", "p-values of answered rows.", ("model",), buckets=_P_VALUES, **to
        )

    def count(self, model: str, answers: Answers, refused: int) -> None:
        """Count the rows of a request."""
        self.rows.labels(model).inc(len(answers))
        self.refused.labels(model).inc(refused)
        self.flagged.labels(model).inc(int(answers.flagged.sum()))
        for histogram, values in (
            (self._vacuity, answers.vacuity),
            (self._p_values, answers.p_values),
        ):
            observe = histogram.labels(model).observe
            for value in values.tolist():
                observe(value)


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

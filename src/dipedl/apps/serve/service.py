"""How a request becomes an answer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from starlette.requests import Request
from starlette.responses import Response

from ...answers import Answers
from ...explanation import Card
from ...writing.numbers import plain
from ..table.errors import UserError
from ..table.explain import cards_of
from ..table.score import FIELDS, ScoreRequest, answer_columns
from .arrow import STREAM, arrow_bytes
from .batching import Batcher
from .models import Models, Served
from .page.pictures import Pictures
from .problems import Problem, too_large
from .rows import Inputs, arrow_inputs, json_inputs, parsed
from .schemas import ExplainRequest, PredictRequest
from .settings import Settings
from .telemetry import Telemetry
from .watching import Watching

T = TypeVar("T")
JSON = "application/json"
#: Bytes or cells that the loop handles itself, in a millisecond.
_SMALL = 20_000
#: Rows that are explained at once: no more are begun once the time is over.
_CARDS = 10
_log = logging.getLogger("dipedl.apps.serve")


class Service:
    """Models, the thread that answers, the thread that reads large bodies, and the counts."""

    def __init__(
        self, models: Models, settings: Settings, pictures: Mapping[str, Pictures]
    ) -> None:
        self.models, self.settings, self.telemetry = models, settings, Telemetry()
        self.pictures = pictures
        self.watching = Watching(settings.window)
        self.telemetry.registry.register(self.watching)
        self._batcher = Batcher(self.watching.see)
        self._reader = ThreadPoolExecutor(1, "dipedl-reader")
        self._worker: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer while the block runs."""
        self._worker = asyncio.create_task(self._batcher.run())
        try:
            yield
        finally:
            self._worker.cancel()
            self._batcher.close()
            self._reader.shutdown(wait=False, cancel_futures=True)

    @property
    def ready(self) -> bool:
        """Return whether rows are answered."""
        return self._worker is not None and not self._worker.done()

    async def predict(self, request: Request) -> Response:
        """Answers to the rows of a request, as JSON or as a stream of Arrow."""
        body = await self._body(request)
        async with self._in_time(504, "the answers took longer than allowed; send fewer rows"):
            arrow = _sent(request) == STREAM
            read = self._of_arrow if arrow else self._of_json
            # A stream of Arrow may hold far more than its bytes tell.
            size = _SMALL if arrow else len(body)
            served, inputs, wanted = await self._away(size, read, body, request.query_params)
            self._note(request, served, inputs)
            found = await self._answered(self._batcher.answers(served, inputs.X, wanted))
            flagged = int(found.flagged.sum())
            request.state.facts["flagged"] = flagged
            self.telemetry.answered(served.name, found, len(inputs.refused))
            write = _arrow if _wants_arrow(request, arrow) else _json
            cells = len(inputs.rows) * (len(served.model.classes) + len(FIELDS))
            return await self._away(cells, write, served, inputs, found, wanted)

    async def explain(self, request: Request) -> Response:
        """Explanation cards of the rows of a request."""
        if _sent(request) != JSON:
            raise Problem(415, "content-type", f"rows to explain must be sent as {JSON}")
        body = await self._body(request)
        async with self._in_time(504, "the cards took longer than allowed; send fewer rows"):
            most = self.settings.explained
            asked = await self._away(len(body), parsed, ExplainRequest, body, most)
            served = self.models.named(asked.model)
            inputs = await self._away(len(body), json_inputs, served, asked)
            self._note(request, served, inputs)
            cards: list[Card] = []
            for start in range(0, len(inputs.X), _CARDS):
                some = inputs.X[start : start + _CARDS]
                work = self._batcher.apart(cards_of, served.model, some, asked.top)
                cards += await self._answered(work)
            rows = zip(inputs.rows.tolist(), cards, strict=True)
            told = [{"row": row, **card.to_dict()} for row, card in rows]
            return _reply(_facts(served) | {"cards": told, "refused": _refused(inputs)})

    def reload(self, name: str) -> Served:
        """Read a model's file again, counted and logged; UserError as of `Models.reload`."""
        old = self.models.named(name)
        try:
            new = self.models.reload(name)
        except UserError as error:
            self.telemetry.reloads.labels(name, "no").inc()
            facts = {"model": name, "ok": False, "version": old.version, "reason": str(error)}
            _log.error("reload", extra=facts, exc_info=error.__cause__)
            raise
        self.telemetry.reloads.labels(name, "yes").inc()
        _log.info("reload", extra={"model": name, "ok": True, "version": new.version})
        return new

    async def _body(self, request: Request) -> bytes:
        """The body, unless it is too large, packed, or takes too long to come."""
        packed = request.headers.get("content-encoding", "identity")
        if packed.lower() != "identity":
            raise Problem(415, "content-encoding", "the body must be sent unpacked")
        async with self._in_time(408, "the body took too long to come; send it again"):
            got = bytearray()
            async for piece in request.stream():
                got += piece
                if len(got) > self.settings.body_bytes:
                    raise too_large(self.settings.body_bytes)
        return bytes(got)

    @asynccontextmanager
    async def _in_time(self, status: int, reason: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.settings.seconds):
                yield
        except TimeoutError as error:
            raise Problem(status, "body", reason) from error

    async def _away(self, size: int, work: Callable[..., T], *arguments: Any) -> T:
        """The result of a function; if there is much to do, other requests are not kept waiting."""
        if size < _SMALL:
            return work(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._reader, work, *arguments)

    async def _answered(self, waited: Any) -> Any:
        """Return the answer of a model; an error about its inputs is one of the request."""
        try:
            return await waited
        except ValueError as error:
            raise Problem(422, "rows", str(error)) from error

    def _of_json(self, body: bytes, _: Mapping[str, str]) -> tuple[Served, Inputs, ScoreRequest]:
        asked = parsed(PredictRequest, body, self.settings.rows)
        served = self.models.named(asked.model)
        wanted = ScoreRequest(coverage=asked.coverage, fields=asked.fields)
        return served, json_inputs(served, asked), wanted

    def _of_arrow(
        self, body: bytes, query: Mapping[str, str]
    ) -> tuple[Served, Inputs, ScoreRequest]:
        served = self.models.named(query.get("model"))
        wanted = _wanted(query)
        limits = self.settings.rows, self.settings.body_bytes
        return served, arrow_inputs(served, body, *limits), wanted

    def _note(self, request: Request, served: Served, inputs: Inputs) -> None:
        """Return the entry of a request in the log."""
        counts = {"rows": len(inputs.rows), "refused": len(inputs.refused)}
        request.state.facts |= {"model": served.name, "version": served.version, **counts}
        if self.settings.log_inputs:
            values = np.array(inputs.X, dtype=object)
            values[pd.isna(values)] = None
            request.state.facts["inputs"] = values.tolist()


def _sent(request: Request) -> str:
    """The kind of the body; Problem if it is neither of the two."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, STREAM):
        raise Problem(415, "content-type", f"content-type must be {JSON} or {STREAM}")
    return kind


def _wants_arrow(request: Request, sent_arrow: bool) -> bool:
    accept = request.headers.get("accept", "")
    return STREAM in accept or (sent_arrow and JSON not in accept)


def _wanted(query: Mapping[str, str]) -> ScoreRequest:
    """Fields and coverage of a query, checked as those of a body of JSON."""
    given: dict[str, Any] = {}
    if "fields" in query:
        given["fields"] = [name.strip() for name in query["fields"].split(",")]
    if "coverage" in query:
        try:
            given["coverage"] = float(query["coverage"])
        except ValueError as error:
            raise Problem(422, "coverage", "coverage must be a number in (0, 1)") from error
    asked = parsed(PredictRequest, json.dumps(given | {"rows": []}).encode(), 0)
    return ScoreRequest(coverage=asked.coverage, fields=asked.fields)


def _facts(served: Served) -> dict[str, Any]:
    return {"model": served.name, "version": served.version}


def _refused(inputs: Inputs) -> list[dict[str, Any]]:
    return [one._asdict() for one in inputs.refused]


def _reply(content: dict[str, Any]) -> Response:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type=JSON)


def _json(served: Served, inputs: Inputs, found: Answers, wanted: ScoreRequest) -> Response:
    columns = _lists(found, served.model.classes)
    kept = {"row": inputs.rows.tolist()} | {field: columns[field] for field in wanted.fields}
    answers = [dict(zip(kept, cells, strict=True)) for cells in zip(*kept.values(), strict=True)]
    return _reply(plain(_facts(served)) | {"answers": answers, "refused": _refused(inputs)})


def _lists(found: Answers, classes: list[str]) -> dict[str, list[Any]]:
    """Each field as a list of plain values, one per row."""
    made: dict[str, list[Any]] = {
        "label": found.labels.tolist(),
        "probabilities": [dict(zip(classes, p, strict=True)) for p in found.proba.tolist()],
        "vacuity": found.vacuity.tolist(),
        "p_value": found.p_values.tolist(),
        "flagged": found.flagged.tolist(),
    }
    if found.sets is not None:
        named = np.asarray(classes, dtype=object)
        made["set"] = [named[inside].tolist() for inside in found.sets]
    if found.reasons is not None:
        made["reason"] = found.reasons.tolist()
    return made


def _arrow(served: Served, inputs: Inputs, found: Answers, wanted: ScoreRequest) -> Response:
    columns = {"row": inputs.rows} | answer_columns(found, served.model.classes, wanted.fields)
    return Response(arrow_bytes(columns, _facts(served), inputs.refused), media_type=STREAM)

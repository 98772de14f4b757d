"""A service: its routes, and how a request becomes an answer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from fastapi import FastAPI, Request, Response, Security
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from ..._version import __version__
from ...answers import Answers
from ...writing.text import plain
from ..table.errors import UserError
from ..table.reading import RejectedRow
from ..table.score import FIELDS, ScoreRequest, answer_columns, cards_of
from .arrow import STREAM, write_stream
from .batching import Batcher
from .drift import ModelMonitors
from .guard import Guard, Problem, too_large
from .models import Models, ServedModel
from .requests import Inputs, arrow_inputs, json_inputs, parse_json, parse_query
from .schemas import (
    Drift,
    Error,
    ExplainRequest,
    ExplainResponse,
    ModelColumn,
    ModelFacts,
    Pictures,
    PredictRequest,
    PredictResponse,
)
from .settings import Settings
from .telemetry import Telemetry

__all__ = ["create_app"]

T = TypeVar("T")
JSON = "application/json"
#: Bytes or cells that the loop handles itself, in a millisecond.
_SMALL = 20_000
#: Rows that are explained at once: no more are begun once the time is over.
_CARDS = 10
#: HTML, CSS and JavaScript as they lie there, without a build; they hold no data.
_PAGE = Path(__file__).parent / "page"
_STREAM: dict[str, Any] = {STREAM: {"schema": {"type": "string", "format": "binary"}}}
_QUERY = {
    "model": "Name of the model, if several are served.",
    "fields": "Fields of an answer, between commas: label,p_value.",
    "coverage": "Of the prediction sets, in (0, 1).",
    "by_class": "true: hold the coverage within each class.",
}
_log = logging.getLogger("dipedl.apps.serve")


def create_app(
    models: Models,
    settings: Settings | None = None,
    pictures: Mapping[str, Pictures] = MappingProxyType({}),
) -> FastAPI:
    """Return the service as an ASGI application.

    Parameters
    ----------
    models : Models
        What answers, by name.
    settings : Settings, optional
        Limits and the token.
    pictures : mapping of str to Pictures, optional
        Images beside models of pixels, by their names: the page lets one draw.

    Returns
    -------
    FastAPI
        Needs its lifespan: rows are answered between start and end.
    """
    settings = settings or Settings()
    service = Service(models, settings, pictures)
    app = FastAPI(
        title="dipedl",
        version=__version__,
        description="Answers of classifiers that know what they do not know.",
        lifespan=service.running,
        docs_url=None,
        redirect_slashes=False,
        redoc_url=None,
    )
    app.state.service = service
    app.add_middleware(Guard, settings=settings, telemetry=service.telemetry)
    app.add_exception_handler(Problem, _respond)
    app.add_exception_handler(HTTPException, _respond)
    secured = [Security(HTTPBearer(auto_error=False))] if settings.token else []
    refusals = (400, 401, 404, 408, 413, 415, 422, 429, 504)
    query = [
        {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
        for name, text in _QUERY.items()
    ]
    app.post(
        "/v1/predict",
        summary="Answer rows",
        dependencies=secured,
        responses=_errors(*refusals) | {200: {"model": PredictResponse, "content": _STREAM}},
        openapi_extra=_body(PredictRequest, **_STREAM) | {"parameters": query},
    )(service.predict)
    app.post(
        "/v1/explain",
        summary="Explain the answers to rows",
        dependencies=secured,
        responses=_errors(*refusals) | {200: {"model": ExplainResponse}},
        openapi_extra=_body(ExplainRequest),
    )(service.explain)
    known: dict[str, Any] = {"dependencies": secured, "responses": _errors(401)}
    named: dict[str, Any] = {"dependencies": secured, "responses": _errors(401, 404, 409)}
    app.get("/v1/models", summary="List the models", **known)(service.list_models)
    app.get("/v1/drift", summary="Drift of the rows that were answered", **known)(service.drift)
    one = "/v1/models/{name}"
    app.post(f"{one}/reload", summary="Read a model's file again", **named)(service.reload_one)
    app.get(f"{one}/pictures", summary="The images of a model", **named)(service.find_pictures)
    app.get("/health/live", summary="Whether the process runs")(_live)
    app.get("/health/ready", summary="Whether rows are answered", responses={503: {}})(
        service.is_ready
    )
    app.get(
        "/metrics",
        summary="Counts and histograms for Prometheus",
        response_class=PlainTextResponse,
    )(service.metrics)
    app.mount("/page", StaticFiles(directory=_PAGE))
    app.get("/", include_in_schema=False)(_page)
    return app


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Error} for status in statuses}


def _body(kind: type[PredictRequest | ExplainRequest], **others: Any) -> dict[str, Any]:
    """Return a body of JSON, or one of others, for OpenAPI."""
    content = {JSON: {"schema": kind.model_json_schema()}, **others}
    return {"requestBody": {"required": True, "content": content}}


async def _respond(request: Request, error: Exception) -> Response:
    """Return a problem in its one shape, also that there is no such route or method."""
    if isinstance(error, HTTPException):
        field = "method" if error.status_code == 405 else "path"
        reason = f"{error.detail}; see /openapi.json"
        error = Problem(error.status_code, field, reason, error.headers)
    if not isinstance(error, Problem):
        raise error
    return error.response(request.state.request_id)


async def _page() -> FileResponse:
    return FileResponse(_PAGE / "index.html")


async def _live() -> dict[str, str]:
    return {"status": "live"}


class Service:
    """Models, the thread that answers, the thread that reads large bodies, and the counts."""

    def __init__(
        self, models: Models, settings: Settings, pictures: Mapping[str, Pictures]
    ) -> None:
        self.models, self.settings, self.pictures = models, settings, pictures
        self.telemetry = Telemetry()
        self.monitors = ModelMonitors(settings.window)
        self.telemetry.registry.register(self.monitors)
        self.ready = False

    @asynccontextmanager
    async def running(self, _: FastAPI | None = None) -> AsyncIterator[None]:
        """Answer while the block runs."""
        self._batcher = Batcher(self.monitors.observe)
        self._reader = ThreadPoolExecutor(1, "dipedl-reader")
        self.ready = True
        try:
            yield
        finally:
            self.ready = False
            self._batcher.close()
            self._reader.shutdown(wait=False, cancel_futures=True)

    async def predict(self, request: Request) -> Response:
        """Return the answers to the rows of a request, as JSON or as a stream of Arrow."""
        body = await self._body(request)
        async with self._in_time(504, "the answers took longer than allowed; send fewer rows"):
            as_arrow = _content_type(request) == STREAM
            # A stream of Arrow may hold far more than its bytes tell.
            size, parameters = _SMALL if as_arrow else len(body), request.query_params
            served, query, inputs = await self._away(size, self._read, as_arrow, body, parameters)
            X, rows, rejected = inputs
            self._log_rows(request, served, inputs)
            # Requests that differ in other fields alone are answered together.
            fields = [name for name in ("set", "reason") if name in query.fields]
            score = ScoreRequest(coverage=query.coverage, by_class=query.by_class, fields=fields)
            answers = await _blame_rows(self._batcher.answers(served, X, score))
            request.state.facts["flagged"] = int(answers.flagged.sum())
            accept = request.headers.get("accept", "")
            wanted = STREAM in accept or (as_arrow and JSON not in accept), query.fields
            cells = len(rows) * (len(served.model.classes) + len(FIELDS))
            await self._away(cells, self.telemetry.count, served.name, answers, len(rejected))
            return await self._away(cells, _write, served, rows, rejected, answers, *wanted)

    async def explain(self, request: Request) -> Response:
        """Return explanation cards of the rows of a request."""
        if _content_type(request) != JSON:
            raise Problem(415, "content-type", f"rows to explain must be sent as {JSON}")
        body = await self._body(request)
        async with self._in_time(504, "the cards took longer than allowed; send fewer rows"):
            most = self.settings.explained
            query = await self._away(len(body), parse_json, ExplainRequest, body, most)
            served = self.models.find(query.model)
            inputs = await self._away(len(body), json_inputs, served, query)
            X, rows, rejected = inputs
            self._log_rows(request, served, inputs)
            cards: list[dict[str, Any]] = []
            for start in range(0, len(X), _CARDS):
                some = X[start : start + _CARDS]
                work = self._batcher.call(cards_of, served.model, some, query.top)
                cards += [card.to_dict() for card in await _blame_rows(work)]
            numbered = [{"row": row} | card for row, card in zip(rows.tolist(), cards, strict=True)]
            return _reply(served, "cards", numbered, rejected)

    async def list_models(self) -> dict[Literal["models"], list[ModelFacts]]:
        """Return the facts of all models."""
        return {"models": [self._facts(served) for served in self.models]}

    async def reload_one(self, name: str) -> ModelFacts:
        """Read a model's file again; Problem if that fails."""
        self.models.find(name)
        try:
            return self._facts(await asyncio.to_thread(self.reload, name))
        except UserError as error:
            reason = f"{error}. The model that was loaded before goes on answering"
            raise Problem(409, "model", reason) from error

    async def find_pictures(self, name: str) -> Pictures:
        """Return the images beside a model; Problem if there are none."""
        images = self.pictures.get(self.models.find(name).name)
        if images is None:
            raise Problem(404, "model", f"the model {name!r} has no pictures beside it")
        return images

    async def drift(self) -> dict[Literal["models"], list[Drift]]:
        """Return the reports of all monitors."""
        states = [plain(self.monitors.state(served)) for served in self.models]
        return {"models": [Drift.model_validate(state) for state in states]}

    async def is_ready(self) -> Response:
        """Return whether rows are answered, with status 503 if they are not."""
        status = "ready" if self.ready else "not ready"
        return JSONResponse({"status": status}, 200 if self.ready else 503)

    async def metrics(self) -> Response:
        """Return what Prometheus reads."""
        return Response(generate_latest(self.telemetry.registry), media_type=CONTENT_TYPE_LATEST)

    def reload(self, name: str) -> ServedModel:
        """Read a model's file again, counted and logged; UserError as of `Models.reload`."""
        old = self.models.find(name)
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

    def reload_all(self) -> None:
        """Read all files again; what fails is in the log, and its old model stays."""
        for served in self.models:
            with suppress(UserError):
                self.reload(served.name)

    def _facts(self, served: ServedModel) -> ModelFacts:
        classifier, usual = served.model.classifier, served.model.usual
        cuts = {name: column.cuts.tolist() for name, column in usual.items()}
        columns = [
            ModelColumn(
                name=column.name,
                kind=column.kind,
                levels=list(column.levels),
                lowest=min(cuts.get(column.name, []), default=None),
                highest=max(cuts.get(column.name, []), default=None),
                usual=served.usual[column.name],
            )
            for column in served.columns
        ]
        return ModelFacts(
            name=served.name,
            version=served.version,
            loaded_at=served.loaded_at,
            problem=self.models.problem(served.name),
            target=served.model.target or None,
            classes=served.model.classes,
            false_alarm_rate=classifier.evidence_.false_alarm_rate,
            prior=float(np.sum(classifier.prior_)),
            pictures=served.name in self.pictures,
            columns=columns,
        )

    async def _body(self, request: Request) -> bytes:
        """Return the body, unless it is too large, packed, or takes too long to come."""
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Problem(415, "content-encoding", "the body must be sent unpacked")
        async with self._in_time(408, "the body took too long to come; send it again"):
            body = bytearray()
            async for piece in request.stream():
                body += piece
                if len(body) > self.settings.body_bytes:
                    raise too_large(self.settings.body_bytes)
        return bytes(body)

    @asynccontextmanager
    async def _in_time(self, status: int, reason: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.settings.seconds):
                yield
        except TimeoutError as error:
            raise Problem(status, "body", reason) from error

    async def _away(self, size: int, work: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a function; much work does not keep other requests waiting."""
        if size < _SMALL:
            return work(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._reader, work, *arguments)

    def _read(
        self, as_arrow: bool, body: bytes, parameters: Mapping[str, str]
    ) -> tuple[ServedModel, PredictRequest, Inputs]:
        """Return the model, the request and its inputs out of a body of Arrow, or of JSON."""
        if as_arrow:
            served = self.models.find(parameters.get("model"))
            return served, parse_query(parameters), arrow_inputs(served, body, self.settings)
        query = parse_json(PredictRequest, body, self.settings.rows)
        served = self.models.find(query.model)
        return served, query, json_inputs(served, query)

    def _log_rows(self, request: Request, served: ServedModel, inputs: Inputs) -> None:
        """Add the model and its rows to the line of a request in the log."""
        X, rows, rejected = inputs
        counts = {"rows": len(rows), "refused": len(rejected)}
        request.state.facts |= {"model": served.name, "version": served.version, **counts}
        if self.settings.log_inputs:
            values = np.array(X, dtype=object)
            values[pd.isna(values)] = None
            request.state.facts["inputs"] = values.tolist()


async def _blame_rows(answers: Any) -> Any:
    """Return the answers of a model; an error about its inputs is one of the request."""
    try:
        return await answers
    except ValueError as error:
        raise Problem(422, "rows", str(error)) from error


def _content_type(request: Request) -> str:
    """Return the type of the body; Problem if it is neither of the two."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, STREAM):
        raise Problem(415, "content-type", f"content-type must be {JSON} or {STREAM}")
    return kind


def _reply(
    served: ServedModel, name: str, entries: list[dict[str, Any]], rejected: list[RejectedRow]
) -> Response:
    content = {"model": served.name, "version": served.version, name: entries}
    content["refused"] = [row._asdict() for row in rejected]
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type=JSON)


def _write(
    served: ServedModel,
    rows: np.ndarray,
    rejected: list[RejectedRow],
    answers: Answers,
    as_arrow: bool,
    fields: list[str],
) -> Response:
    """Return the answers to rows of these numbers as a stream of Arrow, or as JSON."""
    classes = served.model.classes
    if as_arrow:
        table = {"row": rows} | answer_columns(answers, classes, fields)
        facts = {"model": served.name, "version": served.version}
        return Response(write_stream(table, facts, rejected), media_type=STREAM)
    columns: dict[str, Any] = {
        "label": answers.labels.tolist(),
        "probabilities": [dict(zip(classes, p, strict=True)) for p in answers.proba.tolist()],
        "vacuity": answers.vacuity.tolist(),
        "p_value": answers.p_values.tolist(),
        "flagged": answers.flagged.tolist(),
        "reason": None if answers.reasons is None else answers.reasons.tolist(),
    }
    if answers.sets is not None:
        names = np.asarray(classes, dtype=object)
        columns["set"] = [names[inside].tolist() for inside in answers.sets]
    values = zip(rows.tolist(), *(columns[field] for field in fields), strict=True)
    entries = [dict(zip(("row", *fields), row, strict=True)) for row in values]
    return _reply(served, "answers", entries, rejected)

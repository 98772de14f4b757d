"""The routes of a service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, FastAPI, Request, Response, Security
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from ..._version import __version__
from ...writing.numbers import plain
from ..table.columns import DATE
from ..table.errors import UserError
from .arrow import STREAM
from .guard import Guard
from .models import Models, Served
from .pictures import Pictures
from .problems import Problem
from .schemas import (
    Drift,
    Error,
    ExplainRequest,
    ExplainResponse,
    ModelFacts,
    PredictRequest,
    PredictResponse,
)
from .service import JSON, Service
from .settings import Settings

__all__ = ["create_app"]

#: HTML, CSS and JavaScript as they lie there, without a build; they hold no data.
_PAGE = Path(__file__).parent / "page"
_STREAM: dict[str, Any] = {STREAM: {"schema": {"type": "string", "format": "binary"}}}
_QUERY = {
    "model": "Name of the model, if several are served.",
    "fields": "Fields of an answer, between commas: label,p_value.",
    "coverage": "Of the prediction sets, in (0, 1).",
}


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

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="dipedl",
        version=__version__,
        description="Answers of classifiers that know what they do not know.",
        lifespan=lifespan,
        docs_url=None,
        redirect_slashes=False,
        redoc_url=None,
    )
    app.state.service = service
    app.add_middleware(Guard, settings=settings, telemetry=service.telemetry)
    app.add_exception_handler(Problem, _respond)
    app.add_exception_handler(HTTPException, _respond)
    secured = [Security(HTTPBearer(auto_error=False))] if settings.token else []
    app.include_router(_answer_routes(service), dependencies=secured)
    app.include_router(_model_routes(service), dependencies=secured)
    app.include_router(_health_routes(service))
    app.mount("/page", StaticFiles(directory=_PAGE))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(_PAGE / "index.html")

    return app


async def _respond(request: Request, error: Exception) -> Response:
    """Return a problem in its one shape, also that there is no such route or method."""
    if isinstance(error, HTTPException):
        field = "method" if error.status_code == 405 else "path"
        reason = f"{error.detail}; see /openapi.json"
        error = Problem(error.status_code, field, reason, error.headers)
    if not isinstance(error, Problem):
        raise error
    return error.response(request.state.request_id)


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Error} for status in statuses}


def _body(kind: type[PredictRequest | ExplainRequest], **others: Any) -> dict[str, Any]:
    """Return a body of JSON, or one of others, for OpenAPI."""
    content = {JSON: {"schema": kind.model_json_schema()}, **others}
    return {"requestBody": {"required": True, "content": content}}


def _answer_routes(service: Service) -> APIRouter:
    router = APIRouter(responses=_errors(400, 401, 404, 408, 413, 415, 422, 429, 504))
    query = [
        {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
        for name, text in _QUERY.items()
    ]

    @router.post(
        "/v1/predict",
        summary="Answer rows",
        responses={200: {"model": PredictResponse, "content": _STREAM}},
        openapi_extra=_body(PredictRequest, **_STREAM) | {"parameters": query},
    )
    async def predict(request: Request) -> Response:
        return await service.predict(request)

    @router.post(
        "/v1/explain",
        summary="Explain the answers to rows",
        responses={200: {"model": ExplainResponse}},
        openapi_extra=_body(ExplainRequest),
    )
    async def explain(request: Request) -> Response:
        return await service.explain(request)

    return router


def _model_routes(service: Service) -> APIRouter:
    router = APIRouter(responses=_errors(401))

    @router.get("/v1/models", summary="List the models")
    async def models() -> dict[Literal["models"], list[ModelFacts]]:
        return {"models": [_model_facts(service, served) for served in service.models]}

    @router.post(
        "/v1/models/{name}/reload", summary="Read a model's file again", responses=_errors(404, 409)
    )
    async def reload(name: str) -> ModelFacts:
        service.models.find(name)
        try:
            served = await asyncio.to_thread(service.reload, name)
        except UserError as error:
            reason = f"{error}. The model that was loaded before goes on answering"
            raise Problem(409, "model", reason) from error
        return _model_facts(service, served)

    @router.get(
        "/v1/models/{name}/pictures", summary="The images of a model", responses=_errors(404)
    )
    async def pictures(name: str) -> Pictures:
        images = service.pictures.get(service.models.find(name).name)
        if images is None:
            raise Problem(404, "model", f"the model {name!r} has no pictures beside it")
        return images

    @router.get("/v1/drift", summary="Drift of the rows that were answered")
    async def drift() -> dict[Literal["models"], list[Drift]]:
        states = [plain(service.monitors.state(served)) for served in service.models]
        return {"models": [Drift.model_validate(state) for state in states]}

    return router


def _model_facts(service: Service, served: Served) -> ModelFacts:
    classifier = served.model.classifier
    columns = [
        {
            "name": column.name,
            "kind": column.kind,
            "levels": list(column.levels),
            "lowest": None if column.kind == DATE else min(column.cuts, default=None),
            "highest": None if column.kind == DATE else max(column.cuts, default=None),
            "usual": served.usual[column.name],
        }
        for column in served.columns
    ]
    return ModelFacts.model_validate(
        {
            "name": served.name,
            "version": served.version,
            "loaded_at": served.loaded_at,
            "problem": service.models.problem(served.name),
            "target": served.model.target or None,
            "classes": served.model.classes,
            "false_alarm_rate": classifier.evidence_.false_alarm_rate,
            "prior": float(np.sum(classifier.prior_)),
            "pictures": served.name in service.pictures,
            "columns": columns,
        }
    )


def _health_routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/health/live", summary="Whether the process runs")
    async def live() -> dict[str, str]:
        return {"status": "live"}

    @router.get("/health/ready", summary="Whether rows are answered", responses={503: {}})
    async def ready() -> Response:
        status = "ready" if service.ready else "not ready"
        return JSONResponse({"status": status}, 200 if service.ready else 503)

    @router.get(
        "/metrics",
        summary="Counts and histograms for Prometheus",
        response_class=PlainTextResponse,
    )
    async def metrics() -> Response:
        return Response(generate_latest(service.telemetry.registry), media_type=CONTENT_TYPE_LATEST)

    return router

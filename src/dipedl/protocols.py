"""The whole contract between the parts: density, normaliser, uncertainty classifier; their fits.

And of their files: a folder is its own registry. Every public file of such a folder holds a literal
``__all__``. Listing the folder reads text, not code, so a file backed by PyTorch costs nothing
until one of its names is used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from .dirichlet import Dirichlet

__all__ = ["Density", "EvidentialClassifier", "Normalizer", "UncertaintyClassifier", "attach"]

#: Import name of an optional package -> extra of dipedl that installs it.
EXTRAS = {
    "torch": "torch",
    "zuko": "flows",
    "PIL": "data",
    "typer": "cli",
    "rich": "cli",
    "pydantic": "cli",
    "filelock": "cli",
    "matplotlib": "report",
    "jinja2": "report",
    "safetensors": "save",
    "skops": "tables",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "skl2onnx": "onnx",
    "astropy": "spectra",
    "pandas": "tables",
    "pyarrow": "tables",
    "fastapi": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "ray": "ray",
    "fsspec": "ray",
}

_Method = TypeVar("_Method", bound=Callable[..., Any])


@runtime_checkable
class Density(Protocol):
    """A density estimator over feature rows; any object with these two methods will do.

    Optional: ``partial_fit`` and ``+`` for streaming, a ``y`` argument of ``fit`` for densities
    that use labels, ``sample_weight``, ``clone_with_selected()``, an unfitted copy with the
    settings that this fit has selected, and ``explain_rows(X, top)``, one dict per row for
    `dipedl.explanation`. Row i of the result must not depend on row j.
    """

    def fit(self, X: np.ndarray, /) -> Any:
        """Fit on features (n, p)."""
        ...

    def score_samples(self, X: np.ndarray, /) -> np.ndarray:
        """Log-density in nats of each row of (n, p), shape (n,); higher is more typical."""
        ...


@runtime_checkable
class Normalizer(Protocol):
    """A strictly increasing map from log-density in nats to a dimensionless z."""

    def fit(
        self, log_density: np.ndarray, sample_weight: np.ndarray | None = None, *, source: str = ""
    ) -> Any:
        """Learn from ID log-densities, shape (n,); `source` says where they came from."""
        ...

    def transform(self, log_density: np.ndarray, /) -> np.ndarray:
        """Return z, shape (n,)."""
        ...


@runtime_checkable
class UncertaintyClassifier(Protocol):
    """A method as metrics, tables and plots see it: they call nothing else."""

    classes_: np.ndarray

    def predict(self, X: Any, /) -> np.ndarray:
        """Labels, shape (n,)."""
        ...

    def predict_proba(self, X: Any, /) -> np.ndarray:
        """Class probabilities, shape (n, k)."""
        ...

    def uncertainty(self, X: Any, /) -> np.ndarray:
        """Uncertainty, shape (n,); higher is less sure, always."""
        ...


@runtime_checkable
class EvidentialClassifier(UncertaintyClassifier, Protocol):
    """A method that gives a whole Dirichlet per input."""

    def predict_dirichlet(self, X: Any, /) -> Dirichlet:
        """Dirichlets over the class probabilities of (n, d) inputs."""
        ...


def atomic(fit: _Method) -> _Method:
    """Return the fit run on a copy of the model, which takes the new state over at once.

    Another thread sees the model of before or that of after, and an error leaves it as it was.
    Parameters that it sets meanwhile stay set. Of two fits at once the later to end counts.
    """

    @wraps(fit)
    def fit_copy(model: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(model))
        learned = object.__new__(type(model))
        vars(learned).update(before)
        fit(learned, *args, **kwargs)
        meanwhile = {
            name: value
            for name, value in vars(model).items()
            if not name.endswith("_") and value is not before.get(name, value)
        }
        model.__dict__ = vars(learned) | meanwhile
        return model

    return cast(_Method, fit_copy)


def explain_missing(error: ImportError, what: str) -> ImportError:
    """Return the ImportError with the extra to install, if an optional package is missing."""
    package = (error.name or "").split(".")[0]
    if package not in EXTRAS:
        return error
    return ImportError(
        f"{what} needs the package {package!r}: pip install 'dipedl[{EXTRAS[package]}]'",
        name=package,
    )


def optional(module: str, what: str) -> Any:
    """Return a module of an optional package; if that is missing, say that `what` needs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise explain_missing(error, what) from error


def _literal_all(path: Path) -> list[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def public_names(folder: Path) -> dict[str, str]:
    """Map each public name of such a folder to the module below it that defines the name."""
    homes: dict[str, str] = {}
    for path in plugin_files(folder):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        for name in _literal_all(path):
            if name in homes:
                raise ImportError(f"{name!r} is exported by both {homes[name]} and {module}")
            homes[name] = module
    return homes


def plugin_files(folder: Path) -> list[Path]:
    """List the files of such a folder and below, but for paths with an underscore in front."""
    files = folder.rglob("*.py")
    return sorted(
        p for p in files if not any(part[0] == "_" for part in p.relative_to(folder).parts)
    )


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that lists its own files.

    A file is imported once one of its names is used (PEP 562).

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    file : str
        Its ``__file__``.

    Returns
    -------
    tuple
        The three, in this order.

    Raises
    ------
    ImportError
        If two files export the same name.

    Examples
    --------
    The whole ``__init__.py`` of such a package:

    >>> import dipedl
    >>> from dipedl.protocols import attach
    >>> __getattr__, __dir__, __all__ = attach("dipedl.density", dipedl.density.__file__)
    >>> "KNNDensity" in __all__
    True
    """
    folder = Path(file).parent
    names = public_names(folder)
    return *lazy_attributes(package, folder, names, sorted(names)), sorted(names)


def lazy_attributes(
    package: str, folder: Path, homes: Mapping[str, str], public: list[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose modules are imported when used.

    `homes` are the modules that define its names, by name; `public` is what ``dir`` lists.
    """

    def __getattr__(name: str) -> Any:
        try:
            if name in homes:
                return getattr(import_module(f"{package}.{homes[name]}"), name)
            if (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists():
                return import_module(f"{package}.{name}")
        except ImportError as error:
            raise explain_missing(error, f"{package}.{name}") from error
        raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {public}")

    return __getattr__, lambda: public

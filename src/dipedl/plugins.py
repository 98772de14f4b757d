"""A plug-in folder is its own registry.

Every public file of such a folder holds a literal ``__all__``. Listing the folder reads text, not
code, so a file backed by PyTorch costs nothing until one of its names is used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["attach"]

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
    """Map each public name of a plug-in folder to the module below it that defines the name."""
    found: dict[str, str] = {}
    for path in plugin_files(folder):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        for name in _literal_all(path):
            if name in found:
                raise ImportError(f"{name!r} is exported by both {found[name]} and {module}")
            found[name] = module
    return found


def plugin_files(folder: Path) -> list[Path]:
    """List the files of a plug-in folder and below, but for paths with an underscore in front."""
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
    >>> from dipedl.plugins import attach
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

"""Reference of the Python interface: a page per package, and one per public name.

The names are those of each package's ``__all__``: a new density is on its page without a change
here. In the other pages the name of a class in code font links to its page.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from written import write_folder

import dipedl

FOLDER = "reference/api"
#: In the order of a reader's way through the library; a test compares them with the package.
PACKAGES = {
    "dipedl": "The classifier, its answers, saving",
    "dipedl.density": "Densities",
    "dipedl.evidence": "Normalisers: from a score to evidence",
    "dipedl.calibration": "Calibration on held-out rows",
    "dipedl.decisions": "Alarms, p-values, sets, rejection",
    "dipedl.apps.monitor": "Drift of a stream",
    "dipedl.explanation": "Explanation of an input, diagnosis of a model",
    "dipedl.metrics": "Metrics",
    "dipedl.plots": "Figures",
    "dipedl.datasets": "Data sets",
    "dipedl.preprocessing": "Features for densities",
    "dipedl.networks": "Networks, losses, training, flows",
    "dipedl.pretrained": "Trained networks",
    "dipedl.baselines": "Methods to compare with",
    "dipedl.apps.spectra": "Spectra",
    "dipedl.io": "Files of models",
    "dipedl.io.onnx": "ONNX",
    "dipedl.apps.large": "Data larger than memory",
    "dipedl.apps.adapters": "Other libraries",
    "dipedl.gaussians": "Moments that add up",
    "dipedl.testing": "Checks of densities and baselines",
    "dipedl.protocols": "What a part must offer",
}


def names_of(package: str) -> list[str]:
    """Public names of a package, its sub-packages left out."""
    module = import_module(package)
    names = [n for n in module.__all__ if not isinstance(getattr(module, n), ModuleType)]
    return sorted(names, key=str.lower)


def own_and_shared(package: str) -> tuple[list[str], list[str]]:
    """Names that are described as those of this package, and those as names of ``dipedl``."""
    names, module = names_of(package), import_module(package)
    if package == "dipedl":
        return names, []
    shared = [n for n in names if getattr(module, n) is getattr(dipedl, n, None)]
    return [n for n in names if n not in shared], shared


def page_of(package: str, title: str) -> str:
    """A page that lists the public names, and has Sphinx write a page for each."""
    own, shared = own_and_shared(package)
    head = f"{package}: {title}"
    text = (
        f"{head}\n{'=' * len(head)}\n\n.. automodule:: {package}\n   :no-members:\n\n"
        f".. currentmodule:: {package}\n\n"
    )
    if shared:
        names = "\n".join(f"   ~dipedl.{name}" for name in shared)
        text += f"Offered by `dipedl` itself:\n\n.. autosummary::\n   :nosignatures:\n\n{names}\n\n"
    if own:
        names = "\n".join(f"   {name}" for name in own)
        text += f".. autosummary::\n   :toctree: names\n   :nosignatures:\n\n{names}\n"
    return text


def index() -> str:
    """Contents of the reference of the Python interface."""
    pages = "\n".join(f"   {package}" for package in PACKAGES)
    return (
        "Python interface\n================\n\nEvery public name, by package. An optional package, "
        "such as PyTorch, is loaded when a name that needs it is used.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{pages}\n"
    )


def write_pages(app: Sphinx, *_: Any) -> None:
    """Write all pages."""
    folder = Path(app.srcdir, FOLDER)
    pages = {f"{package}.rst": page_of(package, title) for package, title in PACKAGES.items()}
    write_folder(folder, {"index.rst": index(), **pages})
    described = {f"{p}.{name}" for p in PACKAGES for name in own_and_shared(p)[0]}
    for stale in (p for p in folder.glob("names/*.rst") if p.stem not in described):
        stale.unlink()


def foreign(_app: Sphinx, _what: str, _name: str, item: Any, *_: Any) -> bool | None:
    """Skip what a class inherits from other libraries, and leave the rest to Sphinx."""
    home = getattr(getattr(item, "fget", item), "__module__", None) or "dipedl"
    return None if home.startswith("dipedl") else True


def to_whole_pages(
    _app: Sphinx, page: str, _template: str, context: dict[str, Any], *_: Any
) -> None:
    """Links from source code back to the reference: to the page of a name, without a target on it.

    Sphinx takes all names of a file to be of one module; ours may be of `dipedl` and of a package.
    """
    if page.startswith("_modules/"):
        back = r'(class="viewcode-back" href="[^"#]*)#[^"]*"'
        context["body"] = re.sub(back, r'\1"', context["body"])


class LinkedNames(SphinxTransform):
    """The name of a public class, or a dotted public name, in code font becomes a link."""

    default_priority = 600
    homes: dict[str, str] = {}

    def apply(self, **_: Any) -> None:
        """Wrap each such literal of a page that is not itself part of the reference."""
        if self.env.docname.startswith((FOLDER, "gallery")):
            return
        for literal in list(self.document.findall(nodes.literal)):
            target = self.homes.get(re.sub(r"\(.*\)$", "", literal.astext()))
            if target and not isinstance(literal.parent, (nodes.reference, pending_xref)):
                link = pending_xref(
                    "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True
                )
                literal.replace_self(link)
                link += literal


def homes() -> dict[str, str]:
    """Full name of each public class by its name, and of every public name by itself."""
    found = {}
    for package in PACKAGES:
        for name in own_and_shared(package)[0]:
            found[f"{package}.{name}"] = f"{package}.{name}"
            if name[0].isupper():
                found.setdefault(name, f"{package}.{name}")
    return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them."""
    LinkedNames.homes = homes()
    app.connect("config-inited", write_pages)
    app.connect("autodoc-skip-member", foreign)
    app.connect("html-page-context", to_whole_pages)
    app.add_transform(LinkedNames)
    return {"parallel_read_safe": True}

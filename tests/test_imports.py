"""What importing loads, and which way the imports point; both checks are shown to fail."""

import ast
import shutil
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dipedl

ROOT = Path(dipedl.__file__).parent
HEAVY = {"sklearn", "scipy", "torch", "matplotlib", "pandas", "onnx"}
ALLOWED_IN_ROOT = {"numpy", "scipy", "sklearn", "dipedl", *sys.stdlib_module_names}
#: Folders that root modules are built on; they obey the rules of root modules.
CORE = {"evidence", "decisions"}
#: Root module or folder -> what it may reach outside, directly or not: the order of the layers.
LAYERS = {
    "moments": set(),
    "calibration": set(),
    "crossfit": set(),
    "_scores": {"_array", "_gamma"},
    "dirichlet": {"_array", "_gamma"},
    "departures": {"crossfit"},
    "temperature": {"_validation"},
    "evidence": {"moments", "dirichlet", "_array", "_gamma", "_validation"},
    "decisions": {"evidence", "dirichlet", "_array", "_gamma", "_validation", "_plugins"},
}
#: The arrows back, all inside functions: the default density, what persistence may restore, what
#: a fitted classifier says about itself, and what models are written to.
INSIDE_FUNCTIONS = {
    ("_parts", "density.custom"),
    ("_parts", "density.selector"),
    ("_self_report", "diagnostics"),
    ("_self_report", "explanation"),
    ("_state", "density"),
    ("_state", "density._gaussian"),
    ("_state", "density._normal_scores"),
    ("_state", "evidence"),
    ("_state", "preprocessing"),
    ("_state", "spectra"),
    ("classifier", "density.gda"),
    ("classifier", "export"),
    ("detector", "export"),
    ("pretrained.dip_module", "export"),
}
#: Nothing of the library imports these.
APPLICATIONS = {"demo", "report", "cli", "bench", "serve"}
#: Folders of parts -> other folders that they may know.
PARTS = {
    "evidence": set(),
    "decisions": {"evidence"},
    "preprocessing": set(),
    "metrics": set(),
    "spectra": set(),
    "datasets": {"spectra"},
    "nn": set(),
    "density": {"nn", "evidence"},
    "baselines": {"nn", "density"},
    "pretrained": {"density", "evidence", "nn"},
    "export": {"baselines", "density", "evidence", "nn", "preprocessing", "pretrained"},
    "plots": {"decisions", "metrics", "spectra"},
    "diagnostics": {"evidence", "metrics"},
    "explanation": {"decisions", "evidence", "plots"},
}


def loaded_after(code):
    """Which of the heavy packages a fresh interpreter holds after `code`."""
    out = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return HEAVY & set(out.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import dipedl",
        "import dipedl; dir(dipedl); dipedl.__version__",
        "import dipedl; dipedl.density.__all__",
        "import dipedl; dir(dipedl.density); dipedl.metrics.__all__; dipedl.datasets.__all__",
        "import dipedl.nn; dipedl.nn.__all__; dipedl.baselines.__all__",
        "import dipedl; dipedl.pretrained.__all__; dipedl.export.__all__",
        "import dipedl.bench; dipedl.bench.__all__",
    ],
)
def test_listing_loads_nothing_heavy(code):
    assert loaded_after(code) == set()


def test_the_estimators_load_scikit_learn_only():
    code = "import dipedl; dipedl.DIPClassifier; dipedl.OODDetector; dipedl.density.GDADensity"
    assert loaded_after(code) <= loaded_after("import sklearn.linear_model")


def test_check_of_what_is_loaded_can_fail():
    assert loaded_after("import scipy") == {"scipy"}
    assert loaded_after("import dipedl; dipedl.density.KNNDensity") >= {"sklearn", "scipy"}


def _statements(body, inside=False):
    """Every import statement, and whether it stands inside a function; not those for types."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, inside
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _statements(ast.iter_child_nodes(node), inside or function)


def _targets(node, package):
    """Absolute names of the modules (or of names in them) that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = package[: len(package) - node.level + 1] if node.level else []
    module = [*base, *(node.module or "").split(".")] if node.module else base
    return [".".join([*module, alias.name]) for alias in node.names]


def imports(root):
    """(module, imported name, inside a function) of every file below `root`, without its name."""
    for path in sorted(root.rglob("*.py")):
        parts = list(path.relative_to(root).with_suffix("").parts)
        package = [root.name, *parts[:-1]]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node, inside in _statements(ast.parse(path.read_text(encoding="utf-8")).body):
            for target in _targets(node, package):
                yield name, target, inside


def own_modules(root):
    return {".".join(p.relative_to(root).with_suffix("").parts) for p in root.rglob("*.py")}


def own_target(target, root, modules):
    """The module of ours that a name belongs to, or None; `a.b.f` belongs to `a.b`."""
    parts = target.split(".")
    if parts[0] != root.name:
        return None
    while len(parts) > 1:
        name = ".".join(parts[1:])
        if name in modules:
            return name
        if f"{name}.__init__" in modules:
            return name
        parts.pop()
    return ""


def violations(root):
    """One line for each import that points the wrong way."""
    modules = own_modules(root)
    folders = {m.split(".")[0] for m in modules if "." in m}
    found, graph = [], {}
    for name, target, inside in imports(root):
        own, top = own_target(target, root, modules), name.split(".")[0]
        is_root = bool(name) and "." not in name and name not in folders
        if (is_root or top in CORE) and not inside and target.split(".")[0] not in ALLOWED_IN_ROOT:
            found.append(f"{name} imports {target} at module level")
        if not own:
            continue
        folder = own.split(".")[0] if own.split(".")[0] in folders else None
        if not inside:
            graph.setdefault(name, set()).add(own)
        back = inside and (name, own) in INSIDE_FUNCTIONS
        if is_root and folder and not (folder in CORE or back):
            found.append(f"{name} imports {own}: a root module knows no folder")
        if folder in APPLICATIONS and top not in APPLICATIONS:
            found.append(f"{name} imports {own}: the library knows no application")
        if top in PARTS and folder not in {None, top, *PARTS[top]} and not back:
            found.append(f"{name} imports {own}: {top} does not know {folder}")
    return found + _layer_violations(graph) + _cycles(graph)


def _reachable(graph, name):
    seen, todo = set(), [name]
    while todo:
        for other in graph.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def _layer_violations(graph):
    layers = {}
    for name, targets in graph.items():
        layers.setdefault(_layer(name), set()).update(_layer(t) for t in targets)
    return [
        f"{name} reaches {other}: it lies below it"
        for name, allowed in LAYERS.items()
        for other in sorted(_reachable(layers, name) - allowed - {name})
    ]


def _layer(name):
    """The folder of a module if it is a layer as a whole, else the module."""
    top = name.split(".")[0]
    return top if top in LAYERS else name


def _cycles(graph):
    # A package stands for the lazy names in it: its files may import it.
    plain = {k: {v for v in vs if not k.startswith(f"{v}.")} for k, vs in graph.items()}
    try:
        TopologicalSorter(plain).prepare()
    except CycleError as error:
        return [f"cycle {' -> '.join(error.args[1])}"]
    return []


def test_imports_point_one_way():
    assert violations(ROOT) == []


def test_every_arrow_back_is_still_there():
    """An exception that nothing needs any more must go from the list."""
    modules = own_modules(ROOT)
    inside = {(n, own_target(t, ROOT, modules)) for n, t, within in imports(ROOT) if within}
    assert inside >= INSIDE_FUNCTIONS


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("classifier.py", "import torch", "classifier imports torch at module level"),
        (
            "evidence/zscore.py",
            "from matplotlib import pyplot",
            "evidence.zscore imports matplotlib.pyplot at module level",
        ),
        (
            "evidence/zscore.py",
            "from ..classifier import DIPClassifier",
            "evidence reaches classifier",
        ),
        ("evidence/_base.py", "from ..density import _bank", "evidence does not know density"),
        ("decisions/sets.py", "from ..classifier import X", "decisions reaches classifier"),
        ("calibration.py", "from .evidence import ZScore", "calibration reaches evidence"),
        ("departures.py", "from .density import KNNDensity", "a root module knows no folder"),
        ("evidence_model.py", "from .diagnostics import diagnose", "a root module knows no folder"),
        ("preprocessing/signed_power.py", "from .. import nn", "preprocessing does not know nn"),
        ("moments.py", "from . import dirichlet", "moments reaches dirichlet"),
        ("dirichlet.py", "from .evidence import ZScore", "dirichlet reaches evidence"),
        ("classifier.py", "from .density import GDADensity", "a root module knows no folder"),
        ("detector.py", "def f():\n    import dipedl.density.gda", "a root module knows no folder"),
        ("density/kde.py", "from ..demo import run", "the library knows no application"),
        ("density/kde.py", "from ..metrics import nll", "density does not know metrics"),
        ("_array.py", "from .dirichlet import Dirichlet", "cycle"),
    ],
)
def test_check_of_the_direction_can_fail(tmp_path, file, line, message):
    copy = tmp_path / "dipedl"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "_mini"))
    assert violations(copy) == []
    with (copy / file).open("a", encoding="utf-8") as text:
        text.write(f"\n{line}\n")
    assert any(message in found for found in violations(copy))

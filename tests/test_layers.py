"""Packages know each other by public names, and a class stands on at most one class of ours.

A package is a folder or a file directly below `dipedl`, and each application below `dipedl.apps`;
`lint-imports` checks their order. The project `research` imports what an ``__all__`` lists.
"""

import ast
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import dipedl

ROOT = Path(dipedl.__file__).parent
RESEARCH = Path(__file__).parents[1] / "research"
#: Modules below `dipedl` itself that every package may import.
SHARED = {"_version"}
#: Private by their names, but of Python, Jupyter and scikit-learn.
FOREIGN = {"_fields", "_loss", "_repr_html_"}
#: Nodes of a syntax tree that a check looks at.
LOOKED_AT = (
    *(ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef),
    *(ast.Attribute, ast.Call, ast.Name),
)


class Module:
    """Return what a file below `root` defines, imports and uses, and the parts of its path."""

    def __init__(self, path, root):
        self.parts = path.relative_to(root).with_suffix("").parts
        self.package = package_of(self.parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.nodes = [node for node in ast.walk(tree) if isinstance(node, LOOKED_AT)]
        self.classes = [node for node in self.nodes if isinstance(node, ast.ClassDef)]

    def imports(self):
        """Yield what is imported from this package, as a path below it, and its name here."""
        for node in self.nodes:
            match node:
                case ast.Import(names):
                    above = []
                case ast.ImportFrom(module, names, level):
                    above = ["dipedl", *self.parts[:-level]] if level else []
                    above += module.split(".") if module else []
                case _:
                    continue
            for alias in names:
                path = [*above, *alias.name.split(".")]
                if path[0] == "dipedl":
                    yield path[1:], alias.asname or alias.name


def package_of(path):
    """Return the package of a path below `dipedl`."""
    return "/".join(path[:2]) if path[0] == "apps" else path[0]


@cache
def modules(root=ROOT):
    return [Module(path, root) for path in sorted(root.rglob("*.py"))]


def unlisted_imports(root=RESEARCH):
    """Yield the place of each import of the library that no ``__all__`` lists, by the research."""
    for file in modules(root):
        for node in file.nodes:
            match node:
                case ast.ImportFrom(str(module), names, 0) if module.split(".")[0] == "dipedl":
                    for alias in names:
                        if not is_listed(import_module(module), alias.name):
                            yield f"{'/'.join(file.parts)}.py: {module}.{alias.name}"


def is_listed(module, name):
    """Return whether a name is public: one of ``__all__``, a module that has one, the version."""
    public = [*getattr(module, "__all__", ()), "__version__"]
    value = getattr(module, name)
    return name in public or (isinstance(value, ModuleType) and hasattr(value, "__all__"))


def private(name):
    return name.startswith("_") and not name.endswith("__")


def private_imports(modules):
    """Yield the package, the path and the place of each import of another's private name."""
    for module in modules:
        for path, _ in module.imports():
            other = path and package_of(path) not in {module.package, *SHARED}
            if other and any(map(private, path)):
                yield (
                    module.package,
                    package_of(path),
                    f"{'/'.join(module.parts)}: {'.'.join(path)}",
                )


def defined_names(module):
    """Return the names that a module gives to functions, classes, fields and attributes."""
    names = set()
    for node in module.nodes:
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                names.add(name)
            case ast.Name(name, ast.Store()) | ast.Attribute(ast.Name("self"), name, ast.Store()):
                names.add(name)
    return names


def used_names(module):
    """Return the private names that are read, set or called on an object, by `getattr` too."""
    names = {node.attr for node in module.nodes if isinstance(node, ast.Attribute)}
    for node in module.nodes:
        match node:
            case ast.Call(ast.Name("getattr" | "hasattr" | "setattr"), [_, ast.Constant(name), *_]):
                names.add(name)
    return {name for name in names - FOREIGN if private(name)}


def private_attributes(modules):
    """Yield the package, the name and the place of each use of a name that others alone define."""
    packages = defaultdict(set)
    for module in modules:
        for name in defined_names(module):
            packages[name].add(module.package)
    for module in modules:
        for name in used_names(module):
            if packages[name] and module.package not in packages[name]:
                yield module.package, name, f"{'/'.join(module.parts)}: {name}"


def deep_classes(modules):
    """Yield the package, the name and the place of each class whose base of ours has one too."""
    homes, bases = defaultdict(dict), {}
    for module in modules:
        for node in module.classes:
            homes[node.name][module.parts] = (*module.parts, node.name)
    for module in modules:
        origin = {name: path for path, name in module.imports()}
        for node in module.classes:
            names = (ast.unparse(base).partition("[")[0].split(".") for base in node.bases)
            found = [home for name in names for home in own_classes(name, module, origin, homes)]
            bases[*module.parts, node.name] = found
    for path, found in bases.items():
        if any(bases[base] for base in found):
            yield path[0], path[-1], f"{'/'.join(path[:-1])}: {path[-1]}"


def own_classes(name, module, origin, homes):
    """Return the classes of ours that a name, split at its points, may mean in a module."""
    if module.parts in homes[name[0]]:
        return [homes[name[0]][module.parts]]
    if name[0] not in origin:
        return []
    *folder, cls = *origin[name[0]], *name[1:]
    return [home for parts, home in homes[cls].items() if [*parts[: len(folder)]] == folder]


def table(offences):
    """Return the offenders of each package, as the table above has them; print the places."""
    packages = defaultdict(set)
    for package, thing, place in offences:
        packages[package].add(thing)
        print(place)
    return {package: " ".join(sorted(things)) for package, things in packages.items()}


def test_packages_import_public_names_of_each_other():
    assert table(private_imports(modules())) == {}


def test_the_research_imports_public_names_of_the_library():
    assert list(unlisted_imports()) == []


def test_the_research_uses_public_attributes_of_the_library():
    for folder in ("src", "benchmarks", "scripts"):
        found = [module for module in modules(RESEARCH) if module.parts[0] == folder]
        own = set().union(*map(defined_names, found))
        private_ = {name for module in found for name in used_names(module) - own}
        assert private_ <= {"_asdict", "_exit", "_replace"}  # of Python


def test_packages_use_public_attributes_of_each_other():
    assert table(private_attributes(modules())) == {}


def test_a_class_stands_on_at_most_one_of_ours():
    assert table(deep_classes(modules())) == {}


def test_the_checks_can_fail(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.py").write_text("class _A:\n    def f(self):\n        self._x = 1")
    (tmp_path / "b" / "c.py").write_text(
        "import dipedl.a as a\nfrom ..a import _A\n"
        "class B(_A): ...\nclass C(a._A): ...\nclass D(B, list[int]): ...\nB()._x, B()._fields"
    )
    found = modules(tmp_path)
    assert table(private_imports(found)) == {"b": "a"}
    assert table(private_attributes(found)) == {"b": "_A _x"}
    assert table(deep_classes(found)) == {"b": "D"}
    lines = "from dipedl.inputs import Inputs\nfrom dipedl import io, load, maths"
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "script.py").write_text(lines)
    assert {line.split()[1] for line in unlisted_imports(tmp_path / "scripts")} == {
        "dipedl.inputs.Inputs",
        "dipedl.maths",
    }

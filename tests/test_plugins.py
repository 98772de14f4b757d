"""A plug-in folder is its own registry: what every file must hold, and that one file is enough."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dipedl
from dipedl import density
from dipedl.protocols import attach, explain_missing, public_names

ROOT = Path(dipedl.__file__).parent
FOLDERS = sorted(p.parent for p in ROOT.glob("*/__init__.py") if "attach(" in p.read_text("utf-8"))

STUDENT = '''"""Student's t."""

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["StudentDensity"]


class StudentDensity(DensityMixin, BaseEstimator):
    def fit(self, X, y=None):
        X = validate_data(self, X, dtype="float64")
        self.mean_, self.scale_ = X.mean(axis=0), X.std(axis=0) + 1e-9
        return self

    def score_samples(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype="float64", reset=False)
        with np.errstate(over="ignore"):
            return stats.t(7, self.mean_, self.scale_).logpdf(X).sum(axis=1)
'''


def test_a_name_in_two_files_is_an_error(tmp_path):
    for file in ("one", "two"):
        (tmp_path / f"{file}.py").write_text('__all__ = ["Same"]\n')
    with pytest.raises(ImportError, match=r"'Same' is exported by both one and two"):
        public_names(tmp_path)


def test_private_files_and_files_without_all_are_not_listed(tmp_path):
    (tmp_path / "_hidden.py").write_text('__all__ = ["Hidden"]\n')
    (tmp_path / "plain.py").write_text("x = 1\n")
    (tmp_path / "shown.py").write_text('__all__ = ["Shown"]\nraise RuntimeError("imported")\n')
    for folder in ("_private", "room"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "below.py").write_text('__all__ = ["Below"]\n')
    assert public_names(tmp_path) == {"Shown": "shown", "Below": "room.below"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_folder_lists_and_gives_every_name(folder):
    package = import_module(f"dipedl.{folder.name}")
    names = public_names(folder)
    assert package.__all__ == dir(package) == sorted(names)
    for name, stem in names.items():
        try:
            thing = getattr(package, name)
        except ImportError as error:
            pytest.skip(str(error))
        assert thing.__module__ == f"dipedl.{folder.name}.{stem}"
    for top in {stem.split(".")[0] for stem in names.values()} - set(names):
        assert import_module(f"dipedl.{folder.name}.{top}") is getattr(package, top)
    with pytest.raises(AttributeError, match=rf"has no attribute 'Nothing'; it has .*{name}"):
        package.Nothing  # noqa: B018


def test_missing_package_names_its_extra(tmp_path, monkeypatch):
    package = tmp_path / "a_folder_of_plugins"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "flow.py").write_text('import zuko.nothing_of_the_kind\n__all__ = ["Flow"]\n')
    (package / "odd.py").write_text('import no_such_package\n__all__ = ["Odd"]\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "zuko", None)
    get, _, names = attach(package.name, str(package / "__init__.py"))
    assert names == ["Flow", "Odd"]
    with pytest.raises(ImportError, match=r"Flow needs the package 'zuko': .*'dipedl\[flows\]'"):
        get("Flow")
    with pytest.raises(ImportError, match="No module named 'no_such_package'"):
        get("Odd")


def test_other_import_errors_stay_what_they_are():
    error = ImportError("circular")
    assert explain_missing(error, "x") is error


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """Environment of an interpreter that sees a copy of the package with one more density file."""
    source = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT, source / "dipedl")
    (source / "dipedl" / "density" / "student.py").write_text(STUDENT)
    return {**os.environ, "PYTHONPATH": str(source)}


def run(environment, *arguments):
    out = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True
    )
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


def test_a_new_density_file_is_listed_without_an_edit(extended):
    code = """
import sys
from dipedl import density
assert "StudentDensity" in density.__all__ and "sklearn" not in sys.modules
from dipedl import DIPClassifier
from sklearn.naive_bayes import GaussianNB
X, y = [[i, i % 3] for i in range(90)], [0] * 45 + [1] * 45
model = DIPClassifier(GaussianNB(), density=density.StudentDensity(), cv=2).fit(X, y)
print(*density.__all__, model.predict_ood([[1e4, 1e4]]))
"""
    expected = sorted([*density.__all__, "StudentDensity"])
    assert run(extended, "-c", code).split() == [*expected, "[-1]"]

"""A remedy names what the model at hand can do, and nothing that it does already."""

import inspect
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from test_diagnostics import PLANTED, found, healthy, model

from dipedl import DIPClassifier
from dipedl.calibration import Temperature
from dipedl.density import GDADensity
from dipedl.evidence import CautionBudget, ZScore
from dipedl.explanation import diagnose
from dipedl.explanation.diagnosis import move_half_point

torch = pytest.importorskip("torch")
pytest.importorskip("pyarrow")
from dipedl.apps.cli.check import check  # noqa: E402
from dipedl.apps.cli.fit import fit  # noqa: E402
from dipedl.apps.cli.score import score  # noqa: E402
from dipedl.apps.cli.terminal import diagnosis_in_shell  # noqa: E402
from dipedl.pretrained import DIPModule  # noqa: E402

#: A setting that a remedy names, with the value to give it.
NAMED = re.compile(r"\b([a-z_]+)=(None|'\w+'|[A-Z]\w+\([^)]*\)|[\d.]*\d)")
#: Arguments of other calls that remedies name.
OTHER = {"method": "isotonic", "confidence": 0}


def settings_of(clf):
    """Names and values of what a user can set."""
    if isinstance(clf, DIPModule):
        names = [*inspect.signature(DIPModule).parameters]
        names += inspect.signature(clf.fit_density).parameters
        return dict.fromkeys(names) | {"prior": clf.evidence_.prior}
    learned = ("density", "calibrator", "gamma", "prior")
    return clf.get_params(deep=False) | {name: getattr(clf.evidence_, name) for name in learned}


def applicable(clf, remedy):
    own = settings_of(clf)
    for name, value in NAMED.findall(remedy):
        assert name in own or name in OTHER, remedy
        if name in own:
            assert repr(own[name]) != value, f"{remedy}: {name} is {value} already"
    for call in re.findall(r"(\w+)\.calibrate\(", remedy):
        assert call == ("module" if isinstance(clf, DIPModule) else "clf"), remedy
    assert not ("cv at its default" in remedy and own.get("cv") == "auto"), remedy


@pytest.mark.parametrize("other", [False, True], ids=["defaults", "settings"])
@pytest.mark.parametrize(("plant", "code", "severity"), PLANTED)
def test_every_remedy_can_be_followed(plant, code, severity, other):
    clf = plant(healthy())
    if other:
        clf.evidence_.set_params(density=GDADensity(), calibrator="passthrough", gamma=2.0)
    for finding in diagnose(clf).findings:
        applicable(clf, finding.remedy)


class Asked(DIPModule):
    """A module whose evidence is planted."""

    evidence_ = None
    classes_ = None


@pytest.mark.parametrize(("plant", "code", "severity"), PLANTED)
def test_every_remedy_of_a_module_can_be_followed(plant, code, severity):
    planted = plant(healthy())
    module = Asked(torch.nn.Linear(2, 3).eval())
    module.classes_ = planted.classes_
    Asked.evidence_ = planted.evidence_
    for finding in diagnose(module).findings:
        applicable(module, finding.remedy)
        assert (
            "density=None" not in finding.remedy and "CalibratedClassifierCV" not in finding.remedy
        )


def remedy(code, **settings):
    plants = {c: p for p, c, _ in PLANTED}
    clf = plants[code](healthy())
    clf.evidence_.set_params(**settings)
    return found(clf)[code].remedy


def test_a_calibrator_at_its_default_is_not_advised():
    code = "classifier_overconfident"
    assert "calibrator=None" in remedy(code, calibrator="passthrough")
    assert "calibrator" not in remedy(code) and "isotonic" in remedy(code)
    assert "Temperature(confidence=0)" in remedy("classifier_timid")
    isotonic = CalibratedClassifierCV(LogisticRegression(), method="isotonic")
    clf = model(
        replace(healthy(), proba=np.eye(3)[healthy().proba.argmax(axis=1)]), estimator=isotonic
    )
    assert "use another classifier" in found(clf)[code].remedy


def test_a_budget_is_raised_or_lowered_from_where_it_is():
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2
    X[:, 0] += 2 * y
    clf = DIPClassifier(density=GDADensity(), normalizer=CautionBudget(0.01), gamma=3.0).fit(X, y)
    assert move_half_point(clf.evidence_, sooner=True) == (
        "Raise the budget of the normalizer above 0.01, or lower gamma below 3."
    )
    assert "below 0.01, or raise gamma above 3" in move_half_point(clf.evidence_, sooner=False)
    clf.set_params(normalizer=ZScore(), calibrator=Temperature()).fit(X, y)
    assert "normalizer=CautionBudget()" in move_half_point(clf.evidence_, sooner=True)


@pytest.mark.parametrize(("plant", "code", "severity"), PLANTED)
def test_every_remedy_of_the_shell_is_in_its_terms(plant, code, severity):
    clf = plant(healthy())
    said, bare = diagnosis_in_shell(clf.diagnose()), diagnose(clf)
    assert [f.text for f in said.findings] == [f.text for f in bare.findings]
    assert [bool(f.remedy) for f in said.findings] == [bool(f.remedy) for f in bare.findings]
    known = {
        option
        for command in (fit, check, score)
        for option in inspect.signature(command).parameters
    }
    for finding in said.findings:
        assert not re.search(r"\w\(|\w=|\bclf\b|None|calibrat|\bcv\b|weight|{", finding.remedy)
        for option in re.findall(r"--([a-z-]+)", finding.remedy):
            assert option.replace("-", "_") in known

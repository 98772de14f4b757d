"""One file: outputs, metadata, parity with the model, and what is refused or cannot be written."""

import json
import os
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from hypothesis import given, settings
from onnx_tools import TOLERANCE, gap, rows_like, runner
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

import dipedl
from dipedl import DIPClassifier, OODDetector
from dipedl.density import CustomDensity, GaussianDensity, GDADensity, KNNDensity
from dipedl.evidence import QuantileEvidence
from dipedl.io.onnx import export_onnx
from dipedl.io.onnx._model import _in_order
from dipedl.preprocessing import LogitPixels
from weekly import sample_of_rows

X, Y = load_iris(return_X_y=True)
X -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
NAMES = np.array(["setosa", "versicolor", "virginica"])
HALF = ShuffleSplit(1, test_size=0.5, random_state=0)
OUTPUTS = ["probabilities", "vacuity", "log_evidence", "ood"]


def quick(estimator=None, density=None, **options):
    """A classifier that is fitted in no time."""
    return DIPClassifier(estimator, density or GDADensity(), **{"cv": HALF, **options})


MODELS = {
    "default": lambda: DIPClassifier(random_state=0).fit(X, Y),
    "forest": lambda: quick(RandomForestClassifier(9, random_state=0)).fit(X, NAMES[Y]),
    "hist": lambda: quick(HistGradientBoostingClassifier(max_iter=5), KNNDensity(3)).fit(X, Y),
    "paper": lambda: DIPClassifier.paper().fit(X, Y),
    "pca": lambda: quick(
        features=make_pipeline(StandardScaler(), PCA(3)),
        calibrator="passthrough",
        normalizer=QuantileEvidence(),
        prior=[1.0, 2.0, 0.5],
        gamma=0.3,
        max_evidence=50.0,
    ).fit(X, Y),
    "frozen": lambda: FrozenEstimator(
        quick(FrozenEstimator(LogisticRegression().fit(X, Y))).fit(X, Y)
    ),
}


def opened(path):
    return onnxruntime.InferenceSession(str(path))


def ask(session, rows):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": rows}), strict=True))


@pytest.fixture(scope="module", params=MODELS)
def exported(request, tmp_path_factory):
    model = MODELS[request.param]()
    path = tmp_path_factory.mktemp("onnx") / f"{request.param}.onnx"
    export_onnx(model, path)
    return getattr(model, "estimator", model) if request.param == "frozen" else model, opened(path)


@settings(max_examples=12)
@given(Q=rows_like(X))
def test_answers_are_those_of_the_model(exported, Q):
    model, session = exported
    found, right = ask(session, Q), model.predict_dirichlet(Q)
    assert gap(found["probabilities"], right.mean) < TOLERANCE
    assert gap(found["vacuity"], right.vacuity) < TOLERANCE
    assert gap(found["log_evidence"], right.log_evidence) < TOLERANCE
    scores, offset = model.score_samples(Q), model.offset_
    clear = np.abs(scores - offset) > 1e-6 * (1 + np.abs(scores))
    assert np.array_equal(found["ood"][clear], (model.predict_ood(Q) == -1)[clear])


def test_any_batch_gives_the_same(exported):
    _, session = exported
    whole = ask(session, X[:12])
    for size in (1, 5):
        parts = [ask(session, X[:12][i : i + size]) for i in range(0, 12, size)]
        for name in OUTPUTS:
            assert gap(np.concatenate([part[name] for part in parts]), whole[name]) < 1e-6


def test_the_default_of_many_features_exports_with_all_its_parts(tmp_path):
    digits, labels = load_digits(return_X_y=True)
    digits, labels = digits[:500], labels[:500]
    model = DIPClassifier(cv=HALF, random_state=0).fit(digits, labels)
    assert model.density_.choice_ == "fused"
    export_onnx(model, tmp_path / "digits.onnx")
    Q = np.concatenate([digits, 1.5 * digits[::-1], digits[:50] * 1e5, np.zeros((1, 64))])
    found, right = ask(opened(tmp_path / "digits.onnx"), Q), model.predict_dirichlet(Q)
    assert gap(found["probabilities"], right.mean) < TOLERANCE
    assert gap(found["vacuity"], right.vacuity) < TOLERANCE
    assert gap(found["log_evidence"], right.log_evidence) < TOLERANCE
    assert np.array_equal(found["ood"], model.predict_ood(Q) == -1)
    assert 0 < found["ood"].sum() < len(Q)


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X, NAMES[Y])


def test_inputs_outputs_and_metadata(fitted, tmp_path):
    export_onnx(fitted, tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = opened(tmp_path / "m.onnx")
    assert [(i.name, i.shape, i.type) for i in session.get_inputs()] == [
        ("X", ["n", 4], "tensor(double)")
    ]
    assert [(o.name, o.shape) for o in session.get_outputs()] == [
        ("probabilities", ["n", 3]),
        ("vacuity", ["n"]),
        ("log_evidence", ["n"]),
        ("strength", ["n"]),
        ("ood", ["n"]),
    ]
    facts = {prop.key: prop.value for prop in model.metadata_props}
    assert facts.pop("dipedl_version") == dipedl.__version__
    told = {key: json.loads(value) for key, value in facts.items()}
    assert list(told.pop("outputs")) == [*OUTPUTS[:3], "strength", "ood"]
    assert told == {
        "format_version": 1,
        "model": "DIPClassifier",
        "density": "GDADensity",
        "classes": NAMES.tolist(),
        "n": 150.0,
        "prior": [0.5, 0.5, 0.5],
        "gamma": 1.0,
        "max_evidence": None,
        "threshold": fitted.offset_,
        "false_alarm_rate": 0.05,
        "feature_names": [],
    }


def test_float32_in_and_out_is_the_model_of_the_same_numbers(fitted, tmp_path):
    export_onnx(fitted, tmp_path / "m.onnx", dtype="float32")
    Q = np.concatenate([X, 1e6 * X, -X]).astype(np.float32)
    found = ask(opened(tmp_path / "m.onnx"), Q)
    right = fitted.predict_dirichlet(Q.astype(np.float64))
    assert {found[name].dtype for name in OUTPUTS} == {np.dtype("float32"), np.dtype(bool)}
    for name, known in zip(OUTPUTS, (right.mean, right.vacuity, right.log_evidence), strict=False):
        assert gap(found[name], known) < TOLERANCE


def test_a_row_that_python_refuses_gets_the_prior_and_a_flag(fitted, tmp_path):
    export_onnx(fitted, tmp_path / "m.onnx")
    rows = np.repeat(X[:1], 4, axis=0)
    rows[1, 2], rows[2, 0], rows[3, 3] = np.nan, np.inf, -np.inf
    with pytest.raises(ValueError, match="finite, got"):
        fitted.predict_proba(rows)
    found = ask(opened(tmp_path / "m.onnx"), rows)
    assert gap(found["probabilities"][0], fitted.predict_proba(X[:1])[0]) < 1e-12
    assert gap(found["probabilities"][1:], np.full((3, 3), 1 / 3)) < 1e-15
    assert found["vacuity"][1:].tolist() == [1.0] * 3
    assert found["log_evidence"][1:].tolist() == [-np.inf] * 3
    assert found["ood"].tolist() == [False, True, True, True]


def test_unknown_rows_are_flagged_where_nothing_else_is(tmp_path):
    with pytest.warns(UserWarning, match="will flag nothing but rows that cannot be computed with"):
        model = quick(false_alarm_rate=0.001).fit(X, Y)
    export_onnx(model, tmp_path / "m.onnx")
    rows = np.array([X[0], X[0] + 1e6, [1e200] * 4, [np.nan] * 4])
    found = ask(opened(tmp_path / "m.onnx"), rows)["ood"]
    assert found.tolist() == [False, False, True, True]
    np.testing.assert_array_equal(model.predict_ood(rows[:3]) == -1, found[:3])
    np.testing.assert_array_equal(model.answers(rows[:3]).flagged, found[:3])


def test_unknown_rows_are_flagged_by_a_model_that_flags_no_score(tmp_path):
    """As where the density gives more held-out rows a score of -inf than may be false alarms."""
    model = quick().fit(X, Y)
    model.evidence_.offset_ = -np.inf
    export_onnx(model, tmp_path / "m.onnx")
    rows = np.array([X[0], [np.nan] * 4])
    assert ask(opened(tmp_path / "m.onnx"), rows)["ood"].tolist() == [False, True]


LARGEST = np.finfo(float).max
SIGNS = np.array([[1, 0, 0, 0], [0, -1, 0, 0], [1, 1, 1, 1], [1, -1, 1, -1], [-1, -1, 1, 0]])
EDGE = np.concatenate([size * SIGNS for size in (1e100, 1e154, 1e200, 1e308, LARGEST)])


def test_features_that_hide_the_distance_hide_no_nan(tmp_path):
    """Quantiles are bounded, so that the density sees nothing; the classifier gives NaN."""
    features = QuantileTransformer(n_quantiles=20)
    clf = DIPClassifier(LinearDiscriminantAnalysis(), GaussianDensity(), features=features).fit(
        X, Y
    )
    export_onnx(clf, tmp_path / "m.onnx")
    found = ask(opened(tmp_path / "m.onnx"), EDGE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        bare = clf.estimator_.predict_proba(EDGE)
        flags, P = clf.predict_ood(EDGE), clf.predict_proba(EDGE)
    broken = np.isnan(bare).any(axis=1)
    assert broken.any() and found["ood"][broken].all()
    np.testing.assert_array_equal(found["ood"], flags == -1)
    np.testing.assert_allclose(found["probabilities"], P, atol=1e-9)


def test_columns_follow_the_classes_of_the_model():
    known = SimpleNamespace(classes_=np.array(["a", "b", "c"]))
    known.estimator_ = SimpleNamespace(classes_=np.array(["c", "a"]))
    run = runner(lambda P: _in_order(P, known), 2)
    assert run([[0.9, 0.1]]).tolist() == [[0.1, 0.0, 0.9]]


@pytest.mark.parametrize("alone", [True, False])
def test_a_detector_gives_score_and_flag(tmp_path, alone):
    detector = OODDetector(quick(), 0.2).fit(X) if alone else OODDetector(quick().fit(X, Y), 0.2)
    export_onnx(detector, tmp_path / "m.onnx", dtype="float64")
    Q = np.concatenate([X, X + 1.0, 1e6 * X, [[1e200] * 4]])
    found = ask(opened(tmp_path / "m.onnx"), Q)
    assert list(found) == ["score", "ood"]
    assert gap(found["score"], detector.score_samples(Q)) < TOLERANCE
    assert np.array_equal(found["ood"], detector.predict(Q) == -1)
    assert 0 < found["ood"][:150].sum() < 60
    facts = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert facts["false_alarm_rate"] == "0.2"
    assert "classes" not in facts


def test_a_data_frame_of_numbers_and_features_that_impute(tmp_path, rng):
    frame = pd.DataFrame(X, columns=list("abcd"))
    features = ColumnTransformer(
        [("a", make_pipeline(SimpleImputer(), StandardScaler()), ["d", "a"])]
    )
    model = quick(HistGradientBoostingClassifier(max_iter=3), features=features).fit(frame, Y)
    export_onnx(model, tmp_path / "m.onnx")
    holes = frame.mask(rng.random(frame.shape) < 0.1)
    found, right = (
        ask(opened(tmp_path / "m.onnx"), holes.to_numpy()),
        model.predict_dirichlet(holes),
    )
    assert gap(found["log_evidence"], right.log_evidence) < TOLERANCE
    assert gap(found["probabilities"], right.mean) < TOLERANCE
    facts = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert json.loads(facts["feature_names"]) == list("abcd")


def test_a_model_of_pixels_is_checked_on_pixels_or_on_the_example(tmp_path, rng):
    pixels = rng.integers(0, 256, size=(80, 6)) / 255
    model = quick(features=LogitPixels()).fit(pixels, np.arange(80) % 2)
    export_onnx(model, tmp_path / "m.onnx")
    export_onnx(model, tmp_path / "m.onnx", example=pixels[:9])
    assert (
        gap(ask(opened(tmp_path / "m.onnx"), pixels)["vacuity"], model.uncertainty(pixels)) < 1e-9
    )


def test_where_every_synthetic_input_is_refused_real_ones_are_asked_for(tmp_path):
    codes = np.arange(80)[:, None] % 4 + 100.0
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="error")
    model = quick(density=GDADensity("diag"), features=encoder).fit(codes, np.arange(80) % 2)
    with pytest.raises(ValueError, match=r"example=X\[:100\].*unknown categor"):
        export_onnx(model, tmp_path / "m.onnx")
    export_onnx(model, tmp_path / "m.onnx", example=codes[:8])
    found = ask(opened(tmp_path / "m.onnx"), codes)
    assert gap(found["log_evidence"], model.predict_dirichlet(codes).log_evidence) < TOLERANCE


def test_a_graph_that_disagrees_is_not_written(fitted, tmp_path, monkeypatch):
    from dipedl.io.onnx import _model as _model_graph

    monkeypatch.setattr(_model_graph, "log_evidence", lambda z, n, gamma, top: z)
    with pytest.raises(ValueError, match=r"disagrees with the model.*nothing was written"):
        export_onnx(fitted, tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == []


BAD = {
    "unfitted": (lambda: quick(), {}, NotFittedError, "not fitted"),
    "unfitted detector": (lambda: OODDetector(quick()), {}, NotFittedError, "not fitted"),
    "another classifier": (
        lambda: LogisticRegression().fit(X, Y),
        {},
        TypeError,
        r"model must be a fitted DIPClassifier.*LogisticRegression.*FrozenEstimator",
    ),
    "a custom density": (
        lambda: quick(density=CustomDensity(GaussianDensity())).fit(X, Y),
        {},
        TypeError,
        "density CustomDensity cannot be exported",
    ),
    "opset": (lambda: quick(), {"opset": 11}, ValueError, r"opset must be .* 18, got 11"),
    "dtype": (lambda: quick(), {"dtype": "float16"}, ValueError, "dtype must be .*got 'float16'"),
    "size": (lambda: quick(), {"max_constant_mb": 0}, ValueError, "max_constant_mb must be > 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_and_nothing_is_written(tmp_path, name):
    make, options, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        export_onnx(make(), tmp_path / "m.onnx", **options)
    assert os.listdir(tmp_path) == []


def test_examples_that_do_not_fit(fitted, tmp_path):
    for example, kind, words in [
        (X[:, :2], ValueError, r"example must have shape \(m, 4\).*\(150, 2\)"),
        (X[:0], ValueError, "m >= 1"),
        ([["a", 1, 2, 3]], TypeError, "example must hold numbers"),
        (np.full((1, 4), np.nan), ValueError, "finite"),
    ]:
        with pytest.raises(kind, match=words):
            export_onnx(fitted, tmp_path / "m.onnx", example=example)


def test_text_columns_are_refused(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 3, "wide", "slim")})
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["a"]), ("t", OneHotEncoder(sparse_output=False), ["b"])]
    )
    model = quick(make_pipeline(columns, LogisticRegression()), features=columns).fit(frame, Y)
    with pytest.raises((TypeError, ValueError), match="must hold numbers"):
        export_onnx(model, tmp_path / "m.onnx", example=frame)
    with pytest.raises((TypeError, ValueError), match="text"):
        export_onnx(model, tmp_path / "m.onnx")


def test_rows_beyond_the_limit_are_refused_with_the_remedy(tmp_path):
    model = quick(density=KNNDensity(3)).fit(X, Y)
    with pytest.raises(ValueError, match=r"KNNDensity\(3\) keeps 150 .*raise max_constant_mb"):
        export_onnx(model, tmp_path / "m.onnx", max_constant_mb=0.001)


def test_a_target_that_cannot_be_written(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; create it"):
        export_onnx(fitted, tmp_path / "no" / "m.onnx")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        export_onnx(fitted, tmp_path)


def test_a_model_beyond_one_file_is_refused_before_it_is_made(fitted, tmp_path, monkeypatch):
    from dipedl.io.onnx import _nodes as builder

    monkeypatch.setattr(builder, "_LARGEST_FILE", 100)
    with pytest.raises(ValueError, match=r"does not fit one ONNX file of 2 GiB.*'tied'"):
        export_onnx(fitted, tmp_path / "m.onnx")


@pytest.mark.slow
def test_a_network_and_its_features_run_once_in_one_graph(tmp_path, rng):
    nn = pytest.importorskip("dipedl.networks")
    blobs, labels = rng.normal(size=(90, 3)) + 3 * np.eye(3)[np.arange(90) % 3], np.arange(90) % 3
    network = nn.TorchClassifier(nn.MLP((5,)), nn.Training(epochs=3)).fit(blobs, labels)
    frozen = FrozenEstimator(network)
    model = quick(frozen, features=frozen).fit(blobs, labels)
    export_onnx(model, tmp_path / "m.onnx", example=blobs)
    Q = np.concatenate([blobs, 3 * blobs, -blobs])
    found, right = ask(opened(tmp_path / "m.onnx"), Q), model.predict_dirichlet(Q)
    for name, known in zip(OUTPUTS, (right.mean, right.vacuity, right.log_evidence), strict=False):
        assert gap(found[name], known) < 1e-3
    kinds = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert kinds.count("Gemm") == 2


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "skl2onnx"])
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, package):
    from dipedl import protocols

    monkeypatch.setitem(protocols.EXTRAS, package, "onnx")
    model = quick(features=PCA(2)).fit(X, Y)
    for name in [name for name in sys.modules if name.startswith("dipedl.io.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    from dipedl.io.onnx.onnx_file import export_onnx as fresh

    with pytest.raises(ImportError, match=r"pip install 'dipedl\[onnx\]'"):
        fresh(model, tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == []


#: Labels of three classes that are not 0, 1, 2.
LABELS = {
    "texts": NAMES,
    "from one on": np.array([1, 2, 3]),
    "with gaps": np.array([2, 5, 9]),
    "below zero": np.array([-1, 0, 1]),
}
BOXED = {
    "bare": lambda classifier: classifier,
    "pipeline": lambda classifier: make_pipeline(StandardScaler(), classifier),
    "pipeline in a pipeline": lambda classifier: make_pipeline(
        PCA(3), make_pipeline(StandardScaler(), classifier)
    ),
    "calibrated": lambda classifier: CalibratedClassifierCV(classifier, cv=2),
}


def numbered_only(monkeypatch):
    """A classifier that takes labels 0..k-1 and no others, as XGBoost's does."""
    fit = LogisticRegression.fit

    def picky(self, X, y, sample_weight=None):
        if not np.array_equal(np.unique(y), np.arange(len(np.unique(y)))):
            raise ValueError(f"Invalid classes inferred from unique values of y: {np.unique(y)}")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(LogisticRegression, "fit", picky)
    return LogisticRegression()


def xgboost(monkeypatch):
    kind = pytest.importorskip("xgboost").XGBClassifier
    return kind(n_estimators=4, max_depth=2, n_jobs=1)


@pytest.mark.parametrize(
    ("make", "labels", "boxed"),
    [
        *((xgboost, labels, boxed) for labels, boxed in zip(LABELS, BOXED, strict=True)),
        *(
            pytest.param(numbered_only, labels, boxed, marks=[pytest.mark.slow] * (place > 1))
            for place, (labels, boxed) in enumerate(zip(LABELS, list(BOXED)[::-1], strict=True))
        ),
    ],
)
def test_classifiers_of_numbered_labels_answer_in_the_labels_of_the_model(
    tmp_path, monkeypatch, make, labels, boxed
):
    model = quick(BOXED[boxed](make(monkeypatch))).fit(X, LABELS[labels][Y])
    export_onnx(model, tmp_path / "a.onnx", example=X)
    session = opened(tmp_path / "a.onnx")
    facts = session.get_modelmeta().custom_metadata_map
    assert json.loads(facts["classes"]) == LABELS[labels].tolist()
    found = ask(session, X)
    assert gap(found["probabilities"], model.predict_proba(X)) < TOLERANCE
    assert gap(found["vacuity"], model.predict_dirichlet(X).vacuity) < TOLERANCE


@pytest.mark.parametrize("names", [["no", "yes"], [-1, 1]])
@pytest.mark.parametrize("make", [numbered_only, xgboost])
def test_two_classes_of_classifiers_of_numbered_labels(tmp_path, monkeypatch, make, names):
    model = quick(make(monkeypatch)).fit(X, np.array(names)[(Y > 1).astype(int)])
    export_onnx(model, tmp_path / "a.onnx", example=X)
    found = ask(opened(tmp_path / "a.onnx"), X)
    assert gap(found["probabilities"], model.predict_proba(X)) < TOLERANCE


DATES = np.array(["2026-01-01", "2026-02-01", "2026-03-01"])


@pytest.mark.parametrize(
    ("labels", "texts"),
    sample_of_rows(
        [
            (DATES.astype("datetime64[D]"), DATES.tolist()),
            (DATES.astype("datetime64[ns]"), [f"{date}T00:00:00.000000000" for date in DATES]),
            (np.array([1, 2, 3], "timedelta64[h]"), ["1 hours", "2 hours", "3 hours"]),
            (NAMES.astype(object), NAMES.tolist()),
            (np.array([0, 1, 2], np.uint8), [0, 1, 2]),
        ],
        0,
        3,
    ),
)
def test_labels_of_every_kind_are_in_metadata_files_and_cards(tmp_path, labels, texts):
    model = quick().fit(X, labels[Y])
    export_onnx(model, tmp_path / "a.onnx")
    facts = opened(tmp_path / "a.onnx").get_modelmeta().custom_metadata_map
    assert json.loads(facts["classes"]) == texts
    model.save(tmp_path / "a.dip")
    loaded = dipedl.load(tmp_path / "a.dip")
    assert loaded.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    (card,) = loaded.explain(X[:1])
    assert json.loads(json.dumps(card.to_dict())) == card.to_dict()
    assert list(card.to_dict()["proba"]) == [str(text) for text in texts]
    assert card.label == str(texts[0])

"""One-file persistence: the same answers to the last bit, or a clear error."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.neighbors import KernelDensity as TreeKernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from test_forged import forge

import dipedl
from dipedl import DIPClassifier, OODDetector, density, evidence, preprocessing
from dipedl.density import FlowDensity
from dipedl.io import container
from dipedl.io import values as types
from dipedl.io.model_file import (
    ModelFileError,
    UntrustedTypesError,
    describe,
    load,
    save,
)
from dipedl.networks import MaskedAutoregressive, Training

X, Y = load_iris(return_X_y=True)
X -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
NAMES = np.array(["setosa", "versicolor", "virginica"])
OLD_FILES = sorted((Path(__file__).parents[1] / "golden" / "saved").glob("*.dipedl"))


class Nearest(ClassifierMixin, BaseEstimator):
    """A user's own classifier."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.centers_ = np.stack([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict_proba(self, X):
        weight = 1 / (1 + ((X[:, None] - self.centers_) ** 2).sum(axis=2))
        return weight / weight.sum(axis=1, keepdims=True)


OWN = f"{Nearest.__module__}.Nearest"


class Flat(DensityMixin, BaseEstimator):
    """A user's own density."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def score_samples(self, X):
        return -np.abs(X - self.mean_).sum(axis=1)


class Forgetful(Nearest):
    """Gives its state away wrong."""

    def __getstate__(self):
        return dict(vars(self))

    def __setstate__(self, state):
        vars(self).update({name: value + 1 for name, value in state.items()})


class Network(BaseEstimator):
    """Holds a torch module."""

    def __init__(self):
        self.module_ = torch.nn.Linear(4, 2).double()

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        with torch.no_grad():
            return self.module_(torch.as_tensor(np.array(X))).numpy()


def fitted(estimator=None, of=None, **kwargs):
    """With a single density, unless it is the density that is asked about."""
    return default(estimator, **{"density": of or density.GDADensity(), **kwargs})


def default(*args, **kwargs):
    return DIPClassifier(*args, **kwargs).fit(X, Y)


def again(model, path, **kwargs):
    save(model, path)
    kwargs.setdefault("trusted", describe(path)["untrusted_types"])
    return load(path, **kwargs)


def same_answers(a, b, inputs=X):
    far = np.vstack([inputs, 10 * np.asarray(inputs)[:3]])
    far = pd.DataFrame(far, columns=inputs.columns) if hasattr(inputs, "columns") else far
    for name in ("predict_proba", "score_samples", "predict_ood", "predict"):
        np.testing.assert_array_equal(getattr(a, name)(far), getattr(b, name)(far), strict=True)
    assert a.offset_ == b.offset_
    assert a.predict_dirichlet(far).log_evidence.tobytes() == (
        b.predict_dirichlet(far).log_evidence.tobytes()
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.dipedl"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Bytes of a small file."""
    path = tmp_path_factory.mktemp("saved") / "model.dipedl"
    save(density.GDADensity().fit(X[:, :1], NAMES[Y]), path)
    return path.read_bytes()


#: Beside those of `own_models` and `table_estimators`.
MODELS = {
    "function": {
        "estimator": make_pipeline(FunctionTransformer(np.tanh), LogisticRegression(max_iter=300))
    },
    "own estimator": {"estimator": Nearest()},
    "custom": {"density": density.CustomDensity(TreeKernelDensity())},
    "ball tree": {"density": density.CustomDensity(TreeKernelDensity(algorithm="ball_tree"))},
    "other metric": {"density": density.CustomDensity(TreeKernelDensity(metric="manhattan"))},
    "frozen density": {
        "density": FrozenEstimator(density.GaussianDensity().fit(StandardScaler().fit_transform(X)))
    },
    "own density": {"density": Flat()},
    "features": {"features": PCA(2)},
    "in-sample": {"cv": "in-sample", "false_alarm_rate": 0.1},
    "splitter": {"cv": ShuffleSplit(1, test_size=0.3, random_state=0)},
    "index pairs": {"cv": [(np.arange(0, 150, 2), np.arange(1, 150, 2))]},
    "prior vector": {"prior": [1, 2.0, np.float32(3)], "max_evidence": 1e3, "gamma": np.float64(2)},
    "texts of a grid": {"density": density.GDADensity(np.array(["tied", "full"])[0])},
    "random state": {"random_state": np.random.RandomState(3)},
    "no alarm": {"false_alarm_rate": 1e-9},
}
TRUSTED = {"own estimator": [OWN], "own density": [f"{__name__}.Flat"]}


@pytest.mark.parametrize("name", MODELS)
def test_models_round_trip(name, path):
    clf = fitted(**MODELS[name])
    loaded = again(clf, path)
    same_answers(clf, loaded)
    assert describe(path)["untrusted_types"] == TRUSTED.get(name, [])
    assert str(loaded.get_params()).split(" at 0x")[0] == str(clf.get_params()).split(" at 0x")[0]
    assert [type(v) for v in loaded.get_params().values()] == [
        type(v) for v in clf.get_params().values()
    ]


@pytest.mark.parametrize("features", [preprocessing.SignedPower(), "passthrough", None])
def test_the_default_model_needs_no_trust_and_decides_the_same(features, path):
    clf = default(features=features)
    clf.save(path)
    assert describe(path)["untrusted_types"] == []
    loaded = load(path)
    same_answers(clf, loaded)
    for call in (
        lambda m: m.p_value(X),
        lambda m: m.predict_set(X, 0.8),
        lambda m: m.predict_with_reject(X, coverage=0.9).fill(-1),
        lambda m: m.classifier_proba(X),
        lambda m: m.evidence_.held_out_.components,
        lambda m: m.evidence_.held_out_.proba,
        lambda m: m.evidence_.prior,
    ):
        np.testing.assert_array_equal(call(loaded), call(clf), strict=True)
    for call in (
        lambda m: m.diagnose().to_dict(),
        lambda m: [card.to_dict() for card in m.explain(X[::40])],
        lambda m: m.density_.ranking_,
        lambda m: m.reject_curve(),
    ):
        assert repr(call(loaded)) == repr(call(clf))


@pytest.mark.parametrize(
    "labels",
    [NAMES[Y], NAMES.astype(object)[Y], Y == 1, Y.astype(np.float32)],
    ids=["str", "object", "bool", "float"],
)
def test_labels_keep_their_type(labels, path):
    clf = DIPClassifier(density=density.GDADensity()).fit(X, labels)
    loaded = again(clf, path)
    same_answers(clf, loaded)
    assert loaded.classes_.dtype == clf.classes_.dtype


@pytest.mark.parametrize(
    "value",
    [
        np.array(["2020-01-01"], "M8[D]"),
        np.array([1.0], ">f8"),
        np.array([[1 + 2j]]),
        np.array(["é\udcff", ""]),
        np.array([["a", 1], [None, -np.inf]], dtype=object),
        np.zeros((0, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0)[::3],
        np.array(5, np.uint8),
        np.float16(0.1),
        np.str_("x"),
        np.str_(""),
        np.datetime64("2020-01-01"),
        np.ma.MaskedArray([1.0, 2.0], [True, False]),
        bytearray(b"bytes"),
        {"a": (1, [2.5]), 3: {"nested": np.arange(2)}, (1, 2): None},
        [float("inf"), -float("inf"), -0.0, 1e-320, True, 2**80],
        b"bytes",
        {1, 2},
        [float("nan"), np.float64("nan")],
    ],
    ids=repr,
)
def test_values_round_trip(value, path):
    model = density.GaussianDensity().fit(X)
    model.extra_ = value
    found = again(model, path).extra_
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype
        assert found.flags.c_contiguous or value.flags.f_contiguous
        assert found.flags.writeable


def test_memory_mapped_arrays_are_arrays(path, tmp_path):
    np.save(tmp_path / "a.npy", X)
    model = density.GaussianDensity().fit(X)
    model.extra_ = np.load(tmp_path / "a.npy", mmap_mode="r")
    np.testing.assert_array_equal(again(model, path).extra_, X)


@pytest.mark.parametrize("turned", [False, True])
def test_arrays_with_gaps_between_their_rows_or_columns_come_back(turned, path, rng):
    """Such are the components of a PCA by its randomized solver."""
    model, wide = density.GaussianDensity().fit(X), rng.normal(size=(60, 70))[:, :64]
    model.extra_ = wide.T if turned else wide
    found = again(model, path).extra_
    np.testing.assert_array_equal(found, model.extra_)
    assert found.strides == model.extra_.strides


def test_column_names_and_weights(path, rng):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = DIPClassifier(density=density.GDADensity()).fit(frame, Y, rng.integers(0, 3, len(X)))
    loaded = again(clf, path)
    same_answers(clf, loaded, frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
def test_weighted_trees_are_built_again(algorithm, path, rng):
    tree = TreeKernelDensity(algorithm=algorithm, leaf_size=3)
    model = density.CustomDensity(tree).fit(X)
    model.model_.fit(X, sample_weight=rng.uniform(1, 2, len(X)))
    save(model, path)
    assert describe(path)["parts"] == []
    np.testing.assert_array_equal(load(path).score_samples(X), model.score_samples(X))


@pytest.mark.parametrize("shrinkage", ["oas", "ledoit-wolf"])
def test_partial_fit_goes_on_after_loading(path, shrinkage):
    whole = density.GDADensity(shrinkage=shrinkage).partial_fit(X[::2], Y[::2], classes=[0, 1, 2])
    loaded = again(whole, path)
    for model in (whole, loaded):
        model.partial_fit(X[1::2], Y[1::2])
    np.testing.assert_array_equal(loaded.score_samples(X), whole.score_samples(X))


def test_announced_classes_without_samples_survive(path):
    part = density.GDADensity().partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1, 2])
    loaded = again(part, path)
    with pytest.raises(ValueError, match=r"classes \[2\]"):
        loaded.score_samples(X)
    assert loaded.partial_fit(X[Y == 2], Y[Y == 2]).score_samples(X).shape == (150,)


def test_a_loaded_classifier_is_a_classifier(path):
    clf = default(random_state=0)
    loaded = again(clf, path)
    assert clone(loaded).fit(X, Y).offset_ == clf.offset_
    np.testing.assert_array_equal(loaded.predict_ood(X, 0.2), clf.predict_ood(X, 0.2))
    clf.calibrate(X[::3], Y[::3])
    loaded.calibrate(X[::3], Y[::3])
    same_answers(clf, loaded)
    same_answers(clf, again(loaded, path))
    assert loaded.set_params(gamma=2.0).fit(X, Y).gamma == 2.0


@pytest.mark.parametrize("inside", [True, False])
def test_detectors_round_trip(inside, path):
    clf = fitted()
    detector = OODDetector(clf, 0.01) if inside else OODDetector(DIPClassifier(cv=3)).fit(X)
    loaded = again(detector, path)
    np.testing.assert_array_equal(loaded.decision_function(X), detector.decision_function(X))


def test_what_is_shared_stays_shared(path):
    net = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    template = density.GDADensity()
    frozen = FrozenEstimator(net[:1])
    clf = fitted(FrozenEstimator(net), template, features=frozen)
    loaded = again(clf, path)
    assert loaded.estimator is loaded.estimator_
    assert loaded.density is loaded.evidence_.density
    assert loaded.features.estimator[0] is loaded.estimator.estimator[0]


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_answers(path, tmp_path):
    clf = default()
    clf.save(path)
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, numpy as np, dipedl; clf = dipedl.load(sys.argv[1]); "
        "np.save(sys.argv[3], clf.predict_proba(np.load(sys.argv[2])))"
    )
    arguments = [str(path), str(tmp_path / "x.npy"), str(tmp_path / "p.npy")]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), clf.predict_proba(X))


def test_describe_lists_without_building(path, monkeypatch):
    DIPClassifier(Nearest(), density.GDADensity()).fit(X, NAMES[Y]).save(path)
    monkeypatch.setattr("dipedl.io.values.find", None)
    found = describe(path)
    assert found["untrusted_types"] == [OWN]
    assert found["classes"] == NAMES.tolist()
    assert (found["n"], found["type"]) == (150.0, "DIPClassifier")
    assert found["versions"]["numpy"] == np.__version__
    json.dumps(found)


def test_labels_that_json_lacks_are_described_as_text(path):
    model = density.GDADensity().fit(X[Y < 2], Y[Y < 2])
    model.classes_ = np.array(["2020-01-01", "2020-01-02"], "M8[D]")
    assert again(model, path).classes_.dtype == "M8[D]"
    assert describe(path)["classes"] == ["2020-01-01", "2020-01-02"]


def test_untrusted_types_are_listed_with_the_call(path):
    clf = fitted(Nearest())
    clf.save(path)
    with pytest.raises(UntrustedTypesError, match=rf"trusted=\['{OWN}'\]") as info:
        dipedl.load(path)
    assert info.value.types == [OWN]
    with pytest.raises(TypeError, match="trusted must be a list"):
        load(path, trusted=True)
    for trusted in ([OWN, "unused.Type"], [Nearest]):
        same_answers(clf, load(path, trusted=trusted))


class Wrapped(Nearest):
    """A user's own classifier around one of scikit-learn."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        return super().fit(X, y)


def test_estimators_inside_an_own_type_are_checked_as_ever(path):
    clf = fitted(Wrapped())
    same_answers(clf, again(clf, path))
    assert describe(path)["untrusted_types"] == [f"{__name__}.Wrapped"]
    assert describe(path)["parts"] == ["estimator", "estimator_"]


def test_a_grid_search_and_a_function_come_back_by_their_names(path):
    search = GridSearchCV(LogisticRegression(max_iter=300), {"C": [1, 2]}, cv=2)
    clf = fitted(search, features=FunctionTransformer(doubled))
    same_answers(clf, again(clf, path))
    assert f"{__name__}.doubled" in describe(path)["untrusted_types"]


def doubled(X):
    return 2 * np.asarray(X)


def test_pickle_is_never_used(path, monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("pickle was used")

    for name in ("load", "loads", "dump", "dumps", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    clf = fitted(RandomForestClassifier(3), density.KernelDensity())
    same_answers(clf, again(clf, path))


# Refused when saving


LAMBDA = FunctionTransformer(lambda X: X)
PIPED = make_pipeline(LAMBDA, LogisticRegression())
REFUSED = [
    (DIPClassifier(), NotFittedError, "this DIPClassifier is not fitted"),
    (density.GDADensity(), NotFittedError, "this GDADensity is not fitted"),
    (density.CustomDensity(Flat()), NotFittedError, "this CustomDensity is not fitted"),
    (OODDetector(), NotFittedError, "this OODDetector is not fitted"),
    (LogisticRegression().fit(X, Y), TypeError, r"model must be a DIPClassifier.*skops.io.dump"),
    (3, TypeError, "model must be"),
    (FrozenEstimator, TypeError, "model must be"),
]


@pytest.mark.parametrize(("model", "kind", "message"), REFUSED, ids=str)
def test_models_that_are_refused(model, kind, message, path):
    with pytest.raises(kind, match=message) as caught:
        save(model, path)
    assert caught.value.__suppress_context__ or kind is TypeError
    assert not path.exists()


class Normal:
    """A density that holds a tensor."""

    def __init__(self):
        self.mean = torch.zeros(4)

    def log_prob(self, Z):
        return -((Z - self.mean.numpy()) ** 2).sum(axis=1)


@pytest.mark.parametrize(
    ("part", "settings"),
    [
        (r"^estimator.steps\[0\]\[1\].func \(function\)", {"estimator": PIPED}),
        (r"^features.func \(function\)", {"features": LAMBDA}),
        (r"^features.estimator.module_ \(Linear\)", {"features": FrozenEstimator(Network())}),
        (r"^cv \(generator\)", {"cv": ShuffleSplit(2).split(X)}),
        (r"^estimator, estimator_ ", {"estimator": Forgetful()}),
        (r"^density.mean \(Tensor\)", {"density": Normal()}),
    ],
    ids=["lambda", "features", "torch", "generator", "forgetful", "tensor"],
)
def test_parts_that_would_need_pickle_are_named(part, settings, path):
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match=part + r"(.|\n)*without pickle"):
        save(fitted(**settings), path)
    assert path.read_bytes() == b"old"


def test_a_flow_is_refused_with_a_remedy(path):
    flow = FlowDensity(MaskedAutoregressive(1, hidden=(4,)), training=Training(epochs=1))
    model = density.CustomDensity(flow).fit(X)
    message = r"^model_\.\S+ \(.*\) cannot .* it holds .* of PyTorch; .*joblib\.dump"
    with pytest.raises(TypeError, match=message):
        save(model, path)
    joblib.dump(model, path)
    assert (joblib.load(path).score_samples(X) == model.score_samples(X)).all()


def test_foreign_attributes_are_refused(path):
    clf = fitted()
    clf.note = "mine"
    with pytest.raises(
        TypeError, match=r"model cannot be saved: .* has no \['note'\].*delete what was added"
    ):
        save(clf, path)
    clf = fitted()
    clf.density_.hello = 1
    with pytest.raises(TypeError, match=r"evidence_.density_ cannot be saved: .*'hello'"):
        save(clf, path)


def test_a_missing_extra_says_how_to_install_it(path, monkeypatch):
    clf = fitted(Nearest())
    clf.save(path)
    for name in [m for m in sys.modules if m.split(".")[0] == "safetensors"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for call in (lambda: clf.save(path), lambda: load(path), lambda: describe(path)):
        with pytest.raises(ImportError, match=r"pip install 'dipedl\[save\]'"):
            call()


# Refused when loading


def test_cut_longer_and_flipped_files_are_refused(saved, path):
    cuts = [0, 1, 7, 8, 9, 100, 1000, len(saved) // 2, len(saved) - 100, len(saved) - 1]
    flipped = [bytearray(saved) for _ in range(0, len(saved), 5)]
    for i, data in enumerate(flipped):
        data[5 * i] ^= 1 << (i % 8)
    for data in (*(saved[:n] for n in cuts), saved + b"\0", *flipped):
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"model\.dipedl") as caught:
            load(path)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


NO_MODEL = [
    *((data, "not a file that dipedl saved, or it is damaged") for data in (b"", b"{}", bytes(64))),
    (b"\x89PNG\r\n\x1a\n" + bytes(200), "not a file that dipedl saved, or it is damaged"),
    (safetensors.numpy.save({"a": np.zeros(3)}), "safetensors file but holds no model of dipedl"),
    (safetensors.numpy.save({"a": np.zeros(3)}, {"format": "np"}), "holds no model of dipedl"),
]


@pytest.mark.parametrize(("data", "message"), NO_MODEL)
def test_foreign_files_are_refused(data, message, path, tmp_path):
    path.write_bytes(data)
    for call in (load, describe):
        with pytest.raises(ModelFileError, match=message):
            call(path)
        with pytest.raises(FileNotFoundError, match=r"no file .*absent; check the spelling"):
            call(tmp_path / "absent")
        with pytest.raises(IsADirectoryError, match=f"{tmp_path} is a folder; name the file"):
            call(tmp_path)


@pytest.fixture
def written(saved, path):
    path.write_bytes(saved)
    return path


def test_a_model_that_kept_the_dtypes_of_its_table_is_read(path):
    """Files of the same format once held them."""
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = DIPClassifier(density=density.GDADensity()).fit(frame, Y)
    object.__setattr__(clf.evidence_.columns_, "dtypes", ["float64"] * 4)
    same_answers(clf, again(clf, path), frame)


def test_another_format_is_refused(written, monkeypatch):
    ours, writer = container.FORMAT_VERSION, dipedl.__version__
    monkeypatch.setattr(container, "FORMAT_VERSION", ours + 1)
    wrote = rf"model\.dipedl has format version {ours}, written by dipedl {writer}; this dipedl"
    again = f"fit the model again and save it, or load the file with dipedl {writer}"
    with pytest.raises(ValueError, match=rf"{wrote} .* reads format version {ours + 1}; {again}"):
        load(written)
    save(density.GaussianDensity().fit(X), written)
    monkeypatch.setattr(container, "FORMAT_VERSION", ours)
    with pytest.raises(ValueError, match=rf"reads format version {ours}; upgrade: pip install -U"):
        load(written)


@pytest.mark.parametrize("file", OLD_FILES, ids=lambda file: file.stem)
def test_files_of_the_first_format_are_refused(file):
    """They name types by module paths that are gone."""
    assert len(OLD_FILES) >= 3
    remedy = "fit the model again and save it, or load the file with dipedl 0.1.0"
    for call in (load, describe):
        with pytest.raises(ValueError, match=rf"format version 1, written by .*; {remedy}"):
            call(file)


def test_names_of_types_do_not_follow_the_modules():
    """A name in a file stays: whoever changes one here makes old files unreadable."""
    assert types.type_name(dipedl.DIPClassifier) == "DIPClassifier"
    assert types.type_name(density.GDADensity) == "density.GDADensity"
    assert types.type_name(evidence.ZScore) == "evidence.ZScore"
    for name in types.paths():
        assert types.type_name(types.lookup(name)) == name
    assert types.type_name(Nearest) is None and types.type_name(type("ZScore", (), {})) is None


def test_another_scikit_learn_loads_if_all_parts_fit(path):
    clf = fitted(RandomForestClassifier(2, random_state=0))
    clf.save(path)
    forge(path, lambda m, t: m["versions"].update({"scikit-learn": "1.6.1"}))
    with pytest.warns(InconsistentVersionWarning, match=r"from version 1\.6\.1"):
        same_answers(clf, load(path))

    def of_then(manifest, tensors):
        model = next(o for o in manifest["objects"] if "estimators_" in o["state"])
        model["state"]["trees_"] = model["state"].pop("estimators_")

    forge(path, of_then)
    wanted = r"lacks \['estimators_'\]; it was saved with scikit-learn 1\.6\.1, this is"
    with pytest.raises(ModelFileError, match=wanted):
        load(path)
    forge(path, lambda m, t: m.pop("versions"))
    with pytest.raises(ModelFileError, match="does not say which scikit-learn wrote it"):
        load(path)


def test_a_parameter_that_is_new_has_its_default(path):
    fitted(LogisticRegression(max_iter=300)).save(path)

    def of_then(manifest, tensors):
        model = next(o for o in manifest["objects"] if o["type"].endswith("LogisticRegression"))
        del model["state"]["warm_start"]

    forge(path, of_then)
    assert load(path).estimator_.warm_start is False


TYPES = [
    *("os.system", "builtins.eval", "persistence.save", "evidence._Normalizer"),
    *("evidence.log_evidence", "density.GDADensity.fit", "density._private", "subprocess.Popen"),
    *("dipedl.density.gaussian:GDADensity", ["os.system"], None),
]
VALUES = [
    *({"$import": "os"}, {}, {"$object": 99}, {"$object": "0"}, {"$part": 0}),
    *({"$array": "absent"}, {"$raw": "classes_", "dtype": "|O8", "shape": [3]}),
    *({"$raw": "classes_", "dtype": d, "shape": [3]} for d in ("f8,O", "<U9")),
    *({"$scalar": ["|O8", "00"]}, {"$scalar": "x"}, {"$tree": ["os", [[0.0]], 1, None]}),
    *({"$dict": [[[1], 2]]}, {"$float": "x"}, {"$objects": [1, 2], "shape": [3]}),
]
ODD = ["__class__", "__reduce__", "score_samples", "rank_", "anything", "a-b_"]
FORGED = [
    *((lambda o, name=name: o.update(type=name), "is not one that a model") for name in TYPES),
    *((lambda o, v=v: o["state"].update(n_features_in_=v), "no valid model") for v in VALUES),
    *((lambda o, key=key: o["state"].update({key: 1}), f"no .'{key}'") for key in ODD),
    (lambda o: o["state"].pop("moments_"), r"GDADensity lacks \['moments_'\]"),
]


@pytest.mark.parametrize(("change", "message"), FORGED)
def test_forged_objects_are_refused(change, message, written):
    forge(written, lambda m, t: change(m["objects"][0]))
    with pytest.raises(ModelFileError, match=message):
        load(written)


def test_a_class_that_is_gone_is_named(path):
    fitted(Nearest()).save(path)
    gone = globals().pop("Nearest")
    try:
        with pytest.raises(ValueError, match=r"Nearest is not there.*fit the model again"):
            load(path, trusted=[OWN])
    finally:
        globals()["Nearest"] = gone

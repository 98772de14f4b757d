"""Forged files with good checksums: every one is a ModelFileError, whatever it would have done."""

import json
import os
import struct
import sys
import time

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    NearestNeighbors,
    RadiusNeighborsClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from dipedl import DIPClassifier, density
from dipedl.io import ModelFileError, boosters, container, describe, load, save
from dipedl.io.values import Decoder

X, Y = load_iris(return_X_y=True)
TEXTS = ["a red apple", "a green pear"]
TREE = "sklearn.tree._tree.Tree"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.dipedl"


def saved(estimator, path, rows=X, labels=Y):
    save(Pipeline([("m", estimator)]).fit(rows, labels), path)
    return path


def forge(path, change):
    manifest, tensors = container.read(path)
    tensors = {name: array.copy() for name, array in tensors.items()}
    change(manifest, tensors)
    container.write(path, manifest, tensors)


def with_state(path, kind, **attributes):
    """Other attributes in the first object of a type; arrays are put in place, ... is none."""

    def change(manifest, tensors):
        entry = next(o for o in manifest["objects"] if o["type"].split(".")[-1] == kind)
        for name, value in attributes.items():
            if isinstance(value, np.ndarray):
                tensors[name] = value
                value = {"$array": name}
            entry["state"][name] = value
            if value is ...:
                del entry["state"][name]

    forge(path, change)


def refused(path, message):
    with pytest.raises(ModelFileError, match=message) as info:
        load(path)
    assert str(path) in str(info.value)


NEIGHBOURS = [
    *(
        KNeighborsClassifier(algorithm="brute", metric=metric)
        for metric in ("manhattan", "chebyshev", "minkowski")
    ),
    RadiusNeighborsClassifier(radius=9.0, algorithm="brute", metric="manhattan"),
]


@pytest.mark.parametrize("model", NEIGHBOURS, ids=str)
@pytest.mark.parametrize("label", [10**8, -1])
def test_labels_beyond_the_classes(model, label, path):
    """Compiled code counts votes at this address: SIGSEGV, or a write outside the heap."""
    labels = Y.astype(np.intp)
    labels[0] = label
    with_state(saved(model, path), type(model).__name__, _y=labels)
    refused(path, f"_y of {type(model).__name__} holds")


ATTRIBUTES = [
    (SVC(), {"_n_support": np.array([10**6, 3, 3], np.int32)}, "supports of the classes"),
    (SVC(), {"_n_support": np.array([-5, 30, 35], np.int32)}, "_n_support of SVC"),
    (SVC(), {"probability": True}, "have no probabilities"),
    (SVC(), {"kernel": "precomputed"}, "kernel of SVC"),
    *(
        (NearestNeighbors(), change, "of NearestNeighbors")
        for change in (
            *({"n_features_in_": 20_000}, {"n_neighbors": 1_000_000}, {"n_samples_fit_": 5}),
            *({"_fit_method": "brute"}, {"metric": "mahalanobis"}),
            {"effective_metric_": "wminkowski"},
        )
    ),
    (KNeighborsClassifier(), {"_fit_X": X[:, :1].copy()}, "_fit_X of KNeighborsClassifier"),
    (KNeighborsClassifier(), {"_fit_X": np.full_like(X, np.nan)}, "NaN or infinite"),
    (KNeighborsClassifier(), {"_fit_X": np.full_like(X, 1e308)}, r"beyond 1e\+100"),
    (DecisionTreeClassifier(), {"n_features_in_": 3}, "tree_ of DecisionTreeClassifier"),
    # No row for any input.
    (DecisionTreeClassifier(), {"n_outputs_": 0}, "n_outputs_ of DecisionTreeClassifier"),
    (OneHotEncoder(), {"_n_features_outs": [1, 1, 1, 1]}, "have other columns"),
    # The name of a method, and a width that compiled code does not look at.
    (LogisticRegression(), {"predict_proba": {"$function": "numpy.tanh"}}, "no .'predict_proba'"),
    (RandomForestClassifier(2), {"n_features_in_": ...}, "lacks .'n_features_in_'"),
    (StandardScaler(), {"mean_": ...}, "lacks .'mean_'"),
    (StandardScaler(), {"scale_": None}, "has no scales"),
    # Four rows of probabilities for each input.
    (MLPClassifier((4,), max_iter=2), {"n_outputs_": 1}, "have other outputs"),
    (PolynomialFeatures(), {"_max_degree": 90, "degree": 90}, "too high a degree"),
    (PolynomialFeatures(), {"_n_out_full": 99}, "make other columns"),
    # Without a width it seemed not to be fitted, and was not checked.
    (PolynomialFeatures(), {"n_features_in_": ..., "_n_out_full": 10**7}, "lacks"),
    # Memory for each number of an answer, memory that nothing was written to, another's rows.
    (OrdinalEncoder(), {"dtype": "U500000"}, "dtype of OrdinalEncoder"),
    (OneHotEncoder(), {"dtype": {"$dtype": "|V500000"}}, "dtype of OneHotEncoder"),
    *(
        (FunctionTransformer(np.square), {"kw_args": {"$dict": [item]}}, "kw_args of Function")
        for item in (["dtype", "U500000"], ["where", False], ["out", 0])
    ),
    (DummyClassifier(), {"n_outputs_": 3}, "n_outputs_ of DummyClassifier"),
    (DummyClassifier(strategy="uniform"), {"n_classes_": 10**7}, "n_classes_ of DummyClassifier"),
    # Threads by another name, or in the text of another setting: SIGSEGV.
    *(
        (LGBMClassifier(n_estimators=1, verbose=-1), change, message)
        for change, message in (
            ({"_other_params": {"$dict": [["num_threads", 10**5]]}}, "not in .-1024"),
            ({"boosting_type": "gbdt num_threads=100000"}, "setting 'boosting_type'"),
            ({"_objective": "multiclass num_threads=100000"}, "setting 'objective'"),
        )
    ),
    (LGBMClassifier(n_estimators=1, verbose=-1), {"_n_features_in": 3}, "other columns"),
    (LGBMClassifier(n_estimators=1, verbose=-1), {"_n_classes": 10**6}, "other classes"),
    (XGBClassifier(n_estimators=1, max_depth=2), {"n_classes_": 2}, "other classes"),
    (StackingClassifier([("a", GaussianNB())]), {"stack_method_": ["fit"]}, "stack_method_"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "change", "message"), ATTRIBUTES, ids=lambda v: str(v)[:40])
def test_attributes_that_do_not_fit(model, change, message, path):
    with_state(saved(model, path), type(model).__name__, **change)
    refused(path, message)


DIGITS = np.linspace(-3.0, -1.0, len(X))
OWN = [
    ("CautionBudget", {"scale_": -1}, "scale_ of CautionBudget is -1, not in"),
    ("CautionBudget", {"scale_": "wide"}, "scale_ of CautionBudget is a str"),
    ("CautionBudget", {"slope": 0}, "slope of CautionBudget"),
    ("DIPClassifier", {"false_alarm_rate": 2}, "false_alarm_rate of DIPClassifier is 2"),
    ("DIPClassifier", {"false_alarm_rate": 0}, "false_alarm_rate of DIPClassifier is 0"),
    ("DIPClassifier", {"false_alarm_rate": None}, "false_alarm_rate of DIPClassifier is a None"),
    ("DIPClassifier", {"n_features_in_": 10**8}, "where d is 100000000"),
    ("DIPClassifier", {"n_features_in_": ..., "n_features_in__": 4}, "have other columns"),
    ("DIPClassifier", {"classes_": np.array([0, 1])}, "where k is 2"),
    ("EvidenceModel", {"gamma": -1}, "gamma of EvidenceModel"),
    ("EvidenceModel", {"prior": np.ones(2)}, "prior of other classes"),
    ("EvidenceModel", {"density_": None}, "density_ of EvidenceModel is a NoneType"),
    ("EvidenceModel", {"density_": {"$object": 2}}, "density_ of EvidenceModel"),
    ("EvidenceModel", {"offset_": {"$float": "nan"}}, "offset_ of EvidenceModel"),
    ("EvidenceModel", {"sharpening_": {"$tuple": [2.0, 1.0]}}, "sharpen from above"),
    ("HeldOut", {"scores": DIGITS[::-1].copy()}, "scores that do not ascend"),
    ("HeldOut", {"scores": DIGITS[:9].copy()}, "where m is 9"),
    ("HeldOut", {"proba": np.ones((len(X), 3))}, "do not add up to 1"),
    ("HeldOut", {"bare_proba": np.ones((len(X), 3))}, "do not add up to 1"),
    ("HeldOut", {"labels": np.full(len(X), 7)}, "have labels of none"),
    ("HeldOut", {"origin": "nowhere"}, "not one of"),
    ("Temperature", {"temperature_": 0}, "temperature_ of Temperature"),
    ("InputColumns", {"names": ["a"]}, "where d is 1"),
    ("InputColumns", {"categories": {"$dict": [[0, [[1]]]]}}, "is a list, no level"),
    ("InputColumns", {"ranges": np.zeros((4, 3))}, "ranges of Inputs"),
    ("Moments", {"scatter": np.full((4, 4), np.nan)}, "scatter of Moments"),
    ("Moments", {"weight": 0}, "factors of a class without rows"),
    ("GaussianFactor", {"whitener": np.zeros((4, 4))}, "a factor that is not positive"),
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Bytes of a small model of this library's classes alone."""
    path = tmp_path_factory.mktemp("own") / "model.dipedl"
    given = {"density": density.GDADensity(), "features": "passthrough"}
    DIPClassifier(random_state=0, **given).fit(X, Y).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(("kind", "change", "message"), OWN, ids=str)
def test_own_classes_that_do_not_fit(kind, change, message, plain, path):
    path.write_bytes(plain)
    with_state(path, kind, **change)
    refused(path, message)


_FEW = [("all", density.GaussianDensity()), ("near", density.KNNDensity(5))]
OWN_PARTS = [
    (density.GDADensity(), {"covariance_type": "round"}, "covariance_type of GDADensity"),
    (density.GDADensity(), {"covariance_type": "tied"}, "have another covariance_type"),
    (density.GDADensity("tied"), {"moments_": []}, "moments_ of GDADensity has 0 entries"),
    (density.GDADensity("tied"), {"covariance_type": "diag"}, "have another covariance_type"),
    (density.GDADensity(), {"shrinkage_": np.full(3, 2.0)}, "shrinkage_ of GDADensity"),
    (density.GDADensity(), {"moments_": []}, "moments_ of GDADensity has 0 entries"),
    (density.KNNDensity(5), {"n_neighbors_": 6}, "have other neighbours"),
    (density.CustomDensity(density.GaussianDensity()), {"dtype": 1.0}, "dtype of CustomDensity"),
    (density.KNNDensity(5), {"radius_floor_": 0}, "radius_floor_ of KNNDensity"),
    (density.KernelDensity(), {"log_weights_": np.zeros(len(X))}, "weights that do not add up"),
    (density.BlockSumDensity([3, 1], density.GaussianDensity()), {"blocks_": []}, "where b is 0"),
    (density.FusedDensity(_FEW), {"weights_": {"$dict": []}}, "have weights of others"),
    (density.DensitySelector(_FEW, fuse=False), {"choice_": "none"}, "have chosen no density"),
    (density.RelativeDensity(), {"background_": None}, "not an estimator with score_samples"),
]


@pytest.mark.parametrize(("model", "change", "message"), OWN_PARTS, ids=lambda v: str(v)[:40])
def test_own_densities_that_do_not_fit(model, change, message, path):
    save(model.fit(X, Y), path)
    with_state(path, type(model).__name__, **change)
    refused(path, message)


def test_a_part_that_is_not_fitted(plain, path):
    path.write_bytes(plain)

    def unfitted(manifest, tensors):
        entry = [o for o in manifest["objects"] if o["type"] == "density.GDADensity"][-1]
        entry["state"] = {k: v for k, v in entry["state"].items() if not k.endswith("_")}

    forge(path, unfitted)
    refused(path, "is not fitted")


def test_an_evidence_model_in_place_of_the_classifier(plain, path):
    """Its probabilities need a classifier: a TypeError at the first answer."""

    def change(manifest, tensors):
        state = manifest["objects"][0]["state"]
        state["estimator_"] = state["evidence_"]

    path.write_bytes(plain)
    forge(path, change)
    refused(path, "estimator_ of DIPClassifier is a EvidenceModel")


def test_categories_that_are_not_sorted(path):
    def change(manifest, tensors):
        manifest["small"] = [
            [d, s, o, np.frombuffer(bytes.fromhex(data), d)[::-1].tobytes().hex()]
            for d, s, o, data in manifest["small"]
        ]

    forge(saved(OneHotEncoder(), path, NUMBERED), change)
    refused(path, "categories that are not sorted")


def test_no_more_processes_than_cores(path):
    with_state(saved(KNeighborsClassifier(), path), "KNeighborsClassifier", n_jobs=10**6)
    assert load(path)[0].n_jobs == os.cpu_count()


TREES = [
    ("left_child", 0, "behind their parents"),
    ("right_child", 10**6, "behind their parents"),
    ("right_child", -1, "one child"),
    ("feature", 4, "features that there are not"),
    ("feature", -7, "features that there are not"),
    ("threshold", np.nan, "NaN"),
    ("weighted_n_node_samples", -1.0, "negative weights"),
]


@pytest.mark.parametrize(("field", "value", "message"), TREES)
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(2, random_state=0),
        GradientBoostingClassifier(n_estimators=1),
        IsolationForest(n_estimators=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_nodes_of_trees(model, field, value, message, path):
    def change(manifest, tensors):
        tensors[f"{TREE}/{field}"][0] = value

    forge(saved(model, path), change)
    refused(path, message)


def test_a_tree_that_says_it_is_deeper(path):
    """A path would be given memory for every level."""
    forge(saved(DecisionTreeClassifier(), path), lambda m, t: t[f"{TREE}/shape"].put(2, 2**40))
    refused(path, "deeper than they say")


HIST = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
NUMBERED = np.column_stack([X[:, 0], (X[:, 1] * 10).astype(int) % 5])
HIST_NODES = [
    ("left", 0, "behind"),
    ("feature_idx", 99, "features that there are not"),
    ("is_categorical", 1, "as a category|sets that there are not"),
    ("bitset_idx", 2**31, "sets that there are not"),
    ("is_leaf", 7, "not 0 or 1"),
]


@pytest.mark.parametrize(("field", "value", "message"), HIST_NODES)
def test_nodes_of_histogram_boosting(field, value, message, path):
    model = HistGradientBoostingClassifier(max_iter=2, categorical_features=[1])

    def change(manifest, tensors):
        inner = tensors[f"{HIST}/is_leaf"] == 0
        sets = tensors[f"{HIST}/is_categorical"] == 1
        where = inner & (sets if field == "bitset_idx" else ~sets)
        tensors[f"{HIST}/{field}"][np.flatnonzero(where)] = value

    forge(saved(model, path, NUMBERED), change)
    refused(path, message)


LIGHTGBM = [
    (r"num_leaves=\d+", "num_leaves=99999", "numbers of"),
    (r"split_feature=\d+", "split_feature=99", "features that there are not"),
    (r"left_child=-?\d+", "left_child=99", "children that there are not"),
    # In place of the leaf -4 of five.
    (r"(Tree=1\n(?:.*\n)*?right_child=1 3) -4", r"\1 7", "children that there are not"),
    (r"right_child=-?\d+", "right_child=0", "behind their parents|without a parent"),
    (r"decision_type=\d+", "decision_type=1", "sets of categories|sets"),
    (r"is_linear=0", "is_linear=1", "linear trees"),
    (r"tree_sizes=\d+", "tree_sizes=1", "other sizes"),
    (r"num_class=\d+", "num_class=999999", "other classes"),
    (r"max_feature_idx=\d+", "max_feature_idx=9999999", "other features"),
    (r"leaf_value=\S+", "leaf_value=nan", "no numbers"),
    (r"leaf_value=\S+", "leaf_value=1e308", "too large"),
    (r"shrinkage=\S+", "surprise=1", "shrinkage|tree of"),
]


@pytest.fixture(scope="module")
def native():
    """Texts of a LightGBM and an XGBoost model."""
    booster = LGBMClassifier(n_estimators=2, verbose=-1).fit(X, Y)._Booster
    state = boosters.CODECS["lightgbm.Booster"].take(booster)
    other = XGBClassifier(n_estimators=2, max_depth=3).fit(X, Y).get_booster()
    return state["text"].tobytes().decode(), json.loads(bytes(other.save_raw("json")))


@pytest.mark.parametrize(("pattern", "text", "message"), LIGHTGBM)
def test_texts_of_lightgbm(pattern, text, message, native):
    import re

    boosters.check_text(native[0])
    with pytest.raises(ValueError, match=message):
        boosters.check_text(re.sub(pattern, text, native[0], count=1))


XGBOOST = [
    (("left_children", 0), 0, "behind their parents"),
    (("left_children", 0), 10**6, "behind their parents"),
    (("split_indices", 0), 99, "features that there are not"),
    (("split_type", 0), 1, "by category"),
    (("parents", 1), 7, "other parents"),
    (("split_conditions", 0), 1e39, "not finite"),
    # The last node is a leaf.
    (("split_conditions", -1), 1e37, "too large"),
    (("categories",), [1], "by category"),
    (("tree_param", "num_nodes"), "99999", "torn"),
    (("tree_param", "size_leaf_vector"), "3", "several values"),
    (("id",), 5, "elsewhere"),
    (("surprise",), 1, "too many"),
]


@pytest.mark.parametrize(("place", "value", "message"), XGBOOST, ids=str)
def test_json_of_xgboost(place, value, message, native):
    learned = json.loads(json.dumps(native[1]))
    boosters.check_model(learned)
    node = learned["learner"]["gradient_booster"]["model"]["trees"][0]
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    with pytest.raises(ValueError, match=message):
        boosters.check_model(learned)


@pytest.mark.parametrize("best", ["-2147483649", "99", "x"])
def test_the_best_iteration_of_xgboost(best, native):
    """It is a number of trees that an answer takes: SIGSEGV."""
    learned = json.loads(json.dumps(native[1]))
    learned["learner"]["attributes"]["best_iteration"] = best
    with pytest.raises(ValueError, match="best iteration"):
        boosters.check_model(learned)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary_": {"$dict": [["red", 10**9]]}}, "columns that are not 0, 1, 2"),
        ({"token_pattern": "(a+)+$"}, "token_pattern of CountVectorizer"),
        ({"ngram_range": {"$tuple": [1, 10**9]}}, "ngram_range of CountVectorizer"),
        ({"input": "filename"}, "input of CountVectorizer"),
    ],
    ids=str,
)
def test_words(change, message, path):
    model = Pipeline([("m", CountVectorizer()), ("c", LogisticRegression())])
    with_state(saved(model, path, TEXTS, [0, 1]), "CountVectorizer", **change)
    refused(path, message)


def test_a_random_state_reads_within_its_words(path):
    model = MLPClassifier((5,), max_iter=3, random_state=np.random.RandomState(0))
    with_state(saved(model, path), "RandomState", position=10**6)
    refused(path, "has position 1000000")


def test_an_object_that_holds_itself(path):
    model = FrozenEstimator(LogisticRegression(max_iter=300).fit(X, Y))
    with_state(saved(model, path), "FrozenEstimator", estimator={"$object": 1})
    refused(path, "holds itself")


# Types that need trust


class Own(ClassifierMixin, BaseEstimator):
    """A user's own classifier."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


OWN_NAME = f"{Own.__module__}.Own"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class": "os.system"}, "os.system"),
        ({"named": "builtins.eval"}, "builtins.eval"),
        ({"named": OWN_NAME, "class": "os.system"}, "os.system"),
        ({"call": OWN_NAME}, "damaged|lists no objects|holds no valid model"),
        ({"class": [OWN_NAME]}, "not trusted"),
        ({"class": f"{Own.__module__}.np.zeros"}, "not trusted"),
        ({"class": f"{Own.__module__}.saved"}, "is no class"),
    ],
    ids=str,
)
def test_only_what_is_trusted_is_looked_up(change, message, path):
    save(DIPClassifier(Own(), density.GDADensity()).fit(X, Y), path)

    def forged(manifest, tensors):
        entry = next(o for o in manifest["objects"] if "class" in o)
        del entry["class"]
        entry.update(change)

    forge(path, forged)
    with pytest.raises(ModelFileError, match=message):
        load(path, trusted=[Own, f"{Own.__module__}.saved"])
    # That of a `DIPModule`, which nobody is asked to trust.
    manifest, tensors = container.read(path)
    with pytest.raises(ValueError, match=r"not trusted|too many values"):
        Decoder(manifest, tensors).decode(manifest["root"])


def test_attributes_of_a_trusted_class_run_no_code(path):
    save(DIPClassifier(Own(), density.GDADensity()).fit(X, Y), path)
    assert describe(path)["untrusted_types"] == [OWN_NAME]
    forge(path, lambda m, t: m["objects"][1].update(state={"a": {"$function": "os.system"}}))
    with pytest.raises(ModelFileError, match=r"the function .os.system. is not one"):
        load(path, trusted=[Own])


# Bombs


@pytest.mark.parametrize(
    "code",
    [
        {"$set": [i * (2**61 - 1) for i in range(20_000)]},
        {"$set": [{"$tuple": [i * (2**61 - 1)]} for i in range(5000)]},
        {"$dict": [[i * (2**61 - 1), 0] for i in range(5000)]},
        {"$objects": [i * (2**61 - 1) for i in range(20_000)], "shape": [20_000]},
        # Two numbers of which the hash is a sum.
        {
            "$objects": [
                {"$scalar": ["<c16", np.complex128(5e10 - 1000003 * i + 1j * i).tobytes().hex()]}
                for i in range(1, 2000)
            ],
            "shape": [1999],
        },
    ],
    ids=lambda code: next(iter(code)),
)
def test_keys_of_one_hash(code, path):
    """Each is compared with all others: a file of a megabyte took minutes."""
    with_state(saved(DummyClassifier(), path), "DummyClassifier", constant=code)
    start = time.perf_counter()
    refused(path, "one hash")
    assert time.perf_counter() - start < 5


def test_an_array_that_is_named_often_is_one_array(path):
    model = density.GaussianDensity().fit(X)
    model.extra_ = [X, X.copy()]
    save(model, path)

    def share(manifest, tensors):
        extra = manifest["objects"][0]["state"]["extra_"]
        extra[:] = [extra[0]] * 100

    forge(path, share)
    found = load(path).extra_
    assert len(found) == 100 and all(array is found[0] for array in found)


def test_search_trees_over_the_same_points(path):
    saved(KNeighborsClassifier(), path, *[np.tile(a, (200, 1)[: a.ndim]) for a in (X, Y)])

    def many(manifest, tensors):
        objects = manifest["objects"]
        tree = next(o for o in objects if o["type"].endswith("KDTree"))
        tree["state"]["leaf_size"] = 1
        first = len(objects)
        objects += [tree] * 1000
        root = objects[0]["state"]
        root["steps"] = [{"$object": first + i} for i in range(1000)]

    forge(path, many)
    refused(path, "many times the memory of the file")


def test_a_manifest_that_grows(path):
    text = json.dumps({"__metadata__": {"dipedl": "[" + "[]," * 10**6 + "[]]"}}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    refused(path, "many times the memory of the file")


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"$float": "1"}, "it is a float"),
        ([], "it is a list"),
        ({"$object": 1}, "not the 'sklearn.pipeline.Pipeline' it says"),
        ({"$object": 0, "$tuple": []}, "no value with the keys"),
        ({"$object": 0, "more": 1}, "no value with the keys"),
        ({"$raw": "x", "dtype": "<f8", "shape": [2**70]}, "no valid model"),
        ({"$slice": [0, 1, 2, 3]}, "no valid model"),
    ],
    ids=str,
)
def test_forged_roots(root, message, path):
    forge(saved(StandardScaler(), path), lambda m, t: m.update(root=root))
    refused(path, message)
    forge(path, lambda m, t: m.pop("root"))
    refused(path, "holds no valid model")


def test_a_package_that_is_not_installed_is_named(path, monkeypatch):
    saved(LGBMClassifier(n_estimators=1, verbose=-1), path)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    refused(path, "needs lightgbm")


def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "is not a regular file")


def test_the_same_fit_gives_the_same_bytes(path, tmp_path):
    """No wall times, no addresses."""
    other = tmp_path / "other.dipedl"
    for file in (path, other):
        DIPClassifier(random_state=0).fit(X, Y).save(file)
    assert path.read_bytes() == other.read_bytes()


def test_a_first_guess_of_other_classes(path):
    """Compiled code adds to columns that there are not: SIGABRT, by seed 34 of the fuzzer."""
    saved(GradientBoostingClassifier(n_estimators=1, init=LogisticRegression(max_iter=300)), path)

    def narrow(manifest, tensors):
        first = next(o["state"] for o in manifest["objects"] if "coef_" in o["state"])
        tensors |= {"a": np.ones((2, 4)), "b": np.ones(2)}
        first |= {"coef_": {"$array": "a"}, "intercept_": {"$array": "b"}}

    forge(path, narrow)
    refused(path, "first guess of other classes")


def test_a_compiled_tree_in_place_of_an_estimator(path):
    """It reads columns that there are not: SIGSEGV."""
    saved(AdaBoostClassifier(n_estimators=1), path)

    def put(manifest, tensors):
        objects = manifest["objects"]
        tree = next(i for i, o in enumerate(objects) if o["type"] == TREE)
        boosted = next(o["state"] for o in objects if "estimators_" in o["state"])
        boosted["estimators_"] = [{"$object": tree}]

    forge(path, put)
    refused(path, "AdaBoostClassifier holds no sklearn.tree._tree.Tree")


@pytest.mark.parametrize(
    "code",
    [
        {"$bytes": {"$array": "big"}, "fixed": True},
        {"$masked": [{"$array": "big"}, True, 0]},
        {"$masked": [{"$array": "big"}, {"$array": "whole"}, 0]},
    ],
    ids=str,
)
def test_copies_of_one_array(code, path):
    """A file of a megabyte took three gigabytes."""
    saved(DummyClassifier(), path)

    def many(manifest, tensors):
        tensors |= {"big": np.zeros(1 << 20, np.uint8), "whole": np.ones(1 << 20, np.uint8)}
        entry = next(o for o in manifest["objects"] if o["type"].endswith("DummyClassifier"))
        entry["state"]["constant"] = [code] * 100

    forge(path, many)
    refused(path, "many times the memory of the file|masked array")


def test_a_name_in_numpy_imports_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "numpy.matlib", raising=False)
    monkeypatch.delitem(vars(np), "matlib", raising=False)
    decoder = Decoder({"objects": [], "small": []}, {})
    for tag in ("$function", "$class"):
        with pytest.raises(ValueError, match="is not one that a model may hold"):
            decoder.decode({tag: "numpy.matlib"})
    assert "numpy.matlib" not in sys.modules

"""Small seeded models of every kind, built by the public API alone, and what they answer.

`freeze.py` writes the answers down; `test_behaviour.py` asks again and compares.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MinMaxScaler
from torch import nn

from dipedl import DIPClassifier, DIPModule, OODDetector
from dipedl.density import (
    BlockSumDensity,
    DensitySelector,
    FusedDensity,
    GaussianDensity,
    GaussianMixtureDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
    MahalanobisDensity,
    RelativeDensity,
)
from dipedl.evidence import (
    Identity,
    QuantileEvidence,
    RankNormal,
    RobustZScore,
    ZScore,
)
from dipedl.pretrained import ClassGaussians

KINDS = (
    "vacuity",
    "total",
    "aleatoric",
    "epistemic",
    "differential_entropy",
    "max_prob",
    "entropy",
    "log_density",
)
IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)
#: Four classes of digits, every second pixel: 32 inputs in 0..1, some of them constant.
DIGITS = tuple(part[:240] for part in load_digits(n_class=4, return_X_y=True))
DIGITS = (DIGITS[0][:, ::2] / 16, DIGITS[1])


def probes(X):
    """Ten points beside training rows, two between far ones, and two far away, (14, d).

    None is a training row: the score of one would tie with itself, and its p-value hang on the
    last bit.
    """
    step = len(X) // 10
    rows = 0.7 * X[::step][:10] + 0.3 * X[1::step][:10]
    return np.concatenate([rows, (rows[:2] + rows[-2:]) / 2, 3 * rows[:1] + 1, 50 - 20 * rows[-1:]])


def logistic():
    # Newton steps to a tight end: where they stop does not hang on the last bit of a gradient.
    return LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000)


def forest():
    return RandomForestClassifier(12, max_depth=5, random_state=0)


def boosting():
    return HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=6, random_state=0)


def classifier(data, *args, **kwargs):
    """A fitted classifier and the rows to ask it."""
    return DIPClassifier(*args, **kwargs).fit(*data), probes(data[0])


def default():
    return classifier(IRIS)


def seeded_default_with_settings():
    X, y = WINE
    settings = {"prior": [1.0, 2.0, 0.5], "gamma": 0.5, "max_evidence": 40.0}
    clf = DIPClassifier(forest(), false_alarm_rate=0.1, random_state=3, cv=3, **settings)
    return clf.fit(X, y), probes(X)


def paper():
    return DIPClassifier.paper(logistic()).fit(*IRIS), probes(IRIS[0])


def gda_tied():
    density = GDADensity("tied", shrinkage="ledoit-wolf", class_weights="empirical")
    return classifier(WINE, forest(), density, normalizer=RankNormal(), random_state=0)


def gda_diagonal_merged():
    """Two halves of a density, added; the classifier gets it frozen."""
    X, y = WINE
    density = GDADensity("diag").fit(X[::2], y[::2]) + GDADensity("diag").fit(X[1::2], y[1::2])
    return classifier(
        WINE, GaussianNB(), FrozenEstimator(density), features="passthrough", normalizer=ZScore()
    )


def gaussian_weighted():
    X, y = WINE
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    model = DIPClassifier(
        logistic(), GaussianDensity(shrinkage=0.1), normalizer=RobustZScore(), random_state=0
    )
    return model.fit(X, names, weights), probes(X)


def mixture():
    # no product of matrices before it: the bits of features pick the rows behind the strength
    density, scaled = GaussianMixtureDensity(2, random_state=0), MinMaxScaler()
    return classifier(IRIS, forest(), density, features=scaled, random_state=0)


def kernel():
    return classifier(IRIS, boosting(), KernelDensity("silverman"), cv=3, random_state=1)


def neighbours():
    split = ShuffleSplit(2, test_size=0.25, random_state=0)
    return classifier(WINE, logistic(), KNNDensity(5), cv=split, normalizer=QuantileEvidence())


def selector():
    return classifier(DIGITS, forest(), DensitySelector(random_state=0), cv=3, random_state=0)


def fused_frozen():
    X, y = DIGITS
    known = forest().fit(X[:100], y[:100])
    clf = DIPClassifier(FrozenEstimator(known), FusedDensity(random_state=0), features=PCA(8))
    return clf.fit(X[:100], y[:100], calibration=(X[100:], y[100:])), probes(X)


def relative():
    return classifier(IRIS, logistic(), RelativeDensity(), cv="in-sample", normalizer=Identity())


def blocks():
    density = BlockSumDensity([5, 4, 4], GaussianDensity(), cv=3)
    return classifier(WINE, boosting(), density, random_state=0)


def recalibrated():
    X, y = DIGITS
    clf = DIPClassifier(forest(), MahalanobisDensity(), random_state=0).fit(X[:120], y[:120])
    return clf.calibrate(X[120:], y[120:]), probes(X)


def detector():
    template = DIPClassifier(density=GDADensity(), random_state=0)
    return OODDetector(template, false_alarm_rate=0.1).fit(IRIS[0]), probes(IRIS[0])


def detector_around_a_classifier():
    fitted, X = gda_tied()
    return OODDetector(fitted, false_alarm_rate=0.02), X


def network():
    """A network of two layers that knows four digits, and their rows as tensors."""
    torch.manual_seed(0)
    X, y = torch.tensor(DIGITS[0]), torch.tensor(DIGITS[1])
    # Trained in float64: in float32 the weights would hang on the number of threads.
    net = nn.Sequential(nn.Linear(32, 12), nn.Tanh(), nn.Linear(12, 4)).double()
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X[:160]), y[:160]).backward()
        optimizer.step()
    return net.float().eval(), X.float(), y


def batches(X, y):
    return list(zip(X.split(50), y.split(50), strict=True))


def module(double=False, **settings):
    net, X, y = network()
    if double:
        net, X = net.double(), X.double()
        settings["density"] = ClassGaussians(dtype=torch.float64)
    held_out = batches(X[160:], y[160:])
    model = DIPModule(net, **settings)
    model.fit_density(batches(X[:160], y[:160]), calibration=held_out)
    return model, torch.tensor(probes(DIGITS[0]), dtype=X.dtype)


def module_fused():
    return module(classes=["zero", "one", "two", "three"])


def module_fused_double():
    return module(double=True)


def module_low_rank():
    return module(density=ClassGaussians("low-rank", rank=3), features="0", score="density")


def module_tied():
    return module(density=ClassGaussians("tied", class_weights="empirical"), normalizer=ZScore())


def module_diagonal():
    return module(density=ClassGaussians("diagonal"), features=["0", "1"], prior=2.0, gamma=0.1)


def module_paper():
    net, X, y = network()
    return (
        DIPModule.paper(net).fit_density(batches(X, y)),
        torch.tensor(probes(DIGITS[0]), dtype=X.dtype),
    )


CLASSIFIERS = (
    default,
    seeded_default_with_settings,
    paper,
    gda_tied,
    gda_diagonal_merged,
    gaussian_weighted,
    mixture,
    kernel,
    neighbours,
    selector,
    fused_frozen,
    relative,
    blocks,
    recalibrated,
)
DETECTORS = (detector, detector_around_a_classifier)
MODULES = (
    module_fused,
    module_fused_double,
    module_low_rank,
    module_tied,
    module_diagonal,
    module_paper,
)
MODELS = {make.__name__: make for make in (*CLASSIFIERS, *DETECTORS, *MODULES)}
#: Those whose graph is frozen too.
EXPORTED = (
    "default",
    "paper",
    "gda_tied",
    "gaussian_weighted",
    "mixture",
    "neighbours",
    "kernel",
    "fused_frozen",
    "relative",
    "blocks",
    "detector",
    "module_fused",
    "module_low_rank",
)
#: Those whose file is kept.
SAVED = ("default", "paper", "detector", "module_low_rank")


def answers(model, X):
    """All that a model says about X, by name; what it does not offer is absent."""
    if isinstance(model, DIPModule):
        return module_answers(model, X)
    if isinstance(model, OODDetector):
        names = ("score_samples", "decision_function", "predict")
        return {name: getattr(model, name)(X) for name in names} | {"offset": model.offset_}
    return classifier_answers(model, X)


def classifier_answers(model, X):
    dirichlet = model.predict_dirichlet(X)
    found = {
        "alpha": dirichlet.concentration,
        "log_evidence": dirichlet.log_evidence,
        "lower": dirichlet.credible_interval(0.9)[0],
        "offset": model.offset_,
        "predict": model.predict(X).astype(str),
        "predict_proba": model.predict_proba(X),
        "score_samples": model.score_samples(X),
        "predict_ood": model.predict_ood(X),
    }
    found |= {f"uncertainty/{kind}": model.uncertainty(X, kind) for kind in KINDS}
    asked = {
        "p_value": lambda: model.p_value(X),
        "p_value/random": lambda: model.p_value(X, random_state=0),
        "predict_ood/alpha": lambda: model.predict_ood(X, alpha=0.2),
        "predict_set/lac": lambda: model.predict_set(X, coverage=0.9),
        "predict_set/aps": lambda: model.predict_set(X, coverage=0.8, method="aps"),
        "reject_curve/risk": lambda: model.reject_curve().risk,
    }
    given = {name: offered(ask) for name, ask in asked.items()}
    return found | {name: value for name, value in given.items() if value is not None}


def offered(ask):
    """What is answered, or None where the model cannot and says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return ask()
        except ValueError:
            return None


def module_answers(model, X):
    concentration, log_evidence, mean, vacuity = model(X)
    dirichlet = model.predict_dirichlet(X)
    tensors = {
        "alpha": concentration,
        "log_evidence": log_evidence,
        "mean": mean,
        "uncertainty/vacuity": vacuity,
        "uncertainty/aleatoric": dirichlet.aleatoric,
        "uncertainty/epistemic": dirichlet.epistemic,
        "score_samples": model.score_samples(X),
        "predict_ood": model.predict_ood(X),
    }
    return {name: found.detach().numpy() for name, found in tensors.items()} | {
        "offset": model.offset_
    }


def graph_answers(model, X):
    """The outputs of the ONNX graph of a model, by name."""
    rows = X if isinstance(X, torch.Tensor) else np.asarray(X)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.export_onnx(path, example=rows[:4])
        session = onnxruntime.InferenceSession(path)
    (given,) = session.get_inputs()
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {given.name: np.asarray(rows)})
    return dict(zip(names, found, strict=True))

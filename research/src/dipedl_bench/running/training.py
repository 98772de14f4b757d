"""Training of a part: its inputs, the fit, and the arrays and the receipt that are stored."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator

from ..datasets.splits import LABELLED, Splits, check_files, make_splits
from ..results.receipt import receipt
from ..results.scores import OOD_PREFIX, score
from ..results.store import Store
from ..spec.build import accepts, settings_named, transformer_of
from ..spec.plan import Cell, Part
from .cached import CachedClassifier, CachedDensity, row_numbers, stack
from .memo import Memory, Seconds, SharedClassifier, as_seconds

Rows = Mapping[str, np.ndarray]
Arrays = dict[str, dict[str, np.ndarray]]
Say = Callable[[str], None]
#: Inputs by split, labels of the labelled ones, and arguments for the constructor.
Inputs = tuple[Rows, Rows, dict[str, Any]]
#: Method of a classifier -> name of the array of its answers.
OUTPUTS = {"predict_proba": "probabilities", "logits": "logits", "transform": "features"}


class DataError(Exception):
    """The data of a suite cannot be had: nothing can be trained."""


def train_part(
    cell: Cell,
    part: Part,
    store: Store,
    deadline: float | None = None,
    say: Say = lambda text: None,
) -> None:
    """Train a part of a cell, apply it to every split, and store its arrays and its receipt.

    Of the network of a crossed suite the weights are stored alone. `deadline` is a time of
    ``time.monotonic()``, which processes share.
    """
    key = cell.key(part)
    X, y, given = _inputs_of(part, store, cell.seed)
    train, scoring = Seconds(), Seconds()
    model = part.build(cell.seed, **given)
    checkpoint = store.checkpoint(*key)
    resumed = any(checkpoint.parent.glob(f"{checkpoint.name}*"))
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    options = {
        "checkpoint": checkpoint,
        "deadline": deadline,
        "progress": lambda report: say(epoch_text(report)),
    }
    with train.counted():
        _fit(model, part, X, y, options)
    arrays = {} if cell.methods else _predictions(model, part, X, scoring)
    for split, labels in y.items():
        if split in arrays:
            arrays[split]["y"] = labels
    if part.role == "method":
        score(arrays)  # what cannot be scored must not be stored
    note = {
        **as_seconds({"train": train, "score": scoring}, 6),
        "peak_memory_mb": round(_peak_memory_mb(), 1),
        **_gpu(),
        "forward_passes": _forward_passes(model),
        "n_parameters": _n_parameters(model),
        "n": {split: len(rows) for split, rows in X.items()},
        "load": round(os.getloadavg()[0], 2),
        **receipt(),
        "resumed": resumed,
    }
    own = {key: value for key, value in part.config.items() if key != "below"}
    if amp := set(settings_named("amp", own)):
        note["precision"] = "bfloat16" if True in amp else "float32"
    weights = weights_of(model) if part.role == "classifier" else None
    store.save_arrays(*key, arrays, note, weights)
    store.forget_checkpoint(*key)


def epoch_text(report: Mapping[str, Any]) -> str:
    """A line of progress about an epoch of a training."""
    left = round(report["seconds_left"])
    return f"epoch {report['epoch']}/{report['epochs']}, loss {report['loss']:.4g}, {left} s left"


def _fit(model: Any, part: Part, X: Rows, y: Rows, options: dict[str, Any]) -> None:
    held = (X["validation"], y["validation"])
    learned = part.spec is not None and part.spec.statistics == "validation"
    whole = learned and part.spec is not None and part.spec.sees == "pixels"
    # a density has no labels to validate with
    options["validation"] = X["validation"] if part.role == "density" else held
    if whole:  # the density is fitted too: held-out rows say which
        options["calibration"] = held
    taken = {name: value for name, value in options.items() if accepts(model.fit, name)}
    model.fit(X["train"], y["train"], **taken)
    if learned and not whole:
        model.calibrate(X["validation"], y["validation"])


# ------------------------------------------------------------------------------------- inputs


def check_data_there(part: Part) -> None:
    """Raise DataError if a data set that a part loads is missing, before its process begins."""
    data = part.config["data"]
    if "dataset" in data and not part.below:
        try:
            check_files(data)
        except (FileNotFoundError, ImportError) as error:
            raise DataError(str(error)) from error


def _inputs_of(part: Part, store: Store, seed: int) -> Inputs:
    """Inputs and labels by split, and the trained parts for the constructor."""
    if not part.below:
        splits = _splits(part, store, seed)
        return _transform(splits.X, part)[0], splits.y, {}
    pixels = part.spec is not None and part.spec.sees == "pixels"
    if pixels or (part.role == "density" and "features" in part.table):
        return _with_network(part, store, seed)
    return _with_predictions(part, store, seed)


def _with_predictions(part: Part, store: Store, seed: int) -> Inputs:
    """The stored predictions of the parts below stand for them, and row numbers for the pixels."""
    below = {role: store.load(other.name, other.digest, seed) for role, other in part.below.items()}
    arrays = below["classifier"]
    order = [*LABELLED, *(split for split in arrays if split not in LABELLED)]
    y = {split: arrays[split]["y"] for split in order if "y" in arrays[split]}
    if part.role == "density":
        return {split: arrays[split]["features"] for split in order}, y, {}
    X = row_numbers({split: len(arrays[split]["probabilities"]) for split in order})
    return X, y, _cached(below, order, y["train"])


def _with_network(part: Part, store: Store, seed: int) -> Inputs:
    """The trained network below itself, and pixels."""
    splits, below = _splits(part, store, seed), part.below["classifier"]
    weights = store.network(below.name, below.digest, seed)
    network = restore(below.build(seed), splits.X["train"], splits.y["train"], weights)
    if part.role == "density":
        X, transformer = _transform(splits.X, part, estimator=FrozenEstimator(network))
        return X, splits.y, {"blocks": getattr(transformer, "widths_", None)}
    # answers for whole splits are stored; the network answers other rows once
    stored, memory = store.load(below.name, below.digest, seed), Memory()
    for split, rows in splits.X.items():
        for method, name in OUTPUTS.items():
            if name in stored[split]:
                memory.keep(network, method, rows, stored[split][name].astype(np.float64))
    shared = FrozenEstimator(SharedClassifier.of(network, memory))
    given = {"network": FrozenEstimator(network), "estimator": shared, "features": shared}
    return splits.X, splits.y, {**given, "stored": shared}


def _splits(part: Part, store: Store, seed: int) -> Splits:
    try:
        return make_splits(part.config["data"], seed, store.features)
    except Exception as error:
        raise DataError(str(error)) from error


def _transform(X: Rows, part: Part, **given: Any) -> tuple[Rows, Any]:
    """Inputs as the part sees them: through its transformer, if it has one."""
    if "features" not in part.table:
        return X, None
    transformer = transformer_of(part.table["features"], part.where, **given).fit(X["train"])
    return {split: transformer.transform(rows) for split, rows in X.items()}, transformer


def _cached(below: Mapping[str, Arrays], order: list[str], y: np.ndarray) -> dict[str, Any]:
    classifier = CachedClassifier(stack(below["classifier"], order), np.unique(y))
    given: dict[str, Any] = {"estimator": FrozenEstimator(classifier)}
    if "density" in below:
        density = FrozenEstimator(CachedDensity(stack(below["density"], order)))
        given |= {"density": density, "features": "passthrough", "cv": "in-sample"}
    return given


# -------------------------------------------------------------------------------- predictions


def _predictions(model: Any, part: Part, X: Rows, cost: Seconds) -> Arrays:
    if part.role == "classifier":
        return classifier_arrays(model, X, cost)
    if part.role == "density":
        return {
            split: {"log_density": _timed(model.score_samples, rows, cost, split)}
            for split, rows in X.items()
        }
    scored = {split: rows for split, rows in X.items() if split != "train"}
    return method_arrays(model, scored, cost, part.spec.uncertainty if part.spec else None)


def classifier_arrays(model: Any, X: Rows, cost: Seconds) -> Arrays:
    """Probabilities of every split, and logits and features if the classifier gives them."""
    network = _in_one_pass(model, next(iter(X.values()))[:64])
    found: Arrays = {}
    for split, rows in X.items():
        if network:
            outputs = _timed(partial(_logits_and_features, model), rows, cost, split)
            logits, features = np.split(outputs, [len(model.classes_)], axis=1)
            found[split] = {"logits": logits, "probabilities": softmax(logits, axis=1)}
        else:
            found[split] = {"probabilities": _timed(model.predict_proba, rows, cost, split)}
            if not hasattr(model, "transform"):
                continue
            features = model.transform(rows)  # not counted: densities need them
        found[split]["features"] = np.asarray(features, dtype=np.float32)
    return found


def _logits_and_features(model: Any, rows: np.ndarray) -> np.ndarray:
    """Both of a network classifier of `dipedl.networks` side by side, (n, k + p), in one pass."""
    import torch

    return np.asarray(
        model.apply_network(
            rows, lambda net, chunk: torch.cat(net.outputs_and_features(chunk), dim=1)
        )
    )


def method_arrays(model: Any, X: Rows, cost: Seconds, kind: str | None = None) -> Arrays:
    """Probabilities and uncertainty of every split; of evidential methods the concentration too."""
    options = {} if kind is None else {"kind": kind}
    for name in ("predict_dirichlet", "sample_proba"):
        if hasattr(model, name):
            setattr(model, name, _once(getattr(model, name)))
    found: Arrays = {}
    for split, rows in X.items():
        uncertainty = _timed(partial(model.uncertainty, **options), rows, cost, split)
        # not counted: most methods have computed what this needs for the uncertainty
        found[split] = _probabilities(model, rows) | {"uncertainty": uncertainty}
    return found


def _once(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same function, which is not called again for the array it was last called for."""
    last: list[Any] = [None, None]

    def predict(rows: Any) -> Any:
        if last[0] is not rows:
            last[:] = rows, answer(rows)
        return last[1]

    return predict


def _probabilities(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    if not hasattr(model, "predict_dirichlet"):
        return {"probabilities": np.asarray(model.predict_proba(rows), dtype=np.float64)}
    dirichlet = model.predict_dirichlet(rows)
    named = {
        "probabilities": np.asarray(dirichlet.mean),
        "concentration": np.asarray(dirichlet.concentration),
    }
    if dirichlet.log_evidence is not None:
        named["log_evidence"] = np.asarray(dirichlet.log_evidence)
    return named


def _in_one_pass(model: Any, few: np.ndarray) -> bool:
    """Return whether the methods of a network answer with its head and its features."""
    if not hasattr(model, "apply_network"):
        return False
    logits, features = np.split(_logits_and_features(model, few), [len(model.classes_)], axis=1)
    probabilities = softmax(logits, axis=1)
    return np.allclose(probabilities, model.predict_proba(few), atol=1e-5) and (
        np.array_equal(features, model.transform(few))
    )


def _timed(
    predict: Callable[[np.ndarray], Any], rows: np.ndarray, cost: Seconds, split: str
) -> np.ndarray:
    # the cost of scoring is that of the test set and the OOD sets
    counts = split == "test" or split.startswith(OOD_PREFIX)
    with cost.counted() if counts else nullcontext():
        return np.asarray(predict(rows), dtype=np.float64)


# ------------------------------------------------------------------------- weights of networks


def weights_of(model: Any) -> dict[str, np.ndarray] | None:
    """Return the arrays of a network classifier by name; None for any other classifier."""
    if not hasattr(model, "module_") or not hasattr(model, "build_network"):
        return None
    state = model.module_.state_dict()
    # contiguous: safetensors writes memory as it lies, and these may be channels-last
    return {name: value.cpu().contiguous().numpy() for name, value in state.items()}


def restore(network: Any, X: np.ndarray, y: np.ndarray, weights: Mapping[str, np.ndarray]) -> Any:
    """A network classifier with its settings, fitted: with these weights in place of a training.

    Shapes and classes are those of the training rows X (n, d) and y (n,).
    """
    import torch

    from dipedl.networks import remove_spectral_norm

    network.validate_fit(X, y, None)
    module = remove_spectral_norm(network.build_network(len(network.classes_), seed=0))
    module.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    network.module_ = module.eval().to(network.predict_dtype())
    return network


# ------------------------------------------------------------------------------------- receipt


def _peak_memory_mb() -> float:
    """Largest resident memory of this process, libraries and data set included."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _gpu() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return {}
    peak = torch.cuda.max_memory_allocated() / 2**20
    return {"gpu": torch.cuda.get_device_name(), "peak_gpu_memory_mb": round(peak, 1)}


def _forward_passes(model: Any) -> int:
    """How often a network runs for one prediction."""
    if hasattr(model, "members_"):
        return len(model.members_)
    return int(model.n_samples) if hasattr(model, "sample_proba") else 1


def _n_parameters(model: Any) -> int | None:
    """Trained numbers of the networks in it; None if it has none of its own."""
    if getattr(model, "network", None) is not None:
        # the part below it, which is counted there
        return None
    networks = [
        value
        for member in getattr(model, "members_", [model])
        for value in vars(member).values()
        if hasattr(value, "named_parameters")
    ]
    return sum(p.numel() for module in networks for p in module.parameters()) or None

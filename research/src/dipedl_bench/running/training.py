"""Training of a part: its inputs, the fit, and the arrays and the receipt that are stored."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator

from dipedl.writing import error_text

from ..datasets.splits import LABELLED, Splits, check_files, make_splits
from ..results.receipt import receipt
from ..results.rows import Row
from ..results.scores import OOD_PREFIX, score
from ..results.store import Arrays, Store
from ..spec.build import accepts, find_settings, transformer_of
from ..spec.plan import Cell, Part
from .cached import CachedClassifier, CachedDensity, head_of, row_numbers, stack
from .memo import Memory, Seconds, SharedClassifier, as_seconds

Rows = Mapping[str, np.ndarray]
Say = Callable[[str], None]
#: Inputs by split, labels of the labelled ones, and arguments for the constructor.
Inputs = tuple[Rows, Rows, dict[str, Any]]
#: Method of a classifier -> name of the array of its answers.
OUTPUTS = {"predict_proba": "probabilities", "logits": "logits", "transform": "features"}


class DataError(Exception):
    """The data of a suite cannot be had: nothing can be trained."""


def check_data_there(part: Part) -> None:
    """Raise DataError if a data set that a part loads is missing, before its process begins."""
    data = part.config["data"]
    if "dataset" in data and not part.below:
        try:
            check_files(data)
        except (FileNotFoundError, ImportError) as error:
            raise DataError(str(error)) from error


def load_splits(part: Part, seed: int, store: Store) -> Splits:
    """Return the rows of a part; DataError if they cannot be had."""
    try:
        return make_splits(part.config["data"], seed, store.features)
    except Exception as error:
        raise DataError(str(error)) from error


def make_part(cell: Cell, part: Part, store: Store, deadline: float | None, say: Say) -> None:
    """Train a part, unless its arrays are there; with those of a method, write the row."""
    if not store.has_arrays(*cell.key(part)):
        train_part(cell, part, store, deadline, say)
    if part.role != "method":
        return
    receipts = {}
    for one in cell.parts:
        name, digest, seed = cell.key(one)
        cost = store.receipt(name, digest, seed)
        receipts[one.role] = {"name": name, "config_hash": digest, **cost}
    own, arrays = receipts.pop("method"), store.load(*cell.key(part))
    row = make_row(cell.heads[0], arrays, own, receipts, cell.resamples)
    if ":" in part.table["estimator"] and (problem := describe_direction(row)):
        say(problem)
    store.append(row)


def describe_direction(row: Row) -> str:
    """Return what is wrong with an uncertainty that looks turned round; "" of others."""
    if (auroc := row["metrics"].get("error_auroc", 1.0)) >= 0.5:
        return ""
    return (
        "the uncertainty is lower for wrong predictions than for right ones (AUROC "
        f"{auroc:.2f}); higher must mean less sure"
    )


def describe_failure(error: BaseException, estimator: str) -> str:
    """Return what went wrong with an estimator; of a class of one's own with the line.

    The message of a ValueError says all, that of any other error not without its type.
    """
    module, colon, _ = estimator.partition(":")
    file = getattr(sys.modules.get(module), "__file__", None) if colon else None
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    return f"{kind}{error_text(error)}" + (f" (line {lines[-1]} of {file})" if lines else "")


def make_row(
    head: Mapping[str, Any],
    arrays: Arrays,
    own: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
    n_resamples: int,
) -> Row:
    """The row of a method and a seed; `head` says which, with the config and its hash.

    `own` is what the method itself cost: "seconds" and "cpu_seconds" ({"train", "score"}),
    "peak_memory_mb", "forward_passes", "n_parameters", and "n", the rows of each split; `parts`
    holds by role the name, hash and cost of each trained part below it. Costs are those of all
    parts, as if nothing had been shared with other methods.
    """
    costs = [own, *parts.values()]
    added: dict[str, Any] = {
        kind: {step: round(sum(c[kind][step] for c in costs), 3) for step in ("train", "score")}
        for kind in ("seconds", "cpu_seconds")
    }
    return {
        **head,
        **score(arrays, n_resamples),
        "n": dict(own["n"]),
        **added,
        "peak_memory_mb": max(c["peak_memory_mb"] for c in costs),
        "forward_passes": own["forward_passes"],
        "n_parameters": sum(c["n_parameters"] or 0 for c in costs) or None,
        "own": dict(own),
        "parts": {role: dict(part) for role, part in parts.items()},
        **receipt(),
    }


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
    X, y, parts = _inputs_of(part, store, cell.seed)
    train, scoring = Seconds(), Seconds()
    model = part.build(cell.seed, **parts)
    checkpoint = store.checkpoint(*key)
    resumed = any(checkpoint.parent.glob(f"{checkpoint.name}*"))
    checkpoint.parent.mkdir(parents=True, exist_ok=True)

    def progress(at: Mapping[str, Any]) -> None:
        left = round(at["seconds_left"])
        say(f"epoch {at['epoch']}/{at['epochs']}, loss {at['loss']:.4g}, {left} s left")

    options = {"checkpoint": checkpoint, "deadline": deadline, "progress": progress}
    with train.count():
        _fit(model, part, X, y, options)
    arrays = {} if cell.methods else _predictions(model, part, X, scoring)
    for split, labels in y.items():
        if split in arrays:
            arrays[split]["y"] = labels
    if part.role == "method":
        score(arrays)  # what cannot be scored must not be stored
    # how often a network runs for one prediction
    trained = _trained_model(model)
    passes = len(getattr(trained, "members_", ())) or getattr(trained, "n_samples", 1)
    passes *= getattr(model, "n_views", 1)
    note = {
        **as_seconds({"train": train, "score": scoring}, 6),
        **peak_memory(),
        "forward_passes": passes,
        "n_parameters": _n_parameters(trained),
        "n": {split: len(rows) for split, rows in X.items()},
        "load": round(os.getloadavg()[0], 2),
        **receipt(),
        "resumed": resumed,
    }
    own = {key: value for key, value in part.config.items() if key != "below"}
    if amp := set(find_settings("amp", own)):
        note["precision"] = "bfloat16" if True in amp else "float32"
    weights = weights_of(model) if part.role == "classifier" else None
    store.save_arrays(*key, arrays, note, weights)
    store.forget_checkpoint(*key)


def _fit(model: Any, part: Part, X: Rows, y: Rows, options: dict[str, Any]) -> None:
    validation = (X["validation"], y["validation"])
    learned = part.spec is not None and part.spec.statistics == "validation"
    whole = learned and part.sees_pixels
    # a density has no labels to validate with
    options["validation"] = X["validation"] if part.role == "density" else validation
    if whole:  # the density is fitted too: held-out rows say which
        options["calibration"] = validation
    taken = {name: value for name, value in options.items() if accepts(model.fit, name)}
    model.fit(X["train"], y["train"], **taken)
    if learned and not whole:
        model.calibrate(X["validation"], y["validation"])


# ------------------------------------------------------------------------------------- inputs


def _inputs_of(part: Part, store: Store, seed: int) -> Inputs:
    """Inputs and labels by split, and the trained parts for the constructor."""
    if not part.below:
        splits = load_splits(part, seed, store)
        return _transform(splits.X, part)[0], splits.y, {}
    if part.sees_pixels or (part.role == "density" and "features" in part.table):
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
    head, below_it = None, part.below["classifier"]
    if {"features", "logits"} <= arrays["test"].keys():
        weights = store.network(below_it.name, below_it.digest, seed)
        head = head_of(weights, arrays["test"]["features"], arrays["test"]["logits"])
    classifier = CachedClassifier(stack(arrays, order), np.unique(y["train"]), head)
    parts: dict[str, Any] = {"estimator": FrozenEstimator(classifier)}
    if "density" in below:
        density = FrozenEstimator(CachedDensity(stack(below["density"], order)))
        parts |= {"density": density, "features": "passthrough", "cv": "in-sample"}
    return row_numbers({split: len(arrays[split]["probabilities"]) for split in order}), y, parts


def _with_network(part: Part, store: Store, seed: int) -> Inputs:
    """The trained network below itself, and pixels."""
    splits, below = load_splits(part, seed, store), part.below["classifier"]
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
    parts = {"network": FrozenEstimator(network), "estimator": shared, "features": shared}
    return splits.X, splits.y, {**parts, "stored": shared}


def _transform(X: Rows, part: Part, **arguments: Any) -> tuple[Rows, Any]:
    """Inputs as the part sees them: through its transformer, if it has one."""
    if "features" not in part.table:
        return X, None
    transformer = transformer_of(part.table["features"], part.where, **arguments).fit(X["train"])
    return {split: transformer.transform(rows) for split, rows in X.items()}, transformer


# -------------------------------------------------------------------------------- predictions


def _predictions(model: Any, part: Part, X: Rows, cost: Seconds) -> Arrays:
    if part.role == "classifier":
        return classifier_arrays(model, X, cost)
    if part.role == "density":
        return {
            split: {"log_density": _time_call(model.score_samples, rows, cost, split)}
            for split, rows in X.items()
        }
    scored = {split: rows for split, rows in X.items() if split != "train"}
    return method_arrays(model, scored, cost, *part.spec.kinds if part.spec else ())


def classifier_arrays(model: Any, X: Rows, cost: Seconds) -> Arrays:
    """Probabilities of every split, and logits and features if the classifier gives them."""
    arrays: Arrays = {}
    for split, rows in X.items():
        if hasattr(model, "apply_network"):  # logits and features side by side, in one pass
            outputs = _time_call(partial(_logits_and_features, model), rows, cost, split)
            logits, features = np.split(outputs, [len(model.classes_)], axis=1)
            arrays[split] = {"logits": logits, "probabilities": softmax(logits, axis=1)}
        else:
            arrays[split] = {"probabilities": _time_call(model.predict_proba, rows, cost, split)}
            if not hasattr(model, "transform"):
                continue
            features = model.transform(rows)  # not counted: densities need them
        arrays[split]["features"] = np.asarray(features, dtype=np.float32)
    return arrays


def _logits_and_features(model: Any, rows: np.ndarray) -> np.ndarray:
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
    arrays: Arrays = {}
    for split, rows in X.items():
        uncertainty = _time_call(partial(model.uncertainty, **options), rows, cost, split)
        # not counted: most methods have computed what this needs for the uncertainty
        if hasattr(model, "predict_dirichlet"):
            of = model.predict_dirichlet(rows)
            named = {"probabilities": of.mean, "concentration": of.concentration}
            named |= {} if of.log_evidence is None else {"log_evidence": of.log_evidence}
        else:
            named = {"probabilities": np.asarray(model.predict_proba(rows), dtype=np.float64)}
        arrays[split] = {name: np.asarray(array) for name, array in named.items()}
        arrays[split]["uncertainty"] = uncertainty
    return arrays


def _once(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function with a memory of its last array, for which it is not called again."""
    last: list[Any] = [None, None]

    def predict(rows: Any) -> Any:
        if last[0] is not rows:
            last[:] = rows, answer(rows)
        return last[1]

    return predict


def _time_call(
    predict: Callable[[np.ndarray], Any], rows: np.ndarray, cost: Seconds, split: str
) -> np.ndarray:
    # the cost of scoring is that of the test set and the OOD sets
    counts = split == "test" or split.startswith(OOD_PREFIX)
    with cost.count() if counts else nullcontext():
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

    from ..spectral_norm import remove_spectral_norm

    network.validate_fit(X, y, None)
    module = remove_spectral_norm(network.build_network(len(network.classes_), seed=0))
    module.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    network.module_ = module.eval().to(network.predict_dtype())
    return network


# ------------------------------------------------------------------------------------- receipt


def peak_memory() -> dict[str, Any]:
    """Largest resident memory of this process, libraries and data set included; of a GPU too."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = {"peak_memory_mb": round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)}
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return memory
    peak = round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return {**memory, "gpu": torch.cuda.get_device_name(), "peak_gpu_memory_mb": peak}


def _trained_model(model: Any) -> Any:
    """Return what a method wraps if it was fitted with it, else the method."""
    inner = getattr(model, "estimator_", None)
    return model if inner is None or isinstance(inner, FrozenEstimator) else inner


def _n_parameters(model: Any) -> int | None:
    """Trained numbers of the networks in it; None if it has none of its own."""
    if getattr(model, "network", None) is not None:
        return None  # the part below it, which is counted there
    members = getattr(model, "members_", [model])
    values = [value for member in members for value in vars(member).values()]
    networks = [value for value in values if hasattr(value, "named_parameters")]
    return sum(p.numel() for network in networks for p in network.parameters()) or None

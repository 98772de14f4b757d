"""Scores of methods from the outputs of a network alone: nothing is trained, and no image is read.

Methods are fitted on the calibration rows, which the network did not see, where those of published
rows are fitted on its training rows: a method without anything to fit gets the numbers of its row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator

from dipedl.metrics import ood_auroc
from dipedl.writing import warn_caller

from ..datasets.splits import OOD_SETS
from ..names import check_folder_name, refuse_unknown, run_command
from ..results.predictions import (
    CALIBRATION,
    Predictions,
    check_suite,
    predictions_file,
)
from ..results.receipt import FORMAT, config_hash
from ..results.rows import Row, default_root, line_of, parse_rows
from ..results.store import Store
from ..spec.build import accepts, find_class
from ..spec.captions import captions_of
from ..spec.own_score import OwnScore
from ..spec.plan import Part, data_config, make_method_part, method_parts
from ..spec.suite import Method, Suite, load_suite, suite_names
from .cached import CachedClassifier, HeadClassifier, head_of, row_numbers, stack
from .memo import Seconds, as_seconds
from .training import describe_direction, describe_failure, make_row, method_arrays, peak_memory

__all__ = ["score"]

#: Profile of rows of arrays that belong to no suite, and the estimator of the row of arrays.
IMPORTED, _ARRAYS = "imported", "arrays"
#: Suite whose methods on a network have these names for arrays, too.
_NETWORK_SUITE, _ON_NETWORK = "cifar10-resnet", ("estimator", "classifier")
#: How a class of one's own is named, for errors.
_OWN = "my.module:Class"
#: Rows with shuffled features, on which the direction of a method is looked at.
_SHUFFLED = "shuffled"
#: What is added to name and title of a method of a suite that is scored here.
_SUFFIX, _FITTED = "-calibration", ", fitted on calibration rows"


def score(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    methods: str | type | Iterable[str | type] | None = None,
    name: str | None = None,
    title: str | None = None,
    suite: str | None = None,
    profile: str | None = None,
    seeds: Iterable[int] | None = None,
    published: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
) -> list[Row]:
    """Return rows of methods from predictions: published ones, or arrays of your own.

    Parameters
    ----------
    source : str, path-like or mapping
        A suite with published predictions, such as "mnist", or the TOML file of your own, whose
        predictions were exported; or a ``.npz`` file, or arrays by name, see
        `dipedl_bench.results.predictions.Predictions.from_arrays`.
    methods : str, class or iterable of these, optional
        Classes, ``"package.module:Class"``, or names of methods: of the suite, or for arrays those
        of cifar10-resnet that need the outputs of a network alone. A class has
        ``fit(features, logits, labels)`` and ``uncertainty(features, logits)``, higher where the
        input is less known (features are None where arrays have none), or is an
        `dipedl.protocols.UncertaintyClassifier` whose constructor takes a frozen classifier as
        `estimator`. Default: of a suite, all its methods that need the outputs of the network
        alone; of arrays, their own uncertainty, or else one minus the largest probability.
    name, title : str, optional
        Of the row of arrays of your own; default: "mine", and `name`.
    suite, profile : str, optional
        Whose table a row of arrays joins; default: a suite of their own, called `name`. With a
        suite as the source, `profile` is by default the first of its page of results, or the only
        one of your own.
    seeds : iterable of int, optional
        Of the published predictions of a suite; default: all.
    published : path-like, optional
        Root of the published results of a suite; default: ``research/results/bench`` of this clone,
        for a suite of your own ``DIPEDL_BENCH``, else ``./bench-results``.
    out : path-like, optional
        Root of results to which the rows are added, in place of those of the same method and seed.

    Returns
    -------
    list of dict
        Rows as of `dipedl_bench.load_rows`, without intervals; "sha256" is the same in all rows of
        the same arrays.

    Raises
    ------
    ValueError
        If a name is unknown, an argument has no meaning for this source, arrays do not fit
        together, a class cannot be imported, what a method returns is no uncertainty, or a method
        raises an error, which is the cause.
    TypeError
        If an argument is of another type.
    FileNotFoundError
        If there are no published predictions of the suite.

    Warns
    -----
    UserWarning
        If a method looks turned round: less sure of calibration rows than of the same rows with
        their features shuffled, or of right predictions than of wrong ones; if predictions of
        another suite are scored, as it is for `cifar10`; if a row with other numbers is replaced.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl_bench import score
    >>> rng, labels = np.random.default_rng(0), np.arange(200) % 4
    >>> arrays = {"logits": rng.normal(size=(200, 4)) + 4 * np.eye(4)[labels], "labels": labels}
    >>> arrays["ood_noise_logits"] = rng.normal(size=(100, 4))
    >>> (row,) = score(arrays, name="softmax")
    >>> round(row["metrics"]["auroc/noise"], 2)
    0.98
    """
    asked: list[str | type] | None = None
    if methods is not None:
        several = isinstance(methods, Iterable) and not isinstance(methods, str | type)
        asked = list(methods) if several else [methods]  # type: ignore[arg-type, list-item]
        if not asked:
            raise ValueError("methods must be at least one; leave the argument out for the default")
    seeds = list(seeds) if isinstance(seeds, Iterator) else seeds
    of_arrays = {"name": name, "title": title, "suite": suite}
    of_suites = {"profile": profile, "seeds": seeds, "published": published}
    check_arguments(source, **of_arrays, **of_suites, out=out)
    if isinstance(source, Mapping) or not is_suite(source):
        rows = _score_arrays(
            source, asked, "mine" if name is None else name, title, suite, profile, published
        )
    else:
        rows = _score_suite(source, asked, profile, seeds, published)
    if out is not None:
        for row in rows:
            _keep(row, out)
    return rows


def is_suite(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is a suite, or the file of one, and no file of arrays."""
    is_name = isinstance(source, str) and not source.endswith(".npz")
    return is_name or Path(source).suffix == ".toml"


def check_arguments(source: Any, **arguments: Any) -> None:
    """Raise an error that names an argument of `score` which this source cannot have.

    ValueError if it has no meaning for it, TypeError if it is of another type.
    """
    if not isinstance(source, str | os.PathLike | Mapping):
        raise TypeError(
            f"source must be a suite, a .npz file or arrays by name, got {type(source).__name__}"
        )
    given = {argument: value for argument, value in arguments.items() if value is not None}
    for argument, value in given.items():
        if argument == "seeds":
            is_right = isinstance(value, Iterable) and all(isinstance(s, Integral) for s in value)
            form = "integers, such as [10, 20]"
        else:
            is_path = argument in ("published", "out")
            is_right = isinstance(value, str | os.PathLike if is_path else str)
            form = "a path" if is_path else "text"
        if not is_right:
            raise TypeError(f"{argument} must be {form}, got {value!r}")
    if isinstance(source, Mapping) or not is_suite(source):
        useless = {"seeds": "is of a suite, and arrays have one seed, under the key 'seed'"}
        if "suite" not in given:
            useless["profile"] = "is of the suite that a row of arrays joins, and none is named"
        if given.get("suite") not in suite_names():
            useless["published"] = "is of a suite of the package that a row of arrays joins"
    else:
        why = f"is of arrays of your own, and {str(source)!r} is a suite"
        useless = dict.fromkeys(("name", "title", "suite"), why)
    for argument in useless.keys() & given.keys():
        raise ValueError(f"{argument} {useless[argument]}; leave it out, got {given[argument]!r}")


def _keep(row: Row, out: str | os.PathLike[str]) -> None:
    """Write a row to results; one of its method and seed, of other arrays or source, gives way."""
    store = Store(out, row["suite"], row["profile"])
    if any(line_of(old) == line_of(row) and not _is_scored(old) for old in store.rows()):
        raise ValueError(
            f"{str(out)!r} has rows of a run of {row['method']!r}, which this row would join; "
            "choose another name, or another folder"
        )
    replaced = store.replace(row)
    if any(old["metrics"] != row["metrics"] for old in replaced):
        warn_caller(
            f"the row of {row['method']!r}, seed {row['seed']}, that was in {str(out)!r} had other "
            "numbers, and is replaced"
        )


def _is_scored(row: Row) -> bool:
    """Return whether a row is of predictions, and not of a run."""
    return row["config"].get("estimator") == _ARRAYS or "fitted_on" in row["config"]


# ---------------------------------------------------------------------- published predictions


def published_root(suite: str) -> Path:
    """Root of the published results: in this clone; of a suite of one's own that of its runs."""
    if suite not in suite_names():
        return default_root()
    root = Path(__file__).parents[3] / "results" / "bench"
    if not root.is_dir():
        raise FileNotFoundError(
            "the published results are not beside the package; clone the repository, and name its "
            "folder research/results/bench with --published"
        )
    return root


def default_profile(suite: Suite, root: str | os.PathLike[str]) -> str:
    """Return the profile whose rows are published first, or the only one with results."""
    if page := captions_of(suite.name).page:
        return page.profiles[0]
    there = [name for name in suite.profiles if (Path(root) / suite.name / name).is_dir()]
    known = there or list(suite.profiles)
    if len(known) > 1:
        raise ValueError(f"profile must be named for suite {suite.name!r}, one of {known}")
    return known[0]


def find_predictions(
    suite: str | os.PathLike[str],
    profile: str | None = None,
    seeds: Iterable[int] | None = None,
    published: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Return the files of published predictions of a suite, in the order of the seeds."""
    loaded, asked = load_suite(suite), profile
    name, root = loaded.name, published or published_root(loaded.name)
    profile = asked or default_profile(loaded, root)
    loaded.profile(profile)
    folder = Store(root, name, profile).folder
    files = {int(f.stem.rpartition("-")[2]): f for f in sorted(folder.glob("predictions/*.npz"))}
    if not files and loaded.predictions and asked is None:
        warn_caller(
            f"no predictions of {name!r} are published; those of {loaded.predictions!r} are scored"
        )
        return find_predictions(loaded.predictions, None, seeds, published)
    if not files:
        there = {f.parts[-4:-2] for f in folder.parents[1].glob("*/*/predictions/*.npz")}
        others = ", ".join(f"{other} (profile {of})" for other, of in sorted(there))
        raise FileNotFoundError(
            f"no published predictions in {str(folder / 'predictions')!r}, but of: "
            f"{others or 'none'}; make some: "
            f"{run_command(str(suite), profile, '--out', 'FOLDER')}, then dipedl-bench "
            f"export-predictions {suite} --profile {profile} --out FOLDER, and name FOLDER as "
            "published"
        )
    chosen = sorted(files) if seeds is None else list(dict.fromkeys(seeds))
    for seed in chosen:
        if seed not in files:
            raise ValueError(
                f"seeds: of {name!r} there are predictions of {sorted(files)}, got {seed}"
            )
    return [files[seed] for seed in chosen]


def export(suite: str, profile: str, out: str | os.PathLike[str]) -> list[Path]:
    """Write the predictions of the first network of a suite to files, one for each seed.

    `out` is the root of the results of its runs, and of the files. LookupError if there is no seed.
    """
    loaded = load_suite(suite)
    name = next(iter(loaded.classifiers), "")
    store, files = Store(out, loaded.name, profile), []
    part = _network_part(loaded, profile, name, suite)
    for folder in sorted(store.arrays_folder(part.name, part.digest).glob("*")):
        if folder.name.isdecimal() and store.has_arrays(*(key := _key(part, int(folder.name)))):
            made = _predictions_of(store, part, *key)
            file = predictions_file(store.folder, *key)
            made.write(file)
            files.append(file)
    if not files:
        raise LookupError(
            f"no outputs of the classifier {name!r} in {str(store.folder)!r}; make some: "
            f"{run_command(suite, profile, '--out', str(out))}"
        )
    return files


def _key(part: Part, seed: int) -> tuple[str, str, int]:
    return part.name, part.digest, seed


def _network_part(suite: Suite, profile: str, name: str, where: str) -> Part:
    """Return a classifier of a suite, as its methods have it below them."""
    for part in method_parts(suite, profile, suite.method_names(profile), where):
        below = part.below.get("classifier")
        if below is not None and below.name == name:
            return below
    raise LookupError(f"no method of profile {profile!r} has the classifier {name!r}")


def _predictions_of(store: Store, part: Part, name: str, digest: str, seed: int) -> Predictions:
    """Return the predictions in the arrays of a network, those of training rows left out."""
    arrays, receipt = store.load(name, digest, seed), store.receipt(name, digest, seed)
    if not {"logits", "features"} <= arrays["test"].keys():
        raise LookupError(
            f"{name}: only a network has logits and features, got {sorted(arrays['test'])}"
        )
    test = arrays["test"]
    head = head_of(store.network(name, digest, seed), test["features"], test["logits"])
    arrays.pop("train")
    about = {
        "suite": store.suite,
        "profile": store.profile,
        "classifier": {"name": name, "config": part.config},
        "receipt": receipt,
    }
    return Predictions(arrays, seed, head, about)


def _score_suite(
    suite: str | os.PathLike[str],
    methods: list[str | type] | None,
    profile: str | None,
    seeds: Iterable[int] | None,
    published: str | os.PathLike[str] | None,
) -> list[Row]:
    rows, loaded = [], load_suite(suite)
    for file in find_predictions(suite, profile, seeds, published):
        predictions = Predictions.read(file)
        network = predictions.about["classifier"]
        below = Part("classifier", network["name"], str(file), {}, network["config"], {})
        head = {key: predictions.about[key] for key in ("suite", "profile")}
        # those of another suite may stand in
        of = loaded if loaded.name == head["suite"] else load_suite(head["suite"])
        frozen = _freeze(predictions, below)
        for part, own in _choose_parts(methods, below, of, head["profile"]):
            rows.append(_row(frozen, part, head, own))
    return rows


def _choose_parts(
    asked: list[str | type] | None, below: Part, suite: Suite, profile: str
) -> list[tuple[Part, bool]]:
    """Return the methods to score, and whether each is of the user."""
    known = {part.name: part for part in _post_hoc_parts(suite, profile, below)}
    chosen = []
    # all but those that take minutes, which fit densities again and again
    post_hoc = [n for n, part in known.items() if not part.sees_pixels and len(part.below) == 1]
    for method in post_hoc if asked is None else asked:
        if isinstance(method, str) and ":" not in method:
            _refuse_unknown_method(method, known)
            chosen.append((known[method], False))
        else:
            chosen.append((_own_part(method, below.config["data"], {"classifier": below}), True))
    _check_names([part for part, _ in chosen], {})
    _check_names([part for part, own in chosen if own], _taken(suite))
    return chosen


def _taken(suite: Suite) -> dict[str, str]:
    """Return the names of lines that a suite has, and whose they are."""
    of = f"of suite {suite.name!r}"
    return {f"{n}{end}": f"method {n!r} {of}" for n in suite.methods for end in ("", _SUFFIX)}


def _check_names(parts: Iterable[Part], taken: Mapping[str, str]) -> None:
    """Raise ValueError where methods would share a line with each other, or with those there."""
    lines = dict(taken)
    for part in parts:
        of = repr(part.table["estimator"])
        if part.name in lines:
            raise ValueError(
                f"methods must have different names, got {part.name!r} of {lines[part.name]} "
                f"and of {of}; rename a class of your own, leave one of them out, or leave out "
                "suite=, for a table of its own"
            )
        lines[part.name] = of


def _post_hoc_parts(suite: Suite, profile: str, below: Part) -> list[Part]:
    """Return the methods of a suite that need the outputs of this network alone."""
    found, where = [], below.where
    for part in method_parts(suite, profile, suite.method_names(profile), suite.name):
        network, density = part.below.get("classifier"), part.below.get("density")
        if network is None or network.digest != below.digest:
            continue
        on_features = density is None or "classifier" in density.below
        own = find_class(part.table["estimator"], where)
        if on_features and (density is None or "features" not in density.table):
            if not (part.sees_pixels and accepts(own, "network")):
                found.append(part)
    if not found:
        raise ValueError(
            f"{where}: the settings of its network are not today's; export predictions again"
        )
    return found


def _refuse_unknown_method(name: str, known: Mapping[str, Any]) -> None:
    """Raise ValueError unless a method is known; of a class with a dot, write the colon."""
    module, dot, own = name.rpartition(".")
    if dot and name not in known and name.replace(".", "").isidentifier():
        raise ValueError(
            f"methods: unknown method {name!r}; a class of your own is module:Class, such as "
            f"{f'{module}:{own}'!r}"
        )
    refuse_unknown("method", [name], [*known, _OWN], "methods")


def _own_part(method: str | type, data: Mapping[str, Any], below: Mapping[str, Part]) -> Part:
    """Return a class outside the package as a method."""
    if isinstance(method, type):
        method = f"{method.__module__}:{method.__qualname__}"
    if not isinstance(method, str) or ":" not in method:
        raise ValueError(
            f"methods must be classes, or texts such as 'my.module:Class', got {method!r}"
        )
    name = method.rpartition(":")[2]
    return make_method_part(name, method, dict(data), below)


# --------------------------------------------------------------------------- arrays of your own


def _score_arrays(
    source: str | os.PathLike[str] | Mapping[str, Any],
    methods: list[str | type] | None,
    name: str,
    title: str | None,
    suite: str | None,
    profile: str | None,
    published: str | os.PathLike[str] | None,
) -> list[Row]:
    for argument, text in {"name": name, "suite": suite, "profile": profile}.items():
        if text is not None:
            check_folder_name(argument, text)
    if suite is not None and suite.endswith(".toml"):
        raise ValueError(f"suite must be the name that stands in the file, got {suite!r}")
    if isinstance(source, Mapping):
        predictions, where = Predictions.from_arrays(source), "arrays"
    else:
        predictions, where = Predictions.read(source), str(source)
    data: dict[str, Any] = {"arrays": name, "ood": list(predictions.ood)}
    suite, taken = suite or name, dict[str, str]()
    if suite in suite_names():
        loaded, root = load_suite(suite), published or published_root(suite)
        if name in (taken := _taken(loaded)):
            raise ValueError(f"name {name!r} is that of {taken[name]}; choose another name")
        profile = profile or default_profile(loaded, root)
        data = _check_joins(predictions, loaded, Store(root, suite, profile), where)
    head = {"suite": suite, "profile": profile or IMPORTED}
    if methods is not None and title is not None:
        raise ValueError(
            f"title is of the row of the arrays themselves; leave it out, got {title!r}"
        )
    if methods is None:
        return [_imported_row(predictions, head, name, title or name, data, where)]
    below = Part("classifier", name, where, {}, {"format": FORMAT, "data": data}, {})
    parts = [_part_of_arrays(method, data, {"classifier": below}) for method in methods]
    _check_names(parts, taken | {name: "the arrays themselves"})
    frozen = _freeze(predictions, below)
    return [_row(frozen, part, head, True) for part in parts]


def _part_of_arrays(method: str | type, data: Mapping[str, Any], below: Mapping[str, Part]) -> Part:
    """Return a class outside the package, or a method by the name or the class of a suite's."""
    if not isinstance(method, str) or ":" in method:
        return _own_part(method, data, below)
    tables = load_suite(_NETWORK_SUITE).methods
    known = {n: of for n, of in tables.items() if set(of) <= {"title", *_ON_NETWORK}}
    of_class = {of["estimator"]: name for name, of in known.items()}
    name = of_class.get(method, method)
    _refuse_unknown_method(name, known)
    title, estimator = known[name]["title"], known[name]["estimator"]
    part = make_method_part(name, estimator, dict(data), below)
    return replace(part, spec=Method(title=title, estimator=estimator))


def _check_joins(
    predictions: Predictions, suite: Suite, published: Store, where: str
) -> dict[str, Any]:
    """Return the data of a suite whose table the rows may join: their sets are its sets."""
    name, profile, folder = suite.name, published.profile, published.folder
    if suite.crossed:
        raise ValueError(
            f"suite {name!r} crosses data sets with classifiers, and has no table for one set of "
            "arrays; take a suite such as mnist, or one of your own"
        )
    setting = suite.profile(profile)
    check_suite(predictions, OOD_SETS[setting.dataset], setting.dataset, where)
    rows = parse_rows(folder / "rows.jsonl")[0]
    for split, n in predictions.sizes.items() if rows else ():
        expected = rows[0]["n"].get(split, n)
        if split != CALIBRATION and n != expected:
            rows_of = "all, in the order of the official files"
            if split == "test" and setting.calibration == "test":
                rows_of = (
                    "of the official test rows np.sort(halve_test_rows(10000)[1]), with 10000 as "
                    "their number, from dipedl_bench.datasets.splits: the others calibrate"
                )
            raise ValueError(
                f"{where}: {split} has {n} rows, the rows of suite {name!r} {expected}; pass "
                f"{rows_of}, or take a suite of your own"
            )
    files = sorted(folder.glob("predictions/*.npz"))[:1]
    if not files:
        warn_caller(
            f"{where}: labels were not compared with those of {name!r}, for no predictions of "
            f"profile {profile!r} are published: the row counts only if all rows stand in the "
            "order of the official files"
        )
    for file in files:
        theirs, y = Predictions.read(file).arrays["test"]["y"], predictions.arrays["test"]["y"]
        if (differ := np.flatnonzero(theirs != y)).size:
            raise ValueError(
                f"{where}: labels must be those of the test rows of {name!r} in their official "
                f"order; row {differ[0]} has {theirs[differ[0]]}, got {y[differ[0]]}"
            )
    if missing := [ood for ood in suite.ood_of(setting) if ood not in predictions.ood]:
        warn_caller(
            f"{where}: the OOD sets {missing} of suite {name!r} are missing; beside published rows "
            "means over near, far or all sets that take them in have no number: pass "
            f"{', '.join(f'ood_{ood}_logits' for ood in missing)}"
        )
    return data_config(suite, setting)


def _imported_row(
    predictions: Predictions,
    head: Mapping[str, Any],
    name: str,
    title: str,
    data: Mapping[str, Any],
    where: str,
) -> Row:
    """Return the row of arrays themselves."""
    arrays = {s: dict(of) for s, of in predictions.arrays.items() if s != CALIBRATION}
    for of in arrays.values():
        # one minus the largest, added up: as a difference it is 0 for all confident rows
        of.setdefault("uncertainty", np.sort(of["probabilities"], axis=1)[:, :-1].sum(axis=1))
    config = {"format": FORMAT, "data": dict(data), "estimator": _ARRAYS, "arguments": {}}
    # the digest is no part of the config, which all seeds share
    first = {**head, "method": name, "title": title, "seed": predictions.seed}
    first |= {"config": config, "config_hash": config_hash(config), "sha256": predictions.sha256}
    row = make_row(first, arrays, _cost(predictions, Seconds(), Seconds()), {}, 0)
    # what it cost is not known
    row |= {"seconds": {}, "cpu_seconds": {}}
    if problem := describe_direction(row):
        warn_caller(f"{where}: {problem}")
    return row


# --------------------------------------------------------------------------------------- a row


@dataclass(frozen=True, eq=False)
class _Network:
    """Predictions as a fitted classifier, its inputs X by split, and labels y.

    Inputs are features, where these and the last layer are there, and else numbers of rows.
    """

    predictions: Predictions
    part: Part
    frozen: FrozenEstimator
    X: Mapping[str, np.ndarray]
    y: Mapping[str, np.ndarray]


def _freeze(predictions: Predictions, part: Part) -> _Network:
    if CALIBRATION not in predictions.arrays:
        raise ValueError(
            f"{part.where}: calibration_logits and calibration_labels are missing: methods are "
            "fitted on them"
        )
    y = {split: of["y"] for split, of in predictions.arrays.items() if "y" in of}
    arrays = {**predictions.arrays, _SHUFFLED: _shuffle(predictions)}
    if predictions.head is not None:
        X = {split: of["features"].astype(np.float64) for split, of in arrays.items()}
        return _Network(predictions, part, FrozenEstimator(HeadClassifier(*predictions.head)), X, y)
    order, classes = list(arrays), np.arange(predictions.n_classes)
    frozen = FrozenEstimator(CachedClassifier(stack(arrays, order), classes))
    sizes = {split: len(of["probabilities"]) for split, of in arrays.items()}
    return _Network(predictions, part, frozen, row_numbers(sizes), y)


def _shuffle(predictions: Predictions) -> dict[str, np.ndarray]:
    """Return calibration rows with each feature, or each logit, of another row."""
    rng, named = np.random.default_rng(0), predictions.arrays[CALIBRATION]
    names = [n for n in ("features", "logits", "probabilities") if predictions.has(n)]
    mixed = {name: rng.permuted(named[name], axis=0) for name in names}
    if "logits" in mixed:
        return {**mixed, "probabilities": softmax(mixed["logits"], axis=1)}
    sums = mixed["probabilities"].sum(axis=1, keepdims=True)
    return {**mixed, "probabilities": mixed["probabilities"] / sums}


def _row(network: _Network, part: Part, head: Mapping[str, Any], own: bool) -> Row:
    """Return the row of a method, fitted on the calibration rows."""
    predictions, fitting, scoring = network.predictions, Seconds(), Seconds()
    # a class that changes its arguments in place changes no row of another
    X, y = ({s: rows.copy() for s, rows in of.items()} for of in (network.X, network.y))
    parts: dict[str, Any] = {"estimator": network.frozen, "features": network.frozen}
    if "density" in part.below:
        parts["density"] = part.below["density"].build(predictions.seed)
    model = part.build(predictions.seed, **parts)
    scored = {s: rows for s, rows in X.items() if s not in (CALIBRATION, _SHUFFLED)}
    note = ""
    if isinstance(model, OwnScore) and not predictions.has("features"):
        note = "; features are None: if the method needs features, pass features for all sets"
    with _name_method(part, "fitted on the calibration rows", note), fitting.count():
        model.fit(X[CALIBRATION].copy(), y[CALIBRATION])
    with _name_method(part, "scored", note):
        if own:
            _warn_of_direction(part.name, model, X)
        arrays = method_arrays(model, scored, scoring, *part.spec.kinds if part.spec else ())
    for split, labels in network.y.items():
        if split in arrays:
            arrays[split]["y"] = labels
    config = {**part.config, "fitted_on": "calibration"}
    first = {
        **head,
        "method": part.name if own else part.name + _SUFFIX,
        "title": (part.spec.title if part.spec else part.name) + _FITTED,
        "seed": predictions.seed,
        "config": config,
        "config_hash": config_hash(config),
        "sha256": predictions.sha256,
    }
    own_cost = _cost(predictions, fitting, scoring)
    receipt = predictions.about.get("receipt")
    trained = {"name": network.part.name, "config_hash": network.part.digest, **(receipt or {})}
    return make_row(first, arrays, own_cost, {"classifier": trained} if receipt else {}, 0)


@contextmanager
def _name_method(part: Part, task: str, note: str) -> Iterator[None]:
    """Raise as ValueError what a method raises, named, and a note; of one's own with the line."""
    try:
        yield
    except Exception as error:  # a class of the user's may raise anything
        text = describe_failure(error, part.table["estimator"])
        raise ValueError(f"method {part.name!r} cannot be {task}: {text}{note}") from error


def _cost(predictions: Predictions, fitting: Seconds, scoring: Seconds) -> dict[str, Any]:
    """Return what a method itself cost, as rows have it."""
    seconds = as_seconds({"train": fitting, "score": scoring}, 6)
    return {
        **seconds,
        **peak_memory(),
        "forward_passes": 1,
        "n_parameters": None,
        "n": predictions.sizes,
    }


def _warn_of_direction(name: str, model: Any, X: Mapping[str, np.ndarray]) -> None:
    known, mixed = (np.asarray(model.uncertainty(X[s])) for s in (CALIBRATION, _SHUFFLED))
    if (auroc := ood_auroc(known, mixed)) < 0.5:
        warn_caller(
            f"{name}.uncertainty looks turned round: AUROC {auroc:.3f} of calibration rows against "
            "the same rows with shuffled features; it must be higher where the input is less known"
        )

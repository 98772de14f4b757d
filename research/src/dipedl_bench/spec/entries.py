"""Entries of a suite's file: profiles, methods, and the data sets and classifiers it crosses."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from .typed_toml import Frozen

Table = dict[str, Any]
Name = str
#: Groups of crossed methods, in the order of the tables.
GROUPS = ("bare", "ours", "baseline", "ablation", "candidate")
#: Fewer leave no resample in the tails of a 95 % interval.
_FEWEST_RESAMPLES = 40


class Limit(Frozen):
    """At most so many rows of each split; None takes all.

    The rows of train and validation are the first of the seed's permutation; those of test and OOD
    sets are drawn once, the same for every seed.
    """

    train: int | None = Field(default=None, ge=1)
    validation: int | None = Field(default=None, ge=1)
    test: int | None = Field(default=None, ge=1)
    ood: int | None = Field(default=None, ge=1)


class Profile(Frozen):
    """How much of everything: which data, and what differs from the suite's own settings.

    A crossed suite names the data sets that are run in `datasets`, any other its one in `dataset`.
    `training` and `backbone` override every table of that name, `classifiers`, `densities` and
    `methods` single entries; a table is merged key by key, unless it names another class. `ood` and
    `seeds` replace those of the suite; `shifted` are labelled test sets from elsewhere.
    """

    title: str = ""
    dataset: str = ""
    datasets: tuple[Name, ...] = ()
    ood: tuple[Name, ...] | None = None
    shifted: tuple[Name, ...] = ()
    seeds: tuple[int, ...] | None = None
    limit: Limit = Limit()
    resamples: int = Field(default=100, ge=0)
    training: Table = {}
    backbone: Table = {}
    classifiers: dict[Name, Table] = {}
    densities: dict[Name, Table] = {}
    methods: dict[Name, Table] = {}
    without: tuple[Name, ...] = ()


class Method(Frozen):
    """A method: its class, its arguments, and how it is given data and trained parts.

    All keys that are not below are arguments of its class.
    """

    title: str
    estimator: str
    #: They may stand beside the other keys too, unless they share a name with one.
    arguments: Table = {}
    note: str = ""

    # ---- in a suite with one data set a profile: the parts that the method is given
    #: Parts that are trained once a seed and shared: a name out of the suite's ``[classifiers]``
    #: or ``[densities]``, or such a table.
    classifier: str | Table | None = None
    density: str | Table | None = None
    #: What a method with a classifier is given: row numbers, and a classifier that looks its stored
    #: predictions up; or the pixels, and the trained network itself, frozen.
    sees: Literal["predictions", "pixels"] = "predictions"
    #: Rows from which DIPClassifier takes the statistics of its normaliser.
    statistics: Literal["train", "validation"] = "train"
    #: Passed to the method's ``uncertainty`` as `kind`.
    uncertainty: str | None = None
    #: Default seeds of this method, where they differ from those of the others.
    seeds: tuple[int, ...] | None = None

    # ---- in a crossed suite: the method is given each of the classifiers
    #: "bare": what all are compared with. "candidate": a single density that a selection could have
    #: chosen.
    group: Literal[("", *GROUPS)] = ""  # type: ignore[valid-type]
    #: "paper" makes it with ``DIPClassifier.paper``.
    preset: Literal["", "paper"] = ""
    #: Kinds of uncertainty; the first ranks, each other one becomes a row ``method:kind``.
    kinds: tuple[str, ...] = ()
    #: Where its probabilities come from; with "classifier_proba" one minus the largest ranks.
    answers: Literal["predict_proba", "classifier_proba"] = "predict_proba"
    #: Whether it is given the validation rows to calibrate on, where it takes some and the
    #: classifier is frozen.
    calibrate: bool = True
    #: Whether it trains the classifier anew, as an ensemble does, also where that is frozen; or a
    #: network of its own, with backbone and training of the classifier.
    trains: bool = False
    #: Share of the rows that the classifier is not fitted on: the method is given these alone, and
    #: the classifier frozen.
    held_out: float | None = Field(default=None, gt=0, lt=1)
    #: Whether a ValueError or a TypeError is an answer, kept as a row.
    may_refuse: bool = False
    #: Run with these only.
    classifiers: tuple[str, ...] | None = None

    @classmethod
    def keys(cls, crossed: bool) -> tuple[str, ...]:
        """Return the keys of a method in a crossed suite, or in one with one data set a profile."""
        names = tuple(cls.model_fields)
        first, second = names.index("classifier"), names.index("group")
        return names[:first] + (names[second:] if crossed else names[first:second])


class CrossedData(Frozen):
    """A data set of a suite that crosses several with classifiers."""

    title: str
    #: A loader of `dipedl.datasets`, or a data set of scikit-learn such as ``sklearn:wine``.
    loader: str
    #: Of the loader; ``ood`` and the seed are added where it takes them.
    arguments: Table = {}
    #: A class that is taken out and becomes the OOD set of its name; data sets of scikit-learn need
    #: one.
    leave_out: int | None = Field(default=None, ge=0)
    ood: tuple[str, ...]
    classifiers: tuple[str, ...]
    #: Share of the training rows that a network is not trained on.
    validation_fraction: float = Field(default=0.2, gt=0, lt=1)
    limit: Limit = Limit()
    seeds: tuple[int, ...] | None = None
    #: Whether the default was designed with a look at its OOD sets, or fixed before any was scored.
    looked_at: Literal["by design", "later", "never"] = "later"
    #: Whether inputs get mean 0 and standard deviation 1 over the training rows, for all methods.
    standardise: bool = False
    #: Share of the training rows of each class that is kept; a row then weighs one over it.
    selected: tuple[float, ...] = ()
    #: Bootstrap resamples of the test rows behind each interval; 0 for none.
    resamples: int = Field(default=0, ge=0)

    @field_validator("resamples")
    @classmethod
    def _enough(cls, resamples: int) -> int:
        if 0 < resamples < _FEWEST_RESAMPLES:
            raise ValueError(f"must be 0 or at least {_FEWEST_RESAMPLES}")
        return resamples


class CrossedClassifier(Frozen):
    """A classifier that every method is given: its class and arguments."""

    title: str
    estimator: str
    arguments: Table = {}
    #: A network: trained on the training rows alone and its weights stored; methods get it frozen,
    #: its features for the density, and the validation rows to calibrate with. Otherwise methods
    #: get it unfitted, with training and validation rows together.
    frozen: bool = False
    standardise: bool = False
    #: Most rows of each split, where the data set allows more.
    limit: Limit = Limit()


class MeasureEntry(Frozen):
    """One statement on the method of the group "ours", evaluated by `tables.measures`."""

    statement: str
    #: With "value": another method that the statement is on.
    method: Name = ""
    #: "compare": a metric with that of another method, where both have one. "value": the metric
    #: itself. "regret": AUROC of the best candidate, chosen with OOD labels, less ours.
    #: "baselines": mean metric with that of every baseline. "earlier": mean metric by classifier,
    #: less that of the table `earlier`.
    what: Literal["compare", "value", "regret", "baselines", "earlier"]
    #: One of an OOD set, such as "auroc", is looked at for every OOD set.
    metric: str = "auroc"
    against: str = "bare"
    #: Another method, for the number ``{beside}``.
    beside: str = ""
    #: Ours less theirs, or ours over theirs.
    by: Literal["difference", "share"] = "difference"
    #: Bounds of what is good.
    least: float | None = None
    most: float | None = None
    #: Met if this share of the lines is good, or if the mean is: of shares, mean over mean.
    judged: Literal["each", "mean"] = "each"
    good_share: float = Field(default=1.0, gt=0, le=1)
    #: Only lines with timid classifiers, which temperature scaling sharpens to T < 0.8, or those
    #: with all others; or only data sets that an earlier default was measured on.
    lines: Literal["all", "timid", "others", "earlier"] = "all"
    #: Mean metric of an earlier default, by classifier.
    earlier: dict[Name, float] = {}
    #: Only this data set, only this OOD set.
    dataset: str = ""
    ood: str = ""
    #: What is said of all numbers, by ``{min}``, ``{max}``, ``{mean}``, ``{median}``, and of a
    #: comparison ``{ours}``, ``{theirs}`` (means), ``{ratio}`` (ours over theirs) and ``{beside}``
    #: (ours over that method's); and of one, by ``{value}``.
    found: str
    miss: str = "{value:+.3f}"

    def good(self, value: float) -> bool:
        """Return whether a number is within the bounds."""
        low = self.least is None or value >= self.least
        return low and (self.most is None or value <= self.most)

"""What a suite's file may say: profiles, methods, and the data sets and classifiers it crosses."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from .typed_toml import Frozen

__all__ = [
    "GROUPS",
    "CrossedClassifier",
    "CrossedData",
    "CrossedMethod",
    "Limit",
    "Method",
    "OodNames",
    "Profile",
]

Table = dict[str, Any]
Name = str
#: OOD sets; of those in a tuple inside, the first that can be had.
OodNames = tuple[str | tuple[str, ...], ...]
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
    `training` overrides every ``training`` table, `classifiers`, `densities` and `methods` override
    single entries; a table is merged key by key, unless it names another class. `ood` and `seeds`
    replace those of the suite; `shifted` are labelled test sets from elsewhere.
    """

    title: str = ""
    dataset: str = ""
    datasets: tuple[Name, ...] = ()
    ood: OodNames | None = None
    shifted: tuple[Name, ...] = ()
    seeds: tuple[int, ...] | None = None
    limit: Limit = Limit()
    resamples: int = Field(default=100, ge=0)
    training: Table = {}
    classifiers: dict[Name, Table] = {}
    densities: dict[Name, Table] = {}
    methods: dict[Name, Table] = {}
    without: tuple[Name, ...] = ()


class Method(Frozen):
    """One method: an uncertainty classifier, and the trained parts that it is given.

    Attributes
    ----------
    title : str
        What the tables say.
    estimator : str
        Class of the method.
    arguments : table
        Its arguments. They may stand beside the other keys too, unless they share a name with one.
    classifier, density : str, table or None
        Parts that are trained once a seed and shared: a name out of the suite's ``[classifiers]``
        or ``[densities]``, or such a table.
    sees : {"predictions", "pixels"}
        What a method with a classifier is given: row numbers, and a classifier that looks its
        stored predictions up; or the pixels, and the trained network itself, frozen.
    statistics : {"train", "validation"}
        Rows from which DIPClassifier takes the statistics of its normaliser.
    uncertainty : str, optional
        Passed to the method's ``uncertainty`` as `kind`.
    seeds : tuple of int, optional
        Default seeds of this method, where they differ from those of the others.
    note : str
        A sentence for readers.
    """

    title: str
    estimator: str
    classifier: str | Table | None = None
    density: str | Table | None = None
    sees: Literal["predictions", "pixels"] = "predictions"
    statistics: Literal["train", "validation"] = "train"
    uncertainty: str | None = None
    seeds: tuple[int, ...] | None = None
    note: str = ""
    arguments: Table = {}


class CrossedData(Frozen):
    """A data set of a suite that crosses several with classifiers.

    Attributes
    ----------
    title : str
        What the tables say.
    loader : str
        A loader of `dipedl.datasets`, or a data set of scikit-learn such as ``sklearn:wine``.
    arguments : table
        Arguments of the loader; ``ood`` and the seed are added where it takes them.
    leave_out : int, optional
        A class that is taken out and becomes the OOD set of its name; data sets of scikit-learn
        need one.
    ood : tuple of str
        OOD sets.
    classifiers : tuple of str
        Names of classifiers.
    validation_fraction : float
        Share of the training rows that a network is not trained on.
    limit : Limit
        Most rows of each split.
    seeds : tuple of int, optional
        Default: those of the suite.
    designed_on : bool
        Whether the default was designed with a look at its OOD sets.
    resamples : int
        Bootstrap resamples of the test rows behind each interval, 40 or more; 0 for none.
    """

    title: str
    loader: str
    arguments: Table = {}
    leave_out: int | None = Field(default=None, ge=0)
    ood: tuple[str, ...]
    classifiers: tuple[str, ...]
    validation_fraction: float = Field(default=0.2, gt=0, lt=1)
    limit: Limit = Limit()
    seeds: tuple[int, ...] | None = None
    designed_on: bool = False
    resamples: int = Field(default=0, ge=0)

    @field_validator("resamples")
    @classmethod
    def _enough(cls, resamples: int) -> int:
        if 0 < resamples < _FEWEST_RESAMPLES:
            raise ValueError(f"must be 0 or at least {_FEWEST_RESAMPLES}")
        return resamples


class CrossedClassifier(Frozen):
    """A classifier that every method is given: its class and arguments.

    Attributes
    ----------
    frozen : bool
        A network: trained on the training rows alone and its weights stored; methods get it frozen,
        its features for the density, and the validation rows to calibrate with. Otherwise methods
        get it unfitted, with training and validation rows together.
    standardise : bool
        Whether it sees standardised inputs.
    limit : Limit
        Most rows of each split, where the data set allows more.
    """

    title: str
    estimator: str
    arguments: Table = {}
    frozen: bool = False
    standardise: bool = False
    limit: Limit = Limit()


class CrossedMethod(Frozen):
    """A method that is given each of the classifiers.

    Attributes
    ----------
    group : str
        "bare": what all are compared with. "ours", "baseline", "ablation", or "candidate": a single
        density that a selection could have chosen.
    preset : {"", "paper"}
        "paper" makes it with ``DIPClassifier.paper``.
    kinds : tuple of str
        Kinds of uncertainty; the first ranks, each other one becomes a row ``method:kind``.
    answers : {"predict_proba", "classifier_proba"}
        Where its probabilities come from; with "classifier_proba" one minus the largest ranks.
    calibrate : bool
        Whether it is given the validation rows to calibrate on, where it takes some and the
        classifier is frozen.
    trains : bool
        Whether it trains the classifier anew, as an ensemble does, also where that is frozen.
    may_refuse : bool
        Whether a ValueError or a TypeError is an answer, kept as a row.
    classifiers : tuple of str, optional
        Run with these only.
    """

    title: str
    group: Literal[GROUPS]  # type: ignore[valid-type]
    estimator: str
    arguments: Table = {}
    preset: Literal["", "paper"] = ""
    kinds: tuple[str, ...] = ()
    answers: Literal["predict_proba", "classifier_proba"] = "predict_proba"
    calibrate: bool = True
    trains: bool = False
    may_refuse: bool = False
    classifiers: tuple[str, ...] | None = None
    note: str = ""

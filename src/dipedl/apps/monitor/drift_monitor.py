"""A monitor of a stream: evidence that its rows are not like the reference any more."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ...columns import Column
from ...inputs import encode_table_rows
from ...maths.arrays import check_integer, check_rate
from ...maths.seeds import check_seed
from ...writing.notebook import frame, table
from .bets import BETTORS, ReferenceRanks, Wealth, mean_gains, upper_bound
from .windows import (
    Estimate,
    OpenWindow,
    Rows,
    Sums,
    Window,
    calibrations_of,
    count_columns,
    fingerprint,
    held_out_rows,
    learn_columns,
    rows_of_answers,
    rows_of_model,
)

#: What each test may spend of the false-alarm rate; the last two share theirs with their bounds.
SPENT = {"p_values": 1 / 2, "uncertainty": 1 / 4, "flagged": 1 / 4}
#: Of a reference.
FEWEST_ROWS = 50
_KEPT_WINDOWS = 400
#: Rows on which one bet is made.
_AT_ONCE = 50


#: Names of the tests for readers.
TESTS = {"p_values": "p-values", "uncertainty": "uncertainty", "flagged": "flagged rows"}


@dataclass(frozen=True)
class DriftReport:
    """The state of a stream after a batch; ``str()`` gives a page.

    Attributes
    ----------
    rows, batches : int
        Seen so far.
    alarms : tuple of str
        Tests that have raised an alarm, now or before: "p_values", "uncertainty", "flagged". It is
        false with probability `false_alarm_rate` at most, all tests and all times together.
    evidence : dict of str to float
        Of each test, logarithm of the wealth against "no change", in nats.
    highest, limits : dict of str to float
        Its largest value so far, and where it raises an alarm.
    window : Window or None
        The last window. In each, the expected share of false ones among the columns (and p-values)
        that are named is `false_alarm_rate` at most; over many windows such false ones add up: a
        hint where to look, not an alarm.
    windows : int
        Windows so far, of the last 400.
    windows_differ : int
        Those in which p-values or a column differ.
    estimated_accuracy : Estimate or None
        Without labels, from all rows: the share of right answers that held-out rows of the same
        confidence had. The interval reaches from there to the share by the confidence with the
        evidence, as if the classifier guessed on rows that are new, and sampling beyond both.
    accuracy, brier : Estimate or None
        Of the rows that came with labels.
    false_alarm_rate : float
    reference : str
        Where the reference came from.
    """

    rows: int
    batches: int
    alarms: tuple[str, ...]
    evidence: dict[str, float]
    highest: dict[str, float]
    limits: dict[str, float]
    window: Window | None
    windows: int
    windows_differ: int
    estimated_accuracy: Estimate | None
    accuracy: Estimate | None
    brier: Estimate | None
    false_alarm_rate: float
    reference: str

    @property
    def alarm(self) -> bool:
        """Return whether any test has raised an alarm."""
        return bool(self.alarms)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``json.dump`` takes."""
        return {"alarm": self.alarm, **asdict(self)}

    def gauges(self) -> dict[str, float]:
        """Numbers by names such as Prometheus takes; a value that is not known is left out."""
        found = {
            "drift_alarm": float(self.alarm),
            "drift_rows": float(self.rows),
            "drift_windows_differ": float(self.windows_differ),
        }
        found |= {f"drift_evidence_{name}_nats": value for name, value in self.evidence.items()}
        estimates = ("estimated_accuracy", "accuracy", "brier")
        known = {name: getattr(self, name) for name in estimates}
        found |= {f"drift_{name}": one.value for name, one in known.items() if one is not None}
        if self.window is not None:
            if self.window.estimated_accuracy is not None:
                found["drift_window_estimated_accuracy"] = self.window.estimated_accuracy.value
            found["drift_window_ks_distance"] = self.window.distance
            found["drift_window_uncertainty_mean"] = self.window.uncertainty
            found["drift_window_flagged_share"] = self.window.flagged
            found["drift_window_columns_changed"] = float(len(self.window.changed))
        return found

    def __str__(self) -> str:
        """Return a page for readers."""
        return "\n".join(f"{name + ':':<24}{value}" for name, value in self._lines())

    def _repr_html_(self) -> str:
        """Return the page for a notebook."""
        rows = [(escape(name), escape(value)) for name, value in self._lines()]
        return frame(table("Drift of a stream", ("", ""), rows))

    def _lines(self) -> list[tuple[str, str]]:
        alarms = ", ".join(TESTS[name] for name in self.alarms)
        lines = [
            ("Alarm", f"YES, by {alarms}" if alarms else "no"),
            ("Rows", f"{self.rows:,} in {self.batches:,} batch{'es' * (self.batches != 1)}"),
            ("Reference", self.reference),
        ]
        lines += [
            (f"Evidence, {title}", f"{self.evidence[n]:.1f} nats, alarm at {self.limits[n]:.1f}")
            for n, title in TESTS.items()
        ]
        lines += self._window_lines()
        estimates = {
            "Estimated accuracy": self.estimated_accuracy,
            "Accuracy": self.accuracy,
            "Accuracy, last window": self.window.accuracy if self.window else None,
            "Brier score": self.brier,
        }
        lines += [
            (name, f"{e.value:.3f}, 95 % interval {e.low:.3f} to {e.high:.3f}, {e.rows:,} rows")
            for name, e in estimates.items()
            if e is not None
        ]
        if self.alarms and self.estimated_accuracy is not None:
            why = "a classifier may be sure of new kinds of rows: after an alarm, label some"
            lines.append(("On the estimate", why))
        return lines

    def _window_lines(self) -> list[tuple[str, str]]:
        w = self.window
        if w is None:
            return []
        changed = ", ".join(f"{name} (PSI {psi:.2f})" for name, psi in w.changed[:5]) or "none"
        more = f" and {len(w.changed) - 5} more" if len(w.changed) > 5 else ""
        distance = f"KS distance {w.distance:.3f}{', differs' if w.differs else ''}"
        return [
            ("Windows that differ", f"{self.windows_differ} of {self.windows}"),
            ("Last window", f"rows {w.first:,} to {w.last:,}: p-values: {distance}"),
            ("Columns changed", changed + more),
        ]


@dataclass(eq=False, repr=False)
class DriftMonitor(BaseEstimator):
    r"""Notices that a stream is no longer like the reference, without labels, at any time.

    Three sequential tests run over the whole stream: on the p-values, on the mean uncertainty
    (vacuity) and on the share of flagged rows. Each is the wealth of bettors against "nothing has
    changed", which grows only if something has. An alarm is raised once a wealth exceeds its limit.
    On a stream of any length that is like the reference, with batches of any size and however
    often one looks, this ever happens with probability `false_alarm_rate` at most.

    Parameters
    ----------
    false_alarm_rate : float, default=0.01
        Probability of ever raising an alarm without a change, over the draw of reference and
        stream; also the rate of false discoveries in a window.
    window : int, default=1000
        Rows after which a window is closed and tested, column by column. A batch is never cut.
    random_state : int, default=0
        Orders rows of equal p-values.

    Attributes
    ----------
    model_ : str
        Fingerprint of the model.
    rows_, batches_ : int
        Seen so far.
    source_ : str
        Where the reference came from, in words.
    windows_ : list of Window
        The last 400.

    Raises
    ------
    ValueError, TypeError
        From ``fit``: a model without p-values or held-out probabilities, fewer than 50 reference
        rows. From ``update``: another model; NaN; a column that is missing; labels of another type
        than the classes; a number of a batch that came before. Nothing of such a batch is counted.

    Notes
    -----
    Reference rows must be exchangeable with the rows of a stream without change. Rows that the
    model was not fitted on, given as ``fit(model, X)`` or to ``clf.calibrate``, are. Those of
    cross-fitting nearly are: the final model finds new rows a little more typical, and so ranks
    above the median are not told apart. The test of p-values is exact for a finite reference: see
    `dipedl.apps.monitor.bets.ReferenceRanks`. Those of uncertainty and flagged rows bet against the
    upper end of a confidence interval of the reference mean.

    References
    ----------
    V. Vovk, "Testing randomness online", *Statistical Science* 36, 2021; those of the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl import DIPClassifier
    >>> from dipedl.apps.monitor import DriftMonitor
    >>> rng = np.random.default_rng(0)
    >>> def rows(n, moved=0.0):
    ...     y = rng.integers(0, 2, n)
    ...     return rng.normal(size=(n, 2)) + 3 * y[:, None] + moved, y
    >>> clf = DIPClassifier(random_state=0).fit(*rows(500))
    >>> monitor = DriftMonitor().fit(clf)
    >>> monitor.update(clf, rows(1000)[0]).alarms
    ()
    >>> monitor.update(clf, rows(1000, moved=1.5)[0]).alarms
    ('p_values', 'uncertainty', 'flagged')
    """

    false_alarm_rate: float = 0.01
    window: int = 1000
    random_state: int = 0

    def fit(self, model: Any, X: Any = None, *, columns: Sequence[Column] | None = None) -> Self:
        """Take the reference, and begin anew.

        Parameters
        ----------
        model : fitted DIPClassifier, DIPModule or baseline
            Not kept.
        X : array-like, shape (n, d), optional
            In-distribution rows that nothing of the model has seen; their columns are watched too.
            Default: the model's held-out rows, without columns; of a model that ``dipedl fit`` made
            with the columns of its table.
        columns : sequence of Column, optional
            Columns to watch in place of these; an empty one watches none.
        """
        rate = check_rate(self.false_alarm_rate)
        check_integer("window", self.window)
        name = fingerprint(model)
        X = encode_table_rows(model, X)
        if columns is None and X is None and hasattr(model, "table_"):
            known = model.evidence_.columns_
            columns = [known[j] for j in range(len(known.names))]
        # Held-out rows that were given apart from the fit are exchangeable with new rows.
        fresh = X is not None or model.held_out_rows().origin == "given"
        rows = held_out_rows(model) if X is None else rows_of_model(model, X)
        if len(rows) < FEWEST_ROWS:
            raise ValueError(
                f"a reference needs at least {FEWEST_ROWS} rows, got {len(rows)}; give more "
                "in-distribution rows: monitor.fit(model, X)"
            )
        check_seed(self.random_state)
        rng = np.random.default_rng(self.random_state)
        self.model_, self.classes_ = name, np.asarray(model.classes_)
        self.source_ = model.held_out_rows().source if X is None else f"{len(rows)} given rows"
        self.reference_ = ReferenceRanks.of(rows.p_values, rows.weights, rng, both=fresh)
        self.usual_ = {
            name: upper_bound(values, rows.weights, rate * SPENT[name] / 2)
            for name, values in _means(rows).items()
        }
        measured = model.held_out_rows().proba is not None
        self.calibrations_ = calibrations_of(held_out_rows(model) if measured else rows)
        self.columns_ = learn_columns(X) if columns is None else tuple(columns)
        return self._begin()

    def update(
        self, model: Any, X: Any, labels: Any = None, *, batch: int | None = None
    ) -> DriftReport:
        """Take a batch of rows as the model answers them, and report.

        Parameters
        ----------
        model : the model of ``fit``
        X : array-like, shape (n, d)
            In the order of the stream, each row once; no row is no error.
        labels : array-like, shape (n,), optional
            True classes as far as they are known, None elsewhere.
        batch : int, optional
            Number of the batch, which must be larger than that of the one before: a file that is
            given twice, or out of order, is refused.
        """
        check_is_fitted(self, "model_")
        if fingerprint(model) != self.model_:
            raise ValueError(
                f"this monitor was made for the model {self.model_}, or by an earlier version of "
                f"dipedl, got {fingerprint(model)}: give that model, or begin a new monitor"
            )
        self._check_batch(batch)
        X = encode_table_rows(model, X)
        if _row_count(X) == 0:
            return self.report()
        return self._add(rows_of_model(model, X), X, labels, batch)

    def update_answers(self, answers: Any, X: Any = None) -> DriftReport:
        """Take a batch of answers, ``model.answers(X)``; X is needed for columns alone.

        Of a model of a table X are its inputs: ``encode_table_rows(model, X)`` of `dipedl.inputs`.
        """
        check_is_fitted(self, "model_")
        n = len(answers.p_values)
        if X is not None and _row_count(X) not in (n, None):
            raise ValueError(f"X must have one row per answer, got {_row_count(X)} for {n}")
        if n == 0:
            return self.report()
        return self._add(rows_of_answers(answers), X)

    def report(self) -> DriftReport:
        """Return the report so far."""
        check_is_fitted(self, "model_")
        limits = {test: self.limit(test) for test in SPENT}
        highest = {test: float(self.wealth_[test].highest) for test in SPENT}
        windows = self.windows_
        return DriftReport(
            rows=self.rows_,
            batches=self.batches_,
            alarms=tuple(test for test in SPENT if highest[test] >= limits[test]),
            evidence=self._evidence(),
            highest=highest,
            limits=limits,
            window=windows[-1] if windows else None,
            windows=len(windows),
            windows_differ=sum(one.differs or bool(one.changed) for one in windows),
            estimated_accuracy=self.sums_.estimate(self.calibrations_),
            accuracy=self.sums_.accuracy,
            brier=self.sums_.brier,
            false_alarm_rate=self.false_alarm_rate,
            reference=self.source_,
        )

    def limit(self, test: str) -> float:
        """Logarithm of the wealth at which a test raises an alarm."""
        spent = SPENT[test] * (1 if test == "p_values" else 0.5)
        return float(-np.log(self.false_alarm_rate * spent))

    def __add__(self, other: DriftMonitor) -> DriftMonitor:
        """Return the monitor of the rows of two, which began alike and saw different rows.

        Counts, sums, labels and the open window add. Evidence has an order, and that between two
        streams is not known: the sum takes all rows as one batch, of which the evidence is valid,
        and goes on from there. Pooling anew each day is one test a day, not one for ever.
        """
        if not isinstance(other, DriftMonitor):
            return NotImplemented
        check_is_fitted(self, "model_"), check_is_fitted(other, "model_")
        same = self.get_params() == other.get_params() and self.model_ == other.model_
        same = same and len(self.columns_) == len(other.columns_)
        if not same or any(
            not np.array_equal(getattr(self.reference_, name), getattr(other.reference_, name))
            for name in ("cuts", "ties", "sizes")
        ):
            raise ValueError(
                "monitors can be added if they began as copies of one: with the same model, "
                "reference and parameters; save the monitor after fit, and load it on each machine"
            )
        made = copy(self)._begin()
        made.rows_, made.batches_ = self.rows_ + other.rows_, self.batches_ + other.batches_
        made.batch_ = max(self.batch_, other.batch_)
        made.sums_ = self.sums_ + other.sums_
        made.gains_ = {name: gain + other.gains_[name] for name, gain in self.gains_.items()}
        both = sorted(self.windows_ + other.windows_, key=lambda one: one.last)
        made.windows_ = both[-_KEPT_WINDOWS:]
        made.open_ = self.open_ + other.open_
        if made.rows_:
            made._bet(self.counts_ + other.counts_, made.gains_)
        made.counts_ = self.counts_ + other.counts_
        return made

    def _begin(self) -> Self:
        """Forget all rows but the reference."""
        self.rows_, self.batches_, self.batch_ = 0, 0, -1
        self.counts_ = np.zeros(len(self.reference_.sizes))
        self.gains_ = {name: np.zeros(BETTORS) for name in self.usual_}
        self.wealth_ = {name: Wealth.of(BETTORS) for name in self.usual_}
        self.wealth_ |= {"p_values": Wealth.of(self.reference_.bettors)}
        self.sums_ = Sums.empty()
        self.open_ = self._empty_window()
        self.windows_: list[Any] = []
        return self

    def _empty_window(self) -> OpenWindow:
        columns = [np.zeros(len(one.counts)) for one in self.columns_]
        ranges = np.zeros(len(self.reference_.sizes))
        return OpenWindow(ranges, np.zeros(2), columns, Sums.empty())

    def _evidence(self) -> dict[str, float]:
        return {test: float(self.wealth_[test].log_total) for test in SPENT}

    def _check_batch(self, batch: int | None) -> None:
        if batch is not None and not isinstance(batch, int | np.integer):
            raise TypeError(f"batch must be an int, the number of the batch, got {batch!r}")
        if batch is not None and batch <= self.batch_:
            raise ValueError(
                f"batch must be larger than {self.batch_}, the number of the last one, got "
                f"{batch}: a batch that came before, or out of order, is not counted"
            )

    def _add(self, rows: Rows, X: Any, labels: Any = None, batch: int | None = None) -> DriftReport:
        """Count a batch, bet on it and report."""
        # All that can fail comes before the first change.
        columns = count_columns(self.columns_, X) if self.columns_ else []
        sums = Sums.of(rows, self.classes_, labels, self.calibrations_)
        where = self.reference_.place(rows.p_values, self._ties(len(rows)))
        means = _means(rows)
        gains = {name: mean_gains(means[name], most) for name, most in self.usual_.items()}
        for first in range(0, len(rows), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            ranks = self._count(where[some])
            self._bet(ranks, {name: gain[:, some].sum(axis=1) for name, gain in gains.items()})
            self.counts_ = self.counts_ + ranks
        self.gains_ = {name: self.gains_[name] + gain.sum(axis=1) for name, gain in gains.items()}
        self.sums_ = self.sums_ + sums
        self.rows_, self.batches_ = self.rows_ + len(rows), self.batches_ + 1
        self.batch_ = self.batch_ if batch is None else int(batch)
        totals = np.array([means[name].sum() for name in self.usual_])
        self.open_ = self.open_ + OpenWindow(self._count(where), totals, columns, sums)
        if len(self.open_) >= self.window:
            known = self.reference_, self.columns_, self.calibrations_
            rate, evidence = self.false_alarm_rate, self._evidence()
            closed = self.open_.close(self.rows_, *known, rate, evidence)
            self.windows_ = [*self.windows_, closed][-_KEPT_WINDOWS:]
            self.open_ = self._empty_window()
        return self.report()

    def _ties(self, n: int) -> np.ndarray:
        """Random numbers of the next n rows of the stream, however it is cut into batches."""
        stream = np.random.PCG64([self.random_state, 1]).advance(self.rows_)
        return np.random.Generator(stream).random(n)

    def _count(self, where: np.ndarray) -> np.ndarray:
        return np.bincount(where, minlength=len(self.reference_.sizes)).astype(float)

    def _bet(self, ranks: np.ndarray, on_means: dict[str, np.ndarray]) -> None:
        """One bet on rows (K,) by range, after those in `counts_`."""
        gains = {"p_values": self.reference_.gains(self.counts_, ranks), **on_means}
        self.wealth_ = {name: wealth.after(gains[name]) for name, wealth in self.wealth_.items()}


def _means(rows: Rows) -> dict[str, np.ndarray]:
    """Numbers in [0, 1] whose means are tested, each (n,)."""
    return {"uncertainty": np.clip(rows.uncertainty, 0, 1), "flagged": rows.flagged}


def _row_count(X: Any) -> int | None:
    """Rows of X; None of a tuple or a dict, which holds the arguments of a network."""
    if isinstance(X, tuple | dict):
        return None
    return int(X.shape[0] if hasattr(X, "shape") else len(X))

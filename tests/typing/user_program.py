"""What a user's program looks like to a type checker; it runs too."""

from pathlib import Path
from typing import assert_type

import numpy as np
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

import dipedl
from dipedl import DIPClassifier, Dirichlet, DriftMonitor, OODDetector
from dipedl.decisions import conformal_p_values
from dipedl.density import GDADensity, KNNDensity
from dipedl.evidence import CautionBudget
from dipedl.metrics import ood_auroc


def fitted(X: np.ndarray, y: np.ndarray) -> DIPClassifier:
    """A model, as a function of a user's program returns it."""
    clf = DIPClassifier(LogisticRegression(), GDADensity(), normalizer=CautionBudget(), cv=2)
    return assert_type(clf.fit(X, y), DIPClassifier)


def main(folder: Path) -> None:
    data = dipedl.datasets.load_moons()
    clf = fitted(data.X_train, data.y_train)
    answer = assert_type(clf.predict_dirichlet(data.X_test), Dirichlet)
    vacuity = assert_type(clf.uncertainty(data.X_test), np.ndarray)
    flagged = clf.predict_ood(data.X_test, alpha=0.1) == -1
    rejection = clf.predict_with_reject(data.X_test, coverage=0.8)
    print(answer.mean.shape, vacuity.mean(), flagged.mean(), rejection.accepted.mean())
    print(clf.answers(data.X_test).p_values[:3], clf.diagnose().codes)
    detector = OODDetector(clf, false_alarm_rate=0.01)
    print(assert_type(detector.predict(data.ood["far"]), np.ndarray).mean())
    clf.save(folder / "moons.dipedl")
    again = dipedl.load(folder / "moons.dipedl")
    print((again.predict_proba(data.X_test) == clf.predict_proba(data.X_test)).all())
    scores = clf.score_samples(data.X_test)
    print(conformal_p_values(scores, scores)[:2], KNNDensity(5))
    print(ood_auroc(vacuity, clf.uncertainty(data.ood["far"])))
    print(DriftMonitor().fit(clf).update(clf, data.X_test).alarms)


if __name__ == "__main__":
    main(Path("."))

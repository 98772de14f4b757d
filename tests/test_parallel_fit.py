"""Folds in several processes, and the lines that a fit prints."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from dipedl import DIPClassifier, OODDetector

X, Y = load_wine(return_X_y=True)


@pytest.mark.parametrize("seed", [None, 3, np.random.RandomState])
def test_results_do_not_depend_on_the_number_of_processes(seed):
    forest = RandomForestClassifier(10, random_state=0)

    def fitted(n_jobs):
        random_state = seed(5) if callable(seed) else seed
        return DIPClassifier(forest, random_state=random_state, n_jobs=n_jobs).fit(X, Y)

    one, two = fitted(None), fitted(2)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.evidence_.held_out_.scores, two.evidence_.held_out_.scores)


def test_the_detector_takes_both_from_its_classifier(capsys):
    one = OODDetector().fit(X)
    two = OODDetector(DIPClassifier(n_jobs=2, verbose=1)).fit(X)
    np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))
    assert "[dipedl] candidate neighbours fitted" in capsys.readouterr().out


def test_a_verbose_fit_prints_a_line_per_candidate_and_per_fold(capsys):
    DIPClassifier(cv=3, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[dipedl] ") and line.endswith(" s") for line in lines)
    assert sum("candidate" in line for line in lines) == 6
    assert sum("fold: classifier fitted on" in line for line in lines) == 3
    assert sum("fold: density fitted" in line for line in lines) == 3
    assert "classifier fitted on 178 rows" in lines[0]


def test_a_fit_is_silent_by_default(capsys):
    DIPClassifier(cv=2).fit(X, Y)
    assert capsys.readouterr().out == ""

"""The file of a crossed suite: what it may hold, and what is said of what it may not."""

import pytest
from tiny_crossed import TINY_CROSSED

from dipedl_bench.spec.plan import plan
from dipedl_bench.spec.suite import parse_suite


def tiny(**changes):
    text = TINY_CROSSED
    for old, new in changes.items():
        assert text.count(old) >= 1
        text = text.replace(old, new)
    return parse_suite(text, "tiny.toml")


def cells(suite, profile="smoke", **options):
    return plan(suite, profile, "tiny.toml", **options)


def place(cell):
    head = cell.heads[0]
    return head["dataset"], head["classifier"], cell.seed


def test_the_first_seed_of_all_comes_before_the_second_of_any():
    found = [place(cell) for cell in cells(tiny())]
    pairs = [("flowers", "logistic"), ("wines", "logistic"), ("wines", "trees")]
    assert found == [(*pair, seed) for seed in (1, 2) for pair in pairs]


def test_a_profile_may_have_seeds_of_its_own_and_the_call_decides():
    assert {c.seed for c in cells(tiny(), "net")} == {3}
    assert {c.seed for c in cells(tiny(), seeds=[5])} == {5}


def test_the_tightest_limit_counts():
    suite = tiny(
        **{
            "frozen = true": "frozen = true\nlimit = { train = 150, test = 90 }",
            'title = "Digits"': 'title = "Digits"\nlimit = { ood = 20 }',
        }
    )
    (cell,) = cells(suite, "net")
    assert cell.heads[0]["config"]["data"]["limit"] == {
        "train": 150,
        "validation": 60,
        "test": 80,
        "ood": 20,
    }


def test_what_changes_an_answer_changes_the_hash_and_a_title_does_not():
    def digests(suite):
        return [head["config_hash"] for head in cells(suite, methods=["default"])[0].heads]

    here = digests(tiny())
    assert len(set(here)) == 2
    assert digests(tiny(**{'title = "ours"': 'title = "other"'})) == here
    other = digests(tiny(**{'name = "ZScore"': 'name = "RobustZScore"'}))
    assert not set(other) & set(here)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title = ", "titel = ", "titel"),
        ('classifiers = ["logistic", "trees"]', 'classifiers = ["tree"]', "did you mean 'trees'"),
        ('datasets = ["flowers", "wines"]', 'datasets = ["wine"]', "did you mean 'wines'"),
        ('group = "bare"', 'group = "baseline"', "one method must be of the group 'bare'"),
        ('group = "ours"', 'group = "our"', "methods.default: group"),
        ("resamples = 40", "resamples = 9", "must be 0 or at least 40, got 9"),
        ("leave_out = 1", "leave_out = -1", "greater than or equal to 0, got -1"),
        ("[methods.energy]", "[methods.energy", "not TOML"),
        ("leave_out = 1", 'leave_out = "one"', "integer, got 'one'"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_place(old, new, message):
    with pytest.raises(ValueError, match=r"tiny\.toml: ") as refused:
        tiny(**{old: new})
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('loader = "sklearn:iris"', 'loader = "sklearn:irsi"', "did you mean 'sklearn:iris'"),
        ('estimator = "LogisticRegression"', 'estimator = "Logistic"', "LogisticRegression"),
        ("n_estimators = 10", "n_estimator = 10", "did you mean 'n_estimators'"),
    ],
)
def test_a_loader_a_class_or_an_argument_that_is_not_there_is_said_before_anything(
    old, new, message
):
    with pytest.raises(ValueError, match=r"tiny\.toml: (datasets|classifiers)\.") as refused:
        cells(tiny(**{old: new}))
    assert message in str(refused.value)


def test_a_measure_names_a_method_and_knows_its_keys():
    measure = """
[[measures]]
statement = "no worse"
what = "compare"
against = "temprature"
found = "{mean}"
"""
    with pytest.raises(ValueError, match=r"measures\[0\].against: .*did you mean 'temperature'"):
        parse_suite(TINY_CROSSED + measure, "tiny.toml")
    with pytest.raises(ValueError, match="unknown key 'statment', did you mean 'statement'"):
        parse_suite(TINY_CROSSED + measure.replace("statement", "statment"), "tiny.toml")

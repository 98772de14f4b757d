"""The study's file: what it may hold, and what is said of what it may not."""

import pytest

pytest.importorskip("pydantic")

from tiny_study import TINY_STUDY

from dipedl.bench.honest.plan import plan_cells, plan_tasks
from dipedl.bench.honest.study import is_study, load_study, parse_study


def tiny(**changes):
    text = TINY_STUDY
    for old, new in changes.items():
        assert text.count(old) >= 1
        text = text.replace(old, new)
    return parse_study(text, "tiny.toml")


def cells(study, profile="smoke", **options):
    names = study.chosen_datasets(profile, options.pop("datasets", None))
    classifiers = options.pop("classifiers", None)
    return plan_cells(study, profile, names, classifiers, options.pop("seeds", None), "tiny.toml")


def test_every_method_and_cell_of_the_packaged_study_can_be_made():
    study = load_study("honest")
    for profile in study.profiles:
        tasks = plan_tasks(study, study.chosen_methods(profile, None), "honest.toml")
        assert {task.name for task in tasks} >= {"default", "max-softmax", "temperature"}
        found = cells(study, profile)
        assert len({(c.dataset, c.classifier, c.seed) for c in found}) == len(found)
    assert study.bare == "max-softmax"


def test_the_first_seed_of_all_comes_before_the_second_of_any():
    found = [(c.dataset, c.classifier, c.seed) for c in cells(tiny())]
    pairs = [("flowers", "logistic"), ("wines", "logistic"), ("wines", "trees")]
    assert found == [(*pair, seed) for seed in (1, 2) for pair in pairs]


def test_a_data_set_or_a_profile_may_have_seeds_of_its_own_and_the_call_decides():
    study = tiny(**{'title = "Wine"': 'title = "Wine"\nseeds = [7]'})
    assert {c.seed for c in cells(study, datasets=["wines"])} == {7}
    assert {c.seed for c in cells(study, datasets=["flowers"])} == {1, 2}
    assert {c.seed for c in cells(study, "net")} == {3}
    assert {c.seed for c in cells(study, seeds=[5])} == {5}


def test_the_tightest_limit_counts():
    study = tiny(
        **{
            "frozen = true": "frozen = true\nlimit = { train = 150, test = 90 }",
            'title = "Digits"': 'title = "Digits"\nlimit = { ood = 20 }',
        }
    )
    (cell,) = cells(study, "net")
    assert cell.data["limit"] == {"train": 150, "validation": 60, "test": 80, "ood": 20}


def test_a_profile_changes_single_arguments_of_a_classifier():
    (cell,) = cells(tiny(), "net")
    settings = cell.config["classifier"]["settings"]
    assert settings["training"]["settings"]["epochs"] == 2
    assert settings["training"]["settings"]["batch_size"] == 32


def test_what_changes_an_answer_changes_the_hash_and_a_title_does_not():
    def digests(study):
        (task,) = plan_tasks(study, ["default"], "tiny.toml")
        cell = cells(study)[0]
        return [task.digest(cell, kind) for kind in task.kinds.values()]

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
        ('group = "ours"', 'group = "our"', "methods.default.group"),
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('estimator = "Energy"', 'estimator = "Enrgy"', "did you mean 'Energy'"),
        ('covariance_type = "tied"', 'covariance = "tied"', "did you mean 'covariance_type'"),
        ('estimator = "MaxSoftmax"', 'estimator = "MaxSoftmax"\nkinds = ["x"]', "one kind only"),
    ],
)
def test_a_method_that_cannot_be_made_is_said_before_anything(old, new, message):
    study = tiny(**{old: new})
    with pytest.raises(ValueError, match=r"tiny\.toml: methods\.") as refused:
        plan_tasks(study, study.methods, "tiny.toml")
    assert message in str(refused.value)


def test_a_study_is_told_from_a_suite(tmp_path):
    assert is_study("honest") and not is_study("mnist")
    path = tmp_path / "mine.toml"
    path.write_text(TINY_STUDY)
    assert is_study(path) and load_study(path).name == "tiny-study"
    path.write_text("[suite]\n")
    assert not is_study(path)
    with pytest.raises(ValueError, match="unknown study 'honst', did you mean 'honest'"):
        load_study("honst")

"""Published rows stand for today's suites; changed settings are told."""

from pathlib import Path

import pytest

from dipedl_bench import load_rows, load_suite
from dipedl_bench.results.receipt import config_hash
from dipedl_bench.running.verify import changes
from dipedl_bench.spec.plan import method_parts, plan
from dipedl_bench.tables.provenance import DEFAULT_CHANGED

ROOT = Path(__file__).parent.parent / "results" / "bench"
SUITES = ("mnist", "cifar10", "cifar10-resnet", "spectra", "defaults", "second-order")


@pytest.fixture(scope="module")
def rows():
    return [row for suite in SUITES for row in load_rows(suite, out=ROOT)]


def today(row):
    """The method as a run of today would make its row."""
    where = f"{row['suite']}.toml"
    (part,) = method_parts(load_suite(row["suite"]), row["profile"], [row["method"]], where)
    return part


def test_published_rows_keep_their_configuration_and_its_hash(rows):
    assert all(config_hash(row["config"]) == row["config_hash"] for row in rows)


def test_a_run_of_today_would_make_the_published_rows_and_no_others(rows):
    def place(row):
        names = ("suite", "profile", "dataset", "classifier", "method")
        return tuple(row.get(name) for name in names)

    by_plan = {}
    for row in rows:
        by_plan.setdefault((row["suite"], row["profile"]), []).append(row)
    for (suite, profile), of_plan in by_plan.items():
        cells = plan(load_suite(suite), profile, f"{suite}.toml")
        heads = {place(head): head for cell in cells for head in cell.heads}
        other = [r for r in of_plan if heads[place(r)]["config_hash"] != r["config_hash"]]
        # rows older than today's default say which prior they have, and no other change
        for row in other:
            assert row["time"] < DEFAULT_CHANGED, place(row)
            assert changes(row["config"], heads[place(row)]["config"]) in PRIOR_CHANGES, place(row)


#: The ways in which rows tell that the default prior was 1.
PRIOR_CHANGES = (
    ["`prior` was 1.0 and is 0.5 now"],
    ["`method.prior` was 1.0 and is 0.5 now"],
    ["`prior` was not there and is 0.5 now"],  # of DIPModule
)


def test_each_changed_setting_is_told_once_in_the_words_of_a_suite(rows):
    row = next(row for row in rows if row["method"] == "dip-edl" and row["suite"] == "cifar10")
    old, new = row["config"], today(row).config
    assert changes(old, new) == []
    for part in (new["below"]["classifier"], new["below"]["density"]["below"]["classifier"]):
        part["arguments"]["training"]["settings"]["epochs"] = 3
    new["arguments"]["normalizer"] = {"class": "QuantileEvidence", "settings": {}}
    new["sees"] = "pixels"
    assert changes(old, new) == [
        '`normalizer.class` was "ZScore" and is "QuantileEvidence" now',
        "`training.epochs` was 32 and is 3 now",
        '`sees` was not there and is "pixels" now',
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"a": 1}, {"a": 1.0}, "`a` was 1 and is 1.0 now"),
        ({"a": True}, {"a": 1}, "`a` was true and is 1 now"),
        ({"a": None}, {}, "`a` was null and is not there now"),
        ({"below": {"net": {"x": 1}}}, {}, "`net.x` was 1 and is not there now"),
    ],
)
def test_whatever_gives_another_hash_is_told(old, new, told):
    assert config_hash(old) != config_hash(new) and changes(old, new) == [told]

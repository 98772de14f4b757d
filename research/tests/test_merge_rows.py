"""Rows of other machines stay below the folder of results."""

import json

import pytest

from dipedl_bench.results.merge import merge


@pytest.mark.parametrize("name", ["..", "a/b", "/tmp", "", 3, None])
def test_merged_rows_stay_below_the_folder_of_results(tmp_path, name):
    (tmp_path / "rows.jsonl").write_text(json.dumps(row_of(suite=name)) + "\n")
    with pytest.raises(ValueError, match="whose suite is no name"):
        merge([tmp_path / "rows.jsonl"], tmp_path / "results")
    assert not (tmp_path / "results").exists()


def row_of(**given):
    key = {"suite": "s", "profile": "p", "method": "m", "config_hash": "h", "seed": 0}
    told = {"title": "M", "config": {}, "versions": {}, "metrics": {}, "intervals": {}}
    return key | told | given

"""Names of columns as they are typed in the shell, in options and in remedies."""

import json
import re
import shlex

import pandas as pd
import pytest

pytest.importorskip("pyarrow")

from dipedl.apps.cli.terminal import as_typed, names_in, pairs_in, with_options
from dipedl.apps.table.columns import guess
from dipedl.apps.table.errors import UserError
from passengers import passengers

NAMES = [["a"], ["a", "b c"], ["Umsatz, netto", "b"], ['a "q"'], ["it's"], ["€ $HOME"], ["a\nb"]]


@pytest.mark.parametrize("names", NAMES)
def test_names_are_read_as_they_are_written(names):
    (typed,) = shlex.split(as_typed(names))
    assert names_in(typed) == names
    kinds = {name: "category" for name in names}
    (typed,) = shlex.split(as_typed(f"{name}=category" for name in names))
    assert pairs_in(typed) == kinds


@pytest.mark.parametrize("typed", [" a , b ", "a,,b,", '"a",  "b"'])
def test_blanks_between_names_say_nothing(typed):
    assert names_in(typed) == ["a", "b"]


def test_what_check_advises_can_be_typed(run, tmp_path):
    made = passengers(300).rename(columns={"passenger": "Kunde Nr.", "fare": "fare, €"})
    made = made.assign(leak=made["survived"].map({"yes": "a", "no": "b"}), twin=made["fare, €"])
    made = made.rename(columns={"leak": "it's out", "twin": "twin, of fare"})
    made = made.assign(**{"year, of ship": "1912", "ship $": "T"})
    made.to_csv(tmp_path / "data.csv", index=False)
    given = ["check", tmp_path / "data.csv", "--target", "survived"]
    findings = json.loads(run(*given, "--json").stdout)["findings"]
    words = [shlex.split(f["remedy"]) for f in findings if "--drop" in f["remedy"]]
    dropped = [said[said.index("--drop") + 1].rstrip(":,") for said in words]
    assert len(dropped) == 5
    done = run(*given, "--drop", ",".join(dropped))
    assert done.exit_code == 0 and "--drop" not in done.stdout, done.output


@pytest.mark.parametrize("name", ["Nr. €", "a, b", "it's"])
def test_what_mixed_types_advise_can_be_typed(name):
    values = pd.Series([*"123456789", odd := "not 'known', yet"], dtype=object)
    with pytest.raises(UserError) as caught:
        guess(values, name)
    typed = re.search(
        "--gaps (.+), if these are codes: --types (.+)$", with_options(str(caught.value))
    ).groups()
    gaps, types = (shlex.split(each)[0] for each in typed)
    assert (names_in(gaps), pairs_in(types)) == ([odd], {name: "category"})

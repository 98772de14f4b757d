"""Put finished runs of `dipedl bench run spectra` under results/bench, as their receipts.

    python benchmarks/publish_spectra.py [--to ROOT] FOLDER [FOLDER ...]

FOLDERs are what ``--out`` named; what they hold of the profiles scarce, cpu and published is
joined. Of each method rows of the latest configuration are kept, and what the arrays say of a
collapsed method; arrays and weights are too large. Afterwards: ``python benchmarks/tables.py``.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from publishing import ROOT, keep_rows, stores_with_rows

from dipedl.bench.results.row_file import write_whole
from dipedl.bench.tables.diagnosis import diagnosed

SUITE, PROFILES = "spectra", ("scarce", "cpu", "published")


def publish(folders: Iterable[str | Path], profile: str, root: Path = ROOT) -> int:
    """Rows and diagnoses of one profile; gives the number of rows.

    Where the arrays of a run are gone, a diagnosis that was made of them stays as it is.
    """
    stores, target = stores_with_rows(folders, SUITE, profile), root / SUITE / profile
    rows = keep_rows(stores, target)
    found = diagnosed(stores)
    if found:
        text = json.dumps(found, indent=1, allow_nan=False) + "\n"
        write_whole(target / "diagnosis.json", text.encode())
    return len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--to", type=Path, default=ROOT)
    asked = parser.parse_args()
    for profile in PROFILES:
        print(profile, publish(asked.folders, profile, asked.to), "rows")


if __name__ == "__main__":
    main()

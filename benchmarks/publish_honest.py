"""Put a finished `dipedl bench run honest --profile cpu` under results/bench, as its receipts.

    python benchmarks/publish_honest.py FOLDER [FOLDER ...]

FOLDERs are what ``--out`` named; runs of several machines or processes are joined. Of each method,
data set, classifier and seed the rows of the latest configuration are kept.
"""

import sys
from pathlib import Path

from dipedl.bench import Store
from dipedl.bench.results.row_file import as_line, write_whole
from dipedl.bench.tables.table import latest_by

ROOT = Path(__file__).parent.parent / "results" / "bench"
STUDY, PROFILE = "honest", "cpu"


def main(folders: list[str]) -> None:
    stores = [Store(folder, STUDY, PROFILE) for folder in folders]
    rows = [row for store in stores for row in store.rows()]
    kept = latest_by(rows, ("dataset", "classifier", "method"))
    target = ROOT / STUDY / PROFILE
    target.mkdir(parents=True, exist_ok=True)
    write_whole(target / "rows.jsonl", b"".join(as_line(row) for row in kept))


if __name__ == "__main__":
    main(sys.argv[1:])

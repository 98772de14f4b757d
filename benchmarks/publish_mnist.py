"""Put a finished `dipedl bench run mnist --profile cpu` under results/bench, as its receipts.

    python benchmarks/publish_mnist.py FOLDER [FOLDER ...]

FOLDERs are what ``--out`` named; runs of several machines or processes are joined. Rows and the
sweeps that derive from the stored arrays are kept; the arrays themselves are too large.
"""

import sys
from pathlib import Path

from publishing import ROOT, publish

from dipedl.bench.studies import toys


def main(folders: list[str]) -> None:
    publish(folders, "mnist", "cpu")
    for folder in folders:
        kept = Path(folder) / toys.FOLDER
        for path in kept.glob("*.json"):
            (ROOT / toys.FOLDER).mkdir(parents=True, exist_ok=True)
            (ROOT / toys.FOLDER / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main(sys.argv[1:])

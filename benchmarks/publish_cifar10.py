"""Put finished runs of `dipedl bench run cifar10` under results/bench, as their receipts.

    python benchmarks/publish_cifar10.py [--to ROOT] FOLDER [FOLDER ...]

FOLDERs are what ``--out`` named, or ROOTs that this script wrote on another machine; what they hold
of the profiles cpu, h200 and paper is joined. Rows, and the sweeps that derive from the stored
arrays, are kept; arrays and weights are too large. Afterwards: ``python benchmarks/tables.py``.
"""

import argparse
from pathlib import Path

from publishing import ROOT, publish

PROFILES = ("cpu", "h200", "paper")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--to", type=Path, default=ROOT)
    asked = parser.parse_args()
    for profile in PROFILES:
        print(profile, publish(asked.folders, "cifar10", profile, asked.to), "rows")


if __name__ == "__main__":
    main()

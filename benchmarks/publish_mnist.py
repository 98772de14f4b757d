"""Put a finished `dipedl bench run mnist --profile cpu` under results/bench, as its receipts.

    python benchmarks/publish_mnist.py FOLDER [FOLDER ...]

FOLDERs are what ``--out`` named; runs of several machines or processes are joined. Rows and the
sweeps that derive from the stored arrays are kept; the arrays themselves are too large.
"""

import json
import sys
from pathlib import Path

from dipedl.bench import Store, sweeps, toys
from dipedl.bench.table import latest
from dipedl.bench.trivial import stored_trivial_lines

ROOT = Path(__file__).parent.parent / "results" / "bench"
SUITE, PROFILE = "mnist", "cpu"
MAKERS = {
    "ablation": sweeps.ablation_lines,
    "float32": sweeps.float32_lines,
    "gamma": sweeps.gamma_lines,
    "sigma": sweeps.sigma_lines,
}


def main(folders: list[str]) -> None:
    stores = [Store(folder, SUITE, PROFILE) for folder in folders]
    target = ROOT / SUITE / PROFILE
    target.mkdir(parents=True, exist_ok=True)
    rows = latest(row for store in stores for row in store.rows())
    rows.sort(key=lambda row: row["seed"])
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (target / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    stored_trivial_lines(stores[0])
    (target / "trivial.json").write_bytes((stores[0].folder / "trivial.json").read_bytes())
    parts = {}
    for store in stores:
        parts |= sweeps.stored_parts(store)
    ordered = [parts[seed] for seed in sorted(parts)]
    found = {
        what: {
            line.name: {"title": line.title, **{k: c.as_json() for k, c in line.cells.items()}}
            for line in make(ordered, SUITE)
        }
        for what, make in MAKERS.items()
    }
    text = json.dumps({"seeds": sorted(parts), "sweeps": found}, indent=1)
    (target / "sweeps.json").write_text(text + "\n", encoding="utf-8")
    keep_toys(folders)


def keep_toys(folders: list[str]) -> None:
    for folder in folders:
        kept = Path(folder) / toys.FOLDER
        for path in kept.glob("*.json"):
            (ROOT / toys.FOLDER).mkdir(parents=True, exist_ok=True)
            (ROOT / toys.FOLDER / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main(sys.argv[1:])

"""What the scripts share that put a finished run under results/bench, as its receipts."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dipedl.bench import Store
from dipedl.bench.results.row_file import as_line, write_whole
from dipedl.bench.studies import sweeps
from dipedl.bench.tables.table import latest, paper_suite
from dipedl.bench.tables.trivial import stored_trivial_lines

ROOT = Path(__file__).parent.parent / "results" / "bench"
MAKERS = {
    "ablation": sweeps.ablation_lines,
    "float32": sweeps.float32_lines,
    "gamma": sweeps.gamma_lines,
    "sigma": sweeps.sigma_lines,
}


def publish(folders: Iterable[str | Path], suite: str, profile: str, root: Path = ROOT) -> int:
    """Rows, trivial detectors and sweeps of one profile; gives the number of rows.

    Of each method rows of the latest configuration are kept. The sweeps derive from the stored
    arrays, which are too large to keep; those of a run whose arrays are gone are taken as they are.
    """
    stores = stores_with_rows(folders, suite, profile)
    target = root / suite / profile
    rows = keep_rows(stores, target)
    if rows:
        keep_trivial(stores, target)
        keep_sweeps(stores, target, paper_suite(rows))
    return len(rows)


def stores_with_rows(folders: Iterable[str | Path], suite: str, profile: str) -> list[Store]:
    stores = [Store(folder, suite, profile) for folder in folders]
    return [store for store in stores if store.rows_file.exists()]


def keep_rows(stores: list[Store], target: Path) -> list[dict[str, Any]]:
    rows = sorted(
        latest(row for store in stores for row in store.rows()), key=lambda row: row["seed"]
    )
    if rows:
        target.mkdir(parents=True, exist_ok=True)
        write_whole(target / "rows.jsonl", b"".join(as_line(row) for row in rows))
    return rows


def keep_trivial(stores: list[Store], target: Path) -> None:
    store = next((s for s in stores if (s.folder / "trivial.json").exists()), stores[0])
    stored_trivial_lines(store)  # makes the file where it is not there
    write_whole(target / "trivial.json", (store.folder / "trivial.json").read_bytes())


def keep_sweeps(stores: list[Store], target: Path, published: str) -> None:
    parts = {}
    for store in stores:
        there = any(row["method"] == "dip-edl" for row in store.rows())
        if there and (store.folder / "arrays").is_dir():
            parts |= sweeps.stored_parts(store)
    ordered = [parts[seed] for seed in sorted(parts)]
    ready = [s.folder / "sweeps.json" for s in stores if (s.folder / "sweeps.json").exists()]
    if not ordered:
        if ready:
            write_whole(target / "sweeps.json", ready[0].read_bytes())
        return
    found = {
        what: {
            line.name: {"title": line.title, **{k: c.as_json() for k, c in line.cells.items()}}
            for line in make(ordered, published)
        }
        for what, make in MAKERS.items()
    }
    text = json.dumps({"seeds": sorted(parts), "sweeps": found}, indent=1) + "\n"
    write_whole(target / "sweeps.json", text.encode())

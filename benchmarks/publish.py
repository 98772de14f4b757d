"""Put finished runs under results/bench as receipts, and write the pages of results from them.

    python benchmarks/publish.py [--to ROOT] [SUITE [FOLDER ...]]

FOLDERs are what ``--out`` named; runs of several machines or processes are joined. Of each method
the rows of the latest configuration are kept, and what derives from stored predictions, which are
too large to keep: sweeps and diagnoses. Which profiles count and what is kept follow from the page
in the captions of the suite. Then docs/reference/results-SUITE.md is written; without a SUITE all
such pages. The toy experiments (SUITE "toys") have a page, too.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from diagnosis import diagnosed
from pages.page import page_of
from pages.toys import page_of_toys

from dipedl._writing import write_file
from dipedl.bench import Store, suite_names
from dipedl.bench.results.row_file import as_line
from dipedl.bench.spec.captions import captions_of
from dipedl.bench.studies import sweeps, toys
from dipedl.bench.tables.table import latest, paper_suite
from dipedl.bench.tables.trivial import stored_trivial_lines

REPOSITORY = Path(__file__).parent.parent
ROOT = REPOSITORY / "results" / "bench"
PICTURE = REPOSITORY / "docs" / "images" / "toy_two_moons.png"
MAKERS = {
    "ablation": sweeps.ablation_lines,
    "float32": sweeps.float32_lines,
    "gamma": sweeps.gamma_lines,
    "sigma": sweeps.sigma_lines,
}


def published() -> list[str]:
    """Suites that have a page of results."""
    return [name for name in suite_names() if captions_of(name).page is not None]


def publish(folders: Iterable[str | Path], suite: str, root: Path = ROOT) -> dict[str, int]:
    """Rows, and what derives from predictions; gives the number of rows by profile."""
    folders = list(folders)
    if suite == toys.FOLDER:
        keep_toys(folders, root)
        return {}
    page = captions_of(suite).page
    if page is None:
        raise ValueError(f"suite must be one of {published()}, got {suite!r}")
    kinds = {section.kind for section in page.sections}
    return {profile: keep(folders, suite, profile, root, kinds) for profile in page.profiles}


def keep(
    folders: Iterable[str | Path], suite: str, profile: str, root: Path, kinds: set[str]
) -> int:
    stores = [Store(folder, suite, profile) for folder in folders]
    stores = [store for store in stores if store.rows_file.exists()]
    target = root / suite / profile
    rows = keep_rows(stores, target)
    if rows and "ablation" in kinds:
        keep_trivial(stores, target)
        keep_sweeps(stores, target, paper_suite(rows))
    if rows and "collapse" in kinds:
        keep_diagnoses(stores, target)
    return len(rows)


def keep_rows(stores: list[Store], target: Path) -> list[Mapping[str, Any]]:
    rows = latest(row for store in stores for row in store.rows())
    if rows:
        target.mkdir(parents=True, exist_ok=True)
        rows.sort(key=lambda row: row["seed"])
        write_file(target / "rows.jsonl", b"".join(as_line(row) for row in rows))
    return rows


def keep_trivial(stores: list[Store], target: Path) -> None:
    store = next((s for s in stores if (s.folder / "trivial.json").exists()), stores[0])
    stored_trivial_lines(store)  # makes the file where it is not there
    write_file(target / "trivial.json", (store.folder / "trivial.json").read_bytes())


def keep_sweeps(stores: list[Store], target: Path, paper: str) -> None:
    """Sweeps over all seeds whose predictions are there; those of a run without any as they are."""
    parts = {}
    for store in stores:
        there = any(row["method"] == "dip-edl" for row in store.rows())
        if there and (store.folder / "arrays").is_dir():
            parts |= sweeps.stored_parts(store)
    ordered = [parts[seed] for seed in sorted(parts)]
    ready = [s.folder / "sweeps.json" for s in stores if (s.folder / "sweeps.json").exists()]
    if ordered:
        found = {what: swept(make(ordered, paper)) for what, make in MAKERS.items()}
        text = json.dumps({"seeds": sorted(parts), "sweeps": found}, indent=1) + "\n"
        write_file(target / "sweeps.json", text.encode())
    elif ready:
        write_file(target / "sweeps.json", ready[0].read_bytes())


def swept(lines: Iterable[Any]) -> dict[str, dict[str, Any]]:
    return {
        line.name: {"title": line.title, **{k: c.as_json() for k, c in line.cells.items()}}
        for line in lines
    }


def keep_diagnoses(stores: list[Store], target: Path) -> None:
    """Where the predictions of a run are gone, a diagnosis that was made of them stays as it is."""
    found = diagnosed(stores)
    if found:
        text = json.dumps(found, indent=1, allow_nan=False) + "\n"
        write_file(target / "diagnosis.json", text.encode())


def keep_toys(folders: Iterable[str | Path], root: Path) -> None:
    """The rows of both experiments, and the picture of two moons."""
    for folder in folders:
        found = Path(folder, toys.FOLDER)
        (root / toys.FOLDER).mkdir(parents=True, exist_ok=True)
        for path in found.glob("*.json"):
            write_file(root / toys.FOLDER / path.name, path.read_bytes())
        write_file(PICTURE, (found / "two_moons.png").read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    pages = [*published(), toys.FOLDER]
    parser.add_argument("suite", nargs="?", choices=pages)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--to", type=Path, default=ROOT, help="instead of results/bench")
    given = parser.parse_args()
    if given.folders:
        print(publish(given.folders, given.suite, given.to))
    for suite in [given.suite] if given.suite else pages:
        page = REPOSITORY / "docs" / "reference" / f"results-{suite}.md"
        write_file(
            page, page_of_toys(given.to) if suite == toys.FOLDER else page_of(suite, given.to)
        )


if __name__ == "__main__":
    main()

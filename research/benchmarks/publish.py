"""Put finished runs under results/bench as receipts, and write the pages of results from them.

    python benchmarks/publish.py [--to ROOT] [SUITE [FOLDER ...]]

FOLDERs are what ``--out`` named; runs of several machines or processes are joined, and join what is
published already. Of each method the configuration in the last FOLDER is kept: its rows, and what
derives from stored predictions, which are too large to keep: sweeps and diagnoses. Which profiles
count and what is kept follow from the page in the captions of the suite. Then
docs/results-SUITE.md is written; without a SUITE all such pages. The toy experiments
(SUITE "toys") have a page, too.
"""

import argparse
import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from diagnosis import diagnosed
from pages.histograms import draw
from pages.page import page_of
from pages.source import Source
from pages.toys import page_of_toys

from dipedl_bench import Store, suite_names
from dipedl_bench.results.files import read_file
from dipedl_bench.results.parts import write_parts
from dipedl_bench.results.rows import as_line
from dipedl_bench.spec.captions import captions_of
from dipedl_bench.studies import sweeps, toys
from dipedl_bench.tables.table import latest, paper_suite
from dipedl_bench.tables.trivial import stored_trivial_lines
from dipedl_bench.writing import write_file

REPOSITORY = Path(__file__).parent.parent
ROOT = REPOSITORY / "results" / "bench"
IMAGES = REPOSITORY / "docs" / "images"
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
    """Rows, and what derives from predictions; gives the number of rows by profile, 0 if no new."""
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
    if not stores:
        return 0
    target = root / suite / profile
    stores.insert(0, Store(root, suite, profile))
    rows = keep_rows(stores, target)
    if "ablation" in kinds:
        keep_trivial(stores, target)
        keep_sweeps(stores, Store(root, suite, profile), rows)
    if "collapse" in kinds:
        keep_diagnoses(stores, target)
    return len(rows)


def keep_rows(stores: list[Store], target: Path) -> list[Mapping[str, Any]]:
    rows = latest(row for store in stores for row in store.rows())
    target.mkdir(parents=True, exist_ok=True)
    rows.sort(key=lambda row: row["seed"])
    write_file(target / "rows.jsonl", b"".join(as_line(row) for row in rows))
    return rows


def keep_trivial(stores: list[Store], target: Path) -> None:
    newest = stores[::-1]
    store = next((s for s in newest if (s.folder / "trivial.json").exists()), newest[0])
    stored_trivial_lines(store)  # makes the file where it is not there
    write_file(target / "trivial.json", (store.folder / "trivial.json").read_bytes())


def keep_sweeps(stores: list[Store], target: Store, rows: list[Mapping[str, Any]]) -> None:
    """What sweeps and figures of DIP-EDL derive from, and the sweeps, those over the most seeds."""
    mine = [row for row in rows if row["method"] == "dip-edl"]
    parts = {}
    for row, store in itertools.product(mine, stores):
        stored = store.has_arrays("dip-edl", row["config_hash"], row["seed"])
        if stored or sweeps.parts_file(store, row).exists():
            parts[row["seed"]] = sweeps.parts_of(store, row)
            write_parts(sweeps.parts_file(target, row), parts[row["seed"]])
    hashes = sorted({row["config_hash"] for row in mine})
    files = [s.folder / "sweeps.json" for s in stores if (s.folder / "sweeps.json").exists()]
    known = [of for of in map(read_file, files) if set(of["hashes"]) <= set(hashes)]
    kept = max(known, key=lambda of: len(of["seeds"]), default={"seeds": []})
    if len(parts) >= max(1, len(kept["seeds"])):
        ordered, paper = [parts[seed] for seed in sorted(parts)], paper_suite(rows)
        found = {what: swept(make(ordered, paper)) for what, make in MAKERS.items()}
        kept = {"seeds": sorted(parts), "hashes": hashes, "sweeps": found}
    if kept["seeds"]:
        write_file(target.folder / "sweeps.json", json.dumps(kept, indent=1) + "\n")
    else:
        (target.folder / "sweeps.json").unlink(missing_ok=True)


def swept(lines: Iterable[Any]) -> dict[str, dict[str, Any]]:
    return {
        line.name: {"title": line.title, **{k: c.as_json() for k, c in line.cells.items()}}
        for line in lines
    }


def keep_diagnoses(stores: list[Store], target: Path) -> None:
    """Where the predictions of a row are gone, a diagnosis that was made of them stays as it is."""
    file, made = target / "diagnosis.json", diagnosed(stores)
    if made:
        kept = read_file(file) if file.exists() else {}
        found = {name: {**kept.get(name, {}), **made.get(name, {})} for name in {**kept, **made}}
        text = json.dumps(found, indent=1, allow_nan=False) + "\n"
        write_file(file, text.encode())


def keep_toys(folders: Iterable[str | Path], root: Path) -> None:
    """The rows of both experiments, and the picture of two moons."""
    for folder in folders:
        found = Path(folder, toys.FOLDER)
        (root / toys.FOLDER).mkdir(parents=True, exist_ok=True)
        for path in found.glob("*.json"):
            write_file(root / toys.FOLDER / path.name, path.read_bytes())
        write_file(IMAGES / "toy_two_moons.png", (found / "two_moons.png").read_bytes())


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
        write_page(suite, given.to)


def write_page(suite: str, root: Path) -> None:
    page = page_of_toys(root) if suite == toys.FOLDER else page_of(suite, root)
    write_file(REPOSITORY / "docs" / f"results-{suite}.md", page)
    if suite != toys.FOLDER:
        draw(Source(suite, root, captions_of(suite).page.profiles), IMAGES)


if __name__ == "__main__":
    main()

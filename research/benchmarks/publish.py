"""Put finished runs under results/bench as receipts, and write the pages of results from them.

    python benchmarks/publish.py [--to ROOT] [SUITE [FOLDER ...]]

FOLDERs are what ``--out`` named; runs of several machines or processes are joined, and join what is
published already. Of each method the configuration in the last FOLDER is kept: its rows, and what
derives from stored predictions, which are too large to keep: sweeps, diagnoses and ranks. Which
profiles count and what is kept follow from the page in the captions of the suite. Then
docs/results-SUITE.md is written; without a SUITE all such pages. The toy experiments
(SUITE "toys") have a page, too. Each time docs/results-paper.md is written, which sets the tables
of the paper beside the published rows of all suites.
"""

import argparse
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from paper_page import draw_prices, page_of_paper
from results import draw, page_of
from write_pages import page_of_toys

from dipedl.writing import write_file
from dipedl_bench import Store, suite_names
from dipedl_bench.results.files import read_file
from dipedl_bench.results.predictions import ranks_file, write_ranks
from dipedl_bench.results.rows import as_line
from dipedl_bench.spec.captions import captions_of
from dipedl_bench.studies import sweeps, toys
from dipedl_bench.studies.sweeps import Parts, write_parts
from dipedl_bench.tables.table import keep_latest, paper_suite
from dipedl_bench.tables.trivial import load_trivial_lines

REPOSITORY = Path(__file__).parent.parent
ROOT = REPOSITORY / "results" / "bench"
IMAGES = REPOSITORY / "docs" / "images"
#: Evidence below this is none: float32 keeps seven digits of a concentration of one.
NO_EVIDENCE = 1e-6


def publish(folders: Iterable[str | Path], suite: str, root: Path = ROOT) -> dict[str, int]:
    """Keep rows, and what derives from predictions; gives the number of rows by profile."""
    folders = list(folders)
    if suite == toys.FOLDER:
        keep_toys(folders, root)
        return {}
    page = captions_of(suite).page
    kinds = {section.kind for section in page.sections}
    return {profile: keep(folders, suite, profile, root, kinds) for profile in page.profiles}


def keep(
    folders: Iterable[str | Path], suite: str, profile: str, root: Path, kinds: set[str]
) -> int:
    stores = [Store(folder, suite, profile) for folder in folders]
    stores = [store for store in stores if store.rows_file.exists()]
    if not stores:
        return 0
    published = Store(root, suite, profile)
    stores.insert(0, published)
    published.folder.mkdir(parents=True, exist_ok=True)
    rows = keep_latest(row for store in stores for row in store.rows())
    rows.sort(key=lambda row: row["seed"])
    write_file(published.folder / "rows.jsonl", b"".join(as_line(row) for row in rows))
    keep_ranks(stores[1:], published, rows)
    if "ablation" in kinds:
        keep_trivial(stores, published.folder)
        keep_sweeps(stores, published, rows)
    elif "fusion" in kinds:
        keep_parts(stores, published, rows)
    if "collapse" in kinds:
        keep_diagnoses(stores, published.folder / "diagnosis.json")
    return len(rows)


def keep_ranks(stores: Sequence[Store], target: Store, rows: Sequence[Mapping[str, Any]]) -> None:
    """Keep the ranks of post-hoc scores whose arrays are there, for tests of differences.

    A method on a shared network is one; the predictions of DIP-EDL are kept whole.
    """
    for store in stores:
        own = [
            row
            for row in store.rows()
            if row in rows and set(row.get("parts", ())) == {"classifier"}
        ]
        for row in own:
            if store.has_arrays(row["method"], row["config_hash"], row["seed"]):
                write_ranks(ranks_file(target.folder, row), store.arrays_of(row))


def keep_trivial(stores: Sequence[Store], target: Path) -> None:
    newest = stores[::-1]
    store = next((s for s in newest if (s.folder / "trivial.json").exists()), newest[0])
    load_trivial_lines(store)  # makes the file where it is not there
    write_file(target / "trivial.json", (store.folder / "trivial.json").read_bytes())


def keep_parts(
    stores: Sequence[Store], target: Store, rows: Sequence[Mapping[str, Any]]
) -> tuple[dict[int, Parts], bool]:
    """Keep what sweeps, figures and fusions of DIP-EDL derive from.

    Returns it by seed, and whether any of it is new. Files whose content is published already stay
    as they are, to the byte: predictions that are read from a published file and written again, or
    scored on another CPU, differ in last digits.
    """
    parts, changed = {}, False
    mine = [row for row in rows if row["method"] == "dip-edl"]
    for row, store in itertools.product(mine, stores):
        source, file = (sweeps.parts_file(of, row) for of in (store, target))
        before = file.read_bytes() if file.exists() else b""
        if source.exists():
            write_file(file, source.read_bytes())
        elif store.has_arrays("dip-edl", row["config_hash"], row["seed"]):
            write_parts(file, sweeps.parts_of(store, row))
        if file.exists():
            changed |= file.read_bytes() != before
            parts[row["seed"]] = sweeps.parts_of(target, row)
    return parts, changed


def keep_sweeps(stores: Sequence[Store], target: Store, rows: list[dict[str, Any]]) -> None:
    """Keep what DIP-EDL's predictions give, and the sweeps over the most seeds."""
    parts, changed = keep_parts(stores, target, rows)
    hashes = sorted({row["config_hash"] for row in rows if row["method"] == "dip-edl"})
    files = [s.folder / "sweeps.json" for s in stores if (s.folder / "sweeps.json").exists()]
    known = [of for of in map(read_file, files) if set(of["hashes"]) <= set(hashes)]
    kept = max(known, key=lambda of: len(of["seeds"]), default={"seeds": []})
    changed |= kept["seeds"] != sorted(parts)
    if changed and len(parts) >= max(1, len(kept["seeds"])):
        ordered, paper = [parts[seed] for seed in sorted(parts)], paper_suite(rows)
        found = {
            what: {
                line.name: {"title": line.title, **{k: c.as_json() for k, c in line.cells.items()}}
                for line in sweeps.sweep_lines(what, ordered, paper)
            }
            for what in sweeps.SWEEPS
        }
        kept = {"seeds": sorted(parts), "hashes": hashes, "sweeps": found}
    if kept["seeds"]:
        write_file(target.folder / "sweeps.json", json.dumps(kept, indent=1) + "\n")
    else:
        (target.folder / "sweeps.json").unlink(missing_ok=True)


def keep_diagnoses(stores: Sequence[Store], file: Path) -> None:
    """Keep diagnoses; one stays as it is where the predictions that it was made of are gone."""
    if made := diagnose_rows(stores):
        kept = read_file(file) if file.exists() else {}
        found = {name: {**kept.get(name, {}), **made.get(name, {})} for name in {**kept, **made}}
        write_file(file, json.dumps(found, indent=1, allow_nan=False) + "\n")


def diagnose_rows(stores: Sequence[Store]) -> dict[str, dict[str, dict[str, Any]]]:
    """Diagnoses by method and seed, of every row whose arrays are there."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for store in stores:
        for row in store.rows():
            with suppress(FileNotFoundError):  # published rows are kept without their arrays
                arguments = row["config"].get("arguments", {})
                prior = arguments.get("lambda2", arguments.get("prior", 1.0))
                of_row = diagnosis(store.arrays_of(row)["test"], prior)
                found.setdefault(row["method"], {})[str(row["seed"])] = of_row
    return found


def diagnosis(test: Mapping[str, np.ndarray], prior: float | Sequence[float]) -> dict[str, Any]:
    """Diagnose the predictions on the test set; nothing is trained.

    "said": how often each class is the most probable one. With "concentration" (n, k) also
    "silent_classes", the number of classes that no row gives any evidence beyond the prior, as a
    ReLU leaves them whose unit is dead; and "no_evidence", the share of rows that give none.
    """
    proba = test["probabilities"]
    counts = np.bincount(proba.argmax(axis=1), minlength=proba.shape[1])
    found: dict[str, Any] = {"said": counts.tolist()}
    if "concentration" in test:
        without = np.abs(test["concentration"] - np.asarray(prior)) <= NO_EVIDENCE
        found["silent_classes"] = int(without.all(axis=0).sum())
        found["no_evidence"] = float(without.all(axis=1).mean())
    return found


def keep_toys(folders: Iterable[str | Path], root: Path) -> None:
    """Keep the rows of both experiments, and the picture of two moons."""
    for folder in folders:
        found = Path(folder, toys.FOLDER)
        (root / toys.FOLDER).mkdir(parents=True, exist_ok=True)
        for path in found.glob("*.json"):
            write_file(root / toys.FOLDER / path.name, path.read_bytes())
        write_file(IMAGES / "toy_two_moons.png", (found / "two_moons.png").read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    published = [name for name in suite_names() if captions_of(name).page is not None]
    pages = [*published, toys.FOLDER]
    parser.add_argument("suite", nargs="?", choices=pages)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--to", type=Path, default=ROOT, help="instead of results/bench")
    given = parser.parse_args()
    if given.folders:
        print(publish(given.folders, given.suite, given.to))
    for suite in [given.suite] if given.suite else pages:
        of_toys = suite == toys.FOLDER
        page = page_of_toys(given.to) if of_toys else page_of(suite, given.to)
        write_file(REPOSITORY / "docs" / f"results-{suite}.md", page)
        if not of_toys:
            draw(suite, given.to, IMAGES)
    write_file(REPOSITORY / "docs" / "results-paper.md", page_of_paper(given.to))
    draw_prices(given.to, IMAGES)


if __name__ == "__main__":
    main()

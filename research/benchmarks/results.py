"""Pages of results of the suites, computed from their published rows.

Which sections a page has, its columns and its prose are the table ``page`` of the captions of the
suite, see `dipedl_bench.spec.captions`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
from harness import RESULTS, receipt
from jinja2 import Template
from matplotlib.figure import Figure
from pandas import DataFrame
from write_pages import CLASSIFIERS, looked_at, verify_metrics

from dipedl_bench.report.figures import (
    arrays_from_parts,
    confidence,
    coverage_figure,
    histogram,
    vacuity,
)
from dipedl_bench.results.files import read_file
from dipedl_bench.results.paper import published_price
from dipedl_bench.results.rows import line_of
from dipedl_bench.results.store import Store
from dipedl_bench.spec.captions import Section, captions_of
from dipedl_bench.spec.suite import load_suite
from dipedl_bench.studies.comparison import compare_methods, complete_rows, write_markdown
from dipedl_bench.studies.fusion import fusion_frame
from dipedl_bench.studies.sweeps import Parts, parts_file, parts_of, score_dirichlets
from dipedl_bench.tables.blocks import interval_blocks, markdown_blocks
from dipedl_bench.tables.collapse import (
    CollapseLine,
    collapse_frame,
    collapse_lines,
    collapse_summary,
)
from dipedl_bench.tables.findings import headline, shortfalls, trivial_sentences
from dipedl_bench.tables.formatting import (
    cells_frame,
    grid,
    metric_title,
    no_price,
    paper_text,
    price_text,
    set_title,
    stable,
    three_decimals,
)
from dipedl_bench.tables.measures import measures, pairs_of
from dipedl_bench.tables.pairs import (
    SUMMARY,
    both,
    choice_frame,
    drop_repeats,
    methods_with_intervals,
    summary_frame,
    values,
)
from dipedl_bench.tables.provenance import (
    CHANGED,
    describe_missing,
    describe_older,
    machines,
    receipts,
)
from dipedl_bench.tables.table import BenchTable, Estimate, bench_table, keep_latest
from dipedl_bench.tables.trivial import load_trivial_lines

__all__ = ["by_seed", "draw", "measures_and_summary", "page_of"]

Blocks = Iterator[str]
#: Costs of a line in the units of prose: minutes, millions.
COSTS = {"train_cpu_seconds": 60, "train_seconds": 60, "n_parameters": 1e6}
#: Coverage against the level of intervals, from the folder of the pages; users' docs show it too.
COVERAGE = "../../docs/images/intervals.png"
#: Columns of the summary of a crossed suite, and its pairs by when their OOD sets were looked at.
SHOWN = (
    "lines",
    "AUROC",
    "caught at 5 %",
    "worst line",
    "OOD Brier, share of the bare",
    "ID Brier, cost",
)
COMPARED = {
    "AUROC": ("auroc", "max-softmax"),
    "OOD Brier": ("brier_ood", "max-softmax"),
    "ID Brier": ("brier_id", "max-softmax"),
    "NLL, of temperature scaling": ("nll", "temperature"),
}
SWEPT = {"ablation": "kept", "gamma": "gamma", "sigma": "sd of the noise"}
KINDS_OF_PAIRS = ("timid", "others")
PARTS = {"by design": "of the design", "later": "looked at later", "never": "never looked at"}
#: Stands in prose for the number of a row that is not there.
NOT_RUN = "(not yet run)"
#: The released code was not run. A training takes three times the operations of a forward pass for
#: each of 40,000 images and every epoch, two for each multiplication. The rates are assumed, for a
#: machine that does nothing else: 700 GFLOP/s in bfloat16 on two CPU cores with AVX512-BF16, as our
#: shared network of CIFAR-10 trained; 100 TFLOP/s in half precision on an H200, on top of which one
#: process turns, shifts and mirrors images, at 10 s an epoch.
IMAGES, CPU_FLOPS, GPU_FLOPS, AUGMENT = 40_000, 700e9, 100e12, 10.0


@dataclass(frozen=True)
class Source:
    """Published rows of a suite below `root`, of all profiles of its page."""

    suite: str
    root: Path

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows by profile, of profiles that have any."""
        profiles = captions_of(self.suite).page.profiles
        return {name: rows for name in profiles if (rows := self.store(name).rows())}

    @cached_property
    def tables(self) -> dict[str, BenchTable]:
        """Tables by profile, with the detectors without a model where they were published."""
        made = {
            profile: bench_table(complete_rows(self.store(profile), rows))
            for profile, rows in self.rows.items()
        }
        for profile in made:
            if (store := self.store(profile)).folder.joinpath("trivial.json").exists():
                made[profile] = replace(made[profile], trivial=load_trivial_lines(store))
        return made

    def read_derived(self, profile: str, file: str) -> dict[str, Any]:
        """Return what a file beside the rows holds; {} without one."""
        path = self.store(profile).folder / file
        return read_file(path) if path.exists() else {}

    def parts(self, profile: str) -> dict[int, Parts]:
        """Return published predictions of DIP-EDL by seed."""
        store = self.store(profile)
        rows = [row for row in self.rows[profile] if parts_file(store, row).exists()]
        return {row["seed"]: parts_of(store, row) for row in rows}

    def mean(
        self,
        cell: str,
        digits: int = 3,
        *,
        seed: int | None = None,
        of: Literal["ours", "paper", "difference"] = "ours",
        less: str = "",
        over: str = "",
    ) -> str:
        """Return a `value` for prose, `NOT_RUN` without rows.

        `less` is a cell whose value is taken away, `over` one above which it is given in percent.
        """
        value = self.value(cell, seed, of)
        if less:
            value -= self.value(less, seed, of)
        if over:
            value = 100 * (value / self.value(over, seed, of) - 1)
        return NOT_RUN if np.isnan(value) else f"{abs(value):.{digits}f}".removeprefix("0")

    def value(self, cell: str, seed: int | None = None, of: str = "ours") -> float:
        """Return a number of a profile, a method and a metric; NaN without rows.

        ``"gpu max-softmax auroc/cifar100"`` is the mean over seeds, and of a published sweep
        ``"paper sigma=2 auroc/cifar100"``. `of` gives the paper's number in its place, or by how
        much they differ.
        """
        profile, name, metric = cell.split(" ")
        kind, _, step = name.partition("=")
        try:
            if step:
                found = self.read_derived(profile, "sweeps.json")["sweeps"][kind][step][metric]
                return found["paper"]["mean"] if of == "paper" else found["mean"]
            if seed is not None:
                by_seed = {row["seed"]: row for row in self.rows[profile] if row["method"] == name}
                return by_seed[seed]["metrics"][metric]
            table = self.tables[profile]
            line = {line.name: line for line in (*table.lines, *table.trivial)}[name]
            if metric in COSTS:
                return line.cost[metric] / COSTS[metric]
            found = line.cells[metric]
            paper = found.paper.mean if found.paper else 0.0
            return {"ours": found.mean, "paper": paper, "difference": found.difference}[of]
        except (KeyError, TypeError):
            return np.nan

    def seconds(self, profile: str) -> list[float]:
        """Return wall seconds of the training of DIP-EDL's network, by seed, the fewest first."""
        rows = [row for row in self.rows.get(profile, ()) if row["method"] == "dip-edl"]
        return sorted(row["parts"]["classifier"]["seconds"]["train"] for row in rows) or [np.nan]

    def distances(self, receipt: Path) -> dict[str, float]:
        """Return how far AUROCs of two seeds are apart, and of two kinds of CPU with one seed.

        Root mean squares over methods and OOD sets of a receipt of `dipedl-bench verify`, whose
        rows are of the first profile; "accuracy" is the mean difference of another kind of CPU.
        """
        cells = {line.name: line.cells for line in self.tables[next(iter(self.rows))].lines}
        by_cpu, by_seed, accuracies = [], [], []
        for row in read_file(receipt) if receipt.exists() else ():
            accuracy = row["metrics"]["accuracy"]
            accuracies.append(accuracy["again"] - accuracy["published"])
            for name, of in row["metrics"].items():
                ours = cells.get(row["method"], {}).get(name)
                if ours and name.startswith("auroc/"):
                    by_cpu.append((of["again"] - of["published"]) ** 2)
                    by_seed.append(2 * np.var(ours.values, ddof=1))
        return {
            "cpu": float(np.sqrt(np.mean(by_cpu or [np.nan]))),
            "seed": float(np.sqrt(np.mean(by_seed or [np.nan]))),
            "accuracy": float(np.mean(accuracies or [np.nan])),
        }

    def with_standard_z(self, metric: str) -> float:
        """Return a metric of DIP-EDL if z had mean 0 and standard deviation 1 on the test rows.

        "sd" is the standard deviation that it has; means over the seeds of the first profile.
        """
        found = []
        for parts in self.parts(next(iter(self.rows))).values():
            z = parts.z["test"]
            scaled = {split: (of - z.mean()) / z.std() for split, of in parts.z.items()}
            other = replace(parts, z=scaled)
            scores = score_dirichlets(other, other.dirichlets()) | {"sd": z.std()}
            found.append(scores[metric])
        return fmean(found or [np.nan])

    def lines(self, cell: str) -> Any:
        """Return a metric of a method on every line of a crossed suite; () without rows."""
        profile, method, metric = cell.split(" ")
        return values(self.tables[profile].pairs, metric, method) if profile in self.rows else ()

    def store(self, profile: str) -> Store:
        return Store(self.root, self.suite, profile)


def page_of(suite: str, root: Path) -> str:
    """Return the page as Markdown; a profile without rows is said to be not yet run."""
    page, source = captions_of(suite).page, Source(suite, root)
    if page is None:
        raise ValueError(f"the captions of {suite!r} must have a table [page] for a page, got none")
    first, *others = page.profiles
    likewise = f"   # likewise {', '.join(others)}" if others else ""
    commands = [
        f"$ dipedl-bench run {suite} --profile {first} --out FOLDER{likewise}",
        f"$ python benchmarks/publish.py {suite} FOLDER   # its rows, and this page",
        *(f"$ dipedl-bench table {suite} --profile {p} --out results/bench" for p in source.rows),
    ][:3]
    receipts_of_suite = [*RESULTS.glob(f"verify_{suite.replace('-', '_')}*.json")]
    changes = verify_metrics(receipts_of_suite).groupby("kind")["by"].max()
    known: dict[str, Any] = {"m": source.mean, "value": source.value, "of": source.lines}
    known |= {"looked_at": looked_at(suite), "receipt": receipt}
    known |= {"with_standard_z": source.with_standard_z, "seconds": source.seconds}
    known |= {"images": IMAGES, "cpu_flops": CPU_FLOPS, "gpu_flops": GPU_FLOPS, "augment": AUGMENT}
    known["apart"] = lambda: source.distances(RESULTS / f"verify_{suite}_other_cpu.json")
    known["moved"] = {kind.strip("/"): f"{by:.4f}".lstrip("0") for kind, by in changes.items()}
    blocks = [f"# {page.title}", Template(page.text.strip()).render(known)]
    blocks.append("\n".join(["```console", *commands, "```"]))
    if missing := [profile for profile in page.profiles if profile not in source.rows]:
        blocks.append(f"Profiles that are not yet run: {', '.join(missing)}.")
    for section in page.sections:
        profiles = [p for p in section.profiles or page.profiles if p in source.rows]
        found = list(KINDS[section.kind](source, section, profiles)) if profiles else []
        if found or (profiles and section.kind == "text"):
            text = Template(section.text.strip()).render(known)
            blocks += [f"## {section.title}", *filter(None, [text]), *found]
    if rows := [row for rows in source.rows.values() for row in rows]:
        lines = (f"{what}: {', '.join(of)}" for what, of in receipts(rows).items())
        blocks += ["## Receipts", *bullets(lines)]
    return "\n\n".join(blocks) + "\n"


def bullets(sentences: Iterable[str]) -> Blocks:
    if text := "\n".join(f"- {sentence}" for sentence in sentences):
        yield text


def of_each(make: Callable[[Source, Section, str], Blocks]) -> Callable[..., Blocks]:
    """Return the section that has what `make` gives for each profile, one after the other."""

    def blocks(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
        for profile in profiles:
            yield from make(source, section, profile)

    return blocks


def summary(source: Source, section: Section, profile: str) -> Blocks:
    """Methods by metrics, means over seeds, the paper's number in brackets."""
    table = source.tables[profile]
    by_name = {line.name: line for line in table.lines}
    lines = [by_name[name] for name in section.methods or by_name if name in by_name]
    if not section.methods:
        lines += [replace(line, title=f"{line.title}, no model") for line in table.trivial]
    columns = list(section.columns)
    if priced := any(name.startswith("brier_ood") for name in columns):
        columns.insert(columns.index("brier_id") + 1, "price")
    frame = cells_frame(lines, columns, cell_with_paper, **titles(source.suite))
    for head in {h for h in frame.columns if h.startswith(metric_title("caught_5"))}:
        frame[head] = frame[head].replace("", "not kept")
    frame.insert(1, "seeds", [str(len(line.seeds) or "") for line in lines])
    title = load_suite(source.suite).profile(profile).title
    yield f"Profile `{profile}` ({title}), on {machines(source.rows[profile])}:"
    yield grid(frame)
    if priced:
        yield no_price(replace(table, lines=tuple(lines))) or price_sentence(source.suite)
    older = describe_older(table, source.rows[profile])
    linked = older.replace(CHANGED, f"[{CHANGED}](protocol.md#published-rows)")
    yield from filter(None, [describe_missing(table), linked])


def price_sentence(suite: str) -> str:
    """Return what the column of prices is; suites of the paper have a page on prices."""
    paid, beside = published_price(suite), ""
    if paid is not None:
        beside = (
            f" The paper's DIP-EDL pays {price_text(paid)} in its ablation. OOD Brier scores at "
            "equal price are [on the page of the paper's "
            "tables](results-paper.md#the-price-of-a-low-ood-brier-score)."
        )
    return (
        "Price: by how much the Brier score lies above that of max softmax on the same network, as "
        f"a share of it; empty where no row of max softmax is on that network.{beside}"
    )


def titles(suite: str) -> dict[str, Any]:
    """Return how metrics are called in the tables of a page."""
    return {"with_set": True, "suite": suite, "classes": captions_of(suite).classes}


def cell_with_paper(cell: Estimate | None) -> str:
    if cell is None:
        return ""
    if cell.metric == "price":
        return price_text(cell.mean)
    return stable(cell) + (f" ({paper_text(cell).split(' ')[0]})" if cell.paper else "")


def findings(source: Source, section: Section, profile: str) -> Blocks:
    table = source.tables[profile]
    return bullets([*headline(table), *trivial_sentences(table)])


def sweep(source: Source, section: Section, profile: str) -> Blocks:
    """Return one published sweep: its metrics by what was changed."""
    derived, named = source.read_derived(profile, "sweeps.json"), titles(source.suite)
    if not derived:
        return
    lines = derived["sweeps"][section.kind].values()
    frame = DataFrame({SWEPT[section.kind]: [of["title"] for of in lines]})
    for metric in section.columns:
        frame[metric_title(metric, **named)] = [sweep_cell(of, metric) for of in lines]
    yield grid(frame)
    seeds, hashes = (", ".join(map(str, derived[key])) for key in ("seeds", "hashes"))
    yield f"Profile `{profile}`: means over seeds {seeds}, configuration {hashes}."
    if section.kind == "ablation":
        aurocs = [metric for metric in section.columns if metric.startswith("auroc/")]
        texts = (
            f"{of['title']} {', '.join(sweep_cell(of, metric) for metric in aurocs)}"
            for of in derived["sweeps"]["float32"].values()
        )
        of_all = "AUROC by sums in float32, in the order of the columns"
        yield f"{of_all}: {'; '.join(texts)}."


def sweep_cell(line: Mapping[str, Any], metric: str) -> str:
    """Return a number of a published sweep, the paper's in brackets."""
    if metric not in line:
        return ""
    of, paper = line[metric], line[metric]["paper"]
    interval = of["ci95_images"]
    ours = Estimate(of["mean"], of["sd"], of["values"], ci95_images=interval, metric=metric)
    return stable(ours) + (f" ({paper['mean']:.4f})" if paper else "")


def fusion(source: Source, section: Section, profile: str) -> Blocks:
    """Return AUROCs of density, entropy and their fusion by errors, and of our default."""
    if runs := list(source.parts(profile).values()):
        sets = {name: set_title(name, source.suite) for name in runs[0].unknown}
        try:
            frame = fusion_frame(runs, sets)
        except ValueError as error:
            yield f"Profile `{profile}`: {error}."
            return
        lines = {line.name: line for line in source.tables[profile].lines}
        if default := lines.get("dip-edl-default"):
            means = (three_decimals(default.cells[f"auroc/{name}"].mean) for name in sets)
            frame.loc[len(frame)] = [default.title, *means]
        yield f"Profile `{profile}`, {len(runs)} seed{'s' * (len(runs) > 1)}:"
        yield grid(frame)


def histograms(source: Source, section: Section, profile: str) -> Blocks:
    if seeds := ", ".join(map(str, source.parts(profile))):
        what = "Shares of images by confidence and by vacuity, DIP-EDL"
        what += f", profile {profile}, seeds {seeds}"
        yield f"![{what}](images/{source.suite}_{profile}_confidence.png)"


def draw(suite: str, root: Path, folder: Path) -> None:
    """Draw confidence beside vacuity, all published seeds together, and coverage where known."""
    source, page = Source(suite, root), captions_of(suite).page
    shown = {
        p for s in page.sections if s.kind == "histograms" for p in s.profiles or page.profiles
    }
    for profile, table in source.tables.items():
        if table.crossed and methods_with_intervals(table):
            file = folder.parent / COVERAGE
            coverage_figure(table).savefig(file, dpi=110, metadata={"Software": None})
        runs = [arrays_from_parts(parts) for parts in source.parts(profile).values()]
        if runs and profile in shown:
            figure = Figure(figsize=(9, 3.7), layout="constrained")
            axes = figure.subplots(1, 2)
            histogram(confidence(runs), "confidence", axes[0])
            histogram(vacuity(runs), "vacuity", axes[1])
            named = axes[0].get_legend_handles_labels()
            figure.legend(*named, loc="outside upper center", ncols=4, frameon=False)
            figure.savefig(folder / f"{suite}_{profile}_confidence.png", dpi=150)


def collapse(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    """Compare two profiles, as published and healthy, over the seeds that both have."""
    published = section.profiles[0]
    rows = [source.rows.get(profile, ()) for profile in section.profiles]
    if not rows[0]:
        return
    shared = set.intersection(*({row["seed"] for row in of} for of in rows if of))
    lines = collapse_lines(*([row for row in of if row["seed"] in shared] for of in rows))
    yield collapse_summary(lines)
    yield grid(collapse_frame(lines, captions_of(source.suite).classes))
    by_reason: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line.loses_class:
            by_reason.setdefault((line.cause, line.cure), []).append(line.line.title)
    yield from bullets(
        f"**{', '.join(titles)}**: {cause}. Healthy: {cure}."
        for (cause, cure), titles in by_reason.items()
    )
    yield from without_evidence(lines, source.read_derived(published, "diagnosis.json"))


def without_evidence(lines: Sequence[CollapseLine], diagnoses: Mapping[str, Any]) -> Blocks:
    """Classes that get no evidence on any row, as measured on the predictions of collapsed runs."""
    found, tied = [], []
    for line in lines:
        of = diagnoses.get(line.line.name, {}).values()
        counts = [seed.get("silent_classes", 0) for seed in of]
        if any(counts):
            none = all(seed.get("no_evidence") == 1 for seed in of)
            (tied if none else found).append(f"{line.line.title} {' / '.join(map(str, counts))}")
    if tied:
        ties = " (no row has any evidence: the classes tie, and the first is given)"
        found.append(", ".join(tied) + ties)
    if found:
        yield f"Measured, classes without evidence on any row, by seed: {'; '.join(found)}."


def cost(source: Source, section: Section, profile: str) -> Blocks:
    """Our CPU minutes for a seed beside what the released training would take.

    Variants of a method share its network and are left out.
    """
    released, rows = dict(captions_of(source.suite).released), []
    for line in source.tables[profile].lines:
        of = released.pop(line.paper or "", None)
        if of is not None and line.cost is not None:
            flop = 2 * 3 * of.multiplications * IMAGES * of.epochs * of.members
            gpu = flop / GPU_FLOPS + AUGMENT * of.epochs * of.members
            members = f"{of.members} x " if of.members > 1 else ""
            rows.append(
                {
                    "method": line.title,
                    "ours, CPU": f"{line.cost['cpu_seconds'] / 60:.0f} min",
                    "released": f"{members}{of.network}, {of.epochs} epochs",
                    "PFLOP": f"{flop / 1e15:.1f}",
                    "released, two cores": f"{flop / CPU_FLOPS / 3600:.0f} h",
                    "released, H200": f"{gpu / 3600:.1f} h",
                }
            )
    if rows:
        yield grid(DataFrame(rows))


def where_worse(source: Source, section: Section, profiles: Sequence[str]) -> Blocks:
    found = [sentence for p in profiles for sentence in shortfalls(source.tables[p])]
    return bullets([*found, captions_of(source.suite).limit])


def intervals(source: Source, section: Section, profile: str) -> Blocks:
    """Measures of a suite whose class probabilities are known, and what intervals hold."""
    table = source.tables[profile]
    yield "\n".join(measure.line for measure in measures(table))
    yield f"![Coverage against the level of intervals]({COVERAGE})"
    yield from markdown_blocks(interval_blocks(table), "###")


def measures_and_summary(table: BenchTable) -> Blocks:
    """List the measures of a crossed suite, and all methods in one table."""
    yield "\n".join(measure.line for measure in measures(table))
    yield (
        "From the bare classifier (NLL: from temperature scaling) to our default, by when the OOD "
        "sets were looked at; and on how many lines the OOD Brier score is worse than the bare "
        "classifier's, with timid classifiers and with others:"
    )
    by_look, rows = looked_at(table.suite), []
    for when, title in [*PARTS.items(), ("", "all")]:
        names = by_look.get(when, ())
        part = table.pairs[table.pairs.index.isin(names, level="dataset") | (when == "")]
        if len(part):
            rows.append({"pairs": title, **dict(compare_pairs(table, part))})
    yield grid(DataFrame(rows))
    seeds = sorted({len(line.seeds) for line in table.lines if line.seeds})
    few = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    yield (
        f"All methods over {len(table.pairs)} lines: {len(table.pairs.index.unique('dataset'))} "
        f"known data sets, {len(drop_repeats(table.pairs))} classifiers on them, {few} "
        f"{'seed' if seeds == [1] else 'seeds'}:"
    )
    frame = summary_frame(table, SHOWN)
    yield grid(frame[frame.pop("group").isin(["bare", "ours", "baseline"])])
    if len(choices := choice_frame(table, CLASSIFIERS)):
        yield (
            "AUROC if the score were chosen line by line: by AUROC on the unknown rows themselves, "
            "which nobody has, or by how well it ranks the classifier's errors on known test rows:"
        )
        yield grid(choices)


def by_seed(rows: Iterable[dict[str, Any]]) -> Blocks:
    """Means of a crossed suite seed by seed, over the lines on which a method has every seed."""
    latest = keep_latest(rows)
    seeds = sorted({row["seed"] for row in latest})
    found: dict[tuple[str, ...], list[int]] = {}
    for row in latest:
        found.setdefault(line_of(row), []).append(row["seed"])
    whole = [row for row in latest if found[line_of(row)] == seeds]
    if len(seeds) == 1 or not whole:
        return
    tables = {s: bench_table(row for row in whole if row["seed"] == s) for s in seeds}
    first = tables[seeds[0]]
    parts = [values(table.pairs, "auroc", first.ours) for table in tables.values()]
    ours = DataFrame(dict(zip(seeds, parts, strict=True)))
    of_line, of_mean = map(three_decimals, (ours.std(axis=1).median(), ours.mean().std()))
    yield (
        f"Seed by seed, of the methods and lines that have seeds {', '.join(map(str, seeds))}. The "
        f"AUROC of our default on a single line varies by {of_line} (standard deviation over "
        f"seeds, the median over lines), its mean over the lines by {of_mean}:"
    )
    summaries = {s: summary_frame(table, SUMMARY) for s, table in tables.items()}
    frame = summaries[seeds[0]][["method", "group", "lines"]]
    for head in ("AUROC", "caught at 5 %"):
        frame = frame.assign(**{f"{head}, seed {s}": of[head] for s, of in summaries.items()})
    yield grid(frame[frame.pop("group").isin(["bare", "ours", "baseline"])])


def compare_pairs(table: BenchTable, part: DataFrame) -> Iterator[tuple[str, str]]:
    """Yield the number of pairs, means of another method and ours, and where ours is worse."""
    yield "lines", str(len(part))
    for title, (metric, other) in COMPARED.items():
        means = both(part, metric, other, table.ours)
        yield title, " → ".join(map(three_decimals, means.mean(axis=1))) if means.size else ""
    for kind in KINDS_OF_PAIRS:
        of_kind = pairs_of(kind, table)
        pairs = of_kind[of_kind.index.isin(part.index)]
        ours, bare = (values(pairs, "brier_ood", name) for name in (table.ours, table.bare))
        yield f"{kind} worse", f"{(ours > bare).sum()} of {len(ours)}"


def compared(source: Source, section: Section, profile: str) -> Blocks:
    """Methods compared: the best of each column in bold, and what is not significantly worse."""
    table = source.tables[profile]
    there = {line.name for line in table.lines}
    methods = [name for name in section.methods if name in there] or None
    known = {name for line in table.lines for name in line.cells}
    columns = [name for name in section.columns if name in known] or None
    if columns or not section.columns:
        store = source.store(profile)
        yield write_markdown(
            compare_methods(table, store, methods=methods, metrics=columns)
        ).strip()


def measures_of(source: Source, section: Section, profile: str) -> Blocks:
    """Measures and summary of a crossed suite, then its means seed by seed."""
    yield from measures_and_summary(source.tables[profile])
    yield from by_seed(source.rows[profile])


#: Kind of a section -> what it computes; the profiles are those that have rows.
KINDS: dict[str, Callable[[Source, Section, Sequence[str]], Blocks]] = {
    "text": lambda source, section, profiles: iter(()),
    "summary": of_each(summary),
    "findings": of_each(findings),
    **dict.fromkeys(SWEPT, of_each(sweep)),
    "fusion": of_each(fusion),
    "histograms": of_each(histograms),
    "collapse": collapse,
    "time": of_each(cost),
    "shortfalls": where_worse,
    "measures": of_each(measures_of),
    "intervals": of_each(intervals),
    "compared": of_each(compared),
}

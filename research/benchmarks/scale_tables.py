"""The page of scale, from the receipts of benchmarks/scale_model.py and scale_plan.py."""

import math
from typing import Any, NamedTuple

from receipts import receipt, table, where

#: Of a part in memory, and of the network of a node, in bytes and bytes per second.
PART, NETWORK = 128 << 20, 1.25e9
CORES, DOLLARS = 16, 0.05


class Problem(NamedTuple):
    """Rows of so many float32 features, of so many classes, on so many nodes."""

    rows: float
    features: int
    classes: int
    nodes: int


PROBLEMS = (Problem(1e9, 768, 1_000, 64), Problem(1e9, 768, 1_000, 8), Problem(1e8, 768, 1_000, 1))


def rates() -> str:
    row = receipt("scale_model")
    v, (n, p), k = row["values"]["core"], row["config"]["wide"], row["config"]["wide_classes"]
    rows = [
        ["a product of two float64 matrices", f"{v['product_gflops']:.0f} GFLOP/s"],
        [
            "reading Parquet, float32, in the cache of the system",
            f"{v['parquet_mb_per_s']:,.0f} MB/s",
        ],
        ["moments, one covariance for all classes", f"{v['moments_rows_per_s']:,.0f} rows/s"],
        ["log-density, one covariance for all classes", f"{v['score_rows_per_s']:,.0f} rows/s"],
        ["sum of two sets of moments, a covariance per class", f"{v['merge_mb_per_s']:,.0f} MB/s"],
    ]
    text = (
        f"{n:,} rows of {p} float32 features, {k:,} classes; median of "
        f"{row['config']['repeats']}.\n\n"
    )
    return "## What one core does\n\n" + text + table(["", ""], rows) + "\n" + where(row)


def scoring() -> str:
    """`dipedl score` of tables on disk, by their number of rows."""
    row = receipt("score_scale")
    config, v = row["config"], row["values"]
    rows = []
    for n in config["rows"]:
        bare, local, ray = (v[f"{engine}, {n} rows"] for engine in ("bare", "local", "ray"))
        rows.append(
            [
                f"{n:,}",
                *(f"{of['seconds']:.1f}" for of in (bare, local, ray)),
                f"{local['rows_per_second']:,}",
                f"{local['seconds'] / bare['seconds']:.2f}",
                f"{ray['seconds'] / local['seconds']:.2f}",
                f"{local['megabytes']:.0f}",
            ]
        )
    head = ["rows", "bare, s", "local, s", "Ray, s", "local, rows/s", "local / bare"]
    text = (
        f"`dipedl score` of {config['features']} columns in Parquet files of "
        f"{config['rows_per_file']:,} rows, {config['classes']} classes, boosting with the default "
        f"density learned from {config['learned']:,} rows, {config['workers']} workers, without "
        "reasons; one run each, in wall seconds of a whole process. `bare` reads the same files, "
        "predicts with the same classifier and all cores, and writes the probabilities; `local` "
        "and `Ray` are the engines of `dipedl score`. Memory is the peak of the largest process, "
        "MB.\n\n"
    )
    head += ["Ray / local", "local, MB"]
    return "## Answers of tables on disk\n\n" + text + table(head, rows) + "\n" + where(row)


def fitting() -> str:
    """`dipedl fit` of tables on disk, and sums against reading and a product."""
    row = receipt("fit_scale")
    config, v = row["config"], row["values"]
    rows = [
        [f"{n:,}", *(f"{of[key]:.0f}" for key in ("cpu_seconds", "seconds", "megabytes"))]
        for n in config["rows"]
        for of in (v[f"fit, {n} rows"],)
    ]
    (n, p), wide = config["wide"], v["sums of a wide table"]
    text = (
        f"`dipedl fit FOLDER --density gaussians` of {config['features']} columns and a target, "
        f"{config['classes']} classes, boosting, {config['workers']} workers. Memory is the peak "
        "of the largest process. The cores were busy with other work, as the wall seconds show: "
        "read the CPU seconds.\n\n"
    )
    share = (
        f"\nOne core reads {n:,} x {p} float32 rows from Parquet and adds up one covariance at "
        f"{wide['product'] / wide['sums']:.0%} of the rate of reading them and multiplying each "
        "batch by its transpose in float64.\n\n"
    )
    head = ["rows", "CPU s", "wall s", "memory, MB"]
    return "## Fits of tables on disk\n\n" + text + table(head, rows) + share + where(row)


def simulation() -> str:
    row = receipt("scale_model")
    v, config = row["values"], row["config"]
    rows = [
        [
            workers,
            *(f"{of[key]:.2f}" for key in ("start_s", "fit_s", "predicted_s", "ratio")),
            f"{of['task_ms']:.1f}",
        ]
        for workers, of in v["ray"].items()
    ]
    head = [
        "workers",
        "start, s",
        "fit, s",
        "the model says, s",
        "ratio",
        "an empty part, ms",
    ]
    text = (
        f"{config['partitions']} parts of {config['rows']:,} x {config['features']} rows, moments "
        f"of {config['classes']} classes, on {config['cores']} cores. In one process without Ray a "
        f"part takes {1e3 * v['local']['partition_s']:.0f} ms and all of them "
        f"{v['local']['fit_s']:.2f} s. The model: start of the workers + 2 x parts x an empty part "
        "+ parts x seconds of a part / workers, but no more workers than cores. An empty part is a "
        "task without work; it was timed with its sum, which is a task too, and the model counts "
        "it twice. What workers import for a first part is not in it.\n\n"
    )
    return "## Ray on this machine\n\n" + text + table(head, rows)


def examples() -> str:
    row = receipt("scale_model")
    rows = [_example(row["values"], problem) for problem in PROBLEMS]
    head = ["", *(f"{p.rows:.0e} rows, {p.nodes} node{'s'[: p.nodes - 1]}" for p in PROBLEMS)]
    p, k = PROBLEMS[0].features, PROBLEMS[0].classes
    ratios = [of["ratio"] for of in row["values"]["ray"].values()]
    text = (
        f"Computed, not run: {p} float32 features, {k:,} classes, nodes of {CORES} cores as fast "
        f"as this one, {NETWORK / 1e9:.2f} GB/s of network per node, {DOLLARS:.2f} dollars per "
        "core and hour, parts of 128 MiB. Reading, computing and handing out of tasks overlap, so "
        "that the slowest counts; then the sums go up a tree. An empty part takes what it "
        "takes above with two workers. The classifier's own time is not counted. The fits above "
        f"took {min(ratios):.1f} to {max(ratios):.1f} times what the model says.\n\n"
    )
    lines = [[name, *(of[name] for of in rows)] for name in rows[0]]
    return "## Worked examples\n\n" + text + table(head, lines)


def plans() -> str:
    row = receipt("scale_plan")
    rows = [
        [
            case,
            *(f"{of[key]:,.0f}" for key in ("said_megabytes", "megabytes")),
            f"{of['ratio']:.2f}",
            *(f"{of[key]:,.0f}" for key in ("said_seconds", "seconds", "plan_seconds")),
        ]
        for case, of in row["values"].items()
    ]
    head = ["", "said, MB", "taken, MB", "ratio", "said, s", "taken, s", "the plan itself, s"]
    text = (
        "What `--dry-run` says, and what the command takes then: boosting with the default "
        f"density, float64 columns, {row['config']['classes']} classes, files of "
        f"{row['config']['rows_per_file']:,} rows, a new process each. Megabytes are the peak of "
        "the largest of its processes, which depends on nothing else that the machine does; "
        "seconds do: other work shared the cores, between a plan and its command unequally. "
        f"Measured are {len(rows)} of {len(row['config']['cases'])} cases.\n\n"
    )
    return "## What a plan says\n\n" + text + table(head, rows) + "\n" + where(row)


def _example(v: dict[str, Any], of: Problem) -> dict[str, str]:
    core, task = v["core"], v["ray"]["2"]["task_ms"] / 1e3
    cores, size = of.nodes * CORES, 4 * of.rows * of.features
    parts = math.ceil(size / PART)
    reading = max(size / of.nodes / NETWORK, size / cores / (1e6 * core["parquet_mb_per_s"]))
    fit = max(reading, of.rows / cores / core["moments_rows_per_s"], 2 * parts * task)
    tied = 8 * (of.classes * of.features + of.features**2)
    full = 8 * of.classes * of.features**2
    score = max(reading, of.rows / cores / core["score_rows_per_s"], parts * task)
    hours = (2 * fit + _tree(tied, cores, core) + score) / 3600
    return {
        "data": f"{size / 1e12:.2f} TB, {parts:,} parts",
        "a pass that only reads": _told(reading),
        "handing out parts and sums, by one driver": _told(2 * parts * task),
        "fit, each of two passes": _told(fit),
        "sums, one covariance": f"{tied / 1e6:.0f} MB, {_told(_tree(tied, cores, core))}",
        "sums, a covariance per class": f"{full / 1e9:.1f} GB, {_told(_tree(full, cores, core))}",
        "score": _told(score),
        "fit and score": f"{hours:.2f} h, {hours * cores * DOLLARS:,.1f} dollars",
    }


def _tree(size: float, cores: int, core: dict[str, float]) -> float:
    """Seconds of the sums: each level sends one set of moments and adds it."""
    return math.log2(cores) * (size / NETWORK + size / (1e6 * core["merge_mb_per_s"]))


def _told(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3600:.1f} h"

"""The page of measurements of the Gaussian densities, from the receipt of gaussian_scale.py."""

import re
from typing import Any

from receipts import receipt, table, where

LARGE = "10⁹"
OURS, OURS32, TIED = "ours", "ours, float32 rows", "ours, tied"
FULL = (OURS32, "torch, as DDU", "QDA (svd)", "QDA (eigen)", "pytorch-ood GMM", "river")
SHARED = ("LDA", "pytorch-ood Mahalanobis")
OTHER = ("GaussianMixture, one step", "PyOD GMM, one step", "PyOD kNN")
SCORED = (
    OURS32,
    "torch MultivariateNormal",
    "torch MultivariateNormal, float32",
    "QDA",
    "GaussianMixture",
    "pytorch-ood GMM",
    "PyOD kNN",
)


def problems() -> dict[str, Any]:
    values = receipt("gaussian_scale")["values"]
    return {name: values[name] for name in sorted(values, key=_sizes) if "n = " in name}


def _sizes(problem: str) -> list[int]:
    """n, p and k in its name."""
    return [int(number.replace(",", "")) for number in re.findall(r"= ([\d,]*\d)", problem)]


def ratios(step: str, ours: str, names: tuple[str, ...]) -> str:
    """Milliseconds of ours, and how often they go into those of each peer."""
    rows = []
    for problem, of in problems().items():
        if any(name in of.get(step, {}) for name in names):
            base = of[step][ours]
            shares = (of[step][name] / base if name in of[step] else None for name in names)
            cells = ("" if share is None else f"{share:.2f}" for share in shares)
            rows.append([problem, f"{1000 * base:,.1f}", *cells])
    return table(["problem", f"{ours}, ms", *names], rows)


def fit() -> str:
    row = receipt("gaussian_scale")
    config, load = row["config"], row["values"]["load"]
    text = (
        f"`GDADensity` on n rows of p features and k classes, float64, {config['threads']} "
        f"thread(s), {config['clock']} seconds, median of {config['repeats']} fits in turn after "
        f"one that is not counted ({max(1, config['repeats'] // 3)} where n p² is {LARGE} or "
        f"more). The load of the machine was up to {load:g}: read the ratios. Seconds of each peer "
        "over ours; above 1, ours is faster. pytorch-ood computes in float32. `torch, as DDU`: "
        "means and covariances in double, as Mukhoti et al. fit them. Measured are "
        f"{len(problems())} of {len(config['grid'])} problems.\n\n"
    )
    growth = row["values"]["exponents of a fit"]
    names = dict.fromkeys(name.rpartition(", ")[0] for name in growth)
    grown = [[name, *(growth.get(f"{name}, {along}", "") for along in "npk")] for name in names]
    parts = [
        "## Fit, a covariance for each class\n\n",
        text,
        ratios("fit", OURS, FULL),
        "\nSums stay in float64 for float32 rows too, so that the sums of two parts agree with "
        "those of the whole to 1e-10.\n",
        "\n![Seconds of a fit against the number of rows, features and classes]"
        "(images/gaussian_scale.png)\n",
        "\nSeconds grow with n, p and k to the power of:\n\n",
        table(["", "n", "p", "k"], grown),
        "\nOf one covariance for all classes:\n\n",
        ratios("fit", TIED, SHARED),
        "\nOthers, that fit without labels or keep the rows:\n\n",
        ratios("fit", OURS, OTHER),
    ]
    return "".join(parts) + "\n" + where(row)


def memory() -> str:
    row = receipt("gaussian_scale")
    found = {
        name.removeprefix("memory: "): bytes_ / 2**20
        for name, bytes_ in row["values"].items()
        if name.startswith("memory: ")
    }
    rows = [[name, f"{mib:,.1f}", f"{mib / found[OURS]:.1f}"] for name, mib in found.items()]
    n, p, k = row["config"]["memory"]
    text = (
        f"Most memory that a fit to {n:,} rows takes beside them, p = {p}, k = {k}, in a process "
        f"of its own; the rows are {n * p * 8 / 2**20:,.0f} MiB. [1,000 classes of 2,048 features]"
        "(measurements.md#the-density-of-a-network): tied and low-rank.\n\n"
    )
    return "## Memory\n\n" + text + table(["", "MiB", "of ours"], rows)


def score() -> str:
    row = receipt("gaussian_scale")
    text = f"{row['config']['scored']:,} rows, seconds over ours as above.\n\n"
    shares = row["values"]["share of the rate of a matrix product"]
    rows = [
        [name, *(f"{of[part]:.2f}" if part in of else "" for part in _SHARES)]
        for name, of in sorted(shares.items(), key=lambda item: _sizes(item[0]))
    ]
    return (
        "## Score\n\n"
        + text
        + ratios("score", OURS, SCORED)
        + "\nOf one covariance for all classes (LDA gives no density):\n\n"
        + ratios("score", TIED, SHARED)
        + "\nMultiplications that are needed, n p² for a fit and k times as many for a score, as a "
        "share of the rate of this machine's matrix product in that type:\n\n"
        + table(["problem", *_SHARES], rows)
    )


def accuracy() -> str:
    errors = {
        name.removeprefix("error, "): of
        for name, of in receipt("gaussian_scale")["values"].items()
        if name.startswith("error, ")
    }
    names = list(next(iter(errors.values())))
    rows = [
        [name, *("singular" if of[n] is None else f"{of[n]:.1g}" for n in names)]
        for name, of in errors.items()
    ]
    text = (
        "Largest error of the log-density of 64 new rows, in nats, against 64-bit mantissas "
        "(numpy's `longdouble`), by the condition number of the covariance. Ours takes "
        "float32 rows to float64 where rows drawn from the Gaussian would lose more than 0.001 "
        "nats in float32.\n\n"
    )
    return "## Accuracy\n\n" + text + table(["covariance", *names], rows)


def forms() -> str:
    row = receipt("covariance_forms")
    config = row["config"]
    names = config["forms"]
    rows = []
    for problem, found in row["values"].items():
        data, _, count = problem.partition("; ")
        best = max(of[0] for of in found.values())
        cells = (f"{found[name][0]:.1f}" for name in names)
        bold = (f"**{c}**" if c == f"{best:.1f}" else c for c in cells)
        rows.append([data, int(count.split()[0]), *bold])
    text = (
        f"Mean log-density in nats of up to {config['held']:,} held-out rows under Gaussians of so "
        f"many rows a class, by form of the covariance; {config['seeds']} draws, shrinkage "
        f'"oas". Low-rank is `ClassGaussians("low-rank", rank={config["rank"]})`. How the '
        "variances of the shared basis shrink was chosen after rows of these data had been seen: "
        "it is no untouched comparison.\n\n"
    )
    shown = table(["features", "rows of a class", *names], sorted(rows, key=lambda row: row[:2]))
    return "## Which covariance\n\n" + text + shown + "\n" + where(row)


_SHARES = ("fit", "score, float64", "score, float32")


def ingredients() -> str:
    row = receipt("gaussian_ingredients")
    sets = {"cifar100": "CIFAR-100", "gtsrb": "GTSRB"}
    scores = {"gaussians": "Gaussians", "unit length": "unit length", "max softmax": "max softmax"}
    rows = [
        [
            name.partition(", seed")[0],
            f"{of['accuracy']:.3f}",
            f"{of['sd of log length']:.2f}",
            *(f"{of[f'{score}, {ood}']:.3f}" for ood in sets for score in scores),
        ]
        for name, of in sorted(row["values"].items(), key=lambda item: item[0][:4] != "none")
    ]
    (seed,) = row["config"]["seeds"]
    text = (
        "A residual network of 16 layers and twice the usual width (WRN-16-2), trained on 40,000 "
        f"images of CIFAR-10 for 8 epochs in bfloat16, seed {seed}; the same with spectral norm, "
        "with labels smoothed by 0.1, with both, and at half the width (WRN-16-1). AUROC against "
        "CIFAR-100 and GTSRB (in a third party's 32 x 32 form) of one Gaussian a class "
        "(covariances shrunk by 1e-6) on its features as they are, on its features of unit "
        "length, and of max softmax; sd: of the logarithm of the length of training features.\n\n"
    )
    head = ["ingredient", "accuracy", "sd of log length"]
    head += [f"{title}, {ood}" for ood in sets.values() for title in scores.values()]
    title = "## What spectral norm, smoothed labels and width do for Gaussians on features\n\n"
    return title + text + table(head, rows) + "\n" + where(row)

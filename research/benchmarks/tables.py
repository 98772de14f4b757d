"""Write the pages of measurements from the receipts under results/; a test keeps them so."""

from pathlib import Path

import gaussian_tables
from drift_tables import delays, false_alarms
from receipts import receipt, table, where
from scale_tables import examples, fitting, plans, rates, scoring, simulation
from service_tables import page_speed, serve_load
from spectra_tables import spectra_densities, spectra_features

from dipedl.writing.files import write_file

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs"
SETS = {"kmnist": "K-MNIST", "omniglot": "Omniglot", "omniglot_inverted": "Omniglot inverted"}
HEAD = """
Written by `python benchmarks/tables.py` from the receipts under `results/`, which hold versions and
configuration; `make bench` makes them again.
"""
SPEED = f"""# Measurements of time and memory
{HEAD}
Where peers stand side by side, figures are medians of calls run in turn with them in one process,
after a warm-up: read the ratios, not the seconds. Spectra have a command of their own. Quality of
the answers: [measurements of quality](measurements-quality.md).
"""
QUALITY = f"""# Measurements of quality
{HEAD}
How long things take: [measurements of time and memory](measurements.md). Spectra and the demo have
commands of their own.
"""
GAUSSIANS = f"""# Measurements of the Gaussian densities
{HEAD}"""
DRIFT = """# Measurements of drift

Written by `python benchmarks/tables.py` from the receipt of `python benchmarks/drift.py`, which
needs river beside dipedl. How to use it: [watch a stream for drift](../../docs/how-to/drift.md).
"""
SERVICE = """# Measurements of the service

Written by `python benchmarks/tables.py` from the receipts under `results/`. How to use it: [serve a
model over HTTP](../../docs/how-to/serve.md), [its page](../../docs/how-to/serve-page.md).
"""
SCALE = """# Measurements of scale

Written by `python benchmarks/tables.py` from the receipts of `python benchmarks/scale_model.py`,
`score_scale.py`, `fit_scale.py` and `scale_plan.py`. What they say:
[past one machine](../../docs/explanation/scale.md).
"""


def startup() -> str:
    row = receipt("startup")
    v = row["values"]
    rows = [
        ["`import dipedl`, beyond Python's own start", f"{v['import_dipedl_beyond_python_ms']} ms"],
        ["`import sklearn.base` in a new process, for scale", f"{v['import_sklearn_base_s']} s"],
        ["first result on two moons, imports included", f"{v['first_result_moons_s']} s"],
        ["first result on digits (1,010 rows, 64 inputs)", f"{v['first_result_digits_s']} s"],
        [
            "first result on 1,000 MNIST images, forest and PCA",
            f"{v['first_result_mini_mnist_s']} s",
        ],
    ]
    return "## Start\n\n" + table(["", "median of 5"], rows) + "\n" + where(row)


def install_size() -> str:
    row = receipt("install_size")
    names = {"core": "core", "core_report": "core, report", "core_report_cli": "core, report, cli"}
    rows = [
        [label, f"{row['values'][f'{name}_mb']:.0f} MB", f"{row['values'][f'{name}_install_s']} s"]
        for name, label in names.items()
    ]
    return "## Install\n\n" + table(["extras", "size", "time"], rows) + "\n" + where(row)


def mnist_pixels() -> str:
    row = receipt("mnist_pixels")
    rows = [
        [
            shrinkage,
            *(f"{row['values'][shrinkage]['auroc'][name]:.4f}" for name in SETS),
            row["values"][shrinkage]["fit_and_score_cpu_s"],
            row["values"][shrinkage]["fit_and_score_wall_s"],
        ]
        for shrinkage in row["config"]["shrinkage"]
    ]
    head = ["shrinkage", *(f"AUROC {name}" for name in SETS.values()), "CPU s", "wall s"]
    text = (
        "One Gaussian a class on the pixels of all 60,000 training images, against the 10,000 test "
        "images; nothing is random, nothing was chosen on the OOD sets. K-MNIST and Omniglot as "
        "published are easy (the ink on the border alone [tells them apart](results-mnist.md)); "
        "Omniglot inverted is not, and pixels are a poor density for it.\n\n"
    )
    return "## Full MNIST, pixels\n\n" + text + table(head, rows) + "\n" + where(row)


def demo() -> str:
    result = receipt("demo")
    r = result["receipt"]
    rows = [
        [
            row["model"],
            row["method"],
            *("" if row[key] is None else f"{row[key]:.3f}" for key in ("accuracy", "brier")),
            *(_auroc_and_flagged(row["ood"][name]) for name in SETS),
        ]
        for row in result["rows"]
    ]
    head = [
        "model",
        "ranked by",
        "accuracy",
        "Brier",
        *(f"AUROC {n} (flagged)" for n in SETS.values()),
    ]
    text = (
        f"`dipedl demo`: {r['n_train']:,} training images, {r['n_test']:,} test images, 500 of "
        f"each OOD set, one seed ({r['seed']}). All classifiers but the network see the images at "
        "half resolution. Settings of the classifiers are in `dipedl.apps.demo.models`: boosted "
        "trees are 30 rounds of small ones, and the network leaves 800 of its images for "
        "calibration. "
        "All other settings of dipedl are its defaults. Flagged: by `predict_ood`, and by the "
        "bare scores at as many false alarms. The rows without a classifier look at no shape.\n\n"
    )
    return (
        "## The demo\n\n"
        + text
        + table(head, rows)
        + "\n`dipedl demo` writes the receipt `results/demo.json` as `report.json`.\n"
    )


def default_speed() -> str:
    row = receipt("default_speed")
    rows = [
        [
            name,
            *(of["fit"][key] for key in ("bare_s", "ours_s", "frozen_s")),
            *(of["rows"][key] for key in ("bare_ms", "above_ms")),
        ]
        for name, of in row["values"].items()
    ]
    head = ["classifier, training rows", "fit bare, s", "default, s", "default, frozen, s"]
    head += ["2,000 rows bare, ms", "default, ms above bare"]
    batches = list(next(iter(row["values"].values()))["batches"])
    columns = [f"{who}_p{q}_ms" for who in ("bare", "ours") for q in (50, 99)]
    calls = [
        [name, *(of["batches"][rows][column] for rows in batches for column in columns)]
        for name, of in row["values"].items()
    ]
    named = ["bare p50", "bare p99", "ours p50", "ours p99"]
    by_call = ["classifier", *(f"{rows} row(s): {name}" for rows in batches for name in named)]
    text = (
        f"The default of `DIPClassifier` beside its bare classifier, {row['config']['features']} "
        f"features, {row['config']['classes']} classes; CPU seconds of one thread. HGB: histogram "
        "gradient boosting, LR: logistic regression, RF: random forest. Other work shared the "
        "cores in some of the runs, which stretches CPU seconds too: read them against those of "
        'the bare classifier. "Frozen" is a fitted classifier with 2,000 calibration rows.\n\n'
    )
    found = table(head, rows) + (
        f"\nCPU milliseconds of a call, 50th and 99th percentile of {row['config']['calls']} "
        "calls:\n\n"
    )
    return (
        "## The default of DIPClassifier\n\n"
        + text
        + found
        + table(by_call, calls)
        + "\n"
        + where(row)
    )


def neighbour_rows() -> str:
    row = receipt("neighbour_rows")
    columns = ("pseudo_all", "pseudo_kept", "unseen_all", "unseen_kept")
    rows = [[name, *(f"{of[key]:.3f}" for key in columns)] for name, of in row["values"].items()]
    kept = f"{row['config']['kept']:,} rows"
    head = ["density, classes", "pseudo-outliers, all rows", kept, "class left out, all rows", kept]
    text = (
        "AUROC with neighbours among all of "
        f"{row['config']['rows']:,} simulated rows and among those that the default keeps; around "
        "logistic regression, mean of two seeds. OOD sets are pseudo-outliers made of held-out "
        "rows, and a class that was left out; classes are of equal size, or skewed.\n\n"
    )
    return "## Neighbours among some of the rows\n\n" + text + table(head, rows) + "\n" + where(row)


def guarantee() -> str:
    row = receipt("guarantee")
    v, config = row["values"], row["config"]
    head = ["classifier, density", "inputs", "flagged", "violations"]
    rows = [[name, *(f"{of[key]:,}" for key in head[1:])] for name, of in v.items()]
    text = (
        f"For each model {config['random']:,} inputs near, between and far from the data; "
        f"{config['at_threshold']:,} on both sides of the alarm threshold, found by bisection; and "
        f"{config['searched']:,} that a search moves towards a violation. A violation is a flagged "
        "input whose largest probability is above the bare classifier's, or whose entropy is "
        "below, by more than rounding: see [evidence](../../docs/explanation/evidence.md).\n\n"
    )
    return "## Never surer than the classifier\n\n" + text + table(head, rows) + "\n" + where(row)


def set_coverage() -> str:
    row = receipt("set_coverage")
    v, config = row["values"], row["config"]
    head = [
        "classes",
        "error",
        "temperature",
        "default",
        "alone, 5 folds",
        "alone, 20 folds",
        "CV+",
    ]
    rows = [
        [
            name,
            f"{of['error']:.2f}",
            f"{of['temperature']:.2f}",
            f"{of['default']:.3f} ± {of['standard error']:.3f}",
            *(f"{of[key]:.3f}" for key in head[4:]),
        ]
        for name, of in v.items()
    ]
    text = (
        f"Share of {config['new']:,} new rows whose {config['coverage']:.0%} set holds the true "
        f"class, mean of {config['fits']} fits to {config['rows']} rows of {config['columns']} "
        "columns, and its standard error: logistic regression on classes of Gaussian data. Alone: "
        "the classifier without a density, by held-out rows of so many folds; CV+ asks the models "
        "of all 5 folds about each new row.\n\n"
    )
    title = "## Coverage of sets with few rows of many columns\n\n"
    return title + text + table(head, rows) + "\n" + where(row)


def frozen_intervals() -> str:
    row = receipt("frozen_intervals")
    heads = {
        "coverage_50": "50 %",
        "coverage_80": "80 %",
        "coverage_95": "95 %",
        "lowest_third": "lowest of all thirds, 95 %",
        "width_95": "width",
        "interval_score_95": "score",
        "error_correlation": "correlation",
        "coverage_95/far": "far: 95 %",
        "interval_score_95/far": "far: score",
    }
    rows = [
        [method, *(f"{of[name]:.2f}" for name in heads)] for method, of in row["values"].items()
    ]
    text = (
        f"Shares of the true class probabilities that credible intervals hold, as in [the suite of "
        f"intervals](results-second-order.md); means over {len(row['config']['problems'])} "
        "problems of its profile `design`, seed 0; of the thirds of the rows by distance to the "
        "training rows the lowest of any problem. A network is fitted on half of the rows; every "
        "method is given it frozen, and the other half.\n\n"
        f"- Bootstrap: {row['config']['bootstraps']} logistic regressions of the penultimate "
        "features, on resamples of the held-out rows; “about the network”: with the network's "
        "probabilities as the mean.\n"
        "- Laplace: a Gaussian around the weights of the last layer by the training rows, its "
        "prior chosen by held-out likelihood.\n"
        "- Neighbours: the gap between labels and probabilities of the nearest √m of m held-out "
        "rows in the features.\n\n"
    )
    return (
        "## Intervals of a frozen network\n\n"
        + text
        + table(["method", *heads.values()], rows)
        + "\n"
        + where(row)
    )


def caution_budget() -> str:
    row = receipt("caution_budget")
    v, config = row["values"], row["config"]
    rows = [
        [
            m,
            confidence,
            f"{100 * of['mean']:.1f} ({100 * of['sd']:.1f})",
            f"{of['above budget']:.0%}",
        ]
        for confidence in (0.5, 0.95)
        for m in config["held_out"]
        for of in [v[f"{m} rows, confidence {confidence}"]]
    ]
    text = (
        f"{config['repetitions']} fits of `CautionBudget({config['budget']})` to simulated "
        f"held-out rows of {config['classes']} classes, with calibrated probabilities. Cost: what "
        f"doubt adds to the Brier score of {config['new']:,} new rows, as a share of that score or "
        "of its gain over the prior's, whichever is less: this is what the budget is a share of. "
        "See [the caution budget](../../docs/explanation/caution.md).\n\n"
    )
    head = ["held-out rows", "`confidence`", "cost, mean (sd), %", "fits above the budget"]
    return (
        "## How well the caution budget is kept\n\n" + text + table(head, rows) + "\n" + where(row)
    )


def _auroc_and_flagged(score: dict) -> str:
    flagged = "" if score["flagged"] is None else f" ({100 * score['flagged']:.0f} %)"
    return f"{score['auroc']:.3f}{flagged}"


def flow_speed() -> str:
    row = receipt("flow_speed")
    v, plain, residual = row["values"], row["config"]["plain"], row["config"]["residual"]
    rows = [
        [
            f"{plain['transforms']} transforms x {tuple(plain['hidden'])}",
            f"{v['plain_speedup_over_nflows']:.2f} x as fast",
            f"{v['plain_speedup_over_zuko']:.2f} x as fast",
        ],
        [
            f"{residual['transforms']} transforms x {tuple(residual['hidden'])}, residual blocks",
            f"{v['residual_speedup_over_nflows']:.2f} x as fast",
            "has none",
        ],
    ]
    text = (
        f"One step of training a masked autoregressive flow on {row['config']['features']} inputs, "
        f"batch {plain['batch']}, {row['config']['threads']} threads, the same architecture; "
        f"median of {row['config']['repeats']} ratios of neighbouring steps.\n\n"
    )
    head = ["architecture", "than nflows", "than zuko"]
    return "## Training a flow\n\n" + text + table(head, rows) + "\n" + where(row)


def head_speed() -> str:
    row = receipt("head_speed")
    v, config = row["values"], row["config"]
    networks = sorted({name.partition(":")[0] for name in v if name.endswith(": network s")})
    overhead = [
        [
            name,
            f"{1000 * v[f'{name}: network s']:.1f} ms",
            *(f"{100 * v[f'{name}: {form} alone']:.1f} %" for form in ("full", "tied", "low-rank")),
        ]
        for name in networks
    ]
    peers = [[name, f"{ratio:.2f}"] for name, ratio in v.items() if " / " in name]
    large = [
        [
            form,
            f"{v[f'1000 x 2048 {form}: peak GiB']:.2f}",
            f"{v[f'1000 x 2048 {form}: fit rows per s']:,.0f}",
            f"{v[f'1000 x 2048 {form}: score rows per s']:,.0f}",
        ]
        for form in ("tied", "low-rank")
    ]
    text = (
        "`ClassGaussians` in float32, 10 classes, beside the forward pass of the network: "
        f"seconds of the density alone over those of the network, {config['threads']} thread(s), "
        f"median of {config['repeats']}. The full form needs 1.25 million multiplications for 10 "
        "classes of LeNet-5's 500 features where the network itself needs 3.5 million: it cannot "
        "stay under a tenth of it; the tied form does in batches of 256.\n\n"
    )
    found = table(["network", "forward", "full", "tied", "low-rank"], overhead)
    found += (
        f"\nSeconds of others over ours, {config['peers']['rows']} rows of {config['peers']['p']} "
        "features (above 1: ours is faster):\n\n"
    )
    found += table(["ours / other", "ratio"], peers)
    passes = [[name.partition(":")[0], f"{v[name]:.2f}"] for name in v if "fit_density" in name]
    if passes:
        found += "\nSeconds of `DIPModule.fit_density` over those of the forward passes alone:\n\n"
        found += table(["network, rows of the loader", "ratio"], passes)
    found += "\n1,000 classes of 2,048 features, memory beyond the process before the fit:\n\n"
    head = ["form", "peak, GiB", "rows a second, fit", "rows a second, score"]
    return "## The density of a network\n\n" + text + found + table(head, large) + "\n" + where(row)


def dip_edl_time() -> str:
    row = receipt("dip_edl_time")
    v = row["values"]
    text = (
        f"Both trainings of one seed of the benchmark's DIP-EDL take {v['train_minutes']:.1f} min "
        f"(load of the two cores {v['load_average']:.1f}, so little else ran): "
        f"{v['classifier_train_seconds']:.0f} s the network, "
        f"{v['density_train_seconds']:.1f} s the density; scoring 46,360 images "
        f"{v['score_seconds']:.0f} s. By count of operations that is {v['training_pflop']:.3f} "
        f"PFLOP; the paper's configuration needs {v['training_pflop_of_the_paper']:.0f}, "
        f"{v['paper_over_ours']} times as much, or at this rate "
        f"{v['paper_over_ours'] * v['train_minutes'] / 60:.0f} hours on these cores.\n\n"
    )
    return "## One seed of DIP-EDL on MNIST\n\n" + text + where(row)


def selection() -> str:
    row = receipt("select_density")
    best = row["values"]["best_ten"][:5]
    text = (
        "The density of the benchmark's cpu profile: the best five of "
        f"{row['values']['candidates']} candidates. Chosen on validation digits and on their "
        "shuffled quarters; no test image and no OOD set was opened. Brier added: on validation "
        "digits; OOD Brier: on the shuffled ones, both for a classifier that is certain of its "
        "answer.\n\n"
    )
    head = ["pixels", "shrinkage", "normaliser", "Brier added", "OOD Brier", "sum"]
    return "## Choice of a density for MNIST\n\n" + text + table(head, best) + "\n" + where(row)


def likelihood_failure() -> str:
    row = receipt("likelihood_failure")
    rows = [
        [
            name,
            of["test_nats"],
            of[f"{ood}_nats"],
            ood,
            of["auroc"][ood],
            of["auroc_two_sided"][ood],
        ]
        for name, of in row["values"].items()
        for ood in ("mnist", "kmnist")
    ]
    text = (
        "A small masked autoregressive flow on Fashion-MNIST pixels: digits are *more* likely than "
        "clothes, the known failure of likelihood. A two-sided reading helps against MNIST and not "
        "against K-MNIST; leaving out the Jacobian of the logit helps a lot (the score is then no "
        "density of pixels). The default of `DIPClassifier` on Fashion-MNIST: "
        "[results-defaults.md](results-defaults.md).\n\n"
    )
    head = ["score", "nats, test", "nats, OOD", "OOD set", "AUROC", "AUROC, two-sided"]
    return "## Likelihood of pixels that fails\n\n" + text + table(head, rows) + "\n" + where(row)


def which_score() -> str:
    row = receipt("which_score")
    kinds = list(next(iter(row["values"].values())))
    rows = [[question, *(of[kind] for kind in kinds)] for question, of in row["values"].items()]
    text = (
        "AUROC of the kinds of `uncertainty`, by question: the default of `DIPClassifier` around a "
        "random forest, boosted trees and logistic regression, on digits without class 2, 6 or 9 "
        "in turn, two seeds, means.\n\n"
    )
    head = ["question", *(f"`{kind}`" for kind in kinds)]
    return "## Which score for which question\n\n" + text + table(head, rows) + "\n" + where(row)


def load_speed() -> str:
    row = receipt("load_speed")
    columns = ("ours_ms", "joblib_ms", "ratio", "ours_kb", "joblib_kb")
    rows = [[name, *(of[key] for key in columns)] for name, of in row["values"].items()]
    head = ["model, data", "`dipedl.load`, ms", "joblib, ms", "ratio", "our file, kB", "joblib, kB"]
    text = (
        f"A random forest of {row['config']['trees']} trees, alone and in a `DIPClassifier`; CPU "
        f"time, median of {row['config']['repeats']}. Checksums and the checks of every index are "
        "part of ours; unpickling runs whatever code is in the file.\n\n"
    )
    return "## Loading a saved forest\n\n" + text + table(head, rows) + "\n" + where(row)


#: What each page says.
PAGES = {
    "measurements": [
        SPEED,
        startup,
        install_size,
        default_speed,
        flow_speed,
        head_speed,
        load_speed,
        mnist_pixels,
        spectra_features,
        dip_edl_time,
    ],
    "measurements-quality": [
        QUALITY,
        which_score,
        neighbour_rows,
        guarantee,
        set_coverage,
        caution_budget,
        frozen_intervals,
        selection,
        likelihood_failure,
        spectra_densities,
        demo,
    ],
    "measurements-gaussians": [
        GAUSSIANS,
        gaussian_tables.fit,
        gaussian_tables.memory,
        gaussian_tables.score,
        gaussian_tables.accuracy,
        gaussian_tables.forms,
        gaussian_tables.ingredients,
    ],
    "measurements-drift": [DRIFT, false_alarms, delays],
    "measurements-service": [SERVICE, serve_load, page_speed],
    "measurements-scale": [SCALE, scoring, fitting, plans, rates, simulation, examples],
}


def page(name: str) -> str:
    head, *parts = PAGES[name]
    return "\n".join([head, *(part() for part in parts)])


if __name__ == "__main__":
    for name in PAGES:
        write_file(FOLDER / f"{name}.md", page(name))

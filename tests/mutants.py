"""Plant mistakes in a copy of the source and require that the tests turn red for each.

Run by hand or in CI, from anywhere: ``python tests/mutants.py [word ...]`` (only the mutants whose
name holds a word), or ``python tests/mutants.py --part 7/3`` (the second third: 7 modulo 3 is 1).
As many at a time as there are cores, at most four, each in a copy of its own. Exit code 1 if a
mutant survives, does not apply, or if the tests are red without any.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

REPOSITORY = Path(__file__).resolve().parent.parent
WORKERS = min(os.cpu_count() or 1, 4)

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Mutant(NamedTuple):
    """Replace `old`, which must occur exactly once in `file`, by `new`; `tests` must turn red."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(
        "log-determinant dropped",
        "gaussians/factor.py",
        "X.shape[1] * LOG_2PI + self.log_det",
        "X.shape[1] * LOG_2PI",
        "density/test_conformance.py",
    ),
    Mutant(
        "log 2 pi dropped",
        "gaussians/factor.py",
        "X.shape[1] * LOG_2PI + self.log_det",
        "self.log_det",
        "density/test_conformance.py",
    ),
    Mutant(
        "scatter never divided by n",
        "gaussians/moments.py",
        "self.scatter / self.weight)",
        "self.scatter)",
        "gaussians/test_moments.py",
    ),
    Mutant(
        "n - 1 instead of n",
        "gaussians/moments.py",
        "self.scatter / self.weight)",
        "self.scatter / (self.weight - 1))",
        "density/test_gda.py",
    ),
    Mutant(
        "merge without the between-chunk term",
        "gaussians/moments.py",
        "bridge = gap * np.sqrt(self.weight * share)",
        "bridge = 0 * gap",
        "density/test_conformance.py",
    ),
    Mutant(
        "merge without a fourth-moment cross term",
        "gaussians/higher_moments.py",
        "dot(e, self.cubic + times, diagonal)",
        "dot(e, self.cubic, diagonal)",
        "density/test_gaussian.py",
    ),
    Mutant(
        "rows of weight zero kept",
        "gaussians/moments.py",
        "rows = rows[weights[rows] > 0] if weights[rows].any() else rows[:1]",
        "rows = rows[weights[rows] > -1]",
        "gaussians/test_moments.py",
    ),
    Mutant(
        "no shrinkage",
        "gaussians/factor.py",
        "    cov = (1 - intensity) * moments.covariance\n",
        "    intensity = 0.0\n    cov = (1 - intensity) * moments.covariance\n",
        "density/test_gaussian.py",
    ),
    Mutant(
        "OAS without its 1/p",
        "gaussians/shrinkage.py",
        "(mean_square - 1 / p)",
        "mean_square",
        "density/test_gaussian.py",
    ),
    Mutant(
        "a jitter instead of a refusal",
        "gaussians/factor.py",
        "lapack.dpotrf((cov / np.outer(scale, scale)).T, lower",
        "lapack.dpotrf((cov / np.outer(scale, scale)).T + 1e-6 * np.eye(len(cov)), lower",
        "density/test_gaussian.py",
    ),
    Mutant(
        "an n x n buffer in the squared distance",
        "gaussians/factor.py",
        'np.einsum("ij,ij->i", D, D, out=out)',
        "out[:] = np.diag(D @ D.T)",
        "density/test_conformance.py",
    ),
    Mutant(
        "scoring changes its input",
        "gaussians/factor.py",
        "np.subtract(X, self.mean, out=D)",
        "X -= self.mean; np.copyto(D, X)",
        "density/test_conformance.py",
    ),
    Mutant(
        "class weights swapped",
        "density/gda.py",
        'if self.class_weights == "equal"',
        'if self.class_weights == "empirical"',
        "density/test_gda.py",
    ),
    Mutant(
        "kernel density without its Jacobian",
        "density/kde.py",
        "score - np.log(self.scaler_.scale_).sum()",
        "score",
        "density/test_conformance.py",
    ),
    Mutant(
        "mixture without its Jacobian",
        "density/mixture.py",
        "score - np.log(self.scaler_.scale_).sum()",
        "score",
        "density/test_mixture.py",
    ),
    Mutant(
        "neighbours not centred",
        "density/knn.py",
        "self.center_ = X.mean(axis=0)",
        "self.center_ = 0 * X.mean(axis=0)",
        "density/test_knn.py",
    ),
    Mutant(
        "neighbour distance as the fast search gives it",
        "density/knn.py",
        "return self._distances(X, self._nearest(X)[:, -1:])[:, 0]",
        "return self.neighbors_.kneighbors(X)[0][:, -1]",
        "density/test_knn.py",
    ),
    Mutant(
        "copies of k - 1 others refused too",
        "density/knn.py",
        "counts[counts > self.n_neighbors]",
        "counts[counts >= self.n_neighbors]",
        "density/test_knn.py",
    ),
    Mutant(
        "farthest class in place of the nearest",
        "density/mahalanobis.py",
        "self.squared_distance(X).min(axis=1)",
        "self.squared_distance(X).max(axis=1)",
        "density/test_mahalanobis_density.py",
    ),
    Mutant(
        "background added, not taken off",
        "density/combined/relative.py",
        "np.subtract(foreground, background",
        "np.add(foreground, background",
        "density/test_relative.py",
    ),
    Mutant(
        "blocks put on the scale of rows they were fitted on",
        "density/combined/block_sum.py",
        "densities = self._fitted(X[train], None if y is None else labels[train], part)",
        "densities = self.densities_",
        "density/test_block_sum.py",
    ),
    Mutant(
        "psi(S) for psi(S + 1)",
        "dirichlet.py",
        "- digamma_excess(self.strength)[:, None]",
        "- (digamma_excess(self.strength) - 1 / self.strength)[:, None]",
        "test_dirichlet.py",
    ),
    Mutant(
        "prior of ones whatever the prior",
        "maths/evidence.py",
        "return prior + evidence[:, None] * proba",
        "return 1.0 + evidence[:, None] * proba",
        "test_classifier.py",
    ),
    Mutant(
        "gamma dropped",
        "evidence/pseudo_count.py",
        "np.log(n) + np.log(gamma) +",
        "np.log(n) +",
        "evidence/test_normalizers.py",
    ),
    Mutant(
        "n dropped",
        "evidence/pseudo_count.py",
        "np.log(n) + np.log(gamma) +",
        "np.log(gamma) +",
        "evidence/test_normalizers.py",
    ),
    Mutant(
        "threshold quantile off by one",
        "evidence/quantiles.py",
        "rate * (cumulative[-1] + 1) * (1 + 1e-12) - 1",
        "rate * (cumulative[-1] + 1) * (1 + 1e-12)",
        "evidence/test_normalizers.py",
    ),
    Mutant(
        "the side of the root that overspends",
        "evidence/_budget.py",
        "return float(low)",
        "return float(high) + 1e-6",
        "evidence/test_caution_budget.py",
    ),
    Mutant(
        "a budget of the loss without its square",
        "evidence/_budget.py",
        "u * (2 * self.cross + u * self.square)",
        "u * (2 * self.cross)",
        "evidence/test_caution_budget.py",
    ),
    Mutant(
        "half-point without the prior's share",
        "evidence/_logistic.py",
        "float(special.logit(min(alpha0 / full, 0.5)))",
        "0.0 * float(special.logit(min(alpha0 / full, 0.5)))",
        "evidence/test_caution_budget.py",
    ),
    Mutant(
        "z that overflows instead of its logarithm",
        "evidence/_logistic.py",
        "np.asarray(-np.logaddexp(0.0, -(self.log_odds_ + self.slope * distance)))",
        "np.log(special.expit(self.log_odds_ + self.slope * distance) + 1e-300)",
        "evidence/test_caution_budget.py",
    ),
    Mutant(
        "a perfect classifier has nothing to spend",
        "evidence/_budget.py",
        "per_row = rows.average(loss(1.0)) / max(counts.sum(), 1.0)",
        "per_row = 0.0",
        "evidence/test_caution_budget.py",
    ),
    Mutant(
        "confidence without the error of the mean",
        "evidence/_budget.py",
        "special.ndtri(confidence) * error",
        "0.0 * error",
        "evidence/test_caution_budget.py",
    ),
    Mutant(
        "temperature at any gain",
        "calibration/temperature.py",
        "total * (self.bare_nll_ - found) > 1",
        "self.bare_nll_ - found > 0",
        "calibration/test_temperature.py",
    ),
    Mutant(
        "merge of z-scores without the gap of the means",
        "evidence/zscore.py",
        "variance + share * (1 - share) * gap**2",
        "variance",
        "evidence/test_merge.py",
    ),
    Mutant(
        "one-sided typicality",
        "density/combined/typicality.py",
        "-(r**2 + LOG_2PI) / 2",
        "-(np.minimum(r, 0) ** 2 + LOG_2PI) / 2",
        "density/test_typicality.py",
    ),
    Mutant(
        "in-sample instead of held-out statistics",
        "evidence_model.py",
        "self._fitted_density(template, Z, y[train], w_train, classifier, X)",
        "whole.density",
        "test_evidence.py",
    ),
    Mutant(
        "decisions turned round",
        "decisions/_per_sample.py",
        "np.where(self.score_samples(X) < threshold, -1, 1)",
        "np.where(self.score_samples(X) < threshold, 1, -1)",
        "test_classifier.py",
    ),
    Mutant(
        "tempering turned over",
        "dirichlet.py",
        "added = nu * counts_like(",
        "added = 1 / nu * counts_like(",
        "theory/test_theory_posteriors.py",
    ),
    Mutant(
        "KL without the strength",
        "nn/losses/evidence_regularizers.py",
        "leading = t * (q",
        "leading = (q",
        "nn/test_losses.py",
    ),
    Mutant(
        "KL on the target class too",
        "nn/losses/evidence_regularizers.py",
        "return kl_to_prior(alpha.masked_fill(label, prior), prior)",
        "return kl_to_prior(alpha, prior)",
        "nn/test_losses.py",
    ),
    Mutant(
        "contributions by the transposed factor",
        "gaussians/factor.py",
        "D @ self.whitener.T @ self.whitener",
        "D @ self.whitener @ self.whitener.T",
        "density/test_contributions.py",
    ),
    Mutant(
        "contributions to the farthest class",
        "gaussians/contributions.py",
        "np.argmin(",
        "np.argmax(",
        "density/test_contributions.py",
    ),
    Mutant(
        "diagnosis: errors spotted by high scores",
        "diagnostics/_information.py",
        "by_score = _auroc(held, -held.scores)",
        "by_score = _auroc(held, held.scores)",
        "diagnostics/test_diagnostics.py",
    ),
    Mutant(
        "diagnosis: half point without the prior",
        "diagnostics/_vacuity.py",
        "log_e - np.log(alpha0)",
        "log_e",
        "diagnostics/test_diagnostics.py",
    ),
    Mutant(
        "diagnosis: Holm's p-values out of order",
        "diagnostics/_classes.py",
        "np.maximum.accumulate(steps * p_values[order])",
        "steps * p_values[order]",
        "diagnostics/test_diagnostics.py",
    ),
    Mutant(
        "explanation: typical distance to the row itself",
        "explanation/_readings.py",
        "np.median(distances[:, -1])",
        "np.median(distances[:, 0])",
        "explanation/test_explanation.py",
    ),
    Mutant(
        "p-value without the new input",
        "decisions/p_values.py",
        "(1 + at_or_below) / (1 + cumulative[-1])",
        "at_or_below / cumulative[-1]",
        "decisions/test_p_values.py",
    ),
    Mutant(
        "conformal quantile of N, not N + 1",
        "decisions/sets.py",
        "* (w.sum() + 1) *",
        "* w.sum() *",
        "decisions/test_prediction_sets.py",
    ),
    Mutant(
        "risk bounds without Bonferroni",
        "decisions/rejection.py",
        '1 - (1 - check_share("confidence", confidence)) / len(ranks)',
        'check_share("confidence", confidence)',
        "decisions/test_rejection.py",
    ),
    Mutant(
        "the classifier has a margin too",
        "density/combined/fused.py",
        "0.0 if name == CLASSIFIER else self.margin",
        "self.margin",
        "density/test_fused.py",
    ),
    Mutant(
        "weights of experts not squared",
        "density/combined/fused.py",
        "- 1) ** 2 if by_kind",
        "- 1) if by_kind",
        "density/test_fused.py",
    ),
    Mutant(
        "the best candidate always",
        "density/combined/selector.py",
        'not row["score"] < best)',
        "False)",
        "density/test_fused.py",
    ),
    Mutant(
        "blind densities rank by score",
        "density/combined/selector.py",
        '(row["blind"], -row["score"])',
        '-row["score"]',
        "density/test_fused.py",
    ),
    Mutant(
        "pseudo-outliers from rows of one class",
        "calibration/pseudo_outliers.py",
        "others = np.flatnonzero(self.y != c)",
        "others = np.flatnonzero(self.y == c)",
        "calibration/test_pseudo_outliers.py",
    ),
    Mutant(
        "density sees held-out rows",
        "pretrained/_stream.py",
        "yield rows.taken(~mask)",
        "yield rows",
        "pretrained/test_dip_module_data.py",
    ),
    Mutant(
        "temperature dropped",
        "pretrained/_evidence_head.py",
        "logits / self.temperature",
        "logits",
        "pretrained/test_dip_module.py",
    ),
    Mutant(
        "fused score without the margin",
        "maths/fusion.py",
        "log_ndtr(scores + margin)",
        "log_ndtr(scores)",
        "pretrained/test_fusion.py",
    ),
    Mutant(
        "merge of class moments without the bridge",
        "gaussians/class_moments.py",
        "bridge = gap * (before * counts[:, None] / after).sqrt()",
        "bridge = 0 * gap",
        "pretrained/test_class_moments.py",
    ),
    Mutant(
        "sketch without the bridge",
        "gaussians/class_moments.py",
        "self.scatter.append(torch.cat((rows, bridge)), torch.cat((y, classes)))",
        "self.scatter.append(rows, y)",
        "pretrained/test_low_rank_gaussians.py",
    ),
    Mutant(
        "exported trees compare float64",
        "export/_estimators/trees.py",
        "return X.cast(np.float32).cast(np.float64)",
        "return X",
        "export/test_onnx_classifiers.py",
    ),
    Mutant(
        "exported flag forgets what was refused",
        "export/_graphs/model.py",
        'flagged = graph.op("Or", scores < evidence.offset_, refused)',
        "flagged = scores < evidence.offset_",
        "export/test_onnx_file.py",
    ),
    Mutant(
        "exported mixture with equal weights",
        "export/_graphs/rows.py",
        "np.log(weights / weights.sum())",
        "np.log(1 / len(weights))",
        "export/test_onnx_densities.py",
    ),
    Mutant(
        "pre-activation lost on the shortcut",
        "nn/backbones/wide_resnet.py",
        "self.residual(X) + self.shortcut(X)",
        "self.residual(X) + self.shortcut(torch.relu(X))",
        "nn/test_cifar_networks.py",
    ),
    Mutant(
        "SVHN labels off by one",
        "datasets/images/svhn.py",
        "astype(np.int64) % 10",
        "astype(np.int64) - 1",
        "datasets/test_svhn.py",
    ),
    Mutant(
        "a pause that wastes an epoch",
        "nn/training/_loop.py",
        "if left < self._seconds_per_epoch()",
        "if left < 0",
        "nn/test_pause.py",
    ),
    Mutant(
        "spectra rebinned without regard to coverage",
        "spectra/resampling.py",
        "mean = pixels.sum(np.where(usable, flux, 0.0)) / share",
        "mean = pixels.sum(np.where(usable, flux, 0.0)) / np.diff(_edges(new))",
        "spectra/test_resample.py",
    ),
    Mutant(
        "every bit of SDSS's mask counts",
        "spectra/files/_layouts.py",
        "bits & SDSS_BAD != 0",
        "bits != 0",
        "spectra/test_read.py",
    ),
    Mutant(
        "half of a damaged file of spectra kept",
        "spectra/files/paper_files.py",
        "            self.n = start\n",
        "",
        "spectra/test_paper_files.py",
    ),
    Mutant(
        "another archive of spectra taken for the one that came first",
        "datasets/_files/lamost_files.py",
        "if sums.get(_ARCHIVE, found[_ARCHIVE]) != found[_ARCHIVE]:",
        "if False:",
        "datasets/test_lamost.py",
    ),
    Mutant(
        "chunks of spectra share their random numbers",
        "spectra/synthetic/semi_real.py",
        "_chance(seed, 1 + int(chunk))",
        "_chance(seed, 1)",
        "spectra/test_semi_real.py",
    ),
    Mutant(
        "objects on both sides of the split",
        "datasets/_files/spectra_problem.py",
        "np.arange(len(known)) if known.group is None else known.group",
        "np.arange(len(known))",
        "datasets/test_spectra_sets.py",
    ),
    Mutant(
        "objects of a suite on both sides",
        "bench/data/spectra.py",
        "objects = np.arange(len(mine)) if every.group is None else every.group[mine]",
        "objects = np.arange(len(mine))",
        "bench/test_spectra_suite.py",
    ),
    Mutant(
        "features fitted on test spectra too",
        "bench/data/spectra.py",
        'pipeline.fit(every.flux[plan["train"]])',
        'pipeline.fit(every.flux[np.concatenate([plan["train"], plan["test"]])])',
        "bench/test_spectra_suite.py",
    ),
    Mutant(
        "errors avoided among the most trusted",
        "metrics/selective/rejection.py",
        "np.interp(1 - share,",
        "np.interp(share,",
        "metrics/test_errors_avoided.py",
    ),
    Mutant(
        "semi-real spectra beside the paper's LAMOST",
        "bench/pages/facts.py",
        '_OURS = ("colour-digits", "toy-spectra", "semi-real")',
        '_OURS = ("colour-digits",)',
        "bench/test_table_spectra.py",
    ),
    Mutant(
        "a lost class is no collapse",
        "bench/tables/collapse.py",
        "min(r) < LOST",
        "max(r) < LOST",
        "bench/test_collapse.py",
    ),
    Mutant(
        "names of spectral lines overlap",
        "plots/_line_names.py",
        "return np.asarray(isotonic_regression(x - shift,",
        "return x + 0 * np.asarray(isotonic_regression(x - shift,",
        "plots/test_plots_spectra.py",
    ),
    Mutant(
        "unknown one held-out row too early",
        "plots/unknown.py",
        "np.sort(held_out)[-may_exceed]",
        "np.sort(held_out)[-may_exceed - 1]",
        "plots/test_plots_spectra.py",
    ),
    Mutant(
        "threshold of unknown from test rows",
        "bench/report/spectra_section.py",
        'arrays["validation"]["uncertainty"], titles',
        'arrays["test"]["uncertainty"], titles',
        "bench/test_spectra_report.py",
    ),
    Mutant(
        "classes balanced without their number",
        "nn/training/_class_weight.py",
        "len(targets) / (len(classes) * np.bincount(targets))",
        "len(targets) / np.bincount(targets)",
        "nn/test_class_weight.py",
    ),
    Mutant(
        "weights of classes left out of evidential losses",
        "nn/_estimator.py",
        "if self.class_weight is None:\n            return losses.mean()",
        "if True:\n            return losses.mean()",
        "baselines/test_class_weight_baselines.py",
    ),
    Mutant(
        "maxima of branches averaged",
        "nn/backbones/branch_cnn.py",
        "nn.MaxPool2d((1, _POOL))",
        "nn.AvgPool2d((1, _POOL))",
        "nn/test_branch_cnn.py",
    ),
    Mutant(
        "patterns of dropout after the first pass forgotten",
        "baselines/sampled/_dropout.py",
        "        generator.manual_seed(seed)\n",
        "",
        "baselines/test_as_published_spectra.py",
    ),
    Mutant(
        "even window one pixel off",
        "spectra/features/smoothing.py",
        "origin = -1 if size % 2 == 0 else 0",
        "origin = 0",
        "spectra/test_smoothing.py",
    ),
    Mutant(
        "place of the minimum within its block",
        "spectra/features/blocks.py",
        "out[:, 3] = start + blocks.argmin(axis=2)",
        "out[:, 3] = blocks.argmin(axis=2)",
        "spectra/test_blocks.py",
    ),
    Mutant(
        "right end of a line window left out",
        "spectra/features/line_means.py",
        'grid, at + self.half_width, side="right"',
        'grid, at + self.half_width, side="left"',
        "spectra/test_line_means.py",
    ),
    Mutant(
        "healthy features shifted as published",
        "spectra/features/feature_table.py",
        "SavitzkyGolay(centred=healthy)",
        "SavitzkyGolay()",
        "spectra/test_features.py",
    ),
    Mutant(
        "negative total flux let through",
        "spectra/features/energy.py",
        "if (total <= 0).any():",
        "if (total < -np.inf).any():",
        "spectra/test_energy.py",
    ),
]


class Sandbox:
    """A copy of the source that the tests import instead of the installed package."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "src" / "dipedl"
        shutil.copytree(
            REPOSITORY / "src" / "dipedl",
            self.package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        # Cached bytecode is trusted by second and size: it could outlive a mutant.
        self.environment = os.environ | {
            "PYTHONPATH": str(self.package.parent),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def check_is_imported(self) -> None:
        """The mutants would be idle if the tests imported another copy."""
        code = "import dipedl; print(dipedl.__file__)"
        found = subprocess.check_output([sys.executable, "-c", code], env=self.environment)
        if Path(found.decode().strip()).parent != self.package:
            sys.exit(f"the tests would import {found.decode().strip()}, not the copy")

    def run(self, tests: list[str]) -> tuple[int, str]:
        """Exit code of pytest (1: some test failed) and the first failing test."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        paths = [f"tests/{test}" for test in tests]
        out = subprocess.run(
            [*command, *paths], cwd=REPOSITORY, env=self.environment, capture_output=True, text=True
        )
        failed = re.search(r"^(?:FAILED|ERROR) \S*?::(.*?)(?: - .*)?$", out.stdout, re.MULTILINE)
        return out.returncode, failed.group(1) if failed else out.stdout[-200:].strip()

    def verdict(self, mutant: Mutant) -> tuple[str, str]:
        """("caught", by which test), or what went wrong; the source is restored."""
        path = self.package / mutant.file
        original = path.read_text(encoding="utf-8")
        if original.count(mutant.old) != 1:
            return "DOES NOT APPLY", f"{original.count(mutant.old)} places in {mutant.file}"
        path.write_text(original.replace(mutant.old, mutant.new), encoding="utf-8")
        try:
            code, test = self.run([mutant.tests])
        finally:
            path.write_text(original, encoding="utf-8")
        # Anything but 1 is no verdict of a test: 2 is a file that cannot even be imported.
        return {0: ("SURVIVED", ""), 1: ("caught", test)}.get(code, (f"EXIT CODE {code}", test))


def shared(
    sandboxes: list[Sandbox], items: Iterable[Item], work: Callable[[Sandbox, Item], Answer]
) -> Iterator[Answer]:
    """``work(sandbox, item)`` of every item in order; a sandbox does one at a time."""
    free: SimpleQueue[Sandbox] = SimpleQueue()
    for sandbox in sandboxes:
        free.put(sandbox)

    def do(item: Item) -> Answer:
        sandbox = free.get()
        try:
            return work(sandbox, item)
        finally:
            free.put(sandbox)

    with ThreadPoolExecutor(len(sandboxes)) as pool:
        yield from pool.map(do, items)


def named(words: list[str]) -> list[Mutant]:
    """Those whose name holds one of the words; all without any."""
    return [m for m in MUTANTS if not words or any(w in m.name for w in words)]


def part(share: str) -> list[Mutant]:
    """Every n-th mutant, from the i-th modulo n on, for ``"i/n"``."""
    i, n = map(int, share.split("/"))
    return MUTANTS[i % n :: n]


def main(words: list[str]) -> int:
    """Print one line for each mutant; 0 if every one was caught."""
    chosen = part(words[1]) if words[:1] == ["--part"] else named(words)
    if not chosen:
        sys.exit(f"no mutant is named like {words}")
    start = time.perf_counter()
    with ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(WORKERS)]
        sandboxes = [Sandbox(Path(folder)) for folder in folders]
        sandboxes[0].check_is_imported()
        tests = sorted({m.tests for m in chosen})
        for code, test in shared(sandboxes, tests, lambda sandbox, test: sandbox.run([test])):
            if code:
                print(f"the tests are red without a mutant: {test}")
                return 1
        caught = 0
        verdicts = shared(sandboxes, chosen, Sandbox.verdict)
        for mutant, (verdict, by) in zip(chosen, verdicts, strict=True):
            caught += verdict == "caught"
            print(f"{verdict:8}  {mutant.name:46}  {mutant.tests}: {by}", flush=True)
    print(f"{caught} of {len(chosen)} caught in {time.perf_counter() - start:.0f} s")
    return int(caught < len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

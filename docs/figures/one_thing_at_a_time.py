"""Vacuity, epistemic, aleatoric and total uncertainty of a Dirichlet, as one quantity moves."""

import matplotlib.pyplot as plt
import numpy as np

from dipedl import Dirichlet

KINDS = {"vacuity": "#3b7dd8", "epistemic": "#2a9d6f", "aleatoric": "#e07b39", "total": "#777777"}


def draw(axis, x, concentrations, title, label):
    """Each kind over x; concentrations (n, k), entropies as a share of log k."""
    posterior = Dirichlet(concentrations)
    scale = np.log(concentrations.shape[1])
    for kind, color in KINDS.items():
        values = getattr(posterior, kind)
        axis.plot(x, values if kind == "vacuity" else values / scale, color=color, label=kind)
    axis.set(title=title, xlabel=label, ylim=(-0.03, 1.03))


def main():
    _, axes = plt.subplots(1, 3, figsize=(8, 2.9), sharey=True, layout="constrained")
    evidence = np.geomspace(0.01, 1000, 200)
    overlap = np.linspace(0.5, 1, 200)
    p = np.stack([overlap, 1 - overlap], axis=1)
    clear = np.array([0.95, 0.05])
    toss = np.array([0.5, 0.5])
    draw(axes[0], evidence, 1 + evidence[:, None] * clear, "evidence, clear class", "evidence")
    draw(axes[1], evidence, 1 + evidence[:, None] * toss, "evidence, a coin toss", "evidence")
    draw(axes[2], overlap, 1 + 100 * p, "overlap, evidence 100", "probability of the first class")
    for axis in axes[:2]:
        axis.set_xscale("log")
    axes[0].set_ylabel("share of its largest value")
    axes[0].legend(frameon=False)


main()

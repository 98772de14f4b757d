"""Sections on spectra of the pages of measurements."""

from receipts import receipt, table, where

SETS = {"ood/stars": "stars", "ood/real_stars": "real stars", "ood/supernovae": "supernovae"}


def spectra_features() -> str:
    row = receipt("spectra_features")
    v, scale, loop = row["values"], row["config"]["scale"], row["config"]["loop"]
    rows = [
        [
            f"`{preset}`",
            f"{v[f'{preset}: speedup over a loop']:.0f} x",
            f"{v[f'{preset}: largest difference']:.0e}",
            f"{v[f'{preset}: flux to features s']:.0f} s",
            f"{v[f'{preset}: flux to features CPU s']:.0f} s",
            f"{v[f'{preset}: peak GiB']:.1f} GiB",
        ]
        for preset in ("standardised", "published")
    ]
    text = (
        f"`spectral_features` beside a Python loop over spectra, {loop['n']} spectra, median of "
        f"{row['config']['repeats']}, the largest difference before scaling; and from the flux of "
        f"{scale['n']:,} spectra to their 806 features, fitted on {scale['n_train']:,} of them, in "
        "a process of its own whose peak includes the spectra (1.1 GiB). Made-up spectra; other "
        f"work shared the {v['cores']} cores (load {v['load at the start']}), so the seconds are "
        "an upper bound and the CPU seconds, of all threads, are the fairer number.\n\n"
    )
    head = ["preset", "than a loop", "difference", "wall", "CPU", "peak of memory"]
    return "## Features of spectra\n\n" + text + table(head, rows) + "\n" + where(row)


def spectra_densities() -> str:
    row = receipt("spectra_densities")
    rows = [
        [view, form, *(f"{ranked[name]:.3f}" for name in SETS)]
        for view, forms in row["values"].items()
        for form, ranked in forms.items()
    ]
    text = (
        "AUROC of densities fitted on the training spectra of seed "
        f"{row['config']['seed']}, on several views of the same rows, of each set "
        f"{row['config']['at most of a set']:,} at most. The network is an earlier training, in "
        "bfloat16, of the one that the methods share. Where a number is below .5, the OOD set "
        "looks more typical than unseen "
        "galaxies and quasars do: so it is with semi-real stars on the 806 features, whatever the "
        "density, and with tied Gaussians on 50 components. On the network's features densities "
        "see part of it; its doubt sees more. Supernovae are the other way round: the network is "
        "sure of them, and every density fitted here finds them strange. "
        "The default weighs densities and doubt by errors on held-out rows and pseudo-outliers, "
        "which know neither set, and lies between the two ([results](results-spectra.md)). "
        "The command reads a run of `dipedl-bench run spectra --profile scarce`.\n\n"
    )
    head = ["view", "score", *SETS.values()]
    title = "## Why densities tell stars less well than doubt\n\n"
    return title + text + table(head, rows) + "\n" + where(row)

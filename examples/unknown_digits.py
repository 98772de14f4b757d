"""README's first table: digits never shown in training, by the classifier alone and by dipedl.

Prints the table and writes docs/images/unknown_digits.png, and the same for dark pages.

Run: python examples/unknown_digits.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import entropy
from sklearn.ensemble import HistGradientBoostingClassifier

from dipedl import DIPClassifier, datasets

FOLDER = Path(__file__).parent.parent / "docs" / "images"
#: Name of a file -> colours of its text and of its background.
TARGETS = {"unknown_digits.png": ("black", "white"), "unknown_digits_dark.png": ("white", "none")}
SHOWN, COLUMNS, FRAME = 24, 8, 1
COLORS = {"the classifier alone, by its entropy": "#D55E00", "`DIPClassifier`": "#0072B2"}


def main() -> None:
    data = datasets.load_digits()  # the digits 0 to 7 to learn; 8 and 9 are never shown
    known, unknown = data.X_test, data.ood["held_out"]
    clf = DIPClassifier(HistGradientBoostingClassifier(random_state=0))
    clf.fit(data.X_train, data.y_train)
    rate = np.mean(clf.predict_ood(known) == -1)
    alone = clf.estimator_  # fitted on the same digits
    P = alone.predict_proba(unknown)
    # entropy may flag as many known digits as the alarm of dipedl does
    limit = np.quantile(entropy(alone.predict_proba(known), axis=1), 1 - rate)
    flags = (entropy(P, axis=1) > limit, clf.predict_ood(unknown) == -1)
    print(f"{len(unknown)} unknown digits; false alarms on {rate:.0%} of the known ones")
    for who, flagged, proba in zip(COLORS, flags, (P, clf.predict_proba(unknown)), strict=True):
        confidence = proba.max(axis=1).mean()
        print(f"{who}: {flagged.mean():.0%} flagged, mean confidence {confidence:.2f}")
    shown = np.linspace(0, len(unknown) - 1, SHOWN).astype(int)
    images = unknown[shown].reshape(SHOWN, *data.image_shape)
    flagged = dict(zip(COLORS, (f[shown] for f in flags), strict=True))
    for name, (text, paper) in TARGETS.items():
        draw(images / images.max(), flagged, text).savefig(FOLDER / name, dpi=110, facecolor=paper)


def draw(images: np.ndarray, flags: dict[str, np.ndarray], text: str) -> Figure:
    """The same images (m, h, w) twice, those flagged in colour."""
    figure = Figure(figsize=(9, 1.95), layout="constrained")
    for ax, (who, flagged) in zip(figure.subplots(1, 2), flags.items(), strict=True):
        ax.imshow(sheet(images, flagged, COLORS[who]), interpolation="nearest")
        ax.set_title(
            f"{who.strip('`')}: flags {flagged.sum()} of these {len(flagged)}",
            fontsize=10,
            color=text,
        )
        ax.set_axis_off()
    return figure


def sheet(images: np.ndarray, flagged: np.ndarray, color: str) -> np.ndarray:
    """One picture (height, width, 3) of all images, the paper of those flagged in `color`."""
    paper = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    ink = np.pad(images, ((0, 0), (FRAME, FRAME), (FRAME, FRAME)))[..., None]
    behind = np.where(flagged[:, None, None, None], paper, 0.25)
    tiles = behind * (1 - ink) + ink
    rows = [np.concatenate(list(tiles[i : i + COLUMNS]), axis=1) for i in range(0, SHOWN, COLUMNS)]
    return np.concatenate(rows)


if __name__ == "__main__":
    main()

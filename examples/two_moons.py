"""Two moons: three kinds of "I don't know" side by side. Writes docs/images/two_moons.png.

Run: python examples/two_moons.py
"""

from pathlib import Path

from matplotlib.figure import Figure
from sklearn.neighbors import KNeighborsClassifier

from dipedl import DIPClassifier, datasets
from dipedl.density import GaussianMixtureDensity
from dipedl.plots import EvidenceMapDisplay

TITLES = {
    "vacuity": "vacuity: no data was seen here",
    "aleatoric": "aleatoric: overlap, or no idea",
    "epistemic": "epistemic: more data would help here",
}
TARGET = Path(__file__).parent.parent / "docs" / "images" / "two_moons.png"


def main() -> None:
    data = datasets.load_moons(400, noise=0.2, random_state=0)
    clf = DIPClassifier(
        KNeighborsClassifier(15), GaussianMixtureDensity(random_state=0), gamma=0.1
    ).fit(data.X_train, data.y_train)
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for ax, (kind, title) in zip(figure.subplots(1, 3), TITLES.items(), strict=True):
        EvidenceMapDisplay.from_estimator(clf, data.X_train, data.y_train, kind=kind, ax=ax)
        ax.set_title(title, fontsize=11)
        ax.set(xticks=[], yticks=[])
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    main()

"""Each example of the gallery runs without a warning, draws, and shows what its text says."""

import io
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.slow

GALLERY = Path(__file__).parent.parent / "examples" / "gallery"
NEEDS = {
    "plot_methods_compared": "torch",
    "plot_network": "torch",
    "plot_table_with_gaps": "pandas",
    "plot_credible_intervals": "pandas",
}


def rises(values):
    return bool((np.diff(values) > 0).all())


#: What the text claims, in the names of the script.
CLAIMS = {
    "plot_any_classifier": lambda s: all(
        abs(alone - ours) < 0.05 if place == "new points" else alone > 0.85 and ours < 0.55
        for (place, _), (alone, ours) in s["confidence"].items()
    ),
    "plot_credible_intervals": lambda s: (
        rises([one.vacuity[0] for one in s["answers"].values()])
        and s["clf"].classifier_proba(s["mistaken"]).max() > 0.95
    ),
    "plot_densities": lambda s: s["worst"]["the default"] == max(s["worst"].values()),
    "plot_drift": lambda s: s["START"] < s["alarm"] < s["noticed"],
    "plot_false_alarm_rate": lambda s: (
        # four standard errors of the mean; twice the relative one of a normal standard deviation
        abs(s["counts"].mean() - s["law"].mean()) < 4 * s["law"].std() / np.sqrt(len(s["counts"]))
        and abs(s["counts"].std() / s["law"].std() - 1) < 4 / np.sqrt(2 * len(s["counts"]))
    ),
    "plot_methods_compared": lambda s: (
        s["confidence"].pop("DIP-EDL") < 0.55 and min(s["confidence"].values()) > 0.9
    ),
    "plot_network": lambda s: all(
        ours > alone
        for alone, ours in zip(s["areas"]["alone"], s["areas"]["with the density"], strict=True)
    ),
    "plot_p_values": lambda s: (
        s["flagged"].pop("known") <= 0.07 and min(s["flagged"].values()) > 0.2
    ),
    "plot_prediction_sets": lambda s: (
        # three standard deviations, of the rows that calibrate and those that test
        all(c > a - 3 * np.sqrt(2 * a * (1 - a) / 599) for a, c in s["covered"].items())
        and rises(s["sizes"].mean(axis=1))
    ),
    "plot_rare_class": lambda s: (
        s["outcomes"]["wrong, not flagged"][0] < s["alone"][0] / 2
        and rises(s["outcomes"]["right"])
        and not any(np.diff(s["outcomes"]["flagged as unknown"]) > 0)
    ),
    "plot_reject": lambda s: s["errors"] <= 0.05 and s["areas"]["total"] < s["areas"]["max_prob"],
    "plot_reliability": lambda s: (
        min(s["gaps"]["known digits"], key=s["gaps"]["known digits"].get) == "with a temperature"
        and min(s["gaps"]["a quarter is unknown"].values())
        == s["gaps"]["a quarter is unknown"]["DIPClassifier"]
    ),
    "plot_streaming": lambda s: max(s["differences"][-1], s["apart"]) < 1e-10,
    "plot_table_with_gaps": lambda s: (
        [name for name, card in s["cards"].items() if card.flagged]
        == ["embarked in Cork", "fare in pence", "age in months"]
    ),
    "plot_three_uncertainties": lambda s: (
        all(np.ptp(s["results"]["gap"][:, i]) < 0.01 for i in (0, 1))
        and rises(s["results"]["gap"][1:, 2])
        and rises(-s["results"]["rows"][:, 0])
        and rises(-s["results"]["rows"][:, 1])
    ),
    "plot_unknown_classes": lambda s: (
        s["found"] > np.mean(s["alone"][s["is_unknown"]] > s["limit"]) + 0.05 and s["alarms"] < 0.07
    ),
}


def test_every_example_has_its_claim():
    assert {path.stem for path in GALLERY.glob("plot_*.py")} == set(CLAIMS)


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_an_example_draws_and_shows_what_it_says(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    path = GALLERY / f"{name}.py"
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    names, said = {"__name__": "__main__"}, io.StringIO()
    plt.switch_backend("agg")
    with warnings.catch_warnings(), redirect_stdout(said):
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        exec(code, names)
        (number,) = plt.get_fignums()
        axes = plt.figure(number).axes
        plt.figure(number).canvas.draw()
        plt.close(number)
    assert said.getvalue().strip()
    assert any(ax.get_title() for ax in axes)
    assert any(ax.get_xlabel() or ax.get_ylabel() for ax in axes)
    assert CLAIMS[name](names)

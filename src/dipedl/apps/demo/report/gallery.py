"""Gallery of images with their Dirichlets: most and least evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from markupsafe import Markup

from ....dirichlet import Dirichlet
from ....plots import dirichlet_bars
from ....plots.canvas import vacuity_text
from .. import DemoResult, ModelResult
from ..rows import DIP, ID, flagged
from ..summary import ENTROPY, SET_TITLES, of_hundred, set_title
from .figures import panel, panel_axes
from .inline import png_uri

_CARDS = 6
_SHOWN = 10


def reasons(result: DemoResult, model: ModelResult) -> Iterator[dict[str, Any]]:
    """The images that the demo explained, with the summary and the details of their cards."""
    sets = {ID: result.dataset.X_test, **result.dataset.ood}
    for one in model.explained:
        image = sets[one.key][one.row].reshape(result.dataset.image_shape or (1, -1))
        answer = one.card.summary()
        parts = str(one.card).removeprefix(answer).strip("\n")
        alt = f"an image of {set_title(one.key)}"
        yield {"image": png_uri(image), "alt": alt, "text": answer, "parts": parts}


def first_look(result: DemoResult, model: ModelResult) -> Iterator[dict[str, Any]]:
    """Ten images of each set, evenly spread and not chosen, with what flags them.

    And the number of 100 that the entropy and dipedl flag.
    """
    data = result.dataset
    for key, X in {ID: data.X_test, **data.ood}.items():
        title, what = SET_TITLES.get(key, ("Digits", "new ones, none should be flagged"))
        entropy, dip = (flagged(model, method, key) for method in (ENTROPY, DIP))
        shape = data.image_shape or (1, -1)
        looks = [
            {
                "image": png_uri(X[i].reshape(shape)),
                "alt": _noticed(key, entropy[i], dip[i]),
                "entropy": entropy[i],
                "dip": dip[i],
            }
            for i in np.linspace(0, len(X) - 1, _SHOWN).astype(int)
        ]
        counts = {"entropy": of_hundred(entropy), "dip": of_hundred(dip)}
        yield {"title": title, "what": what, "looks": looks, **counts}


def _noticed(key: str, entropy: bool, dip: bool) -> str:
    who = [name for name, on in (("entropy", entropy), ("dipedl", dip)) if on]
    return f"an image of {set_title(key)}, flagged by {' and '.join(who) or 'neither'}"


def shelves(result: DemoResult, model: ModelResult) -> Iterator[dict[str, Any]]:
    """Most and least trusted digits, then those of each OOD set."""
    data = result.dataset
    known = _order(model.on[ID].dirichlet)
    yield _shelf("Digits it trusts most", result, model, ID, data.X_test, known[:_CARDS])
    yield _shelf(
        "Digits it trusts least", result, model, ID, data.X_test, known[: -_CARDS - 1 : -1]
    )
    for name, X in data.ood.items():
        order = _order(model.on[name].dirichlet)
        rows = np.concatenate([order[: _CARDS // 2], order[-_CARDS // 2 :]])
        title = f"{SET_TITLES[name][0]}: the three it trusts most, and the three it trusts least"
        yield _shelf(title, result, model, name, X, rows)


def _shelf(
    title: str, result: DemoResult, model: ModelResult, key: str, X: np.ndarray, rows: np.ndarray
) -> dict[str, Any]:
    names = result.dataset.target_names
    truth = [names[y] for y in result.dataset.y_test] if key == ID else None
    cards: list[dict[str, Any]] = []
    for i in map(int, rows):
        one = model.on[key].dirichlet[i]
        guess = names[int(np.argmax(one.mean))]
        label = f"gal-{key}-{i}-{len(cards)}"
        cards.append(
            {
                "image": png_uri(X[i].reshape(result.dataset.image_shape or (1, -1))),
                "bars": _bars(one, names, label),
                "alt": f"a {truth[i]}" if truth else f"an image of {SET_TITLES[key][0]}",
                "vacuity": vacuity_text(float(one.vacuity[0])),
                "verdict": _verdict(guess, truth[i] if truth else None, model.on[key].flagged[i]),
            }
        )
    return {"title": title, "cards": cards}


def _bars(one: Dirichlet, names: tuple[str, ...], label: str) -> Markup:
    ax = dirichlet_bars(one, class_names=names, ax=panel_axes(2.1, 1.25))
    ax.set_yticks([0, 0.5, 1], ["0", "", "1"])
    ax.tick_params(labelsize=9, length=2)
    best = int(np.argmax(one.mean))
    alt = (
        f"mean class probabilities with 95 % intervals; largest {one.mean[0, best]:.2f} for {best}"
    )
    return panel("", ax, alt, label).svg


def _verdict(guess: str, truth: str | None, flagged: bool) -> str:
    said = f"says {guess}"
    if truth is not None and truth != guess:
        said += f", is {truth}"
    return said + (", flagged" if flagged else "")


def _order(dirichlet: Dirichlet) -> np.ndarray:
    """Rows from most to least trusted; by log-evidence, as vacuity ties at 1."""
    return np.argsort(-np.asarray(dirichlet.log_evidence), kind="stable")

"""The page on the paper's tables of results: each of its cells beside ours, and at what price."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from harness import RESULTS, receipt
from results import NOT_RUN, Source
from write_pages import page, verify_metrics

from dipedl_bench.report.figures import budget_figure, price_figure
from dipedl_bench.results.paper import published, published_price
from dipedl_bench.spec.captions import captions_of
from dipedl_bench.spec.suite import load_suite
from dipedl_bench.studies.price import BUDGETS, PricePoint, price_points
from dipedl_bench.tables.formatting import (
    metric_title,
    number,
    price_text,
    published_text,
    set_title,
)
from dipedl_bench.tables.paper_cells import (
    NEAREST_FIRST,
    SUITES,
    VERDICTS,
    PaperCell,
    count_verdicts,
    paper_cells,
)

#: OOD sets of the tables of prices; the figure has the first.
PRICED = {"mnist": ("kmnist", "omniglot"), "cifar10": ("cifar100", "gtsrb")}
FIGURE = "price_of_ood_brier.png"
#: Receipt of rows of published networks before and after the second change of the default.
CHANGED = RESULTS / "verify_new_default.json"
#: Mark of rows made before the default changed its probabilities.
OLDER = " ‡"
#: From the folder of the pages: our default by its budget, on the networks that have several.
FOR_USERS = "../../docs/images/budget.png"
NETWORKS = {
    "CIFAR-10, profile gpu": "network of 12.7 million weights",
    "CIFAR-10, profile paper": "WRN-28-10",
}


def page_of_paper(root: Path) -> str:
    """Return the page as Markdown, from the folder of published results."""
    cells, prices = paper_cells(root), priced(root, shown_only=True)
    by_suite = {load_suite(s).title: [c for c in cells if c.suite == s] for s in SUITES}
    titles = {**by_suite, "all": cells}
    paid = {(c.suite, c.method): c for c in cells if c.metric == "brier_id"}
    sources = {suite: Source(suite, root) for suite in PRICED}
    moved = verify_metrics([CHANGED]).groupby("kind")["by"].max()
    return page(
        "paper.md",
        verdicts=VERDICTS,
        nearest=NEAREST_FIRST,
        counts={title: count_verdicts(of) for title, of in titles.items()},
        total=len(cells),
        bought=beside_id_brier(cells),
        cells={
            title: [texts(c, paid[c.suite, c.method]) for c in of] for title, of in by_suite.items()
        },
        prices={
            title: rows
            for (suite, title), points in prices.items()
            if (rows := price_rows(suite, points))
        },
        heads={title: [set_title(s, suite) for s in PRICED[suite]] for suite, title in prices},
        paid={suite: published_price(suite) for suite in PRICED},
        ablation={s: published(f"ablation_{s}", "2b")["brier_id"].mean for s in PRICED},
        full={s: published(f"ablation_{s}", "3")["brier_id"].mean for s in PRICED},
        figure=FIGURE,
        paid_for=partial(paid_for, prices, moved["brier_ood/"]),
        moved=moved,
        older=any(point.older for points in prices.values() for point in points),
        m={suite: source.mean for suite, source in sources.items()},
    )


def texts(cell: PaperCell, paid: PaperCell) -> dict[str, Any]:
    """Return a cell as text; `where` is profile and number of seeds, `paid` the ID Brier score."""
    ours, where, price = cell.ours, "", ""
    if ours:
        seeds = len(ours.values)
        where = f"`{cell.profile}`, {seeds} seed{'s' * (seeds > 1)}"
    if cell.metric.startswith("brier_ood") and paid.ours:
        price = f"{number(paid.paper.mean)}; {number(paid.ours.mean)}"
    sd = f" ±{number(ours.sd)}" if ours and len(ours.values) > 1 else ""
    return {
        "method": cell.method,
        "metric": metric_title(cell.metric, with_set=True, suite=cell.suite),
        "paper": published_text(cell.paper),
        "ours": number(ours.mean) + sd if ours else "",
        "where": where,
        "paid": price,
        "verdict": cell.verdict,
        "cause": cell.cause,
    }


def beside_id_brier(cells: Sequence[PaperCell]) -> dict[str, int]:
    """Count OOD Brier scores better and worse than the paper's, and those paid by the ID score.

    "dearer" are better at a worse ID Brier score, "cheaper" worse at a better one.
    """
    paid = {(c.suite, c.method): c.verdict for c in cells if c.metric == "brier_id"}
    pairs = [
        (c.verdict, paid[c.suite, c.method]) for c in cells if c.metric.startswith("brier_ood")
    ]
    return {
        "better": sum(ood == "better" for ood, _ in pairs),
        "dearer": pairs.count(("better", "worse")),
        "worse": sum(ood == "worse" for ood, _ in pairs),
        "cheaper": pairs.count(("worse", "better")),
    }


Prices = Mapping[tuple[str, str], Sequence[PricePoint]]


@cache
def priced(root: Path, shown_only: bool = False) -> Prices:
    """Return the points of each suite and profile that its page shows and prices, by both titles.

    `shown_only` leaves out budgets that the page does not show; the figures draw them all.
    """
    found = {}
    for suite in PRICED:
        source, budgets = Source(suite, root), shown_budgets(suite)
        if not shown_only:
            budgets |= set(BUDGETS)
        sections = captions_of(suite).page.sections
        shown = {p for of in sections if of.kind == "summary" for p in of.profiles}
        for profile in (name for name in NEAREST_FIRST if name in shown & source.rows.keys()):
            parts = list(source.parts(profile).values())
            title = f"{load_suite(suite).title}, profile {profile}"
            points = price_points(source.rows[profile], parts, sorted(budgets))
            of_mnist = (suite, profile) == ("mnist", "paper")
            found[suite, title] = [*points, *(answered_points() if of_mnist else ())]
    return found


def answered_points() -> list[PricePoint]:
    """Return the evidential networks of the receipt "answer_prior" at each prior."""
    points = []
    for of in receipt("answer_prior")["values"].values():
        for prior, scores in sorted(of["priors"].items(), key=lambda item: float(item[0])):
            ood, paid = {s: scores[f"brier_ood/{s}"] for s in PRICED["mnist"]}, scores["brier_id"]
            point = PricePoint("prior", of["title"], float(prior), paid, None, ood, of["seeds"])
            points.append(point)
    return points


def shown_budgets(suite: str) -> set[float]:
    """Return the budgets of the page: of a caution budget, and the paper's own price."""
    price = published_price(suite)
    return {0.02, 0.05, round(price, 3)} if price else {0.02, 0.05}


def draw_prices(root: Path, folder: Path) -> None:
    """Draw OOD against ID Brier scores of each profile, and for users our default by its budget."""
    panels = {title: points for (_, title), points in priced(root).items()}
    sets = {title: PRICED[suite][0] for suite, title in priced(root)}
    price_figure(panels, sets).savefig(folder / FIGURE, dpi=130, metadata={"Software": None})
    curves = {of: panels[title] for title, of in NETWORKS.items() if title in panels}
    titles = {name: set_title(name).partition(" (")[0] for name in PRICED["cifar10"]}
    target = folder.parent / FOR_USERS
    budget_figure(curves, titles).savefig(target, dpi=110, metadata={"Software": None})


def paid_for(
    prices: Prices,
    moved: float,
    title: str,
    kind: str,
    setting: float | str,
    goal: float | None = None,
) -> str:
    """Return OOD Brier score and price of a point of a panel, `NOT_RUN` without its rows.

    `setting` is a budget, or the title of a method; of a `goal` also whether it was met. Rows older
    than today's default have a mark; changes of the default `moved` scores by so much, and a goal
    nearer than that is open.
    """
    for (suite, name), points in prices.items():
        for point in points if name == title else ():
            if point.kind == kind and setting in (point.setting, point.title):
                score = point.brier_ood[PRICED[suite][0]]
                price = "" if point.price is None else price_text(point.price)
                paid = f"at a price of {price}" if price else "at an unknown price"
                met = "" if goal is None else ", met" if score <= goal else ", missed"
                if goal is not None and point.older and abs(score - goal) < moved:
                    met = ", open"
                return f"{number(score).removeprefix('0')} {paid}{OLDER * point.older}{met}"
    return NOT_RUN


def price_rows(suite: str, points: Sequence[PricePoint]) -> list[dict[str, str]]:
    """Return what bought an OOD Brier score as text, by price; last what has none.

    Methods that answer as the bare network does have its price of zero and are left out.
    """
    scores, rows = {"density": "density", "entropy": "softmax entropy"}, []
    budgets = shown_budgets(suite)
    for point in points:
        title = point.title
        if point.kind in scores:
            title = f"budget of {point.setting:g} on the {scores[point.kind]} †"
        elif point.kind == "temperature":
            title = "Max softmax with a temperature †"
        as_bare = point.kind == "method" and point.price == 0 and title != "Max softmax"
        swept = point.kind in scores and point.setting in budgets
        shown = swept or (point.kind in ("method", "default", "temperature") and not as_bare)
        if shown:
            rows.append((title, point))

    def by_price(row: tuple[str, PricePoint]) -> tuple[bool, float]:
        _, point = row
        return point.price is None, point.brier_id if point.price is None else point.price

    return [
        {
            "title": title + OLDER * point.older,
            "seeds": str(point.seeds),
            "brier_id": number(point.brier_id),
            "price": "" if point.price is None else price_text(point.price),
            "brier_ood": [number(point.brier_ood[s]) for s in PRICED[suite]],
        }
        for title, point in sorted(rows, key=by_price)
    ]

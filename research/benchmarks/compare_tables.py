"""Write the tables of both pages of the comparison; a test fails if they are stale."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

from harness import receipt, table, where

from dipedl_bench.writing import write_file

ROOT = Path(__file__).parent.parent
PAGES = ROOT.parent / "docs" / "comparison.md", ROOT / "docs" / "comparison.md"
NAMES = {
    "dipedl": "dipedl",
    "probly": "probly",
    "torch_uncertainty": "torch-uncertainty",
    "pytorch_ood": "pytorch-ood",
    "pyod": "PyOD",
    "mapie": "MAPIE",
    "uncertainty_toolbox": "uncertainty-toolbox",
}
SEARCH = re.compile(r"holds\(|mentions\(")
CLASSIFIERS = {
    "forest": "Random forest of scikit-learn",
    "perceptron": "Perceptron of scikit-learn",
    "network": "Network of torch",
}


def facts() -> dict[str, Any]:
    return tomllib.loads((ROOT / "benchmarks" / "compare" / "facts.toml").read_text())


def versions() -> str:
    row, stated = receipt("compare_libraries"), facts()
    rows = [
        [name, of["version"], stated["released"].get(key, "not yet"), of["licence"], of["python"]]
        for key, name in NAMES.items()
        for of in [row["values"]["libraries"][key]]
    ]
    head = ["", "version", "released", "licence", "checked on Python"]
    return f"Checked on {row['config']['facts_checked']}.\n\n" + table(head, rows)


def offers() -> str:
    stated = facts()
    found = {key: {fact["about"]: fact for fact in stated[key]} for key in NAMES}
    rows = [
        [question, *(cell(found[key].get(about)) for key in NAMES)]
        for about, question in stated["questions"].items()
    ]
    return table(["", *NAMES.values()], rows)


def cell(fact: dict[str, str] | None) -> str:
    if fact is None:
        return "–"
    note = f" ({fact['note']})" if "note" in fact else ""
    return {"yes": "**yes**"}.get(fact["answer"], fact["answer"]) + note


def lines() -> str:
    """By library: the calls behind "yes" and "part", but for searches of its sources and counts."""
    libraries, questions = receipt("compare_libraries")["values"]["libraries"], facts()["questions"]
    calls = {
        name: [call(fact) for fact in answers_with_calls(libraries[key]["facts"], questions)]
        for key, name in NAMES.items()
    }
    return "".join(
        f"- {name}: {', '.join(f'`{line}`' for line in found)}.\n" for name, found in calls.items()
    )


def answers_with_calls(facts: dict[str, Any], questions: dict[str, str]) -> list[dict[str, str]]:
    """Return the facts that answer a question, but for "no" and for searches of the sources."""
    answers = [facts[about] for about in questions if about in facts]
    return [f for f in answers if f["answer"] != "no" and not SEARCH.search(f["shows"])]


def call(fact: dict[str, str]) -> str:
    """The last step of the line that is more than a name; of an import, what it brings."""
    step = [step for step in ast.parse(fact["shows"]).body if not is_name(step)][-1]
    return step.names[0].name if isinstance(step, ast.ImportFrom) else ast.unparse(step)


def is_name(step: ast.stmt) -> bool:
    return isinstance(step, ast.Expr) and isinstance(step.value, ast.Name)


def task() -> str:
    row = receipt("compare_libraries")
    values = row["values"]["task"]
    parts = [part(title, kind, values) for kind, title in CLASSIFIERS.items()]
    load = row["values"]["load_average"]
    at_once = row["config"]["libraries_at_once"]
    text = (
        f"{at_once} libraries ran at once; load average {load['start'][0]:.0f} to "
        f"{load['end'][0]:.0f} on {load['cores']} cores."
    )
    return "\n".join([*parts, where(row) + "\n" + text + "\n"])


def part(title: str, kind: str, values: dict[str, Any]) -> str:
    ours = {name: of for name, of in values.items() if of["classifier"] == kind}
    rows = [
        [
            label(name),
            of["lines"],
            f"{of['fit_ratio']:.1f}",
            f"{of['answer_ratio']:.1f}",
            f"{of['auroc'][0]:.3f} ± {of['auroc'][1]:.3f}",
            *(percent(of[key]) for key in ("flagged_at_rate", "false_alarms", "flagged")),
        ]
        for name, of in sorted(ours.items(), key=lambda item: -item[1]["auroc"][0])
    ]
    head = ["", "lines", "fit", "answer", "AUROC", "caught at 5 %", "own false alarms", "caught"]
    return f"**{title}**\n\n" + table(head, rows) + f"\n{verdict(ours)}.\n"


def verdict(ours: dict[str, Any]) -> str:
    """Who is first, and the place of dipedl, by the figures that no library's threshold enters."""
    by_auroc, by_caught = first(ours, "auroc"), first(ours, "flagged_at_rate")
    if by_auroc == by_caught:
        return f"First by AUROC and by caught at 5 %: {by_auroc}"
    return f"First by AUROC: {by_auroc}; by caught at 5 %: {by_caught}"


def first(ours: dict[str, Any], key: str) -> str:
    names = [label(name) for name in sorted(ours, key=lambda name: -ours[name][key][0])]
    place = next(i for i, name in enumerate(names, 1) if name.startswith("dipedl"))
    return names[0] + (f" (dipedl is no. {place} of {len(names)})" if place > 1 else "")


def label(name: str) -> str:
    snippet, _, method = name.partition(": ")
    library = {"plain": "classifier alone", "dipedl_network": "dipedl"}
    return f"{library.get(snippet, NAMES.get(snippet))}: {method}"


def percent(spread: list[float]) -> str:
    return f"{100 * spread[0]:.0f} ± {100 * spread[1]:.0f} %"


PARTS = {"versions": versions, "offers": offers, "lines": lines, "task": task}


def page(text: str) -> str:
    """Return the page with its generated parts made anew; each lies between two comments."""
    for name, make in PARTS.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        if start:
            text = before + start + make() + "".join(rest.partition("<!-- end -->")[1:])
    return text


if __name__ == "__main__":
    for path in PAGES:
        write_file(path, page(path.read_text(encoding="utf-8")))

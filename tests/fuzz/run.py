"""Hostile files and inputs from seeds: ``python tests/fuzz/run.py --seconds 600``.

Each module beside this one has ``run(seed, tries) -> counts``: what came of that many tries, by
outcome, the same for the same seed. Outcomes that are `FAULTS` must not occur; `faults` lists what
happened, as text. Modules run in processes of their own: one that dies or hangs is a fault too.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECEIPT = HERE.parents[1] / "research" / "results" / "fuzz.json"
BATCH = 50
#: Words in the names of outcomes that must not occur.
FAULTS = ("fault", "crash", "hang", "slow", "wrong", "warned", "traceback", "memory", "lost")
#: Seconds beyond its time after which a module counts as hanging.
GRACE = 60


def modules() -> list[str]:
    """Names of the fuzzers, without the suffix."""
    names = (path.stem for path in HERE.glob("*.py"))
    return sorted(n for n in names if n != "run" and not n.startswith(("_", "test_")))


def bad(counts: dict[str, int]) -> dict[str, int]:
    """The outcomes that must not occur, and did."""
    return {k: n for k, n in counts.items() if n and any(word in k for word in FAULTS)}


def work(name: str, seed: int, seconds: float) -> None:
    """Run a module batch by batch until its time is over; a line of JSON for each batch."""
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    fuzzer, end = import_module(name), time.monotonic() + seconds
    size = getattr(fuzzer, "BATCH", BATCH)
    while time.monotonic() < end:
        print(json.dumps({"seed": seed, "next": seed + 1}), flush=True)
        counts = dict(fuzzer.run(seed, size))
        print(json.dumps({"seed": seed, "tries": size, "counts": counts}), flush=True)
        seed += 1


def watched(name: str, seed: int, seconds: float) -> dict[str, Any]:
    """Counts of a module in a process of its own."""
    command = [sys.executable, __file__, "--module", name, "--seed", str(seed)]
    process = subprocess.Popen(
        [*command, "--seconds", str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = process.communicate(timeout=seconds + GRACE)
        end = f"ended with {process.returncode}: {err.decode(errors='replace')[-2000:]}"
    except subprocess.TimeoutExpired:
        process.kill()
        out, end = process.communicate()[0], "hung"
    lines = [json.loads(line) for line in out.decode().splitlines() if line.startswith('{"seed"')]
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.get("counts", {}))
    result = {"tries": sum(line.get("tries", 0) for line in lines), "counts": dict(counts)}
    last = max((line["seed"] for line in lines), default=seed)
    result |= {"seeds": [seed, last]}
    if process.returncode != 0:
        result["counts"]["crash"] = 1
        result["end"] = f"seed {last} {end}"
    return result


def table(receipt: dict[str, Any]) -> str:
    """The counts of a receipt as a table in Markdown."""
    lines = ["| fuzzer | tries | outcomes |", "|---|---|---|"]
    for name, result in receipt["modules"].items():
        outcomes = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(result["counts"].items()))
        lines.append(f"| `{name}` | {result['tries']:,} | {outcomes} |")
    return "\n".join(lines)


def main() -> int:
    """Give each module its share of the time; 1 if there was a fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", action="store_true", help="print the counts of the receipt")
    given = parser.parse_args()
    if given.table:
        print(table(json.loads((given.out or RECEIPT).read_text("utf-8"))))
        return 0
    if given.module:
        work(given.module, given.seed, given.seconds)
        return 0
    results = {n: watched(n, given.seed, given.seconds / len(modules())) for n in modules()}
    failed = {n: r for n, r in results.items() if bad(r["counts"])}
    for name, result in results.items():
        print(f"{name:<16}{result['tries']:>8} tries  {result['counts']}  {result.get('end', '')}")
    tries = sum(result["tries"] for result in results.values())
    print(f"{tries} tries, faults in {sorted(failed) or 'none'}")
    if given.out:
        facts = {"python": platform.python_version(), "machine": platform.machine()}
        receipt = facts | {"seconds": given.seconds, "tries": tries, "modules": results}
        given.out.write_text(json.dumps(receipt, indent=1) + "\n", "utf-8")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

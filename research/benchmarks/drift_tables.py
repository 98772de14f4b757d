"""The page of measurements of `DriftMonitor`, from the receipt of benchmarks/drift.py."""

from receipts import receipt, table, where

from dipedl.apps.monitor.drift_monitor import _AT_ONCE as AT_ONCE

DATA = {
    "table": "A table of four Gaussian classes in eight columns",
    "digits": "Digits 0 to 7 of scikit-learn; 8 and 9 are new",
}


def false_alarms() -> str:
    row = receipt("drift")
    named = {k.removeprefix("no change, "): v for k, v in row["values"].items() if k not in DATA}
    rows = [
        [
            name,
            f"{of['streams']:,}",
            f"{of['years_each']} x 365,000 rows"
            if "years_each" in of
            else f"{of['rows_each']:,} rows",
            of["alarms"],
            f"{of['upper_95']:.2%}",
        ]
        for name, of in named.items()
    ]
    rate, batch = row["config"]["rate"], AT_ONCE
    text = (
        f"In-distribution streams at `false_alarm_rate={rate}`; a year is 365,000 rows, and the "
        f"evidence is looked at after each {batch}. Each stream has a reference of its own. "
        "The limit is the upper end of a one-sided 95 % interval of the probability that a stream "
        "ever raises an alarm. Simulated references are exchangeable with their streams; the last "
        "line has default models with their cross-fitted rows, which nearly are.\n\n"
    )
    head = ["reference", "streams", "each", "with an alarm", "limit"]
    return "## False alarms\n\n" + text + table(head, rows)


def delays() -> str:
    row = receipt("drift")
    streams, before, after, quiet, ramp = row["config"]["streams"]
    text = (
        f"{streams} streams each. A change begins at row {before:,}: a new class makes up 5 % of "
        f"the rows, or one that was seen shifts over {ramp:,} rows (a column by one standard "
        "deviation; contrast down to 85 %). The delay is the median of the rows until the first "
        "alarm, in batches of "
        f"{row['config']['batch']}; a dash where fewer than half of the streams had one within "
        f"{after:,}. False alarms: those in {streams} streams of {quiet:,} rows without a "
        f"change + those before the change in the other {2 * streams}. ADWIN and Page-Hinkley are "
        f"river's {row['config']['river']} with its defaults, fed with the vacuity of each row; "
        f"KS is the two-sample test of each window of {row['config']['window']:,} p-values at 1 %. "
        "Where these three state a rate, it is that of a step or a window, not of a stream.\n"
    )
    return (
        "## Delay\n\n" + text + "\n".join(_delays(row, name) for name in DATA) + "\n" + where(row)
    )


def _delays(row: dict, name: str) -> str:
    of = row["values"][name]
    lines = []
    for detector, quiet in of["no change"].items():
        changes = [of[change][detector] for change in ("new class", "gradual")]
        early = [c["too_early"] for c in changes]
        streams = quiet["streams"]
        lines.append([detector, f"{quiet['false_alarms']} + {sum(early)} of {3 * streams}"])
        lines[-1] += [
            "-" if c["median_delay"] is None else f"{c['median_delay']:,.0f}" for c in changes
        ]
    head = ["", "false alarms", "new class at 5 %", "gradual shift"]
    return f"\n{DATA[name]}:\n\n" + table(head, lines)

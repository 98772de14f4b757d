"""The page of measurements of the service, from its receipts."""

from receipts import receipt, table, where


def serve_load() -> str:
    row = receipt("serve_load")
    v, config, mixed = row["values"], row["config"], row["values"]["mixed"]
    rows = [
        [
            clients,
            *(
                f"{v[f'{name}_{clients}'][key]:,.1f}"
                for key in ("p50_ms", "p99_ms", "requests_per_second")
                for name in ("bare", "service")
            ),
            v[f"p50_ratio_{clients}"],
        ]
        for clients in config["clients"]
    ]
    head = ["clients", "p50 bare, ms", "p50 ours", "p99 bare", "p99 ours"]
    head += ["requests/s bare", "ours", "p50, ratio"]
    counts = mixed["counts"]
    honest, odd = (
        sum(n for key, n in counts.items() if key.startswith(kind))
        for kind in ("honest", "malformed")
    )
    text = (
        "`dipedl serve` of a forest with 50 trees on digits, beside a FastAPI endpoint that asks "
        "the bare forest; one row per request, on loopback, with the clients on the same cores. "
        "Requests that come together share one pass of the model.\n\n"
    )
    after = (
        f"\nMixed load of 8 clients for {mixed['seconds'] / 60:.0f} minutes: {honest:,} rows, "
        f"{odd:,} malformed requests and {counts['reload 200']} reloads; answers that were wrong, "
        f"lost or mixed up: {counts['wrong']}. Statuses: {_statuses(counts)}. Memory: "
        f"{mixed['mib_early']:.0f} MiB in the second and third tenth of that time, "
        f"{mixed['mib_late']:.0f} in the last two.\n"
    )
    return "## The service under load\n\n" + text + table(head, rows) + after + "\n" + where(row)


def _statuses(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} x {key}" for key, n in counts.items() if key != "wrong")


def page_speed() -> str:
    row = receipt("page_speed")
    v = row["values"]
    rows = [
        ["`dipedl serve --demo` until it listens, training included", f"{v['start_s']} s"],
        ["first paint of the page", f"{v['first_paint_ms']:.0f} ms"],
        ["a move of the pen until its answer is painted", f"{v['stroke_to_answer_p50_ms']:.0f} ms"],
        ["the same, 95 % quantile", f"{v['stroke_to_answer_p95_ms']:.0f} ms"],
    ]
    text = (
        "Headless Chromium on the same cores; median of "
        f"{row['config']['visits']} visits and of {row['config']['strokes']} moves.\n\n"
    )
    return "## The page of the service\n\n" + text + table(["", ""], rows) + "\n" + where(row)

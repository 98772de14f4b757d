"""A service under load beside a bare endpoint, and minutes of mixed load with faults.

Both are processes on loopback; the clients are connections of this process, each sends its next
request once it has its answer. ``--seconds 2 --mixed 5 --dry`` tries it without a receipt: seconds
for each number of clients, and of mixed load.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import harness
import numpy as np
from sklearn.ensemble import RandomForestClassifier

import dipedl
from dipedl import datasets

CLIENTS = (1, 8, 64)
ROWS, SEED = 200, 0
#: Of the mixed load, one request in so many is malformed or reads the model again.
ODD, RELOAD = 5, 500
_BARE = """
import sys
import numpy as np, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
import dipedl
model = dipedl.load(sys.argv[1]).estimator_
class Body(BaseModel):
    matrix: list[list[float]]
app = FastAPI()
@app.post("/v1/predict")
def predict(body: Body) -> dict:
    proba = model.predict_proba(np.array(body.matrix))
    labels = model.classes_[proba.argmax(axis=1)].tolist()
    return {"answers": [{"label": str(l), "proba": p} for l, p in zip(labels, proba.tolist())]}
@app.get("/health/ready")
def ready() -> dict:
    return {}
uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False)
"""
_MALFORMED = (b"{", b"[]", b'{"matrix": [[1, 2]]}', b'{"matrix": [["x"]]}', b'{"rows": 5}', b"\xff")


def request(body: bytes, path: str = "/v1/predict", method: str = "POST") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """One client that keeps its connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: Any = None

    async def ask(self, sent: bytes) -> tuple[int, bytes]:
        """Status and body of the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(sent)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if b"connection: close" in head:
            self.close()
        return int(head.split()[1]), body

    def close(self) -> None:
        """End the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@asynccontextmanager
async def server(port: int, *command: str) -> AsyncIterator[int]:
    """A process that answers at a port, by its number."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while process.poll() is None:
            try:
                line = Connection(port)
                await line.ask(request(b"", "/health/ready", "GET"))
                line.close()
                break
            except OSError:
                await asyncio.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


async def time_requests(
    port: int, clients: int, seconds: float, bodies: list[bytes]
) -> dict[str, float]:
    """Requests per second and quantiles of their milliseconds, after a second of warming up."""
    spent: list[float] = []
    start = time.perf_counter() + 1
    statuses: Counter[int] = Counter()

    async def client(i: int) -> None:
        line = Connection(port)
        while (begun := time.perf_counter()) < start + seconds:
            status, _ = await line.ask(bodies[i % len(bodies)])
            statuses[status] += 1
            i += clients
            if begun >= start:
                spent.append(time.perf_counter() - begun)
        line.close()

    await asyncio.gather(*map(client, range(clients)))
    p50, p99 = np.quantile(spent, [0.5, 0.99]) * 1e3
    if set(statuses) != {200}:
        raise RuntimeError(f"statuses {dict(statuses)}: nothing but 200 was expected")
    return {
        "requests_per_second": round(len(spent) / seconds, 1),
        "p50_ms": round(p50, 2),
        "p99_ms": round(p99, 2),
    }


def resident(pid: int) -> float:
    """MiB of memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


async def load_mixed(
    port: int, pid: int, seconds: float, bodies: list[bytes], right: list[Any]
) -> dict[str, Any]:
    """Honest and malformed requests with reloads: statuses, wrong answers, growth of the memory."""
    counts: Counter[str] = Counter()
    memory: list[float] = []
    end = time.perf_counter() + seconds

    async def client(i: int) -> None:
        line = Connection(port)
        n = i
        while time.perf_counter() < end:
            n += 8
            if n % RELOAD == 0:
                status, _ = await line.ask(request(b"", "/v1/models/digits/reload"))
                counts[f"reload {status}"] += 1
            elif n % ODD == 0:
                status, _ = await line.ask(request(_MALFORMED[n % len(_MALFORMED)]))
                counts[f"malformed {status}"] += 1
            else:
                status, body = await line.ask(bodies[n % len(bodies)])
                counts[f"honest {status}"] += 1
                counts["wrong"] += status != 200 or not same(
                    json.loads(body), right[n % len(right)]
                )
        line.close()

    async def watch() -> None:
        while time.perf_counter() < end:
            await asyncio.sleep(min(1.0, seconds / 20))
            memory.append(resident(pid))

    await asyncio.gather(watch(), *map(client, range(8)))
    tenth = max(1, len(memory) // 10)
    early, late = (
        float(np.median(part)) for part in (memory[tenth : 3 * tenth], memory[-2 * tenth :])
    )
    found = dict(sorted(counts.items()))
    return {
        "counts": found,
        "mib_early": round(early, 1),
        "mib_late": round(late, 1),
        "seconds": seconds,
    }


def same(found: dict[str, Any], expected: tuple[str, float, float]) -> bool:
    """Return whether an answer is that of its row, up to the last bits of its products."""
    (one,) = found["answers"]
    close = abs(one["vacuity"] - expected[2]) < 1e-12
    return bool(close and (one["label"], one["p_value"]) == expected[:2])


async def compare(folder: Path, seconds: float, minutes: float) -> dict[str, Any]:
    data = datasets.load_digits()
    clf = dipedl.DIPClassifier(RandomForestClassifier(50, random_state=SEED), random_state=SEED)
    path = folder / "digits.dipedl"
    clf.fit(data.X_train, data.y_train).save(path)
    X = data.X_test[:ROWS].astype(np.float64)
    found = clf.answers(X)
    right = list(
        zip(
            found.labels.astype(str).tolist(),
            found.p_values.tolist(),
            found.dirichlet.vacuity.tolist(),
            strict=True,
        )
    )
    bodies = [request(json.dumps({"matrix": [row]}).encode()) for row in X.tolist()]
    (folder / "bare.py").write_text(_BARE)
    values: dict[str, Any] = {}
    servers = {
        "bare": (8471, str(folder / "bare.py"), str(path), "8471"),
        "service": (8472, "-m", "dipedl", "serve", str(path), "--port", "8472"),
    }
    for name, (port, *command) in servers.items():
        async with server(port, *command) as pid:
            for clients in CLIENTS:
                values[f"{name}_{clients}"] = await time_requests(port, clients, seconds, bodies)
            if name == "service" and minutes:
                values["mixed"] = await load_mixed(port, pid, minutes, bodies, right)
    for clients in CLIENTS:
        ratio = values[f"service_{clients}"]["p50_ms"] / values[f"bare_{clients}"]["p50_ms"]
        values[f"p50_ratio_{clients}"] = round(ratio, 2)
    return values


def measure(seconds: float = 10.0, mixed: float = 600.0) -> harness.Values:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(compare(Path(folder), seconds, mixed))


if __name__ == "__main__":
    harness.main(__file__, measure)

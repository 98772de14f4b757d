"""A service under load beside a bare endpoint.

Both are processes on loopback; the clients are connections of this process, each sends its next
request once it has its answer. ``--seconds 2 --dry`` tries it without a receipt: seconds for each
number of clients.
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


def request(body: bytes, path: str = "/v1/predict", method: str = "POST") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """One client that keeps its connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: Any = None

    async def ask(self, sent: bytes) -> int:
        """Return the status of the answer, once all of it is read."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(sent)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        if b"connection: close" in head:
            self.close()
        return int(head.split()[1])

    def close(self) -> None:
        """End the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@asynccontextmanager
async def server(port: int, *command: str) -> AsyncIterator[None]:
    """Run a process until it is left, entered when it answers at a port."""
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
        yield
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
            statuses[await line.ask(bodies[i % len(bodies)])] += 1
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


async def compare(folder: Path, seconds: float) -> dict[str, Any]:
    data = datasets.load_digits()
    clf = dipedl.DIPClassifier(RandomForestClassifier(50, random_state=SEED), random_state=SEED)
    path = folder / "digits.dipedl"
    clf.fit(data.X_train, data.y_train).save(path)
    rows = data.X_test[:ROWS].astype(np.float64).tolist()
    bodies = [request(json.dumps({"matrix": [row]}).encode()) for row in rows]
    (folder / "bare.py").write_text(_BARE)
    values: dict[str, Any] = {}
    servers = {
        "bare": (8471, str(folder / "bare.py"), str(path), "8471"),
        "service": (8472, "-m", "dipedl", "serve", str(path), "--port", "8472"),
    }
    for name, (port, *command) in servers.items():
        async with server(port, *command):
            for clients in CLIENTS:
                values[f"{name}_{clients}"] = await time_requests(port, clients, seconds, bodies)
    for clients in CLIENTS:
        ratio = values[f"service_{clients}"]["p50_ms"] / values[f"bare_{clients}"]["p50_ms"]
        values[f"p50_ratio_{clients}"] = round(ratio, 2)
    return values


def measure(seconds: float = 10.0) -> harness.Values:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(compare(Path(folder), seconds))


if __name__ == "__main__":
    harness.main(__file__, measure)

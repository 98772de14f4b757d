"""The command as a process: many clients, signals, hostile connections, its end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from dipedl.apps.cli.app import app

TOKEN = "0123456789abcdef"
HEADERS = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
#: A file system that cannot be written to, as containers have it.
READ_ONLY = """
import os, sys
def refuse(event, arguments):
    if event == "open" and isinstance(arguments[2], int):
        if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and arguments[0] != os.devnull:
            raise PermissionError(30, "Read-only file system", arguments[0])
sys.addaudithook(refuse)
try:
    open(sys.argv.pop(1), "w")
except PermissionError:
    from dipedl.apps.cli import main
    main()
"""

#: A service that gets a SIGHUP while it reads its first model.
HUNG_UP = """
import os, signal
from dipedl.apps.cli import main
from dipedl.apps.serve import models
load, came = models.load_served, []
def hung_up(*given):
    if not came:
        came.append(os.kill(os.getpid(), signal.SIGHUP))
    return load(*given)
models.load_served = hung_up
main()
"""


class Process:
    """`dipedl serve` with some arguments."""

    def __init__(self, folder, *arguments):
        self.path = folder / "log"
        self.log = self.path.open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-c", READ_ONLY, folder / "x", "serve", *arguments, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "DIPEDL_TOKEN": TOKEN, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        self.told = self.process.stdout.readline()
        assert self.told, (folder / "log").read_text()
        self.port = int(self.told.rpartition(":")[2])

    def send(self, method, path, body=None):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            text = None if body is None else json.dumps(body)
            line.request(method, path, text, HEADERS)
            reply = line.getresponse()
            return reply.status, reply.read().decode()
        finally:
            line.close()

    def ask(self, method, path, body=None):
        status, text = self.send(method, path, body)
        return status, json.loads(text)

    def logged(self, event):
        # Not by the file of the process: seek would move where it writes.
        whole, _, _ = self.path.read_text().rpartition("\n")
        lines = map(json.loads, whole.splitlines())
        return [line for line in lines if line["event"] == event]

    def wait_for(self, event, n):
        end = time.monotonic() + 120
        while len(self.logged(event)) < n:
            assert time.monotonic() < end, f"{event} was not logged {n} times"
            time.sleep(0.02)


@pytest.fixture(scope="module")
def process(kept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("process")
    for name in ("people", "plain"):
        source = "model" if name == "people" else name
        (folder / f"{name}.dipedl").write_bytes((kept / f"{source}.dipedl").read_bytes())
    found = Process(folder, str(folder / "people.dipedl"), f"plain={folder / 'plain.dipedl'}")
    found.folder = folder
    yield found
    found.process.kill()
    found.process.wait()


def test_answers_of_many_clients_are_not_mixed_up(process, rows, by_hand):
    model, X = by_hand
    clf = model.classifier
    labels, p_values, vacuity = clf.predict(X).tolist(), clf.p_value(X), clf.uncertainty(X)

    def ask(i):
        at = [(i * 7 + j) % len(rows) for j in range(1 + i % 5)]
        if i % 10 == 9:
            status, _ = process.ask("POST", "/v1/predict", {"model": "people", "rows": [{}]})
            assert status == 422
        if i % 25 == 24:
            assert process.ask("POST", "/v1/models/people/reload")[0] == 200
        if i == 30:
            process.process.send_signal(signal.SIGHUP)
        asked = {"model": "people", "rows": [rows[k] for k in at]}
        status, found = process.ask("POST", "/v1/predict", asked)
        assert status == 200 and len(found["answers"]) == len(at)
        for k, one in zip(at, found["answers"], strict=True):
            assert (one["label"], one["p_value"]) == (labels[k], p_values[k])
            assert one["vacuity"] == pytest.approx(vacuity[k], abs=1e-13)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(60)))


def test_a_file_that_is_swapped_is_read_at_the_signal(process, kept):
    before = process.ask("GET", "/v1/models")[1]["models"]
    (process.folder / "plain.dipedl").write_bytes(b"no model")
    (process.folder / "people.dipedl").write_bytes((kept / "plain.dipedl").read_bytes())
    n = len(process.logged("reload"))
    process.process.send_signal(signal.SIGHUP)
    process.wait_for("reload", n + 2)
    assert [(one["model"], one["ok"]) for one in process.logged("reload")[n:]] == [
        ("people", True),
        ("plain", False),
    ]
    assert "plain.dipedl" in process.logged("reload")[-1]["reason"]
    assert 'dipedl_reloads_total{model="plain",ok="no"} 1.0' in process.send("GET", "/metrics")[1]
    people, plain = process.ask("GET", "/v1/models")[1]["models"]
    assert people["version"] == before[1]["version"] and people["problem"] is None
    assert plain["version"] == before[1]["version"] and "plain.dipedl" in plain["problem"]
    assert process.ask("POST", "/v1/predict", {"model": "plain", "matrix": [[0] * 4]})[0] == 200


def test_half_requests_and_noise_stop_nothing(process):
    head = f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    for sent in (b"", b"POST", head.encode()[:70], head.encode() + b'{"rows"'):
        with socket.create_connection(("127.0.0.1", process.port)) as line:
            line.sendall(sent)
    for noise in (
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET /v1/models HTTP/9.9\r\n\r\n",
        b"\x00" * 70_000,
    ):
        with socket.create_connection(("127.0.0.1", process.port)) as line:
            line.sendall(noise)
            assert line.recv(100).startswith(b"HTTP/1.1 4")
    assert process.ask("GET", "/health/ready") == (200, {"status": "ready"})
    # The one that named its token, and sent half a body.
    assert [one["status"] for one in process.logged("request")].count(499) == 1


@pytest.mark.slow
def test_a_start_with_a_signal_at_another_loopback_address(kept, tmp_path):
    arguments = ["serve", kept / "plain.dipedl", "--host", "127.0.0.2", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "DIPEDL_TOKEN"}
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", HUNG_UP, *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        ) as process,
    ):
        told = process.stdout.readline()
        assert "http://127.0.0.2:" in told, "the signal did not end it"
        line = http.client.HTTPConnection("127.0.0.2", int(told.rpartition(":")[2]), timeout=120)
        for host, status in (("127.0.0.2", 200), ("localhost:1", 200), ("evil.example", 421)):
            line.request("GET", "/v1/models", headers={"Host": host})
            reply = line.getresponse()
            assert (reply.status, bool(reply.read())) == (status, True)
        line.close()
        end = time.monotonic() + 60
        while '"reload"' not in (tmp_path / "log").read_text():
            assert time.monotonic() < end, "the file is read again once the service runs"
            time.sleep(0.05)
        process.terminate()
    assert process.returncode == 0


def test_a_second_service_at_the_port_is_refused(process, kept):
    arguments = ["serve", str(kept / "plain.dipedl"), "--port", str(process.port)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1 and f"port {process.port} of 127.0.0.1 is in use" in done.output


def test_other_mistakes_of_the_command_line(kept):
    model = str(kept / "plain.dipedl")
    for arguments, code, words in (
        ([model, "--host", "0.0.0.0", "--port", "0"], 2, "has no token"),
        ([], 2, "or say --demo"),
        ([model, "--demo"], 2, "or say --demo"),
        ([model, model], 2, "two models are named 'plain'"),
        ([str(kept / "none.dipedl"), "--port", "0"], 1, "there is no model"),
        ([str(kept / "new.csv"), "--port", "0"], 1, "new.csv"),
        ([model, "--token-file", str(kept / "none")], 1, "--token-file"),
        *(
            ([model, "--port", "0", option, value], 2, option)
            for option in ("--seconds", "--max-megabytes")
            for value in ("inf", "nan", "-1")
        ),
        ([model, "--port", "0", "--max-megabytes", "1e306"], 2, "--max-megabytes"),
    ):
        done = CliRunner().invoke(app, ["serve", *arguments])
        assert done.exit_code == code and words in done.output, done.output


def test_requests_that_have_begun_are_answered_before_the_end(process):
    """The last test of this process."""
    found = []
    asked = {"model": "people", "matrix": [[100.0 * i, 0, 0, 0] for i in range(300)]}
    asked["fields"] = ["label", "reason"]
    thread = threading.Thread(
        target=lambda: found.append(process.ask("POST", "/v1/predict", asked))
    )
    thread.start()
    metrics = http.client.HTTPConnection("127.0.0.1", process.port)
    running = False
    while not running:
        metrics.request("GET", "/metrics", headers=HEADERS)
        running = b"dipedl_requests_running 1.0" in metrics.getresponse().read()
    process.process.send_signal(signal.SIGTERM)
    thread.join(120)
    assert found[0][0] == 200 and len(found[0][1]["answers"]) == 300
    assert process.process.wait(120) == 0
    with pytest.raises(ConnectionRefusedError):
        process.ask("GET", "/health/live")
    assert process.logged("failed") == []

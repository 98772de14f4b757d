"""A headless Chromium over its DevTools protocol: just enough to look at one page."""

import base64
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --remote-debugging-port=0 --remote-allow-origins=*"
).split()

_VALUE = {"returnByValue": True, "awaitPromise": True}


def chromium():
    """Path of a Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Page:
    """One page; `problems` collects console errors, exceptions and failed or outside requests."""

    def __init__(self, folder: Path):
        import websocket

        self.process = subprocess.Popen(
            [chromium(), *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = _wait_for(folder / "DevToolsActivePort").split()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                target = next(t for t in json.load(answer) if t["type"] == "page")
            self.socket = websocket.create_connection(target["webSocketDebuggerUrl"], timeout=60)
        except BaseException:
            self.process.kill()
            raise
        self.ids, self.problems, self.requests = itertools.count(1), [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait(20)

    def call(self, method, **params):
        """Result of a DevTools command; events that come meanwhile are noted."""
        number = next(self.ids)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def open(self, url, width, height=900, dark=False):
        """Load a page in a window of this size and wait until all of it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        for _ in range(200):
            if self.evaluate("document.readyState") == "complete":
                return
            time.sleep(0.1)
        raise TimeoutError(url)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, **_VALUE)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path, top=0, height=None):
        """The page as PNG, beyond the window: from `top`, `height` pixels or to the end."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": top,
            "width": size["width"],
            "height": height or size["height"] - top,
            "scale": 1,
        }
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def _note(self, message):
        kind, params = message["method"], message.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif kind in ("Runtime.exceptionThrown", "Network.loadingFailed") or (
            (kind == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"))
            or (kind == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"))
        ):
            self.problems.append(message)


def _wait_for(path):
    for _ in range(300):
        if path.exists() and path.read_text().strip():
            return path.read_text()
        time.sleep(0.1)
    raise TimeoutError(f"{path} was not written")

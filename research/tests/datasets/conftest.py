import gzip
import hashlib
import io
import os
import struct
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pooch
import pytest

from dipedl_bench.datasets import files

FULL = os.environ.get("DIPEDL_DATA")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch, tmp_path):
    """No test sees the user's data, or writes to the user's cache."""
    monkeypatch.delenv("DIPEDL_DATA", raising=False)
    monkeypatch.setenv("DIPEDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)


@pytest.fixture
def full_dir(monkeypatch):
    """The folder of the real files, in place of that of a test."""
    if not FULL:
        pytest.skip("DIPEDL_DATA is not set")
    monkeypatch.setenv("DIPEDL_DATA", FULL)
    return Path(FULL)


def idx_bytes(array):
    """A hand-made IDX file of bytes."""
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def png_bytes(pixels):
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).convert("1").save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def register(monkeypatch):
    """Make `content` the published file of that name."""

    def publish(name, content, urls=("http://127.0.0.1:9/gone",), **changes):
        md5 = (hashlib.md5(content).hexdigest(),)
        fields = {"urls": tuple(urls), "md5": md5, "size": len(content), **changes}
        monkeypatch.setitem(files.FILES, name, files.RemoteFile(**fields))

    return publish


@pytest.fixture
def put(register, tmp_path, monkeypatch):
    """Publish `content` and write it into the data directory of the test."""

    def write(name, content):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        register(name, content)
        monkeypatch.setenv("DIPEDL_DATA", str(tmp_path / "data"))

    return write


@pytest.fixture
def tiny(monkeypatch, tmp_path, put):
    """A data directory of a few images in the official formats, with its arrays."""
    rng = np.random.default_rng(0)
    arrays = {}
    for name in ("mnist", "kmnist", "fashion_mnist"):
        for part, n in (("train", 12), ("t10k", 7)):
            pixels = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
            labels = rng.integers(0, 10, n, dtype=np.uint8)
            arrays[name, part] = pixels, labels
            for kind, array in (("images-idx3", pixels), ("labels-idx1", labels)):
                put(f"{name}/{part}-{kind}-ubyte.gz", gzip.compress(idx_bytes(array)))
    put("omniglot/images_evaluation.zip", tiny_zip(arrays))
    monkeypatch.setitem(files.TABLES["omniglot"], "sha256", arrays["omniglot_sha256"])
    return tmp_path / "data", arrays


def tiny_zip(arrays):
    """Six drawings of three characters, stored in reverse: all ink, no ink, ink above row 52."""
    from PIL import Image

    stream, drawings = io.BytesIO(), []
    ink = {"Angelic/character01": 105, "Angelic/character02": 0, "Tengwar/character01": 52}
    with zipfile.ZipFile(stream, "w") as archive:
        for character, rows in reversed(ink.items()):
            pixels = np.full((105, 105), 255, np.uint8)
            pixels[:rows] = 0
            small = Image.fromarray(pixels).resize((28, 28), Image.Resampling.BILINEAR)
            for i in (2, 1):
                name = f"images_evaluation/{character}/000{i}_0{i}.png"
                archive.writestr(name, png_bytes(pixels))
                drawings.insert(0, np.asarray(small))
    arrays["omniglot"] = np.stack(drawings)
    arrays["omniglot_sha256"] = hashlib.sha256(arrays["omniglot"].tobytes()).hexdigest()
    return stream.getvalue()


@pytest.fixture
def mirror():
    """A local web server: `files` maps paths to contents, `asked` lists the requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append((self.path, self.headers["Accept-Encoding"]))
            content = server.files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.asked = {}, []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()

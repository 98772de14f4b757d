"""Build the wheel and check what a user gets: typed, under 1.25 MB, images 0.41 MB, importable."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_BYTES, MAX_DATA_BYTES = 1_250_000, 410_000
#: The metadata must name the licences of the bundled images, and the file that says whose they are.
LICENCES = ["CC-BY-SA-3.0 AND CC-BY-SA-4.0 AND MIT", "src/dipedl/datasets/_mini/LICENSES.md"]


def source_files() -> set[str]:
    """Names in a wheel of all that lies in the package: modules, templates, data."""
    source = ROOT / "src"
    files = (path for path in (source / "dipedl").rglob("*") if path.is_file())
    return {str(p.relative_to(source)) for p in files if "__pycache__" not in p.parts}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", folder, str(ROOT)], check=True)
        (wheel,) = Path(folder).glob("dipedl-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            sizes = {item.filename: item.file_size for item in archive.infolist()}
            facts = archive.read(next(n for n in sizes if n.endswith("/METADATA"))).decode()
        data = sum(size for name, size in sizes.items() if "/_mini/" in name)
        missing = sorted(source_files() - set(sizes)) + [x for x in LICENCES if x not in facts]
        extra = {name for name in sizes if ".dist-info/" not in name} - source_files()
        size = wheel.stat().st_size
        if missing or extra or data > MAX_DATA_BYTES or size > MAX_BYTES:
            sys.exit(f"wheel: missing {missing}, extra {extra}, {size:,} bytes, data {data:,}")
        where = f"{wheel.name}: {size:,} bytes, bundled data {data:,} bytes"
        code = (
            f"import sys; sys.path.insert(0, {str(wheel)!r}); import dipedl; print(dipedl.__file__)"
        )
        subprocess.run([sys.executable, "-I", "-c", code], check=True)
        print(where)


if __name__ == "__main__":
    main()

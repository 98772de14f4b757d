"""Pages that the build writes; Markdown ones end in `.myst`, those of the repository in `.md`."""

from __future__ import annotations

from pathlib import Path


def write_folder(folder: Path, pages: dict[str, str]) -> None:
    """Write the pages of a folder, by file name, and remove those of an earlier build."""
    for stale in set(folder.glob("*.*")) - {folder / name for name in pages}:
        stale.unlink()
    for name, text in pages.items():
        write_page(folder / name, text)


def write_page(page: Path, text: str) -> None:
    """Write a page, but leave alone one that is as before: it need not be read again."""
    page.parent.mkdir(parents=True, exist_ok=True)
    if not page.exists() or page.read_text("utf-8") != text:
        page.write_text(text, "utf-8")

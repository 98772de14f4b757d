"""How this package writes files: whole or not at all, and never over what is no ordinary file."""

from .cells import cell
from .sums import SUMS, read_sums, sha256_of, write_sums
from .target import writable_target
from .whole_file import sync_folder, whole_file, write_file

__all__ = [
    "SUMS",
    "cell",
    "read_sums",
    "sha256_of",
    "sync_folder",
    "whole_file",
    "writable_target",
    "write_file",
    "write_sums",
]

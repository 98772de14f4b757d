"""How this package writes: files whole or not at all, a line of progress, HTML for a notebook."""

from .cells import cell, printable_name, probability_names
from .live_line import LiveLine
from .secret import secret_key
from .sums import SUMS, read_sums, sha256_of, write_sums
from .target import check_is_no_input, writable_target
from .whole_file import sync_folder, whole_file, write_file

__all__ = [
    "SUMS",
    "LiveLine",
    "cell",
    "check_is_no_input",
    "printable_name",
    "probability_names",
    "read_sums",
    "secret_key",
    "sha256_of",
    "sync_folder",
    "whole_file",
    "writable_target",
    "write_file",
    "write_sums",
]

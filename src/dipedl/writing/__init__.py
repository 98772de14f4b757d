"""How this package writes: files whole or not at all, a line of progress, HTML for a notebook."""

from .cells import cell, printable_name, probability_names
from .files import (
    SUMS,
    check_is_no_input,
    read_sums,
    secret_key,
    sha256_of,
    sync_folder,
    whole_file,
    writable_target,
    write_file,
    write_sums,
)
from .live_line import LiveLine

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

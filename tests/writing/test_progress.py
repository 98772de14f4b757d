"""One line in a terminal and in a notebook, few in a log."""

import io
import sys
from types import SimpleNamespace

import pytest

from dipedl.writing import progress
from dipedl.writing.progress import LiveLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


@pytest.fixture
def notebook(monkeypatch):
    """A kernel; the list of what its cells have shown, each with its updates."""
    cells = []

    def display(shown, **_):
        cells.append([shown["text/plain"]])
        own = cells[-1]
        return SimpleNamespace(update=lambda shown, **_: own.append(shown["text/plain"]))

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return cells


def count_to(n, line, clock, pause):
    for i in range(1, n + 1):
        line.show(f"{i} of {n}", last=i == n)
        clock.seconds += pause


def test_a_log_has_a_line_each_ten_seconds_and_the_last(clock):
    stream = io.StringIO()
    count_to(100, LiveLine(stream), clock, 1.0)
    lines = stream.getvalue().splitlines()
    assert lines == [f"{i} of 100" for i in (*range(11, 100, 10), 100)]
    quick = io.StringIO()
    count_to(100, LiveLine(quick), clock, 0.01)
    assert quick.getvalue() == "100 of 100\n"


def test_a_log_of_a_short_task_that_names_no_last_line_is_empty(clock):
    stream = io.StringIO()
    line = LiveLine(stream)
    line.show("almost")
    line.close()
    assert stream.getvalue() == ""


def test_a_terminal_has_one_line_of_its_width(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    line = LiveLine(stream)
    line.show("a long line that does not fit")
    line.show("too soon")
    clock.seconds += 1
    line.show("short")
    line.show("the end")
    line.close()
    line.close()
    states = stream.getvalue().split("\r")
    assert states == ["", "a long line that do", "short              ", "the end\n"]


def test_a_terminal_that_cannot_rewrite_is_a_log(clock, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    count_to(30, LiveLine(stream), clock, 1.0)
    assert stream.getvalue().splitlines() == ["11 of 30", "21 of 30", "30 of 30"]


def test_a_notebook_has_one_output_for_each_task(clock, notebook, capsys):
    line = LiveLine()
    count_to(50, line, clock, 0.1)
    count_to(2, line, clock, 0.1)
    assert len(notebook) == 2 and notebook[0][0] == "1 of 50"
    assert notebook[0][-1] == "50 of 50" and len(notebook[0]) < 15
    assert notebook[1][-1] == "2 of 2"
    assert capsys.readouterr() == ("", "")


def test_a_stream_is_used_in_a_notebook_too(clock, notebook):
    stream = io.StringIO()
    count_to(3, LiveLine(stream), clock, 0.0)
    assert stream.getvalue() == "3 of 3\n" and notebook == []


def test_standard_error_is_where_it_is_now(clock, capsys):
    LiveLine().show("done", last=True)
    assert capsys.readouterr() == ("", "done\n")

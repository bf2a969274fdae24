"""Classes of errors and warnings. Rust finds the errors and writes their texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk._results import Result


class Error(Exception):
    """Base class of all errors of ropewalk. `str()` is the text that the command line prints."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ScenarioError(Error, ValueError):
    """A scenario, a sweep or a setting is wrong.

    `message` describes the fault, and `help` a remedy (or None). `file`, `line` and `column` give the place, counted from
    1, or None, for example if the file does not exist. For a dict, `file` is `<dict>` and the lines are those of its TOML.
    For a keyword argument, `file` is `--set`.
    """

    def __init__(
        self,
        text: str,
        message: str = "",
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(text, message, file, line, column, help)
        self.message = message or text
        self.file = file
        self.line = line
        self.column = column
        self.help = help


class RequestError(Error, ValueError):
    """The request is wrong: for example, the experiment does not exist, or the path of a report is taken."""


class ResultsError(Error):
    """A directory or a file of results cannot be read or written."""


class NotRecorded(Error, LookupError):
    """The run did not record this table; `record=True` records it."""


class SimulationError(Error, RuntimeError):
    """The simulation failed: a deadlock, a drop on a lossless fabric, too little memory, or packets that are
    not accounted for.

    `result` has the results up to the failure, and `faults` a text for each reason.
    """

    def __init__(self, text: str, faults: list[str] | None = None, result: Result | None = None) -> None:
        super().__init__(text, faults or [], result)
        self.faults = faults or []
        self.result = result


class SchemeError(Error, RuntimeError):
    """A scheme or a congestion control in Python has raised an exception, and the run has stopped. `__cause__` is that exception, with its traceback."""


class SweepError(Error, RuntimeError):
    """Points of a sweep could not be run. Finished points are kept; the same call with `resume=True` continues the sweep.

    `failed` has (number, label, reason) of each missing point, including the points that were not tried. `done` of `runs`
    runs are kept, and `directory` is the directory of the results.
    """

    def __init__(
        self,
        text: str,
        failed: list[tuple[int, str, str]] | None = None,
        done: int = 0,
        runs: int = 0,
        directory: Path | None = None,
    ) -> None:
        super().__init__(text, failed or [], done, runs, directory)
        self.failed = failed or []
        self.done = done
        self.runs = runs
        self.directory = directory


class ScenarioWarning(UserWarning):
    """A valid but suspicious setting."""


for _class in (Error, ScenarioError, RequestError, ResultsError, NotRecorded, SimulationError, SchemeError, SweepError, ScenarioWarning):
    _class.__module__ = "ropewalk"

"""What can go wrong. Rust finds it and says it; these are the classes by which Python tells one from another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk._results import Result


class Error(Exception):
    """Anything that ropewalk refuses or fails at. `str()` is what the command line prints."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ScenarioError(Error, ValueError):
    """Something in a scenario, a sweep or a setting cannot be.

    `message` says what, `help` what would be right (or None); `file`, `line` and `column` where, from 1 (or None: a file that
    is not there, say). A scenario that is a dict is `<dict>`, and its lines are those of its TOML; a keyword is `--set`.
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
    """The question is wrong, such as an experiment that does not exist, or the place for a report is taken."""


class ResultsError(Error):
    """A directory or a file of results cannot be read or written."""


class NotRecorded(Error, LookupError):
    """This run has no such table, as nothing asked for it: `record=True` does."""


class SimulationError(Error, RuntimeError):
    """The simulation itself failed: a deadlock, a lossless fabric that dropped packets, books that do not balance.

    `result` is what there is of the run, and `faults` says why, one text each.
    """

    def __init__(self, text: str, faults: list[str] | None = None, result: Result | None = None) -> None:
        super().__init__(text, faults or [], result)
        self.faults = faults or []
        self.result = result


class SweepError(Error, RuntimeError):
    """Points of a sweep could not be run. What was done is kept: the same call with `resume=True` goes on.

    `failed` has (number, label, reason) of each point that is missing, those that were not tried among them; `done` of `runs` are kept; `directory` is where the results go.
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
    """Something that is possible but probably not meant."""


for _class in (Error, ScenarioError, RequestError, ResultsError, NotRecorded, SimulationError, SweepError, ScenarioWarning):
    _class.__module__ = "ropewalk"

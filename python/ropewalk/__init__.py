"""ropewalk: a packet-level lab for RDMA fabrics.

    import ropewalk as rw

    result = rw.run("quickstart", scheme="themis")
    result.flows.to_pandas()
    rw.compare("quickstart", ["ecmp", "rps", "themis"], seeds="1..3").plot.bars()
    rw.reproduce("themis-fig1").report("themis-fig1.html")

A scenario is a path, the name of a built-in scenario (`rw.scenarios()`), or a dict with the same keys. A setting is a
keyword argument, in which `__` stands for a dot, and `_` for a hyphen where the key has one: `switch__ecn__kmin="100kB"`
sets `switch.ecn.kmin`. A dict of keys works, too: `**{"workload.0.bytes": "1MB"}`. A wrong scenario or setting raises
`rw.ScenarioError`, with line and column. Keyword arguments have types, so mypy finds a misspelt one.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import _native
from ropewalk._asked import Scenario, as_json, asked, count, flag, leave, warn
from ropewalk._asked import schemes as _schemes
from ropewalk._asked import seeds as _seeds
from ropewalk._busbw import Busbw, busbw
from ropewalk._errors import (
    Error,
    NotRecorded,
    RequestError,
    ResultsError,
    ScenarioError,
    ScenarioWarning,
    SchemeError,
    SimulationError,
    SweepError,
)
from ropewalk._own import register_control, register_scheme
from ropewalk._progress import Line, Progress
from ropewalk._results import Comparison, Report, Result, StrPath
from ropewalk._session import Event, Session
from ropewalk._sweep import Executor, Future, Sweep, run_point, sweep
from ropewalk._sweep import _read as _read_sweep
from ropewalk._table import Table
from ropewalk._tune import TunedSet, Tuning, tune

if TYPE_CHECKING:
    from typing import Unpack

    from ropewalk._settings import AllSettings, Settings

__version__ = _native.__version__

__all__ = [
    "Busbw",
    "Comparison",
    "Error",
    "Event",
    "Executor",
    "Future",
    "NotRecorded",
    "Report",
    "RequestError",
    "Result",
    "ResultsError",
    "ScenarioError",
    "ScenarioWarning",
    "SchemeError",
    "Session",
    "SimulationError",
    "Sweep",
    "SweepError",
    "Table",
    "TunedSet",
    "Tuning",
    "busbw",
    "check",
    "compare",
    "experiments",
    "metrics",
    "read",
    "register_control",
    "register_scheme",
    "report",
    "reproduce",
    "run",
    "run_point",
    "scenarios",
    "schema",
    "sweep",
    "tune",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    threads: int = 1,
    record: bool = False,
    fast: bool | float = False,
    memo: StrPath | None = None,
    progress: Progress = None,
    **sets: Unpack[Settings],
) -> Result:
    """Runs a scenario.

    `threads` is the number of threads for the run; results do not depend on it. `record` records everything over time, and
    all events of eight queue pairs. `fast` leaves out exchanges that repeat: True, or the largest error of the end as a share of it
    (0.01); `result.summary["fast"]` says what was left out. `memo` is a directory that keeps what repeats for later runs. `progress` is True, False, or a function of (fraction, text). By
    default, a run of more than a second shows a progress line in a notebook or on a terminal. Raises ScenarioError before the
    run, and SimulationError if the simulation fails. Ctrl-C stops the run.
    """
    text, is_dict = asked(scenario)
    threads, record = count("threads", threads), flag("record", record)
    given: dict[str, Any] = dict(sets) if seed is None else {**sets, "seed": seed}
    with Line(progress, "run") as line:
        native = _native.run(text, is_dict, as_json(given), threads, record, leave(fast, memo), _warn, line.listener)
    result = Result(native)
    if native.faults:
        raise SimulationError("\n".join(native.faults), native.faults, result)
    return result


def check(scenario: Scenario, **sets: Unpack[AllSettings]) -> dict[str, Any]:
    """Checks a scenario without running it, and returns it with all defaults filled in. Gives the same warnings as a run."""
    text, is_dict = asked(scenario)
    toml, warnings = _native.check(text, is_dict, as_json(sets))
    for warning in warnings:
        warn(warning)
    return tomllib.loads(toml)


def compare(
    scenario: Scenario,
    schemes: str | Iterable[str | type],
    *,
    seeds: Any = None,
    traffic_class: str | None = None,
    threads: int | None = None,
    fast: bool | float = False,
    memo: StrPath | None = None,
    check: bool = True,
    progress: Progress = None,
    **sets: Unpack[AllSettings],
) -> Comparison:
    """Runs a scenario with several schemes and seeds, side by side on all cores.

    `schemes` is a list of names, or a text such as `"ecmp,themis"`; a class in the list is a scheme in Python (`register_scheme`). `seeds` is a number, `"1..5"`, a list or a range; the
    default is the scenario's seed. `traffic_class` names the traffic class whose scheme changes. `fast` leaves out exchanges
    that repeat, as in `run`, and `memo` keeps them. With `check`, and without `fast`, the contenders run again for what decides the comparison
    (`Comparison.decides`). Raises SimulationError if one of the runs fails.
    """
    text, is_dict = asked(scenario)
    threads = count("threads", threads)
    with Line(progress, "compare") as line:
        natives, decides = _native.compare(
            text,
            is_dict,
            as_json(sets),
            _schemes(schemes),
            _seeds(seeds),
            traffic_class,
            threads,
            leave(fast, memo),
            check,
            _warn,
            line.listener,
        )
    for native in natives:
        if native.faults:
            bad = Result(native)
            where = f"in the run of {bad.scheme} with seed {bad.seed}"
            raise SimulationError("\n".join([*native.faults, where]), native.faults, bad)
    return Comparison([Result(native) for native in natives], json.loads(decides) if decides else None)


def reproduce(
    name: str,
    *,
    quick: bool = False,
    threads: int | None = None,
    jobs: int | None = None,
    check: bool = True,
    progress: Progress = None,
) -> Report:
    """Runs a paper's experiment and compares its numbers with ours. `quick` scales it down; `rw.experiments()` lists all
    experiments. With `check`, cases run again for what decides the rankings among them (`Report.decides`)."""
    quick, threads, jobs, check = flag("quick", quick), count("threads", threads), count("jobs", jobs), flag("check", check)
    with Line(progress, name) as line:
        return Report(_native.reproduce(name, quick, threads, jobs, check, line.listener))


def read(directory: StrPath) -> Result | Sweep | Comparison:
    """Reads a result directory of `ropewalk run` or `Result.save`, of a comparison that kept its runs, or of a finished sweep.

    A table is read when it is used, and compared with its checksum first. Raises ResultsError for damaged results.
    """
    if (runs := _native.comparison(Path(directory))) is not None:
        decides = json.loads((Path(directory) / "comparison.json").read_text(encoding="utf-8")).get("decides")
        return Comparison([Result(_native.read(run)) for run in runs], decides)
    sweep = _read_sweep(Path(directory))
    return Result(_native.read(Path(directory))) if sweep is None else sweep


def report(results: Result | StrPath | Iterable[Result | StrPath], path: StrPath) -> Path:
    """Writes a report that compares results: one HTML file that works offline. A path names a result directory."""
    several = [results] if isinstance(results, (Result, str, os.PathLike)) else list(results)
    if not several:
        raise ValueError("a report needs at least one Result, or the path of a result directory")
    natives = []
    for result in several:
        if isinstance(result, (str, os.PathLike)):
            natives.append(_native.read(Path(result)))
        elif isinstance(result, Result):
            natives.append(result._native)
        else:
            raise TypeError(f"a report is of Results or paths of result directories, not of {type(result).__name__}")
    _native.page(natives, Path(path))
    return Path(path)


def schema(of: str = "scenario") -> dict[str, Any]:
    """JSON Schema of a `scenario` or a `sweep`: every key with meaning, unit, default and source."""
    if of not in ("scenario", "sweep"):
        raise ValueError(f"there is a schema of a `scenario` and of a `sweep`, not of {of!r}")
    return json.loads(_native.schema(of == "sweep"))  # type: ignore[no-any-return]


def scenarios() -> dict[str, str]:
    """Names and descriptions of the built-in scenarios."""
    return {name: about for name, about, _ in _native.scenarios()}


def experiments() -> dict[str, str]:
    """Names and descriptions of the papers' experiments."""
    return {name: f"{about} ({source})" for name, source, about in _native.experiments()}


def metrics() -> Table:
    """The metrics of a run: name (its keys in `summary.json` and in a sweep's `points`), unit, meaning, the whole of which it is a share, and which way is better."""
    return Table(_native.metrics())


def _warn(text: str) -> None:
    warn(text, level=4)

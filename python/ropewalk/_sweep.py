"""Sweeps: on this machine by Rust, or elsewhere by an executor. Each point's result is kept as soon as it arrives."""

from __future__ import annotations

import contextlib
import json
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ropewalk import _native
from ropewalk._asked import Scenario, as_json, asked, count, flag, leave, warn
from ropewalk._errors import Error, RequestError, ResultsError, SweepError
from ropewalk._progress import Line, Progress
from ropewalk._results import StrPath
from ropewalk._table import HEAD, Table, as_html, as_text

if TYPE_CHECKING:
    from typing import Unpack

    import pandas

    from ropewalk._settings import AllSettings
    from ropewalk.plot import SweepPlots

# Most points that are submitted at one time. Our choice: enough for a large cluster, and few enough that the executor need
# not hold a hundred thousand of them.
MOST_UNDER_WAY = 256
# Most times that a point is submitted if its worker is lost. Our choice: a point that needs more memory than a worker has
# kills a worker each time.
ATTEMPTS = 3
# Failed points after which a sweep stops if no point has succeeded. Our choice.
HOPELESS = 3
# Reason for a missing point that was never submitted.
NOT_TRIED = "not tried"
# Seconds between two checks of futures that do not call back, or whose executor may have stopped.
LOOK_EVERY_S = 0.5


class Future(Protocol):
    """Result of submitted work. `done()` and `add_done_callback()` are used if the future has them."""

    def result(self) -> Any: ...


class Executor(Protocol):
    """An object that runs functions: `concurrent.futures`, a Dask client, submitit, `mpi4py.futures`, or a class of your
    own."""

    def submit(self, fn: Callable[..., str], /, *args: Any) -> Future: ...


class Sweep:
    """A finished sweep: one row per point in `points`, in `timing` and in `configs`."""

    def __init__(self, directory: Path, failed: list[tuple[int, str, str]]) -> None:
        self.directory = directory
        self.failed = failed

    @cached_property
    def points(self) -> Table:
        """One row per point: axes, seed and all numbers of the summary."""
        return self._table("points")

    @cached_property
    def timing(self) -> Table:
        """Cost of each run: the only table that differs when the same sweep runs again."""
        return self._table("timing")

    @cached_property
    def configs(self) -> Table:
        """Each point's full configuration as TOML: enough to run it alone."""
        return self._table("configs")

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`sweep.json`: axes, seeds and version of the sweep."""
        return json.loads(_native.sweep_manifest(self.directory))  # type: ignore[no-any-return]

    @property
    def digest(self) -> str:
        """One number for all results: equal digests mean equal sweeps, bit for bit."""
        return str(self.manifest["digest"])

    @property
    def decides(self) -> list[dict[str, Any]]:
        """What decides the sweep, at one or two choices of its axes; each has `answer`, a list of sentences. Empty without `check`."""
        return list(self.manifest["decides"] or [])

    @property
    def plot(self) -> SweepPlots:
        """Pictures with matplotlib: `.lines()`."""
        from ropewalk.plot import SweepPlots

        return SweepPlots(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table `points` as a DataFrame."""
        return self.points.to_pandas()

    def report(self, path: StrPath) -> Path:
        """Writes the report: one HTML file that works offline."""
        _native.sweep_page(self.directory, Path(path))
        return Path(path)

    def _table(self, name: str) -> Table:
        return Table(_native.sweep_table(self.directory, name))

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        bad = f", {len(self.failed)} failed in simulation" if self.failed else ""
        return f"<ropewalk.Sweep {self.manifest['sweep']}: {len(self)} points in {self.directory}{bad}>"

    def __str__(self) -> str:
        names = self._shown()
        rows = [[self.points[name][row] for name in names] for row in range(min(len(self), HEAD))]
        more = "" if len(self) <= HEAD else f"\nthe first {HEAD} of {len(self)} points; .points has all"
        title = f"{self.manifest['sweep']}: {_points(len(self))}, digest {self.digest}"
        units = [f"[{unit}]" if (unit := self.points.units[name]) not in ("", "-") else "" for name in names]
        return f"{title}\n{as_text([name.removeprefix('axis.') for name in names], rows, units)}{more}"

    def _shown(self) -> list[str]:
        """Columns of the points that fit on a screen."""
        wanted = ("scheme", "seed", "complete", "flows.fct_us.p99", "flows.slowdown.p99")
        axes = [name for name in self.points if name.startswith("axis.")]
        skipped = ["scheme"] if "axis.schemes" in axes else []
        return [name for name in self.points if name in axes or name == "point" or (name in wanted and name not in skipped)]

    def _repr_html_(self) -> str:
        points, names = self.points, self._shown()
        head = [f"{name}<br><small>{points.units[name]}</small>" for name in names]
        rows = zip(*(points[name][:HEAD] for name in names), strict=True)
        shown = f"{len(self)} points" if len(self) <= HEAD else f"the first {HEAD} of {len(self)} points"
        return as_html(head, rows, f"{shown}, {len(names)} of {len(points.column_names)} columns, see .points")


def sweep(
    sweep: Scenario,
    output: StrPath | None = None,
    *,
    executor: Any = None,
    resume: bool = False,
    threads: int | None = None,
    jobs: int | None = None,
    fast: bool | float = False,
    memo: StrPath | None = None,
    check: bool = True,
    progress: Progress = None,
    **sets: Unpack[AllSettings],
) -> Sweep:
    """Runs a scenario at many points: schemes, seeds and any keys.

    `sweep` is a path, the name of a built-in sweep, or a dict with the keys of a sweep's file, in which `scenario` may be a
    dict, too. Results go to `output` (default `results/NAME`). Points run on all cores of this machine (`threads` in all,
    `jobs` runs side by side), or on `executor`: an object whose `submit(fn, *args)` returns futures with `result()`, or a
    `joblib.Parallel`. Finished points are always kept, and `resume=True` continues with the others. `fast` leaves out
    exchanges that repeat, as in `run`, and `memo` keeps them for all points. With `check`, and without `fast`, points run again on this machine for what decides the
    answer (`Sweep.decides`).

    Raises SweepError if points could not be run. A point whose simulation fails is a result: see `Sweep.failed`.
    """
    # All arguments are checked before the directory is created, so a refused call leaves nothing behind.
    text, is_dict = asked(sweep)
    resume, threads, jobs, check = flag("resume", resume), count("threads", threads), count("jobs", jobs), flag("check", check)
    left_out = leave(fast, memo)
    if executor is not None and not _is_joblib(executor) and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"an executor needs a method submit(fn, *args); {type(executor).__name__} has none")
    with Line(progress, "checking") as line:
        place = None if output is None else Path(output)
        try:
            work = _native.Work(text, is_dict, as_json(sets), place, resume, threads, left_out, line.listener)
        except (RequestError, ResultsError) as error:
            raise type(error)(_in_python(str(error))) from None
    try:
        for warning in work.warnings:
            warn(warning)
        for note in work.notes:
            warn(note)
        with Line(progress, "sweep") as line:
            if not work.wanted():
                failed = []
            elif executor is None:
                failed = work.run(threads, jobs, line.listener)
            else:
                failed = _elsewhere(work, executor, line.listener)
        if failed or work.wanted():
            raise _unfinished(work, failed)
        with Line(progress, "what decides") as line:
            directory, bad = work.finish(check, threads, jobs, line.listener)
    finally:
        work.close()
    if bad:
        number, label, why = bad[0]
        warn(f"{_points(len(bad))} failed in simulation, the first at point {number} ({label}): {why}")
    return Sweep(directory, bad)


def _read(directory: Path) -> Sweep | None:
    """The finished sweep in a directory, or None."""
    if not (directory / "sweep.json").is_file():
        return None
    read = Sweep(directory, [])
    points = read.points
    axes = [name for name in points if name.startswith("axis.")]
    for row, why in enumerate(points["failure"]):
        if why:
            label = [f"{axis.removeprefix('axis.')} = {_in_toml(points[axis][row])}" for axis in axes]
            label += [f"seed {points['seed'][row]}"] if read.manifest["seeds"] else []
            read.failed.append((row, ", ".join(label), str(why)))
    return read


def _in_toml(value: Any) -> str:
    """The value as in the sweep's file, without quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _points(count: int) -> str:
    return "1 point" if count == 1 else f"{count} points"


def _in_python(text: str) -> str:
    """Rewords a message of the command line for this call."""
    text = text.replace("add --resume", "add resume=True").replace("another directory with -o", "another output")
    return text.replace("`ropewalk sweep` without --resume", "a call without resume=True").replace("--resume", "resume=True")


def _unfinished(work: _native.Work, failed: list[tuple[int, str, str]]) -> SweepError:
    """Error that lists the missing points with their reasons, and explains how to continue."""
    runs, _ = work.runs
    wanted = work.wanted()
    known = {number for number, _, _ in failed}
    rest = [(number, label, NOT_TRIED) for number, label in wanted if number not in known]
    more = f", and {len(rest)} more {'was' if len(rest) == 1 else 'were'} not tried" if rest else ""
    done = runs - len(wanted)
    lines = [f"{_points(len(failed))} could not be run{more}:"]
    lines += [f"  point {number} ({label}): {why}" for number, label, why in failed[:5]]
    if len(failed) > 5:
        lines.append(f"  and {len(failed) - 5} more, see .failed")
    lines.append(f"{done} of {runs} runs are done and kept beside {work.directory}; the same call with resume=True continues")
    return SweepError("\n".join(lines), failed + rest, done, runs, work.directory)


def _is_joblib(executor: Any) -> bool:
    return type(executor).__module__.partition(".")[0] == "joblib"


def run_point(point: str, attempt: int = 0) -> str:
    """Runs a point given as a text, and returns its result as a text. Executors send this call to other processes and machines.
    `attempt` distinguishes a second call for executors that cache results."""
    return _native.run_point(point)


def _elsewhere(work: _native.Work, executor: Any, listener: Callable[[float, str], object] | None) -> list[tuple[int, str, str]]:
    """Runs all missing points on the executor and keeps each result. Returns the failed points with their reasons."""
    wanted = work.wanted()
    outcomes = (_by_joblib if _is_joblib(executor) else _by_futures)(work, executor, wanted)
    failed: list[tuple[int, str, str]] = []
    done = 0
    with contextlib.closing(outcomes):
        for (number, label), why in outcomes:
            if why is None:
                done += 1
            else:
                failed.append((number, label, why))
            if listener is not None:
                listener((done + len(failed)) / max(len(wanted), 1), f"{done} of {len(wanted)} points")
            if not done and len(failed) >= HOPELESS:
                break
    return failed


Point = tuple[int, str]
# A point and the reason why it failed, or None if its result is kept.
Outcomes = Iterator[tuple[Point, str | None]]


def _by_futures(work: _native.Work, executor: Executor, wanted: list[Point]) -> Any:
    waiting = deque((point, 0) for point in wanted)
    flying = _Flying()
    gone = ""
    worked = failures = 0
    try:
        while waiting or flying.all:
            while waiting and not gone and len(flying.all) < MOST_UNDER_WAY:
                point, attempt = waiting[0]
                text = work.point(point[0])
                try:
                    flying.add(executor.submit(run_point, text, attempt), (point, attempt))
                except Exception as error:
                    gone = f"the executor takes no more work: {_said(error)}"
                else:
                    waiting.popleft()
            if gone and not flying.all:
                for point, _ in waiting:
                    yield point, gone
                return
            for future, (point, attempt) in flying.landed():
                try:
                    result = future.result()
                except Exception as error:
                    # An error of ropewalk would occur on any worker; a lost worker may be an accident.
                    failures += 1
                    hopeless = not worked and failures > HOPELESS * ATTEMPTS
                    if isinstance(error, Error) or attempt + 1 >= ATTEMPTS or hopeless:
                        yield point, _said(error)
                    else:
                        waiting.append((point, attempt + 1))
                else:
                    worked += 1
                    yield point, _kept(work, result)
    finally:
        flying.cancel()


def _by_joblib(work: _native.Work, parallel: Any, wanted: list[Point]) -> Any:
    """joblib returns each result at once if its backend can. Other backends (Ray's) run rounds of one point per worker."""
    import joblib

    call = joblib.delayed(_numbered)
    at_once = max(int(joblib.effective_n_jobs(parallel.n_jobs)), 1)
    if getattr(parallel, "return_generator", False):
        at_once = max(len(wanted), 1)
    waiting = deque((point, 0) for point in wanted)
    with contextlib.ExitStack() as stack:
        # Outside a `with` block, each round would start new workers.
        if not getattr(parallel, "_managed_backend", False):
            stack.enter_context(parallel)
        while waiting:
            taken = [waiting.popleft() for _ in range(min(at_once, len(waiting)))]
            under_way = {point[0]: (point, attempt) for point, attempt in taken}
            try:
                for number, result, why in parallel(call(point[0], work.point(point[0]), attempt) for point, attempt in taken):
                    point, _ = under_way.pop(number)
                    yield point, why or _kept(work, result)
            except Exception as error:
                # A worker was lost; joblib does not report its point.
                for point, attempt in under_way.values():
                    if attempt + 1 < ATTEMPTS:
                        waiting.append((point, attempt + 1))
                    else:
                        yield point, _said(error)


def _numbered(number: int, point: str, attempt: int) -> tuple[int, str, str]:
    """A point's number, its result, and the reason for a missing result. A failing point must not stop the others."""
    try:
        return number, run_point(point, attempt), ""
    except Exception as error:
        return number, "", _said(error)


def _kept(work: _native.Work, result: Any) -> str | None:
    """Keeps a result, or returns the reason why it cannot."""
    if not isinstance(result, str):
        return f"the executor gave {type(result).__name__} in place of the point's result"
    try:
        work.keep(result)
    except Error as error:
        return str(error)
    return None


def _said(error: BaseException) -> str:
    text = str(error).strip()
    return text if isinstance(error, Error) else f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Flying:
    """Submitted futures. They call back if they can. Others are polled, and futures without `done()` are awaited in turn."""

    def __init__(self) -> None:
        # By identity, because some futures are not hashable.
        self.all: dict[int, tuple[Any, tuple[Point, int]]] = {}
        self.bell: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.looked = time.monotonic()

    def add(self, future: Any, what: tuple[Point, int]) -> None:
        self.all[id(future)] = (future, what)
        if hasattr(future, "add_done_callback"):
            future.add_done_callback(self.bell.put)

    def landed(self) -> list[tuple[Any, tuple[Point, int]]]:
        """Waits a short time for finished futures; may return none."""
        found: list[Any] = []
        with contextlib.suppress(queue.Empty):
            found.append(self.bell.get(timeout=LOOK_EVERY_S / 10))
            while True:
                found.append(self.bell.get_nowait())
        if time.monotonic() - self.looked > LOOK_EVERY_S:
            self.looked = time.monotonic()
            found += [future for future, _ in self.all.values() if hasattr(future, "done") and future.done()]
        if not found and self.all and not any(hasattr(future, "done") for future, _ in self.all.values()):
            found.append(next(iter(self.all.values()))[0])  # `result()` blocks.
        return [self.all.pop(id(future)) for future in found if id(future) in self.all]

    def cancel(self) -> None:
        """Cancels all futures that have not started."""
        for future, _ in self.all.values():
            with contextlib.suppress(Exception):
                future.cancel()
        self.all.clear()

"""Sweeps: on this machine by Rust, elsewhere by whatever takes work. Each point is kept as soon as it is back."""

from __future__ import annotations

import contextlib
import json
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ropewalk import _native
from ropewalk._asked import Scenario, as_json, asked, count, flag, warn
from ropewalk._errors import Error, RequestError, ResultsError, SweepError
from ropewalk._progress import Line, Progress
from ropewalk._results import StrPath
from ropewalk._table import HEAD, Table, as_html

# Points that are under way at one time. Our choice: enough for a large cluster, few enough that nobody has to hold a
# hundred thousand of them.
MOST_UNDER_WAY = 256
# How often a point is given to an executor whose worker was lost with it. Our choice: a point that needs more memory than a
# worker has takes one down each time.
ATTEMPTS = 3
# Where nothing at all has worked, so many points that failed are enough. Our choice.
HOPELESS = 3
# Why a point is missing that nobody ran.
NOT_TRIED = "not tried"
# How often futures are looked at that do not call back, or whose executor may have gone.
LOOK_EVERY_S = 0.5


class Future(Protocol):
    """What will come of work: `done()` and `add_done_callback()` are used where there are any."""

    def result(self) -> Any: ...


class Executor(Protocol):
    """Whatever takes work: `concurrent.futures`, a Dask client, submitit, `mpi4py.futures`, or a class of your own."""

    def submit(self, fn: Callable[..., str], /, *args: Any) -> Future: ...


class Sweep:
    """A finished sweep: one row per point in `points`, in `timing` and in `configs`."""

    def __init__(self, directory: Path, failed: list[tuple[int, str, str]]) -> None:
        self.directory = directory
        self.failed = failed

    @cached_property
    def points(self) -> Table:
        """Axes, seed and all numbers of the summary, by point."""
        return self._table("points")

    @cached_property
    def timing(self) -> Table:
        """What each run cost: the only table that differs when the same sweep is run again."""
        return self._table("timing")

    @cached_property
    def configs(self) -> Table:
        """Each point's resolved configuration, TOML: enough to run it alone."""
        return self._table("configs")

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`sweep.json`: what was run."""
        return json.loads((self.directory / "sweep.json").read_text())  # type: ignore[no-any-return]

    @property
    def digest(self) -> str:
        """Names the results: the same digest, the same sweep, bit for bit."""
        return str(self.manifest["digest"])

    def report(self, path: StrPath) -> Path:
        """Writes its page: one HTML file that works offline."""
        _native.sweep_page(self.directory, Path(path))
        return Path(path)

    def _table(self, name: str) -> Table:
        return Table(_native.read_table(self.directory / f"{name}.parquet"))

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        bad = f", {len(self.failed)} failed in simulation" if self.failed else ""
        return f"<ropewalk.Sweep {self.manifest['sweep']}: {len(self)} points in {self.directory}{bad}>"

    def _repr_html_(self) -> str:
        wanted = ("scheme", "seed", "complete", "flows.fct_us.p99", "flows.slowdown.p99")
        points = self.points
        names = [name for name in points if name == "point" or name.startswith("axis.") or name in wanted]
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
    progress: Progress = None,
    **sets: Any,
) -> Sweep:
    """Runs a scenario at many points: schemes, seeds and any keys.

    `sweep` is a path, the name of a built-in sweep, or a dict with the keys of a sweep's file, in which `scenario`
    may be a dict, too. Results go to `output`
    (default `results/NAME`). Points run on all cores of this machine (`threads`, `jobs` side by side), or on `executor`: anything
    with `submit(fn, *args)` that gives futures with `result()`, or a `joblib.Parallel`. What is done is kept, whatever happens;
    `resume=True` goes on with it.

    Raises SweepError if points could not be run. A point whose simulation fails is a result: see `Sweep.failed`.
    """
    # Everything is looked at before the directory is taken: a call that is refused leaves nothing in the way of the next.
    text, is_dict = asked(sweep)
    resume, threads, jobs = flag("resume", resume), count("threads", threads), count("jobs", jobs)
    if executor is not None and not _is_joblib(executor) and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"an executor needs a method submit(fn, *args); {type(executor).__name__} has none")
    with Line(progress, "checking") as line:
        place = None if output is None else Path(output)
        try:
            work = _native.Work(text, is_dict, as_json(sets), place, resume, threads, line.ear)
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
                failed = work.run(threads, jobs, line.ear)
            else:
                failed = _elsewhere(work, executor, line.ear)
        if failed or work.wanted():
            raise _unfinished(work, failed)
        directory, bad = work.finish()
    finally:
        work.close()
    if bad:
        number, label, why = bad[0]
        warn(f"{_points(len(bad))} failed in simulation, the first at point {number} ({label}): {why}")
    return Sweep(directory, bad)


def _read(directory: Path) -> Sweep | None:
    """The finished sweep, if that is what stands there."""
    if not (directory / "sweep.json").is_file():
        return None
    _native.check_sweep(directory)
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
    """As the sweep's file has it, but for quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _points(count: int) -> str:
    return "1 point" if count == 1 else f"{count} points"


def _in_python(text: str) -> str:
    """What the command line is told, in the words of this call."""
    text = text.replace("add --resume", "add resume=True").replace("another directory with -o", "another output")
    return text.replace("`ropewalk sweep` without --resume", "a call without resume=True").replace("--resume", "resume=True")


def _unfinished(work: _native.Work, failed: list[tuple[int, str, str]]) -> SweepError:
    """What was not done, why, and how to go on."""
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
    lines.append(f"{done} of {runs} runs are done and kept beside {work.directory}; the same call with resume=True goes on")
    return SweepError("\n".join(lines), failed + rest, done, runs, work.directory)


def _is_joblib(executor: Any) -> bool:
    return type(executor).__module__.partition(".")[0] == "joblib"


def run_point(point: str, attempt: int = 0) -> str:
    """Runs a point that came as a text, and gives its result as a text. This is what executors send to other processes and
    machines; `attempt` makes a second call another one to those that remember what they have done."""
    return _native.run_point(point)


def _elsewhere(work: _native.Work, executor: Any, ear: Callable[[float, str], object] | None) -> list[tuple[int, str, str]]:
    """Has all points run that are wanted, and keeps each that comes back. Gives those that did not, with the reasons."""
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
            if ear is not None:
                ear((done + len(failed)) / max(len(wanted), 1), f"{done} of {len(wanted)} points")
            if not done and len(failed) >= HOPELESS:
                break
    return failed


Point = tuple[int, str]
# A point, and why it failed; None: its result is kept.
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
                    # What ropewalk itself says would be the same anywhere else; a lost worker may be bad luck.
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
    """joblib gives results as they come if its backend can; else (Ray's) a round of as many as there are workers at a time."""
    import joblib

    call = joblib.delayed(_numbered)
    at_once = max(int(joblib.effective_n_jobs(parallel.n_jobs)), 1)
    if getattr(parallel, "return_generator", False):
        at_once = max(len(wanted), 1)
    waiting = deque((point, 0) for point in wanted)
    with contextlib.ExitStack() as stack:
        # Outside a `with` each round would start workers of its own.
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
                # A worker was lost; which point it had, joblib does not say.
                for point, attempt in under_way.values():
                    if attempt + 1 < ATTEMPTS:
                        waiting.append((point, attempt + 1))
                    else:
                        yield point, _said(error)


def _numbered(number: int, point: str, attempt: int) -> tuple[int, str, str]:
    """A point's number, its result, and why there is none: one that fails must not take the others with it."""
    try:
        return number, run_point(point, attempt), ""
    except Exception as error:
        return number, "", _said(error)


def _kept(work: _native.Work, result: Any) -> str | None:
    """Keeps a result; says why that is impossible."""
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
    """Futures under way. They call back if they can; others are asked, and those that cannot be asked are waited for in turn."""

    def __init__(self) -> None:
        # By identity: not every future can be a key.
        self.all: dict[int, tuple[Any, tuple[Point, int]]] = {}
        self.bell: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.looked = time.monotonic()

    def add(self, future: Any, what: tuple[Point, int]) -> None:
        self.all[id(future)] = (future, what)
        if hasattr(future, "add_done_callback"):
            future.add_done_callback(self.bell.put)

    def landed(self) -> list[tuple[Any, tuple[Point, int]]]:
        """Waits a moment for some; none is possible."""
        found: list[Any] = []
        with contextlib.suppress(queue.Empty):
            found.append(self.bell.get(timeout=LOOK_EVERY_S / 10))
            while True:
                found.append(self.bell.get_nowait())
        if time.monotonic() - self.looked > LOOK_EVERY_S:
            self.looked = time.monotonic()
            found += [future for future, _ in self.all.values() if hasattr(future, "done") and future.done()]
        if not found and self.all and not any(hasattr(future, "done") for future, _ in self.all.values()):
            found.append(next(iter(self.all.values()))[0])  # `result()` waits.
        return [self.all.pop(id(future)) for future in found if id(future) in self.all]

    def cancel(self) -> None:
        """What has not begun need not begin."""
        for future, _ in self.all.values():
            with contextlib.suppress(Exception):
                future.cancel()
        self.all.clear()

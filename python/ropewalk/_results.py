"""What comes back: the results of a run, a comparison, a paper's experiment."""

from __future__ import annotations

import html
import json
import os
import statistics
import tomllib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import _native
from ropewalk._errors import NotRecorded
from ropewalk._progress import Line, Progress
from ropewalk._table import Table, as_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ropewalk.plot import ComparisonPlots, ResultPlots

StrPath = str | os.PathLike[str]

# How each table that is not always there is asked for.
HOW = {
    "counters": "record__counters=True (or record=True), with a scheme that counts something",
    "events": "record__events=8 (or record=True)",
    "paths": "record__events=8 (or record=True)",
}


class Result:
    """The results of a run: tables, a summary, and what is needed to run it again."""

    def __init__(self, native: _native.Results) -> None:
        self._native = native

    @property
    def tables(self) -> list[str]:
        """Names of the tables that there are."""
        return self._native.tables

    def table(self, name: str) -> Table:
        """A table by its name."""
        found = self._native.table(name)
        if found is None:
            how = f"; {HOW[name]} asks for it" if name in HOW else ""
            raise NotRecorded(f"this run has no table `{name}`{how}; there are {', '.join(self.tables)}")
        return Table(found)

    @cached_property
    def flows(self) -> Table:
        """One row per flow: its ends, size, completion time, slowdown, retransmissions."""
        return self.table("flows")

    @cached_property
    def links(self) -> Table:
        """One row per direction of a link: load, queue, marks, drops, pauses."""
        return self.table("links")

    @cached_property
    def series(self) -> Table:
        """Queue pairs, links and switches over time; all of them with `record=True`, else eight of each kind."""
        return self.table("series")

    @cached_property
    def counters(self) -> Table:
        """What the scheme counts, over time. Raises NotRecorded unless it was asked for."""
        return self.table("counters")

    @cached_property
    def events(self) -> Table:
        """Single events of queue pairs that are followed. Raises NotRecorded unless it was asked for."""
        return self.table("events")

    @cached_property
    def paths(self) -> Table:
        """Which links the data of these took. Raises NotRecorded unless it was asked for."""
        return self.table("paths")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """`summary.json`: what the run comes to."""
        return json.loads(self._native.summary)  # type: ignore[no-any-return]

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json`: what was run, with which version, and how large it was."""
        return json.loads(self._native.manifest)  # type: ignore[no-any-return]

    @cached_property
    def config(self) -> dict[str, Any]:
        """The scenario with every default filled in: enough to run it again."""
        return tomllib.loads(self.manifest["config"])

    @property
    def scenario(self) -> str:
        return str(self.summary["scenario"])

    @property
    def scheme(self) -> str:
        return str(self.summary["scheme"])

    @property
    def seed(self) -> int:
        return int(self.summary["seed"])

    @property
    def digest(self) -> str:
        """Names the results: the same digest, the same run, bit for bit."""
        return str(self.summary["digest"])

    @property
    def complete(self) -> bool:
        """Every flow finished, and nothing went wrong."""
        return bool(self.summary["complete"])

    @property
    def plot(self) -> ResultPlots:
        """Pictures, by matplotlib: `.fct_cdf()`, `.rates()`, `.links()`, `.queues()`, `.arrivals()`, `.counters()`."""
        from ropewalk.plot import ResultPlots

        return ResultPlots(self)

    def explain(self, flow: int | str = "slowest", *, progress: Progress = None) -> str:
        """What `ropewalk explain` prints of a flow: where its time went, and what happened to it when.

        `flow` is its number, `"slowest"` or `"FROM->TO"`. If its events were not recorded, the run is made again.
        """
        with Line(progress, "explain") as line:
            return self._native.explain(str(flow), line.ear)

    def save(self, directory: StrPath, csv: bool = False) -> Path:
        """Writes what `ropewalk run -o DIR` writes, as a whole or not at all; older results there are replaced."""
        path = Path(directory)
        self._native.save(path, csv)
        return path

    def report(self, path: StrPath) -> Path:
        """Writes a page to look at: one HTML file that works offline."""
        _native.page([self._native], Path(path))
        return Path(path)

    def __repr__(self) -> str:
        state = "" if self.complete else ", not complete"
        return f"<ropewalk.Result of {self.scenario}: {self.scheme}, seed {self.seed}, digest {self.digest}{state}>"

    def _repr_html_(self) -> str:
        rows = [(name, value, unit) for name, value, unit in measures(self.summary) if value is not None]
        state = "" if self.complete else " NOT COMPLETE."
        caption = f"{self.scenario} under {self.scheme}, seed {self.seed}; digest {self.digest}.{state}"
        return as_html(["", "value", "unit"], rows, caption)


def measures(summary: dict[str, Any]) -> list[tuple[str, float | None, str]]:
    """What one asks of a run first: name, value (None if it did not finish), unit."""

    def at(*path: str) -> Any:
        value: Any = summary
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    slowest = [job["groups"]["completion_us"]["slowest"] for job in summary["jobs"].values() if "groups" in job]
    packets = summary["packets"]
    share = 100 * packets["retransmitted"] / packets["sent"] if packets["sent"] else None
    return [
        ("flows", at("flows", "finished"), f"of {at('flows', 'count')}"),
        ("slowest group", None if None in slowest else max(slowest, default=None), "µs"),
        ("FCT, median", at("flows", "fct_us", "p50"), "µs"),
        ("FCT, P99", at("flows", "fct_us", "p99"), "µs"),
        ("slowdown, P99", at("flows", "slowdown", "p99"), ""),
        ("goodput, mean", at("goodput_gbps", "mean"), "Gb/s"),
        ("retransmitted", share, "% of packets"),
        ("pauses", at("control", "pause"), "frames"),
    ]


class Comparison:
    """The same scenario under several schemes and seeds. Runs go by scheme, then by seed."""

    def __init__(self, runs: list[Result]) -> None:
        self.runs = runs

    @property
    def schemes(self) -> list[str]:
        return list(dict.fromkeys(run.scheme for run in self.runs))

    @property
    def seeds(self) -> list[int]:
        return list(dict.fromkeys(run.seed for run in self.runs))

    def __getitem__(self, scheme: str) -> list[Result]:
        """The runs of a scheme, by seed."""
        found = [run for run in self.runs if run.scheme == scheme]
        if not found:
            raise KeyError(f"no run is of `{scheme}`; there are {', '.join(self.schemes)}")
        return found

    def __iter__(self) -> Iterator[Result]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict per scheme: means over its seeds; None where a run has no such value."""
        rows = []
        for scheme in self.schemes:
            by_run = [measures(run.summary) for run in self[scheme]]
            row: dict[str, Any] = {"scheme": scheme, "complete": all(run.complete for run in self[scheme])}
            for column in zip(*by_run, strict=True):
                values = [value for _, value, _ in column]
                row[column[0][0]] = None if None in values else statistics.fmean(v for v in values if v is not None)
            rows.append(row)
        return rows

    @property
    def plot(self) -> ComparisonPlots:
        """Pictures, by matplotlib: `.fct_cdf()`, `.bars()`."""
        from ropewalk.plot import ComparisonPlots

        return ComparisonPlots(self)

    def report(self, path: StrPath) -> Path:
        """Writes a page that compares them: one HTML file that works offline."""
        _native.page([run._native for run in self.runs], Path(path))
        return Path(path)

    def __repr__(self) -> str:
        return f"<ropewalk.Comparison of {self.runs[0].scenario}: {', '.join(self.schemes)}; {len(self.seeds)} seeds>"

    def _repr_html_(self) -> str:
        units = {name: unit for name, _, unit in measures(self.runs[0].summary)}
        rows = [{k: v for k, v in row.items() if k != "complete"} for row in self.rows]
        names = [name for name in rows[0] if name == "scheme" or any(row[name] is not None for row in rows)]
        head = [f"{name}<br><small>{html.escape(units.get(name, ''))}</small>" for name in names]
        seeds = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"means over {len(self.seeds)} seeds"
        return as_html(head, [[row[name] for name in names] for row in rows], f"{self.runs[0].scenario}, {seeds}")


class Report:
    """A paper's experiment: its numbers beside ours."""

    def __init__(self, native: _native.Experiment) -> None:
        self._native = native
        self._json: dict[str, Any] = json.loads(native.json)

    @property
    def name(self) -> str:
        return str(self._json["name"])

    @property
    def source(self) -> str:
        """Paper and figure."""
        return str(self._json["source"])

    @property
    def quick(self) -> bool:
        """It was scaled down: then the paper's numbers need not appear."""
        return bool(self._json["quick"])

    @property
    def complete(self) -> bool:
        """Every run of it is complete."""
        return bool(self._json["complete"])

    @property
    def answer(self) -> str:
        """The answer in a sentence, where the experiment has one."""
        return str(self._json["answer"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Dicts of case, metric, unit, paper (None if it gives no number), measured, deviation, note."""
        return list(self._json["rows"])

    @property
    def curves(self) -> list[dict[str, Any]]:
        """Distributions, where the experiment has any."""
        return list(self._json.get("curves", []))

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The paper's figures from our data: what `plot()` draws."""
        return list(self._json["figures"])

    @cached_property
    def runs(self) -> dict[str, Result]:
        """Results of some of its runs by their labels: those that its page shows."""
        return {label: Result(results) for label, results in self._native.runs}

    def plot(self, figure: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draws one of the paper's figures from our data, with the paper's numbers marked in it."""
        from ropewalk.plot import paper_figure

        return paper_figure(self, figure, ax=ax)

    def report(self, path: StrPath) -> Path:
        """Writes its page: one HTML file that works offline."""
        self._native.page(Path(path))
        return Path(path)

    def __str__(self) -> str:
        return self._native.text

    def __repr__(self) -> str:
        return f"<ropewalk.Report of {self.name}: {len(self.rows)} numbers{', quick' if self.quick else ''}>"

    def _repr_html_(self) -> str:
        rows = []
        for row in self.rows:
            off = "" if row["deviation"] is None else f"{100 * row['deviation']:+.0f} %"
            rows.append([row["case"], row["metric"], row["paper"], row["measured"], row["unit"], off])
        quick = " Quick: scaled down, so the paper's numbers need not appear." if self.quick else ""
        answer = f"{self.answer} " if self.answer else ""
        return as_html(["case", "metric", "paper", "ours", "unit", "off by"], rows, f"{answer}{self.source}.{quick}")

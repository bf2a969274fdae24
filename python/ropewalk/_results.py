"""Results of a run, of a comparison, and of a paper's experiment."""

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
from ropewalk._table import Table, as_html, as_text

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from ropewalk.plot import ComparisonPlots, ResultPlots

StrPath = str | os.PathLike[str]

# Settings that record each optional table.
HOW = {
    "subflows": "`split` of a workload, or a scheme such as `ethereal`",
    "counters": "record__counters=True (or record=True), with a scheme that counts something",
    "events": "record__events=8 (or record=True)",
    "paths": "record__events=8 (or record=True)",
    "requests": "the workload `serving`",
    "transfers": "the workload `serving`",
    "shares": "the workload `serving`",
    "operations": "a workload such as `training` or `collective`",
    "tasks": "a workload such as `training` or `collective`",
    "critical": "a workload such as `training` or `collective` that ran to its end",
    "steps": "a workload such as `training` or `collective` that ran to its end",
    "timeline": "a workload such as `training` or `collective` that ran to its end",
}


class Result:
    """Results of a run: tables, a summary, and everything needed to run it again."""

    def __init__(self, native: _native.Results) -> None:
        self._native = native

    @property
    def tables(self) -> list[str]:
        """Names of the tables of this run."""
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
        """One row per flow: hosts, size, completion time, slowdown, retransmissions."""
        return self.table("flows")

    @cached_property
    def links(self) -> Table:
        """One row per direction of a link: load, queue, marks, drops, pauses."""
        return self.table("links")

    @cached_property
    def nics(self) -> Table:
        """One row per port of a NIC: packets, NACKs, CNPs, marks, timeouts."""
        return self.table("nics")

    @cached_property
    def queues(self) -> Table:
        """One row per queue of a port of a switch: frames, bytes, drops, marks, longest queue. Needs `record.queues`."""
        return self.table("queues")

    @cached_property
    def series(self) -> Table:
        """Queue pairs, links and switches over time. With `record=True` the table has all of them; by default it has eight
        queue pairs and eight links."""
        return self.table("series")

    @cached_property
    def counters(self) -> Table:
        """The scheme's counters over time. Raises NotRecorded if the run did not record them."""
        return self.table("counters")

    @cached_property
    def events(self) -> Table:
        """Single events of the followed queue pairs. Raises NotRecorded if the run did not record them."""
        return self.table("events")

    @cached_property
    def paths(self) -> Table:
        """Links that packets of the followed queue pairs took. Raises NotRecorded if the run did not record them."""
        return self.table("paths")

    @cached_property
    def subflows(self) -> Table:
        """One row per subflow of the flows that were split. Raises NotRecorded if no flow was."""
        return self.table("subflows")

    @cached_property
    def requests(self) -> Table:
        """One row per request of inference serving. Raises NotRecorded if the run served none."""
        return self.table("requests")

    @cached_property
    def transfers(self) -> Table:
        """One row per transfer of KV that has arrived. Raises NotRecorded if the run served none."""
        return self.table("transfers")

    @cached_property
    def shares(self) -> Table:
        """Whose bytes the links of NICs carried, by traffic class. Raises NotRecorded if the run served no requests."""
        return self.table("shares")

    @cached_property
    def operations(self) -> Table:
        """One row per collective, transfer or computation of GPUs. Raises NotRecorded if the workload has none."""
        return self.table("operations")

    @cached_property
    def tasks(self) -> Table:
        """What every GPU did and when. Raises NotRecorded if the workload has no GPUs."""
        return self.table("tasks")

    @cached_property
    def critical(self) -> Table:
        """The critical path of every step. Raises NotRecorded if no step ended."""
        return self.table("critical")

    @cached_property
    def steps(self) -> Table:
        """How every GPU spent every step: computation, waits by kind of parallelism, bubble. Raises NotRecorded if no step ended."""
        return self.table("steps")

    @cached_property
    def timeline(self) -> Table:
        """How every GPU spent each of up to 600 equal parts of the time. Raises NotRecorded if no step ended."""
        return self.table("timeline")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """`summary.json`: all totals of the run."""
        return json.loads(self._native.summary)  # type: ignore[no-any-return]

    @property
    def measures(self) -> list[tuple[str, float | None, str]]:
        """The main results of the run: name, value (None if there is none), unit."""
        return self._native.measures

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json`: version, configuration and size of the run."""
        return json.loads(self._native.manifest)  # type: ignore[no-any-return]

    @cached_property
    def config(self) -> dict[str, Any]:
        """The scenario with all defaults filled in: enough to run it again."""
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
        """One number for everything that happened: equal digests mean equal runs, bit for bit."""
        return str(self.summary["digest"])

    @property
    def complete(self) -> bool:
        """True if every foreground flow finished and the simulation did not fail."""
        return bool(self.summary["complete"])

    @property
    def plot(self) -> ResultPlots:
        """Pictures with matplotlib: `.fct_cdf()`, `.rates()`, `.links()`, `.queues()`, `.arrivals()`, `.counters()`."""
        from ropewalk.plot import ResultPlots

        return ResultPlots(self)

    def counters_as(
        self, names: str = "mlx5", *, at: str | None = None, dump: str | None = None, interval: float | None = None
    ) -> dict[str, Any]:
        """Counts under the names that operators see, as `ropewalk counters` prints them: `"mlx5"`, `"sonic"` or `"junos"`.

        `at` selects a host or a switch. With the text of a `dump` of counters, the answer has shares and rates of both;
        `interval` is the time between its two readings in seconds.
        """
        return json.loads(self._native.counters(names, at, dump, interval))  # type: ignore[no-any-return]

    def explain(self, flow: int | str = "slowest", *, progress: Progress = None) -> str:
        """Explains a flow, or with "step" a step, as `ropewalk explain` does: where its time went, and which events it had.

        `flow` is its number, `"slowest"` or `"FROM->TO"`. If its events were not recorded, the scenario is run again.
        """
        with Line(progress, "explain") as line:
            return self._native.explain(str(flow), line.listener)

    def save(self, directory: StrPath, csv: bool = False) -> Path:
        """Writes the files of `ropewalk run -o DIR`, all or none. Older results in the directory are replaced."""
        path = Path(directory)
        self._native.save(path, csv)
        return path

    def report(self, path: StrPath) -> Path:
        """Writes a report: one HTML file that works offline."""
        _native.page([self._native], Path(path))
        return Path(path)

    def perfetto(self, path: StrPath) -> Path:
        """Writes the timeline of the run: a file that Perfetto (ui.perfetto.dev) opens."""
        self._native.perfetto(Path(path))
        return Path(path)

    def __str__(self) -> str:
        state = "" if self.complete else "\nNOT COMPLETE: the values are those up to the end of the simulation"
        rows = [(name, value, unit) for name, value, unit in self.measures if value is not None]
        table = as_text(["", "value", "unit"], rows)
        return f"{self.scenario} under {self.scheme}, seed {self.seed}, digest {self.digest}{state}\n{table}"

    def __repr__(self) -> str:
        state = "" if self.complete else ", not complete"
        return f"<ropewalk.Result of {self.scenario}: {self.scheme}, seed {self.seed}, digest {self.digest}{state}>"

    def _repr_html_(self) -> str:
        rows = [(name, value, unit) for name, value, unit in self.measures if value is not None]
        state = "" if self.complete else " NOT COMPLETE."
        caption = f"{self.scenario} under {self.scheme}, seed {self.seed}; digest {self.digest}.{state}"
        return as_html(["", "value", "unit"], rows, caption)


class Comparison:
    """One scenario under several schemes and seeds. Runs are ordered by scheme, then by seed."""

    def __init__(self, runs: list[Result], decides: dict[str, Any] | None = None) -> None:
        self.runs = runs
        #: What decides the comparison: dominant cause, settings that it rests on, and whether it survives other values of
        #: them; None if that was not asked, or the runs cannot be ranked. `decides["answer"]` is a list of sentences.
        self.decides = decides

    @property
    def schemes(self) -> list[str]:
        return list(dict.fromkeys(run.scheme for run in self.runs))

    @property
    def seeds(self) -> list[int]:
        return list(dict.fromkeys(run.seed for run in self.runs))

    def __getitem__(self, scheme: str) -> list[Result]:
        """The runs of a scheme, ordered by seed."""
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
        """A dict per scheme with means over its seeds. A value is None if a run does not have it."""
        rows = []
        for scheme in self.schemes:
            by_run = [run.measures for run in self[scheme]]
            row: dict[str, Any] = {"scheme": scheme, "complete": all(run.complete for run in self[scheme])}
            for column in zip(*by_run, strict=True):
                values = [value for _, value, _ in column]
                row[column[0][0]] = None if None in values else statistics.fmean(v for v in values if v is not None)
            rows.append(row)
        return rows

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame with a row per run: scheme, seed, and the numbers of the summary by their keys, as in
        `Sweep.points`: `frame.groupby("scheme")["flows.fct_us.p99"].mean()`."""
        import pandas

        rows = [{key: value for key, value in run.summary.items() if key != "timing"} for run in self.runs]
        return pandas.DataFrame([_flat(row) for row in rows])

    @property
    def plot(self) -> ComparisonPlots:
        """Pictures with matplotlib: `.fct_cdf()`, `.bars()`."""
        from ropewalk.plot import ComparisonPlots

        return ComparisonPlots(self)

    def report(self, path: StrPath) -> Path:
        """Writes a report that compares the runs: one HTML file that works offline."""
        decides = json.dumps(self.decides) if self.decides else None
        _native.page([run._native for run in self.runs], Path(path), decides)
        return Path(path)

    def __str__(self) -> str:
        names, units = self._shown()
        rows = [[row[name] for name in names] for row in self.rows]
        bad = [row["scheme"] for row in self.rows if not row["complete"]]
        state = f"\nNOT COMPLETE: {', '.join(bad)}" if bad else ""
        return f"{self._title()}{state}\n{as_text(names, rows, units)}"

    def _title(self) -> str:
        seeds = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"means over {len(self.seeds)} seeds"
        return f"{self.runs[0].scenario}, {seeds}"

    def _shown(self) -> tuple[list[str], list[str]]:
        """Names and units of the columns in which a scheme has a value."""
        units = {name: unit for name, _, unit in self.runs[0].measures}
        rows = self.rows
        names = ["scheme", *(name for name in units if any(row[name] is not None for row in rows))]
        return names, [units.get(name, "") for name in names]

    def __repr__(self) -> str:
        return f"<ropewalk.Comparison of {self.runs[0].scenario}: {', '.join(self.schemes)}; {len(self.seeds)} seeds>"

    def _repr_html_(self) -> str:
        names, units = self._shown()
        head = [f"{name}<br><small>{html.escape(unit)}</small>" for name, unit in zip(names, units, strict=True)]
        return as_html(head, [[row[name] for name in names] for row in self.rows], self._title())


def _flat(summary: dict[str, Any], before: str = "") -> dict[str, Any]:
    """The values of a summary by their keys with dots."""
    flat: dict[str, Any] = {}
    for key, value in summary.items():
        flat |= _flat(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return flat


class Report:
    """A paper's experiment: the paper's numbers beside ours."""

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
        """True if the experiment was scaled down. Its numbers then cannot be compared with the paper's."""
        return bool(self._json["quick"])

    @property
    def complete(self) -> bool:
        """True if every run of the experiment is complete."""
        return bool(self._json["complete"])

    @property
    def answer(self) -> str:
        """The answer in a sentence; empty if the experiment has none."""
        return str(self._json["answer"])

    @property
    def decides(self) -> list[dict[str, Any]]:
        """What decides the rankings among the cases; each has `answer`, a list of sentences. Empty without `check`."""
        return list(self._json["decides"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Dicts of case, metric, unit, paper (None if the paper gives no number), measured, deviation, note."""
        return list(self._json["rows"])

    @property
    def curves(self) -> list[dict[str, Any]]:
        """Distributions; empty if the experiment has none."""
        return list(self._json.get("curves", []))

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The paper's figures from our data, as `plot()` draws them."""
        return list(self._json["figures"])

    @cached_property
    def runs(self) -> dict[str, Result]:
        """Results of the runs that the report shows, by their labels."""
        return {label: Result(results) for label, results in self._native.runs}

    def plot(self, figure: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draws one of the paper's figures from our data, with the paper's numbers marked."""
        from ropewalk.plot import paper_figure

        return paper_figure(self, figure, ax=ax)

    def report(self, path: StrPath) -> Path:
        """Writes the report: one HTML file that works offline."""
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

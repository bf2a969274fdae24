"""Pictures with matplotlib, ready for a paper: vector graphics, units on the axes, and colours that colour-blind readers
can distinguish.

Each function draws on `ax`, or on a new figure of a column's width, and returns the axes: `ax.figure.savefig("cdf.pdf")`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec

from ropewalk._errors import NotRecorded, RequestError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ropewalk._results import Comparison, Report, Result

# Okabe and Ito, Color Universal Design (2008), without yellow, which is too light for a line.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
DASHES: list[Any] = ["-", "--", "-.", ":"]
# Width of a column in a two-column paper and a height by the golden ratio, inches.
SIZE = (3.5, 2.16)
# One and a half columns, inches: a picture with its legend beside it.
WIDE = (5.2, 2.4)
# Legible beside text of 9 or 10 points. Text stays text in PDF (type 42), as publishers require.
STYLE: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "figure.dpi": 150,
}
# Most lines in one picture. Our choice: the number of colours.
MOST_LINES = len(COLOURS)

METRICS = {"slowdown": "FCT slowdown", "fct_us": "FCT [µs]", "goodput_gbps": "goodput [Gb/s]"}


Draw = ParamSpec("Draw")


def styled(draw: Callable[Draw, Axes]) -> Callable[Draw, Axes]:
    """Applies our style to new figures; axes given by the caller keep their style."""

    @functools.wraps(draw)
    def drawn(*args: Draw.args, **how: Draw.kwargs) -> Axes:
        if how.get("ax") is not None:
            return draw(*args, **how)
        from matplotlib import rcParams

        # `rc_context` would undo the settings that a notebook's backend makes at first use, and no picture would be shown
        # any more.
        before = {key: rcParams[key] for key in STYLE}
        rcParams.update(STYLE)
        try:
            return draw(*args, **how)
        finally:
            rcParams.update(before)

    return drawn


def axes(ax: Axes | None = None, size: tuple[float, float] = SIZE) -> Axes:
    """The axes to draw on: `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    new: Axes = plt.subplots(figsize=size, layout="constrained")[1]
    return new


def _line(number: int) -> dict[str, Any]:
    """Style of the n-th line: colours first, then dashes."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number // len(COLOURS) % len(DASHES)]}


def _label(ax: Axes, x: str, y: str, legend: int = 0) -> Axes:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if legend > 1:
        ax.legend()
    return ax


def cdf(values: Iterable[float | None], ax: Axes, **how: Any) -> int:
    """Draws the share of values up to x. A missing value counts as infinite. Returns the number of values that are present."""
    every = list(values)
    known = sorted(value for value in every if value is not None)
    shares = [(i + 1) / len(every) for i in range(len(known))]
    ax.step([known[0], *known] if known else [], [0.0, *shares] if known else [], where="post", **how)
    return len(known)


class ResultPlots:
    """Pictures of one run."""

    def __init__(self, result: Result) -> None:
        self._result = result

    @styled
    def fct_cdf(self, metric: str = "slowdown", *, ax: Axes | None = None, **how: Any) -> Axes:
        """Distribution of `slowdown` or `fct_us`. A flow that did not finish counts as infinite."""
        ax = axes(ax)
        cdf(self._result.flows[metric], ax, **(_line(0) | how))
        ax.set_ylim(0, 1.01)
        return _label(ax, METRICS.get(metric, metric), "share of flows", 2 if "label" in how else 0)

    @styled
    def rates(self, qps: Sequence[int] | None = None, *, ax: Axes | None = None) -> Axes:
        """Rate of queue pairs over time, for the given queue pairs or the first recorded ones."""
        return self._over_time("qp", "rate_gbps", "rate [Gb/s]", qps, ax)

    @styled
    def queues(self, links: Sequence[int] | None = None, *, ax: Axes | None = None) -> Axes:
        """Longest queue before links over time, for the given links or for the links with the longest queues."""
        return self._over_time("link", "max_queue_bytes", "queue [kB]", links, ax, scale=1e-3)

    def _over_time(
        self, kind: str, column: str, y: str, which: Sequence[int] | None, ax: Axes | None, scale: float = 1.0
    ) -> Axes:
        series = self._result.series
        tracks: dict[int, tuple[str, list[float], list[float]]] = {}
        columns = (series[name] for name in ("kind", "id", "from", "to", "start_us", column))
        for of, number, source, target, start, value in zip(*columns, strict=True):
            if of == kind and value is not None:
                _, times, values = tracks.setdefault(number, (f"{source} → {target}", [], []))
                times.append(start)
                values.append(value * scale)
        if which is None:
            busiest = sorted(tracks, key=lambda number: (-max(tracks[number][2]) if kind == "link" else 0, number))
            which = sorted(busiest[:MOST_LINES])
        missing = [number for number in which if number not in tracks]
        all_of = self._result.manifest["counts"]["queue_pairs"] if kind == "qp" else len(self._result.links)
        strange = [number for number in missing if not 0 <= number < all_of]
        if strange:
            noun = {"qp": "queue pair", "link": "direction of a link"}[kind]
            raise RequestError(f"there is no {noun} {strange[0]}: this run has {all_of}, numbered from 0")
        if missing or not tracks:
            name = {"qp": "flows", "link": "links"}[kind]
            raise NotRecorded(f"{kind} {missing} was not recorded; record__{name}='all' records all of them")
        ax = axes(ax)
        for i, number in enumerate(which):
            label, times, values = tracks[number]
            ax.step(times, values, where="post", label=label, **_line(i))
        ax.set_ylim(bottom=0)
        # Bins after the end of the run are empty.
        ax.set_xlim(0, self._result.summary["sim_time_us"])
        return _label(ax, "time [µs]", y, len(which))

    @styled
    def links(self, *, ax: Axes | None = None) -> Axes:
        """Load balance: the share of time that each link was busy, in decreasing order, by the tier of the sending node."""
        links = self._result.links
        by_role: dict[str, list[float]] = {}
        for role, share in zip(links["role"], links["busy_share"], strict=True):
            by_role.setdefault(role, []).append(100 * (share or 0.0))
        ax = axes(ax)
        for i, (role, shares) in enumerate(by_role.items()):
            shares.sort(reverse=True)
            where = [100 * (n + 0.5) / len(shares) for n in range(len(shares))]
            ax.plot(where, shares, marker=".", markersize=3, label=f"from {role} ({len(shares)})", **_line(i))
        ax.set_ylim(bottom=0)
        return _label(ax, "links by load [%]", "busy [% of time]", len(by_role) + 1)

    @styled
    def arrivals(self, qp: int | None = None, *, ax: Axes | None = None) -> Axes:
        """PSNs of a queue pair's packets in order of arrival. Packets on the line arrived in order; packets above it
        arrived ahead of the ePSN."""
        events = self._result.events
        names = {"arrived": "as expected", "ahead": "ahead of ePSN", "duplicate": "duplicate", "discarded": "discarded"}
        followed = sorted(set(events["qp"]))
        if qp is None and followed:
            ahead = [q for q, event in zip(events["qp"], events["event"], strict=True) if event == "ahead"]
            qp = max(followed, key=ahead.count) if ahead else followed[0]
        if qp not in followed:
            raise NotRecorded(f"queue pair {qp} was not followed: {followed} were; record__follow=[FLOW] follows a flow")
        ax = axes(ax)
        drawn = 0
        for i, (event, label) in enumerate(names.items()):
            rows = zip(events["qp"], events["event"], events["time_us"], events["psn"], strict=True)
            points = [(time, psn) for of, what, time, psn in rows if of == qp and what == event]
            if points:
                times, psns = zip(*points, strict=True)
                # Thousands of dots make a vector picture slow, so dots are drawn as pixels.
                style: dict[str, Any] = {
                    "color": COLOURS[i],
                    "marker": ".",
                    "markersize": 2,
                    "linestyle": "",
                    "rasterized": len(points) > 2000,
                }
                ax.plot(times, psns, label=f"{label} ({len(points)})", **style)
                drawn += 1
        ax.set_title(f"queue pair {qp}")
        return _label(ax, "time [µs]", "PSN", drawn + 1)

    @styled
    def counters(self, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """The scheme's counters, as totals up to each time."""
        counters = self._result.counters
        every = list(dict.fromkeys(counters["counter"]))
        if unknown := [name for name in names or [] if name not in every]:
            raise KeyError(f"there is no counter {unknown}; there are {', '.join(every)}")
        ax = axes(ax)
        chosen = list(names or [name for name in every if any(self._of(counters, name)[1])][:MOST_LINES])
        for i, name in enumerate(chosen):
            times, totals = self._of(counters, name)
            ax.step(times, totals, where="post", label=name, **_line(i))
        ax.set_ylim(bottom=0)
        ax.set_xlim(0, self._result.summary["sim_time_us"])
        return _label(ax, "time [µs]", "count", len(chosen) + 1)

    @staticmethod
    def _of(counters: Any, name: str) -> tuple[list[float], list[int]]:
        rows = zip(counters["counter"], counters["start_us"], counters["width_us"], counters["total"], strict=True)
        points = [(start + width, total) for of, start, width, total in rows if of == name]
        return [time for time, _ in points], [total for _, total in points]


class ComparisonPlots:
    """Pictures of a comparison."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    @styled
    def fct_cdf(self, metric: str = "slowdown", *, ax: Axes | None = None) -> Axes:
        """Distribution of `slowdown` or `fct_us` by scheme, over all seeds."""
        ax = axes(ax)
        for i, scheme in enumerate(self._comparison.schemes):
            values = [value for run in self._comparison[scheme] for value in run.flows[metric]]
            cdf(values, ax, label=scheme, **_line(i))
        ax.set_ylim(0, 1.01)
        return _label(ax, METRICS.get(metric, metric), "share of flows", 2)

    @styled
    def bars(self, measure: str = "slowdown, P99", *, ax: Axes | None = None) -> Axes:
        """One measure by scheme: mean, minimum and maximum over seeds. `Comparison.rows` has the names of the measures."""
        ax = axes(ax)
        schemes = self._comparison.schemes
        unit = ""
        for i, scheme in enumerate(schemes):
            of_run = [{name: (value, unit) for name, value, unit in run.measures} for run in self._comparison[scheme]]
            if measure not in of_run[0]:
                raise KeyError(f"there is no measure {measure!r}; there are {', '.join(map(repr, of_run[0]))}")
            unit = of_run[0][measure][1]
            values = [value for value, _ in (run[measure] for run in of_run) if value is not None]
            if len(values) == len(of_run):
                mean = sum(values) / len(values)
                spread = [[mean - min(values)], [max(values) - mean]] if len(values) > 1 else None
                ax.bar(i, mean, width=0.7, color=COLOURS[i % len(COLOURS)], yerr=spread, capsize=2, error_kw={"linewidth": 0.8})
            else:
                ax.text(i, 0, "not complete", rotation=90, ha="center", va="bottom")
        ax.set_xticks(range(len(schemes)), schemes, rotation=30 if len(schemes) > 4 else 0)
        ax.grid(visible=False, axis="x")
        return _label(ax, "", f"{measure} [{unit}]" if unit else measure)


@styled
def paper_figure(report: Report, number: int, *, ax: Axes | None) -> Axes:
    """A paper's figure from our data, with the paper's numbers as marks."""
    figures = report.figures
    if not 0 <= number < len(figures):
        raise IndexError(f"{report.name} has {len(figures)} figures, from 0")
    figure = figures[number]
    ax = axes(ax, WIDE)
    if figure["shape"] == "bars":
        _bars(figure, ax)
    else:
        _lines(figure, ax)
    ax.set_title(figure["title"], wrap=True)
    # The legend is beside the picture, because bars leave no room in it. Marks with the same name have one entry.
    lines, labels = ax.get_legend_handles_labels()
    once = dict(zip(reversed(labels), reversed(lines), strict=True))
    ax.legend(
        [once[label] for label in dict.fromkeys(labels)], list(dict.fromkeys(labels)), loc="upper left", bbox_to_anchor=(1, 1)
    )
    return _label(ax, figure["x"], figure["y"])


def _bars(figure: dict[str, Any], ax: Axes) -> None:
    categories = list(dict.fromkeys(x for values in figure["series"] for x in values["x"]))
    width = 0.8 / max(len(figure["series"]), 1)
    for i, values in enumerate(figure["series"]):
        points = [(categories.index(x), y) for x, y in zip(values["x"], values["y"], strict=True) if y is not None]
        where = [at + (i - (len(figure["series"]) - 1) / 2) * width for at, _ in points]
        ax.bar(where, [y for _, y in points], width=width * 0.92, label=values["name"], color=COLOURS[i % len(COLOURS)])
    ax.set_xticks(range(len(categories)), categories)
    ax.grid(visible=False, axis="x")
    for mark in figure["paper"]:
        at = None if mark["x"] is None else categories.index(mark["x"]) if mark["x"] in categories else None
        _mark(mark, ax, None if at is None else (at - 0.45, at + 0.45))


def _lines(figure: dict[str, Any], ax: Axes) -> None:
    for i, values in enumerate(figure["series"]):
        points = [(float(x), y) for x, y in zip(values["x"], values["y"], strict=True) if y is not None]
        marker = "." if len(points) < 30 else ""
        ax.plot([x for x, _ in points], [y for _, y in points], label=values["name"], marker=marker, **_line(i))
    for mark in figure["paper"]:
        if mark["x"] is None:
            _mark(mark, ax, None)
        else:
            ax.plot(float(mark["x"]), mark["y"], marker="x", color="black", linestyle="", label=mark["name"])


def _mark(mark: dict[str, Any], ax: Axes, over: tuple[float, float] | None) -> None:
    """Marks a number or a range of the paper, over one category or over the whole axis."""
    how: dict[str, Any] = {"color": "black", "linewidth": 1.0, "linestyle": "--"}
    ends = [mark["y"]] if mark["to"] is None else [mark["y"], mark["to"]]
    for i, y in enumerate(ends):
        label = mark["name"] if i == 0 else None
        if over is None:
            ax.axhline(y, label=label, **how)
        else:
            ax.plot(over, (y, y), label=label, **how)

"""Pictures with matplotlib, ready for a paper: vector graphics, units on the axes, and colours that colour-blind readers
can distinguish. A scheme has the colour, dash and marker that it has in reports, so pictures can be read without colour, too.

Each function draws on `ax`, or on a new figure, and returns the axes: `ax.figure.savefig("cdf.pdf")`. A new figure is a
column wide; with a legend, which stands beside the curves, it is one and a half columns wide.
"""

from __future__ import annotations

import functools
import statistics
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec

from ropewalk import _native
from ropewalk._errors import NotRecorded, RequestError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ropewalk._results import Comparison, Report, Result
    from ropewalk._sweep import Sweep

# Names in reports, and what matplotlib calls them.
AS_DASH: dict[str, Any] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-.", "longdash": (0, (8, 2.5))}
AS_MARKER = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "x": "X",
    "cross": "P",
    "triangle-down": "v",
    "star": "*",
}
COLOURS, _dashes, _markers = _native.looks()
DASHES: list[Any] = [AS_DASH[name] for name in _dashes]
MARKERS = [AS_MARKER[name] for name in _markers]
# Patterns of bars, by the number of the marker; the same as in reports.
HATCHES = ["", "//", "xx", "--", "\\\\", "||", "++", ".."]
# Distance between two markers of a line, as a share of the picture's diagonal. Our choice: about six on a line.
MARK_EVERY = 0.14
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

# Kinds of arrivals: name, colour, marker, and size. Late packets and those ahead differ in marker, too.
ARRIVALS: dict[str, tuple[str, str, str, float]] = {
    "in order": ("in order", "#68727d", ".", 2),
    "ahead": ("ahead of ePSN", COLOURS[0], "^", 2.5),
    "late": ("late", COLOURS[1], "v", 2.5),
    "duplicate": ("duplicate", COLOURS[3], "D", 2.5),
    "discarded": ("discarded", COLOURS[5], "x", 3),
}
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
    """Style of the n-th line of things that are no schemes. Neighbours differ in colour and dash."""
    turn = number // len(COLOURS)
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[(number + turn) % len(DASHES)]}


def _scheme(name: str, number: int = 0) -> dict[str, Any]:
    """Style of a scheme's line. The n-th line of one scheme keeps the colour and gets another dash and marker."""
    hue, dash, marker = _native.look(name)
    return {
        "color": COLOURS[hue],
        "linestyle": DASHES[(dash + number) % len(DASHES)],
        "marker": MARKERS[(marker + number) % len(MARKERS)],
        "markersize": 3.5,
    }


def _bar(name: str, number: int = 0) -> dict[str, Any]:
    """Style of a scheme's bar."""
    hue, _, marker = _native.look(name)
    return {
        "color": COLOURS[hue],
        "hatch": HATCHES[(marker + number) % len(HATCHES)],
        "edgecolor": "white",
        "linewidth": 0,
    }


def _label(ax: Axes, x: str, y: str, legend: int = 0) -> Axes:
    """Labels of the axes, and a legend beside the picture, where it covers no curve. Equal names have one entry."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if legend > 1:
        lines, names = ax.get_legend_handles_labels()
        once = dict(zip(reversed(names), reversed(lines), strict=True))
        order = list(dict.fromkeys(names))
        ax.legend([once[name] for name in order], order, loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0)
    return ax


def cdf(values: Iterable[float | None], ax: Axes, **how: Any) -> int:
    """Draws the share of values up to x. A missing value counts as infinite. Returns the number of values that are present."""
    every = list(values)
    known = sorted(value for value in every if value is not None)
    shares = [(i + 1) / len(every) for i in range(len(known))]
    ax.step([known[0], *known] if known else [], [0.0, *shares] if known else [], where="post", **how)
    return len(known)


def _distribution(ax: Axes, metric: str, legend: int) -> Axes:
    """The frame of distributions. A flow alone on the fabric has slowdown 1, so that axis starts there."""
    ax.set_ylim(0, 1.01)
    if metric == "slowdown":
        ax.set_xlim(left=min(1.0, float(ax.dataLim.x0)))
    return _label(ax, METRICS.get(metric, metric), "share of flows", legend)


class ResultPlots:
    """Pictures of one run. `result.plot()` is `result.plot.fct_cdf()`."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def __call__(self, metric: str = "slowdown", *, ax: Axes | None = None) -> Axes:
        return self.fct_cdf(metric, ax=ax)

    @styled
    def fct_cdf(self, metric: str = "slowdown", *, ax: Axes | None = None, **how: Any) -> Axes:
        """Distribution of `slowdown` or `fct_us`. A flow that did not finish counts as infinite."""
        ax = axes(ax, WIDE if "label" in how else SIZE)
        cdf(self._result.flows[metric], ax, **(_scheme(self._result.scheme) | {"markevery": MARK_EVERY} | how))
        return _distribution(ax, metric, 2 if "label" in how else 0)

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
        ax = axes(ax, WIDE if len(which) > 1 else SIZE)
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
        ax = axes(ax, WIDE)
        for i, (role, shares) in enumerate(by_role.items()):
            shares.sort(reverse=True)
            where = [100 * (n + 0.5) / len(shares) for n in range(len(shares))]
            ax.plot(where, shares, marker=".", markersize=3, label=f"from {role} ({len(shares)})", **_line(i))
        ax.set_ylim(bottom=0)
        return _label(ax, "links by load [%]", "busy [% of time]", len(by_role) + 1)

    @styled
    def arrivals(self, qp: int | None = None, *, psn: bool = False, ax: Axes | None = None) -> Axes:
        """Reordering of a queue pair's packets: the distance of each PSN from the PSN that would arrive next in order. A
        packet on the line at 0 is in order. A packet above it overtook that many packets, and a packet below it is late by
        that many. With `psn=True` the picture shows the PSNs."""
        events = self._result.events
        followed = sorted(set(events["qp"]))
        if qp is None and followed:
            ahead = [q for q, event in zip(events["qp"], events["event"], strict=True) if event == "ahead"]
            qp = max(followed, key=ahead.count) if ahead else followed[0]
        if qp not in followed:
            raise NotRecorded(f"queue pair {qp} was not followed: {followed} were; record__follow=[FLOW] follows a flow")
        rows = zip(events["qp"], events["event"], events["time_us"], events["psn"], strict=True)
        points: dict[str, list[tuple[float, int]]] = {name: [] for name in ARRIVALS}
        # One more than the highest PSN that the receiver has kept.
        following = 0
        for of, event, time, number in rows:
            if of != qp or event not in ("arrived", "ahead", "duplicate", "discarded"):
                continue
            kind = ("late" if number < following else "in order") if event == "arrived" else event
            points[kind].append((time, number if psn else number - following))
            if event in ("arrived", "ahead"):
                following = max(following, number + 1)
        ax = axes(ax, WIDE)
        if not psn:
            ax.axhline(0, color="black", linewidth=0.6)
        for kind, (label, colour, marker, size) in ARRIVALS.items():
            if points[kind]:
                times, values = zip(*points[kind], strict=True)
                # Thousands of dots make a vector picture slow, so dots are drawn as pixels.
                style: dict[str, Any] = {
                    "color": colour,
                    "marker": marker,
                    "markersize": size,
                    "linestyle": "",
                    "rasterized": len(times) > 2000,
                }
                ax.plot(times, values, label=f"{label} ({len(times)})", **style)
        ax.set_title(f"queue pair {qp}")
        return _label(ax, "time [µs]", "PSN" if psn else "PSN − next PSN in order", len(ARRIVALS))

    @styled
    def counters(self, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """The scheme's counters, as totals up to each time."""
        counters = self._result.counters
        every = list(dict.fromkeys(counters["counter"]))
        if unknown := [name for name in names or [] if name not in every]:
            raise KeyError(f"there is no counter {unknown}; there are {', '.join(every)}")
        ax = axes(ax, WIDE)
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
    """Pictures of a comparison. `comparison.plot()` is `comparison.plot.bars()`."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def __call__(self, measure: str = "slowdown, P99", *, ax: Axes | None = None) -> Axes:
        return self.bars(measure, ax=ax)

    @styled
    def fct_cdf(self, metric: str = "slowdown", *, ax: Axes | None = None) -> Axes:
        """Distribution of `slowdown` or `fct_us` by scheme, over all seeds."""
        ax = axes(ax, WIDE)
        for scheme in self._comparison.schemes:
            values = [value for run in self._comparison[scheme] for value in run.flows[metric]]
            cdf(values, ax, label=scheme, markevery=MARK_EVERY, **_scheme(scheme))
        return _distribution(ax, metric, 2)

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
                ax.bar(i, mean, width=0.7, yerr=spread, capsize=2, error_kw={"linewidth": 0.8}, **_bar(scheme))
            else:
                ax.text(i, 0, "not complete", rotation=90, ha="center", va="bottom")
        ax.set_xticks(range(len(schemes)), schemes, rotation=30 if len(schemes) > 4 else 0)
        ax.grid(visible=False, axis="x")
        return _label(ax, "", f"{measure} [{unit}]" if unit else measure)


class SweepPlots:
    """Pictures of a sweep. `sweep.plot()` is `sweep.plot.lines()`."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep

    def __call__(self, metric: str = "flows.fct_us.p99", *, ax: Axes | None = None, **how: Any) -> Axes:
        return self.lines(metric, ax=ax, **how)

    @styled
    def lines(
        self,
        metric: str = "flows.fct_us.p99",
        *,
        along: str | None = None,
        by: str | None = None,
        ax: Axes | None = None,
        **fixed: Any,
    ) -> Axes:
        """A column of `Sweep.points` along an axis, with a line per value of the axis `by`: means over seeds, and a band from
        the least to the greatest.

        An axis is named as in the sweep's file (`"nic.window"`), or by the last words of its name. `along` is by default the
        axis with the most values that is not `schemes`, and `by` the axis `schemes`, else the longest of the others. If
        there are further axes, every combination of their values has a line; a keyword keeps one value: `buffer="4MB"`.
        A point that is not complete has no value.
        """
        points = self._sweep.points.to_dict()
        if metric not in points or metric.startswith("axis."):
            raise KeyError(f"there is no number {metric!r} in the points; rw.metrics() lists the numbers")
        axis = {name.removeprefix("axis."): points[name] for name in points if name.startswith("axis.")}
        rows = list(range(len(points[metric])))
        for name, value in fixed.items():
            of = axis[_axis(name, axis)]
            if value not in of:
                raise KeyError(f"no point has {name} = {value!r}; there are {', '.join(map(repr, dict.fromkeys(of)))}")
            rows = [row for row in rows if of[row] == value]
        lengths = {name: len(set(map(str, of))) for name, of in axis.items()}
        longest = sorted(axis, key=lambda name: (name == "schemes", -lengths[name]))
        if not longest:
            raise RequestError("this sweep has no axis to draw along")
        along = longest[0] if along is None else _axis(along, axis)
        rest = [name for name in axis if name != along and len({str(axis[name][row]) for row in rows}) > 1]
        first = [_axis(by, axis)] if by is not None else ["schemes"] if "schemes" in rest else []
        rest = first + [name for name in rest if name not in first]
        lines: dict[tuple[Any, ...], dict[Any, list[float]]] = {}
        for row in rows:
            of_line = lines.setdefault(tuple(axis[name][row] for name in rest), {})
            of_point = of_line.setdefault(axis[along][row], [])
            if points["complete"][row] and points[metric][row] is not None:
                of_point.append(points[metric][row])
        values = list(dict.fromkeys(axis[along][row] for row in rows))
        numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        ax = axes(ax, WIDE if len(lines) > 1 else SIZE)
        used: list[Any] = []
        for i, (names, at) in enumerate(lines.items()):
            scheme = next((str(value) for name, value in zip(rest, names, strict=True) if name == "schemes"), None)
            style = {"marker": MARKERS[i % len(MARKERS)], "markersize": 3.5, **_line(i)}
            if scheme is not None:
                style = _scheme(scheme, used.count(scheme))
            used.append(scheme)
            known = [(value if numeric else n, at.get(value)) for n, value in enumerate(values)]
            drawn = [(x, of) for x, of in known if of]
            where = [x for x, _ in drawn]
            label = ", ".join(
                str(v) if name == "schemes" else f"{name.rpartition('.')[2]} {v}" for name, v in zip(rest, names, strict=True)
            )
            ax.plot(where, [statistics.fmean(of) for _, of in drawn], label=label, **style)
            if any(len(of) > 1 for _, of in drawn):
                ends = ([min(of) for _, of in drawn], [max(of) for _, of in drawn])
                ax.fill_between(where, *ends, color=style["color"], alpha=0.15, linewidth=0)
        if not numeric:
            ax.set_xticks(range(len(values)), [str(value) for value in values], rotation=30 if len(values) > 5 else 0)
        unit = self._sweep.points.units[metric].replace("us", "µs")
        metrics = _native.metrics()
        title = dict(zip(metrics.column("name"), metrics.column("label"), strict=True)).get(metric) or metric
        return _label(ax, along.rpartition(".")[2], f"{title} [{unit}]" if unit not in ("", "-") else str(title), len(lines))


def _axis(name: str, axes: Iterable[str]) -> str:
    """The axis of this name, or the only one whose last words it is; `_` may stand for a hyphen and `__` for a dot."""
    wanted = [name, name.replace("__", ".").replace("_", "-")]
    found = [axis for axis in axes if any(axis == words or axis.endswith(f".{words}") for words in wanted)]
    if len(found) != 1:
        raise KeyError(f"there is {'no' if not found else 'more than one'} axis {name!r}; the axes are {', '.join(axes)}")
    return found[0]


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
    return _label(ax, figure["x"], figure["y"], 2)


def _styles(figure: dict[str, Any], style: Callable[[str, int], dict[str, Any]]) -> list[dict[str, Any]]:
    """Styles of a figure's series, each by its scheme and its number among the scheme's series."""
    schemes = [values["scheme"] for values in figure["series"]]
    return [style(scheme, schemes[:i].count(scheme)) for i, scheme in enumerate(schemes)]


def _bars(figure: dict[str, Any], ax: Axes) -> None:
    categories = list(dict.fromkeys(x for values in figure["series"] for x in values["x"]))
    width = 0.8 / max(len(figure["series"]), 1)
    for i, (values, style) in enumerate(zip(figure["series"], _styles(figure, _bar), strict=True)):
        points = [(categories.index(x), y) for x, y in zip(values["x"], values["y"], strict=True) if y is not None]
        where = [at + (i - (len(figure["series"]) - 1) / 2) * width for at, _ in points]
        ax.bar(where, [y for _, y in points], width=width * 0.92, label=values["name"], **style)
    ax.set_xticks(range(len(categories)), ["\n".join(textwrap.wrap(name, 14)) for name in categories])
    ax.grid(visible=False, axis="x")
    for mark in figure["paper"]:
        at = None if mark["x"] is None else categories.index(mark["x"]) if mark["x"] in categories else None
        _mark(mark, ax, None if at is None else (at - 0.45, at + 0.45))


def _lines(figure: dict[str, Any], ax: Axes) -> None:
    for values, style in zip(figure["series"], _styles(figure, _scheme), strict=True):
        points = [(float(x), y) for x, y in zip(values["x"], values["y"], strict=True) if y is not None]
        every = MARK_EVERY if len(points) > 12 else None
        ax.plot([x for x, _ in points], [y for _, y in points], label=values["name"], markevery=every, **style)
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

"""Which settings are better than yours, and by how much? Needs `pip install 'ropewalk[tune]'` (Optuna)."""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import ropewalk as rw
from ropewalk._asked import Scenario, whole
from ropewalk._errors import ScenarioWarning, SimulationError
from ropewalk._progress import Line, Progress

# Base units are byte, picosecond and bit per second.
UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
UNITS |= {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
UNITS |= {"bps": 1, "kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
WRITTEN = {"B": ["MB", "kB", "B"], "ps": ["ms", "us", "ns", "ps"], "bps": ["Gbps", "Mbps", "kbps", "bps"]}

# NVIDIA's names of DCQCN's settings and their units (docs/nics/congestion.md has the list).
MLXCONFIG: dict[str, tuple[str, float]] = {
    "congestion.dcqcn.rate-increase-timer": ("RPG_TIME_RESET", 1e6),
    "congestion.dcqcn.byte-reset": ("RPG_BYTE_RESET", 1),
    "congestion.dcqcn.fast-recovery": ("RPG_THRESHOLD", 1),
    "congestion.dcqcn.additive-increase": ("RPG_AI_RATE", 1e6),
    "congestion.dcqcn.hyper-increase": ("RPG_HAI_RATE", 1e6),
    "congestion.dcqcn.min-rate": ("RPG_MIN_RATE", 1e6),
    "congestion.dcqcn.cut-floor": ("RPG_MIN_DEC_FAC", 0.01),
    "congestion.dcqcn.rate-decrease-interval": ("RATE_REDUCE_MONITOR_PERIOD", 1e6),
    "congestion.dcqcn.rate-on-first-cnp": ("RATE_TO_SET_ON_FIRST_CNP", 1e6),
    "congestion.dcqcn.alpha-timer": ("DCE_TCP_RTT", 1e6),
    "cnp-interval": ("MIN_TIME_BETWEEN_CNPS", 1e6),
}

# Student's t, two-sided 99 %, by degrees of freedom: five sets compared at once then hold with 95 % together.
T99 = [63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169]
MOST = 5  # Sets of the front that run again. Our choice.
TIE = 0.01  # A difference of less than 1 % decides nothing. Our choice.

# Short flows of a run: 20 incasts of 8 flows of 16 kB, a quarter of their receiver's rate. Our choice.
SHORT, BURSTS, SENDERS, LOAD = 16_000, 20, 8, 0.25


def amount(value: Any) -> tuple[float, str]:
    """A quantity in its base unit, and that unit; a plain number has none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value), ""
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([A-Za-z]+)\s*", str(value))
    if found is None or found[2] not in UNITS:
        raise ValueError(f"expected a number, or a quantity such as '100kB', '4us' or '400Gbps'; found {value!r}")
    base = next(base for base in ("B", "bps", "ps") if found[2].endswith(base) or base == "ps")
    return float(found[1]) * UNITS[found[2]], base


@dataclass(frozen=True)
class Knob:
    """A setting with its range."""

    key: str
    low: float
    high: float
    unit: str
    whole: bool
    choices: tuple[Any, ...] = ()

    @staticmethod
    def of(key: str, wanted: Any) -> Knob:
        if isinstance(wanted, list) and wanted:
            return Knob(key, 0, 0, "", False, tuple(wanted))
        if not isinstance(wanted, tuple) or len(wanted) != 2:
            raise ValueError(f"{key}: expected a range (low, high) or a list of values, found {wanted!r}")
        (low, unit), (high, other) = amount(wanted[0]), amount(wanted[1])
        if unit != other or not low < high:
            raise ValueError(f"{key}: expected a range of two quantities of one kind, the lesser first; found {wanted!r}")
        return Knob(key, low, high, unit, not unit and all(isinstance(end, int) for end in wanted))

    def suggest(self, trial: Any) -> Any:
        if self.choices:
            return trial.suggest_categorical(self.key, list(self.choices))
        if self.whole:
            return trial.suggest_int(self.key, int(self.low), int(self.high))
        # Sizes, times and rates span powers of ten.
        return self.text(trial.suggest_float(self.key, self.low, self.high, log=bool(self.unit) and self.low > 0))

    def text(self, value: float) -> Any:
        """The value of a setting, with three digits."""
        if self.whole:
            return int(value)
        value = float(f"{value:.3g}")
        if not self.unit:
            return value
        unit = next((unit for unit in WRITTEN[self.unit] if value >= UNITS[unit]), self.unit)
        return f"{value / UNITS[unit]:g}{unit}"


Interval = tuple[float, tuple[float, float]]  # A ratio and its 99 % interval.


@dataclass
class TunedSet:
    """Settings, and what they gave beside the operator's own on the fresh seeds."""

    settings: dict[str, Any]
    short: Interval  # the worst P99 slowdown of short flows of all cases, over the operator's
    busbw: Interval  # the least bandwidth of all cases, over the operator's
    cases: dict[str, tuple[Interval, Interval]]  # both in each case
    clean: bool  # no loss, and no more pauses than allowed

    @property
    def better(self) -> bool:
        """True if one objective is better than the operator's with confidence, the other is not worse in the mean, and neither is
        worse with confidence in any case."""
        gains = self.short[1][1] < 1 - TIE or self.busbw[1][0] > 1 + TIE
        trades = self.short[0] > 1 + TIE or self.busbw[0] < 1 - TIE
        both = [(self.short, self.busbw), *self.cases.values()]
        return (
            self.clean
            and gains
            and not trades
            and not any(short[1][0] > 1 + TIE or busbw[1][1] < 1 - TIE for short, busbw in both)
        )

    @property
    def verdict(self) -> str:
        """Better, or why not."""
        (short, (_, worst_short)), (busbw, (least_busbw, _)) = self.short, self.busbw
        if not self.clean:
            return "loses or pauses"
        if self.better:
            return "better"
        if worst_short < 1 - TIE and busbw < 1 - TIE:
            return "a trade, short flows for bandwidth"
        if least_busbw > 1 + TIE and short > 1 + TIE:
            return "a trade, bandwidth for short flows"
        return "not better with confidence"


def _per_cent(interval: Interval) -> str:
    ratio, of = interval
    return f"{100 * (ratio - 1):+.1f} % ({100 * (of[0] - 1):+.1f} to {100 * (of[1] - 1):+.1f})"


@dataclass
class Tuning:
    """The answer of `tune`."""

    own: dict[str, Any]
    front: list[TunedSet]
    trials: int
    seeds: list[int]
    fresh: list[int]
    cases: list[str]
    rate_gbps: float

    @property
    def best(self) -> TunedSet | None:
        """The set to take: of those that are better than the operator's, the one with the least P99 of short flows; None if none is."""
        return min((one for one in self.front if one.better), key=lambda one: one.short[0], default=None)

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        if (best := self.best) is None:
            return f"no set is better than yours, after {self.trials} trials"
        return f"a better set: P99 of short flows {_per_cent(best.short)}, bandwidth {_per_cent(best.busbw)}"

    def commands(
        self, of: TunedSet | None = None, *, profile: str = "PROFILE", device: str = "DEVICE", queue: int = 3
    ) -> list[str]:
        """The settings of a set (default: `best`) as an operator enters them: `ecnconfig` of SONiC, NVUE and `mlxconfig`. A setting
        without a command there stands as KEY = VALUE."""
        of = of or self.best
        if of is None:
            return []
        rest, ecn, nic = [], {}, []
        for key, value in of.settings.items():
            last = key.rsplit(".", 1)[-1]
            name, size = MLXCONFIG.get(key.removeprefix("nic."), ("", 1))
            if ".ecn." in key and last in ("kmin", "kmax", "pmax") and not key.startswith("switch-role"):
                # Outside `at-rate`, thresholds are per 100 Gb/s.
                scale = 1.0 if "at-rate" in key or last == "pmax" else self.rate_gbps / 100
                ecn[last] = round(amount(value)[0] * (100 if last == "pmax" else scale))
            elif name and key.startswith("nic."):
                nic.append(f"{name}_P1={round(amount(value)[0] / size)}")
            else:
                rest.append(f"{key} = {value}")
        lines = []
        if ecn:
            flags = {"kmin": "-gmin", "kmax": "-gmax", "pmax": "-gdrop"}
            lines.append(" ".join([f"ecnconfig -p {profile}", *(f"{flags[key]} {ecn[key]}" for key in flags if key in ecn)]))
            words = {"kmin": "min-threshold", "kmax": "max-threshold", "pmax": "probability"}
            nvue = f"nv set qos congestion-control {profile} traffic-class {queue}"
            lines += [f"{nvue} {words[key]} {ecn[key]}" for key in words if key in ecn]
        if nic:
            lines.append(f"mlxconfig -d {device} set {' '.join(nic)}")
        return lines + rest

    def __str__(self) -> str:
        lines = [self.headline, ""]
        if not self.front:
            lines.append("every set lost packets, or paused more often than yours")
        lines.append(f"yours: {_settings(self.own) or 'defaults'}")
        for number, one in enumerate(self.front, 1):
            short, busbw = _per_cent(one.short), _per_cent(one.busbw)
            lines += [f"{number}. {one.verdict}: P99 of short flows {short}, bandwidth {busbw}", f"   {_settings(one.settings)}"]
        lines += ["", *self.commands()] if self.best else []
        lines.append("")
        lines.append(
            f"worst of {', '.join(self.cases)}; {self.trials} trials on seeds {self.seeds}, the front again on seeds {self.fresh}; "
            "99 % intervals beside your settings on the same seeds"
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Tuning: {self.headline}>"


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in settings.items())


@dataclass
class Point:
    """A run: its P99 of short flows, its bandwidth per host, lost packets and pauses."""

    short: float
    busbw: float
    loss: int
    pauses: int


def measure(result: rw.Result) -> Point:
    """The objectives of a run. Bandwidth is the bytes of the busiest sender over the time of all but the short flows."""
    flows = result.flows
    slow: list[float] = []
    sent: dict[str, int] = {}
    start, end = math.inf, 0.0
    columns = ("job", "from", "bytes", "start_us", "received_us", "slowdown")
    for job, source, size, begun, received, slowdown in zip(*(flows[name] for name in columns), strict=True):
        if job.startswith("short"):
            slow.append(math.inf if slowdown is None else slowdown)
        else:
            sent[source] = sent.get(source, 0) + size
            start, end = min(start, begun), max(end, math.inf if received is None else received)
    slow.sort()
    p99 = slow[math.ceil(0.99 * len(slow)) - 1]
    busbw = max(sent.values()) * 8e-3 / (end - start) if sent and end > start else 0.0
    packets, control = result.summary["packets"], result.summary["control"]
    # A watchdog of PFC drops what its queue holds.
    loss = packets["dropped_buffer"] + packets.get("lost_watchdog", 0)
    return Point(p99, busbw, loss, control["pause"])


def _cases(own: Sequence[Mapping[str, Any]], hosts: int, rate_gbps: float, spines: bool) -> dict[str, dict[str, Any]]:
    """Traffic of each case: the site's own workload or an exchange of all hosts, with incasts of short flows beside it."""
    senders = min(SENDERS, hosts - 1)
    every = round(senders * SHORT * 8 / (rate_gbps * LOAD))
    incast = {"senders": senders, "bytes": f"{SHORT}B"}
    short = [{"name": f"short{i}", "start": f"{every * i}ns", "incast": incast} for i in range(BURSTS)]
    cases: dict[str, dict[str, Any]] = {
        "incast": {"workload": [*own, *short]},
        "all-to-all": {"workload": [{"all-to-all": {"groups": "all", "bytes": "1MB"}}, *short]},
    }
    if spines:
        cases["slow link"] = {"workload": [*own, *short], "failure": [{"random": 1, "rate": 0.25}]}
    return cases


def _value(of: Any, key: str) -> Any:
    """The value at a dotted key; None if there is none."""
    for part in key.split("."):
        if isinstance(of, list):
            of = of[int(part)] if part.isdigit() and int(part) < len(of) else None
        else:
            of = of.get(part) if isinstance(of, dict) else None
    return of


def _holds(constraint: str, settings: Mapping[str, Any], scenario: Mapping[str, Any]) -> bool:
    """True if `A <= B` holds; each side is a key, of a knob or of the scenario, or a quantity."""
    sides = [side.strip() for side in constraint.split("<=")]
    if len(sides) != 2:
        raise ValueError(f"expected a constraint such as 'switch.ecn.kmin <= switch.ecn.kmax', found {constraint!r}")
    values = [settings.get(side, _value(scenario, side)) for side in sides]
    left, right = (amount(side if value is None else value)[0] for side, value in zip(sides, values, strict=True))
    return left <= right


def tune(
    scenario: Scenario,
    knobs: Mapping[str, Any],
    *,
    constraints: Iterable[str] = (),
    trials: int = 60,
    seeds: Iterable[int] = (1, 2),
    fresh: Iterable[int] = range(101, 109),
    cases: Mapping[str, Mapping[str, Any]] | None = None,
    max_pauses: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    **sets: Any,
) -> Tuning:
    """Looks for settings that are better than the scenario's own, with NSGA-II over two objectives: the P99 slowdown of flows of less
    than 100 kB in incasts, and the bandwidth of the site's own workload.

    `knobs` are keys with a range `(low, high)` or a list of values: `{"switch.ecn.kmin": ("50kB", "2MB")}`; ranges of sizes, times and
    rates are searched by powers. `constraints` are texts such as `"switch.ecn.kmax <= 3MB"`; kmin <= kmax always holds. A set that loses
    a packet, or pauses more often than `max_pauses` (default: than your settings, unless they lose packets) in any case, is refused. An objective is that of the
    worst case. `cases` replaces the traffic: a name, and the keys of the scenario that it sets; flows of jobs
    named `short...` are the short ones. Every trial runs on `seeds`, and the front again on the seeds `fresh`.
    """
    try:
        import optuna
    except ImportError:
        raise ImportError("rw.tune needs Optuna: pip install 'ropewalk[tune]'") from None
    if not knobs:
        raise ValueError("expected at least one knob, such as {'switch.ecn.kmin': ('50kB', '2MB')}")
    all_knobs = [Knob.of(key, wanted) for key, wanted in knobs.items()]
    first, again = list(seeds), list(fresh)
    if not first or len(again) < 2 or set(first) & set(again):
        raise ValueError("expected at least one seed, two fresh ones, and no seed in both")
    whole("trials", trials, 1, 32)
    mine = rw.check(scenario, **sets)
    own = {knob.key: value for knob in all_knobs if (value := _value(mine, knob.key)) is not None}
    below = {key[:-4] for key in knobs if key.endswith((".kmin", ".kmax"))}
    rules = [*constraints, *(f"{of}kmin <= {of}kmax" for of in sorted(below) if _value(mine, f"{of}kmin") is not None)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScenarioWarning)  # `check` has given them
        for knob in all_knobs:
            if knob.key not in own:  # a default, or no setting, which is an error with its place
                rw.check(scenario, **{**sets, knob.key: knob.choices[0] if knob.choices else knob.text(knob.low)})
        one_flow = [{"incast": {"senders": 1, "bytes": "1kB"}}]
        ping = rw.run(scenario, progress=False, **{**sets, "workload": one_flow, "failure": []})
    hosts = len(set(ping.nics["node"]))
    ends = set(ping.nics["node"])
    spines = any(a not in ends and b not in ends for a, b in zip(ping.links["from"], ping.links["to"], strict=True))
    rate = max(ping.links["nominal_gbps"])
    played = dict(cases or _cases(mine.get("workload", []), hosts, rate, spines))
    base = {key: value for key, value in sets.items()} | {"failure": []}

    def runs(settings: Mapping[str, Any], on: Sequence[int], pool: ThreadPoolExecutor) -> dict[tuple[str, int], Point]:
        def one(at: tuple[str, int]) -> Point:
            case, seed = at
            try:
                return measure(rw.run(scenario, seed=seed, progress=False, **{**base, **settings, **played[case]}))
            except SimulationError:  # a lossless fabric that dropped, or a deadlock
                return Point(math.inf, 0.0, 1, 0)

        points = [(case, seed) for case in played for seed in on]
        return dict(zip(points, pool.map(one, points), strict=True))

    with warnings.catch_warnings(), ThreadPoolExecutor(threads or os.cpu_count()) as pool, Line(progress, "tune") as line:
        warnings.simplefilter("ignore", ScenarioWarning)
        yours = runs(own, first, pool)
        # Settings that lose packets may pause too rarely.
        loses = any(point.loss for point in yours.values())
        most = math.inf if loses else max(point.pauses for point in yours.values())
        allowed = most if max_pauses is None else max_pauses
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.NSGAIISampler(seed=first[0], population_size=min(24, max(4, trials // 4)))
        study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
        done, refused, sets_of = 0, 0, {}
        while done < trials and refused < 100 * trials:
            trial = study.ask()
            settings = {knob.key: knob.suggest(trial) for knob in all_knobs}
            if not all(_holds(rule, settings, mine) for rule in rules):
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                refused += 1
                continue
            points = runs(settings, first, pool)
            trial.set_constraint("loss", float(sum(point.loss for point in points.values())))
            trial.set_constraint("pauses", float(max(point.pauses for point in points.values()) - allowed))
            short, busbw = _worst(points, list(played), first)
            study.tell(trial, [min(short, 1e9), busbw])
            sets_of[trial.number] = settings
            done += 1
            if line.listener is not None:
                line.listener(done / trials, f"{done} of {trials} trials")
        if not sets_of:
            raise ValueError(f"no set of these ranges meets {' and '.join(rules)}")
        # Sets with equal objectives are one.
        apart = {tuple(trial.values): trial for trial in study.best_trials}
        best = [apart[values] for values in sorted(apart)]
        chosen = [best[i * (len(best) - 1) // max(1, min(MOST, len(best)) - 1)] for i in range(min(MOST, len(best)))]
        beside = runs(own, again, pool)
        front = [
            _again(sets_of[trial.number], runs(sets_of[trial.number], again, pool), beside, list(played), again, allowed)
            for trial in chosen
        ]
    return Tuning(own, front, done, first, again, list(played), rate)


Points = dict[tuple[str, int], Point]


def _worst(points: Points, cases: Sequence[str], seeds: Sequence[int]) -> tuple[float, float]:
    """Both objectives in the case that is worst in the mean over seeds."""
    mean = {case: [points[case, seed] for seed in seeds] for case in cases}
    short = max(statistics.fmean(point.short for point in of) for of in mean.values())
    return short, min(statistics.fmean(point.busbw for point in of) for of in mean.values())


def _again(
    settings: dict[str, Any], points: Points, beside: Points, cases: Sequence[str], seeds: Sequence[int], allowed: float
) -> TunedSet:
    """A set on fresh seeds, with intervals of its ratios over the seeds."""

    def ratios(of: Sequence[str]) -> tuple[Interval, Interval]:
        pairs = [(_worst(points, of, [seed]), _worst(beside, of, [seed])) for seed in seeds]
        short, busbw = ([_ratio(mine[i], yours[i]) for mine, yours in pairs] for i in range(2))
        return _interval(short), _interval(busbw)

    clean = all(point.loss == 0 for point in points.values()) and max(point.pauses for point in points.values()) <= allowed
    short, busbw = ratios(cases)
    return TunedSet(settings, short, busbw, {case: ratios([case]) for case in cases}, clean)


def _ratio(part: float, whole: float) -> float:
    return part / whole if 0 < whole < math.inf else 0.0 if whole == math.inf > part else 1.0


def _interval(ratios: Sequence[float]) -> Interval:
    """The geometric mean of ratios, and its 99 % interval by Student's t. Runs that did not end have none."""
    if not all(0 < ratio < math.inf for ratio in ratios):
        return statistics.fmean(ratios), (0.0, math.inf)
    logs = [math.log(ratio) for ratio in ratios]
    mean, n = statistics.fmean(logs), len(logs)
    half = T99[min(n - 2, len(T99) - 1)] * statistics.stdev(logs) / math.sqrt(n)
    return math.exp(mean), (math.exp(mean - half), math.exp(mean + half))


def main(arguments: Sequence[str]) -> int:
    """The command `ropewalk tune` of the Python package."""
    parser = argparse.ArgumentParser("ropewalk tune", description="Looks for settings that are better than a scenario's own.")
    parser.add_argument("scenario", help="path of a TOML file, or name of a built-in scenario")
    parser.add_argument(
        "knobs", nargs="+", metavar="KEY=LOW..HIGH", help="a setting with its range, or KEY=A,B,C with its values"
    )
    parser.add_argument("--constraint", action="append", default=[], metavar="A<=B", help="of keys and quantities; repeatable")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting; repeatable")
    parser.add_argument("--trials", type=int, default=60, help="sets to try; default 60")
    parser.add_argument("--threads", type=int, help="runs at a time; default: one per core")
    given = parser.parse_args(arguments)

    def plain(text: str) -> Any:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    def knob(text: str) -> tuple[str, Any]:
        key, _, wanted = text.partition("=")
        low, dots, high = wanted.partition("..")
        return key, (plain(low), plain(high)) if dots else [plain(value) for value in wanted.split(",")]

    try:
        sets = {key: plain(value) for key, _, value in (text.partition("=") for text in given.set)}
        wanted = dict(knob(text) for text in given.knobs)
        answer = tune(
            given.scenario,
            wanted,
            constraints=given.constraint,
            trials=given.trials,
            threads=given.threads,
            progress=True,
            **sets,
        )
    except (ValueError, ImportError, rw.Error) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(answer)
    return 0

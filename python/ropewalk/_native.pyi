"""The native module, written in Rust. The package `ropewalk` builds its classes on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeAlias, final

__all__ = [
    "Experiment",
    "Packet",
    "QueuePair",
    "Reply",
    "Results",
    "Sender",
    "Sent",
    "Session",
    "Switch",
    "Table",
    "Work",
    "__version__",
    "busbw",
    "check",
    "cli",
    "compare",
    "comparison",
    "experiments",
    "look",
    "looks",
    "metrics",
    "page",
    "picoseconds",
    "read",
    "register_control",
    "register_scheme",
    "reproduce",
    "run",
    "run_point",
    "scenarios",
    "schema",
    "size",
    "sweep_manifest",
    "sweep_page",
    "sweep_table",
]

__version__: str

_Listener: TypeAlias = Callable[[float, str], object]

def busbw(
    logs: list[str],
    more: list[str],
    cluster: str | None,
    fabric: str | None,
    collective: str | None,
    call: tuple[float, float] | None,
    racks: str | None,
    simulate: bool,
) -> tuple[str, str, str]: ...
def cli(words: list[str]) -> int: ...
def schema(sweeps: bool) -> str: ...
def scenarios() -> list[tuple[str, str, str]]: ...
def experiments() -> list[tuple[str, str, str]]: ...
def metrics() -> Table: ...
def looks() -> tuple[list[str], list[str], list[str]]: ...
def look(scheme: str) -> tuple[int, int, int]: ...
def register_scheme(
    cls: type, title: str, name: str, about: str, defaults: str, sprays: bool, queues: bool, sends: bool, code: int
) -> None: ...
def register_control(
    cls: type,
    title: str,
    name: str,
    about: str,
    defaults: str,
    marks: bool,
    paces: bool,
    methods: list[str],
    code: int,
) -> None: ...

@final
class QueuePair:
    line_rate: int
    round_trip: int
    bdp: int

@final
class Switch:
    name: str
    now: int
    ingress: int
    from_host: bool
    def pick(self, n: int) -> int: ...
    def hash(self, n: int) -> int: ...
    def queue(self, port: int) -> int: ...

@final
class Packet:
    qp: int
    psn: int
    to: int
    frame: int
    last: bool
    again: bool

@final
class Sender:
    qp: int
    now: int
    def pick(self, n: int) -> int: ...

@final
class Sent:
    seq: int
    frame: int
    again: bool
    left: int

@final
class Reply:
    una: int
    entropy: int
    marked: bool
    cut: bool

@final
class Table:
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[tuple[str, str, str]]: ...
    @property
    def every(self) -> int: ...
    def column(self, name: str) -> list[int | float | bool | str | None]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Results:
    @property
    def faults(self) -> list[str]: ...
    @property
    def summary(self) -> str: ...
    @property
    def measures(self) -> list[tuple[str, float | None, str]]: ...
    @property
    def manifest(self) -> str: ...
    def counters(self, names: str, at: str | None, dump: str | None, interval: float | None) -> str: ...
    @property
    def tables(self) -> list[str]: ...
    def table(self, name: str) -> Table | None: ...
    def explain(self, flow: str, listener: _Listener | None) -> str: ...
    def save(self, dir: Path, csv: bool) -> None: ...
    def perfetto(self, file: Path) -> None: ...

@final
class Experiment:
    @property
    def json(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def runs(self) -> list[tuple[str, Results]]: ...
    def page(self, file: Path) -> None: ...

@final
class Session:
    def __new__(cls, scenario: str, is_dict: bool, sets: str, record: bool, warn: Callable[[str], object]) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    @property
    def now(self) -> int: ...
    @property
    def idle(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    def send(self, id: int, pair: tuple[int, int], bytes: int, tag: int, at: int | None) -> None: ...
    def instance(self, name: str, ranks: list[int]) -> None: ...
    def ranks_of(self, name: str) -> list[int]: ...
    def transfer(self, id: int, src: list[int], dst: list[int], bytes: int) -> None: ...
    def timer(self, id: int, rank: int, after: int) -> None: ...
    def next(self, until: int | None) -> tuple[int, int, str, int] | None: ...
    def advance(self, until: int) -> list[tuple[int, int, str, int]]: ...
    def finish(self) -> Results: ...
    def close(self) -> None: ...

def picoseconds(text: str) -> int: ...
def size(text: str) -> int: ...
@final
class Work:
    def __new__(
        cls,
        sweep: str,
        is_dict: bool,
        sets: str,
        output: Path | None,
        resume: bool,
        threads: int | None,
        fast: tuple[float, str | None] | None,
        listener: _Listener | None,
    ) -> Self: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def directory(self) -> Path: ...
    @property
    def runs(self) -> tuple[int, int]: ...
    def wanted(self) -> list[tuple[int, str]]: ...
    def point(self, number: int) -> str: ...
    def keep(self, result: str) -> None: ...
    def run(self, threads: int | None, jobs: int | None, listener: _Listener | None) -> list[tuple[int, str, str]]: ...
    def finish(
        self, check: bool, threads: int | None, jobs: int | None, listener: _Listener | None
    ) -> tuple[Path, list[tuple[int, str, str]]]: ...
    def close(self) -> None: ...

def run_point(point: str) -> str: ...
def sweep_manifest(dir: Path) -> str: ...
def sweep_table(dir: Path, name: str) -> Table: ...
def sweep_page(dir: Path, file: Path) -> None: ...
def read(dir: Path) -> Results: ...
def comparison(dir: Path) -> list[Path] | None: ...
def page(runs: list[Results], file: Path, decides: str | None = None) -> None: ...
def check(scenario: str, is_dict: bool, sets: str) -> tuple[str, list[str]]: ...
def run(
    scenario: str,
    is_dict: bool,
    sets: str,
    threads: int,
    record: bool,
    fast: tuple[float, str | None] | None,
    warn: Callable[[str], object],
    listener: _Listener | None,
) -> Results: ...
def compare(
    scenario: str,
    is_dict: bool,
    sets: str,
    schemes: list[str],
    seeds: str | None,
    class_: str | None,
    threads: int | None,
    fast: tuple[float, str | None] | None,
    check: bool,
    warn: Callable[[str], object],
    listener: _Listener | None,
) -> tuple[list[Results], str | None]: ...
def reproduce(
    name: str, quick: bool, threads: int | None, jobs: int | None, check: bool, listener: _Listener | None
) -> Experiment: ...

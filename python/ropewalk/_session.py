"""Runs that a program drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ropewalk import _native
from ropewalk._asked import Scenario, as_json, asked, flag, warn, whole
from ropewalk._errors import SimulationError
from ropewalk._results import Result, StrPath

if TYPE_CHECKING:
    from typing import Unpack

    from ropewalk._settings import Settings


class Event(NamedTuple):
    """An event of a session."""

    ps: int
    """Time of the event in picoseconds."""
    rank: int
    """The receiver, the sender, or the owner of the timer."""
    kind: str
    """`received`: the whole message has arrived. `sent`: its last byte is acknowledged. `transferred`: all bytes of a transfer
    have arrived. `timer`: the timer has fired."""
    id: int
    """The program's number of the message, transfer or timer."""


class Session:
    """A run that a program drives: the program sends messages between ranks, sets timers, and pulls one event after the other.

    A rank is a GPU of `[server]`, or a host of a fabric without servers. Unless one of the scenario's workloads is `program`,
    the program takes the place of all of them. A time is a number of picoseconds or a text such as `"1us"`, a size is a
    number of bytes or a text such as `"64MB"`. `id` is any whole number; it comes back in the events of the message or
    timer. `record` records as in `rw.run`. `with` closes the session at the end of the block. A wrong scenario raises
    ScenarioError; a wrong call raises RequestError and changes nothing. Ctrl-C closes the session.
    """

    def __init__(self, scenario: Scenario, *, seed: int | None = None, record: bool = False, **sets: Unpack[Settings]) -> None:
        text, is_dict = asked(scenario)
        given: dict[str, Any] = dict(sets) if seed is None else {**sets, "seed": seed}
        self._native = _native.Session(text, is_dict, as_json(given), flag("record", record), _warn)
        self._result: Result | None = None

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self._native.name

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self._native.ranks

    @property
    def now(self) -> int:
        """Time of the last event, or the time up to which the run has gone without any, in picoseconds."""
        return self._native.now

    @property
    def idle(self) -> bool:
        """True if the last call found that no event comes unless the program sends more."""
        return self._native.idle

    @property
    def ended(self) -> bool:
        """True if the run has ended early: it stalled or reached `stop.after`. `finish` tells why."""
        return self._native.ended

    def send(self, id: int, src: int, dst: int, bytes: int | str, tag: int = 0) -> None:
        """Sends a message from rank `src` to rank `dst` now. `tag` selects one of the pair's queue pairs."""
        self._send(None, id, src, dst, bytes, tag)

    def send_at(self, at: int | str, id: int, src: int, dst: int, bytes: int | str, tag: int = 0) -> None:
        """Sends a message at the time `at`, which is now or later."""
        self._send(_time("at", at), id, src, dst, bytes, tag)

    def _send(self, at: int | None, id: int, src: int, dst: int, bytes: int | str, tag: int) -> None:
        pair = (whole("src", src, bits=32), whole("dst", dst, bits=32))
        size = _read("bytes", bytes, _native.size)
        self._native.send(whole("id", id), pair, size, whole("tag", tag, bits=32), at)

    def instance(self, name: str, ranks: Sequence[int]) -> None:
        """Gives a name to the ranks of an instance, for `transfer`."""
        self._native.instance(name, _ranks("ranks", ranks))

    def transfer(self, id: int, src: Sequence[int] | str, dst: Sequence[int] | str, bytes: int | str) -> None:
        """Sends bytes from one instance to another, such as keys and values: their names, or their ranks. One event, `transferred`,
        comes at the first rank of `dst` when all bytes have arrived. Each rank of the larger instance sends or receives an equal part."""
        pair = [self._native.ranks_of(of) if isinstance(of, str) else _ranks(name, of) for name, of in (("src", src), ("dst", dst))]
        self._native.transfer(whole("id", id), pair[0], pair[1], _read("bytes", bytes, _native.size))

    def timer(self, id: int, rank: int, after: int | str) -> None:
        """Sets a timer of a rank, which fires `after` now."""
        self._native.timer(whole("id", id), whole("rank", rank, bits=32), _time("after", after))

    def next(self, until: int | str | None = None) -> Event | None:
        """The next event up to the time `until`. None means that `until` is now, that the session is `idle`, or that it has
        `ended`."""
        event = self._native.next(None if until is None else _time("until", until))
        return None if event is None else Event(*event)

    def advance(self, until: int | str) -> list[Event]:
        """All events up to the time `until`, in their order."""
        return [Event(*event) for event in self._native.advance(_time("until", until))]

    def finish(self, results_dir: StrPath | None = None) -> Result:
        """Plays everything sent to its end, and returns the results. With `results_dir`, writes them as `ropewalk run` does.

        Raises SimulationError if the simulation failed. After an error of `results_dir`, call `finish` again with another one.
        """
        if self._result is None:
            self._result = Result(self._native.finish())
        if results_dir is not None:
            self._result.save(results_dir)
        faults = self._result._native.faults
        if faults:
            raise SimulationError("\n".join(faults), faults, self._result)
        return self._result

    def close(self) -> None:
        """Drops the run if it is not finished."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ropewalk.Session of {self.name}: {self.ranks} ranks, at {self.now} ps>"


def _ranks(name: str, ranks: Sequence[int]) -> list[int]:
    return [whole(name, rank, bits=32) for rank in ranks]


def _time(name: str, value: int | str) -> int:
    return _read(name, value, _native.picoseconds)


def _read(name: str, value: int | str, read: Callable[[str], int]) -> int:
    """A number, or a text with a unit."""
    if not isinstance(value, str):
        return whole(name, value)
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _warn(text: str) -> None:
    warn(text, level=4)

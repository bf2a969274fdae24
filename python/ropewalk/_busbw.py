"""Is the bus bandwidth of a log what it should be, and if not, why? The answer of `ropewalk busbw`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ropewalk import _native
from ropewalk._results import StrPath


class Busbw:
    """The answer about one or several logs. `print` shows it as the command does."""

    def __init__(self, answer: tuple[str, str, str]) -> None:
        self._json, self._text, self._page = answer
        self._answer: dict[str, Any] = json.loads(self._json)

    @property
    def verdict(self) -> str:
        """The verdict on sizes from 64 MiB on: `as-expected`, `expected-for-this-protocol`, `below`, `above` or `cannot-tell`."""
        return str(self._answer["verdict"])

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        return str(self._answer["headline"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict per size: bytes, time, measured and expected bandwidth, verdict."""
        return list(self._answer["rows"])

    @property
    def suspects(self) -> list[dict[str, Any]]:
        """A dict per suspect, likeliest first: name, probability, evidence for and against, and what to run next."""
        return list(self._answer["suspects"])

    def to_dict(self) -> dict[str, Any]:
        """All of the answer, as `ropewalk busbw --json` prints it."""
        return dict(self._answer)

    def report(self, path: StrPath) -> Path:
        """Writes the answer as a page: one HTML file that works offline."""
        Path(path).write_text(self._page, encoding="utf-8")
        return Path(path)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Busbw: {self.headline}>"


def busbw(
    logs: StrPath | Iterable[StrPath],
    *,
    cluster: str | None = None,
    fabric: str | None = None,
    more: Iterable[StrPath] = (),
    collective: str | None = None,
    call: tuple[float, float] | None = None,
    racks: str | None = None,
    simulate: bool = False,
) -> Busbw:
    """Says whether the bus bandwidth of logs of nccl-tests is what it should be, and which causes fit if it is not.

    `cluster` describes the cluster, such as "8 nodes, 8 h100, 8x400G"; `fabric` names a scenario in its place. `more` has
    NCCL's own log and its topology. `call` is the time that the program adds to a call, us: least and most. `racks` has the
    hosts below each ToR: "a b / c d". Raises ScenarioError for a wrong description, or a log without measurements.
    """
    paths = [logs] if isinstance(logs, (str, os.PathLike)) else list(logs)
    return Busbw(
        _native.busbw(
            [os.fspath(path) for path in paths],
            [os.fspath(path) for path in more],
            cluster,
            fabric,
            collective,
            call,
            racks,
            simulate,
        )
    )

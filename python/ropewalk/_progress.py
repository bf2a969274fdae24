"""Progress of a call: one line in a notebook or on a terminal, updated in place, if the call takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

Progress = bool | Callable[[float, str], object] | None

# Seconds before the line appears. Our choice: a shorter call needs no line.
PATIENCE_S = 1.0
EVERY_S = 0.2


class Line:
    """Receives `(fraction, text)` and shows it as `progress` says. None: in a notebook or on a terminal. True: always.
    False: never. A function is called with both values."""

    def __init__(self, progress: Progress, what: str) -> None:
        self.what = what
        self.begun = self.last = time.monotonic()
        self.handle: Any = None
        self.width = 0
        self.tell = progress if callable(progress) else None
        self.notebook = self.tell is None and progress is not False and _in_notebook()
        self.shown = progress is True or (progress is None and (self.notebook or sys.stderr.isatty()))

    @property
    def listener(self) -> Callable[[float, str], object] | None:
        """Function for Rust to call, or None if progress is not shown."""
        return self.tell or (self.show if self.shown else None)

    def show(self, fraction: float, text: str) -> None:
        now = time.monotonic()
        if now - self.begun < PATIENCE_S or now - self.last < EVERY_S:
            return
        self.last = now
        line = f"{self.what}: {100 * fraction:3.0f} %  {text}"
        if self.notebook:
            self._display(line)
        else:
            sys.stderr.write("\r" + line.ljust(self.width))
            sys.stderr.flush()
            self.width = len(line)

    def _display(self, line: str) -> None:
        from IPython.display import display

        content = {"text/plain": line}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Removes the line."""
        if self.handle is not None:
            self.handle.update({"text/plain": ""}, raw=True)
        elif self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


def _in_notebook() -> bool:
    """True in a Jupyter kernel, and False for IPython in a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"

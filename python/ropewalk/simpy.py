"""The fabric as the network of a SimPy model. Needs `pip install simpy`.

    env = simpy.Environment()                     # counts picoseconds, in whole numbers
    net = ropewalk.simpy.Network(env, session)
    arrival = yield net.send(0, 5, "1MB")         # in a process: sleeps until the message has arrived
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator
from typing import Any

import simpy

from ropewalk._session import Session


class Network:
    """Sends the messages of SimPy's processes through a session.

    The environment counts picoseconds, in whole numbers. If the run ends early, `session.ended` is True, and processes that
    wait for a message stay asleep.
    """

    def __init__(self, env: simpy.Environment, session: Session) -> None:
        self.env = env
        self.session = session
        self._ids = itertools.count()
        self._arrivals: dict[int, simpy.Event] = {}
        self._called = env.event()
        env.process(self._play())

    def send(self, src: int, dst: int, bytes: int | str, tag: int = 0) -> simpy.Event:
        """Sends a message now. The SimPy event succeeds at its arrival, with the `ropewalk.Event` as its value."""
        id = next(self._ids)
        self.session.send_at(int(self.env.now), id, src, dst, bytes, tag)
        self._arrivals[id] = self.env.event()
        if not self._called.triggered:
            self._called.succeed()
        return self._arrivals[id]

    def _play(self) -> Generator[simpy.Event, Any, None]:
        """Alternates between both clocks: the fabric never passes SimPy's next event, which may send."""
        while not self.session.ended:
            peek = self.env.peek()
            event = self.session.next(None if math.isinf(peek) else int(peek))
            if event is not None:
                yield self.env.timeout(event.ps - self.env.now)
                if event.kind == "received":
                    self._arrivals.pop(event.id).succeed(event)
            elif self.session.idle:
                self._called = self.env.event()
                yield self._called
            else:
                yield self.env.timeout(peek - self.env.now)

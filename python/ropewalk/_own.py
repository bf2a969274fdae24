"""Schemes and congestion controls in Python, for prototypes: a class decides, and the engine calls it."""

from __future__ import annotations

import inspect
import json
import math
import re
import secrets
from typing import Any, TypeVar

from ropewalk import _native
from ropewalk._errors import RequestError

C = TypeVar("C", bound=type)

# Methods by which a class says where its scheme sits, and that it is a congestion control.
IN_SWITCHES = "on_packet"
IN_SENDERS = "on_send"
CONTROLS = "on_ack"

# The class of each registered name of a kind, so that a class is registered once.
_known: dict[tuple[str, str], type] = {}


def register_scheme(cls: C, /) -> C:
    """Makes a class a scheme, which scenarios and `schemes=` then name. Works as a decorator, and returns the class.

    The scheme's name is the attribute `name`, or the class's name in small letters with hyphens: TwoChoices is `two-choices`. A class of the
    same name that comes later replaces it. The parameters of `__init__` are its settings, and need defaults; raise ValueError for values
    that cannot work. What it is, is the first line of its docstring.

    A scheme in switches has `on_packet(self, switch, packet, ports)`. It is called for each data packet that has a choice, and returns one of
    `ports`. Each switch has an object of its own. `switch` has `now` (ps), `ingress`, `from_host`, `name`, and `pick(n)`, `hash(n)` and
    `queue(port)`; the last needs `queues = True` in the class. `packet` has `qp`, `psn`, `to`, `frame`, `last` and `again`.

    A scheme in sending NICs has `on_send(self, sender, packet)`, which returns an entropy from 0 to 65535, by which switches hash. Each queue
    pair has an object of its own. `sender` has `now` (ps), `qp` and `pick(n)`, and `packet` has `seq`, `frame`, `again` and `left`. It may have
    `on_reply(self, sender, reply)`, with the reply's `una`, `entropy`, `marked` and `cut`, and `on_timeout(self, sender)`.

    `sprays = False` says that packets of a queue pair do not overtake each other by this scheme. For equal seeds to give equal results, a
    class draws by `pick` alone. An exception of a method stops the run, which raises `ropewalk.SchemeError`.
    """
    if not inspect.isclass(cls):
        raise TypeError(f"a scheme in Python is a class, not {cls!r}")
    title = cls.__name__
    methods = [method for method in (IN_SWITCHES, IN_SENDERS) if callable(getattr(cls, method, None))]
    if len(methods) != 1:
        found = "both" if methods else "neither"
        raise RequestError(f"{title} needs `on_packet`, to sit in switches, or `on_send`, to sit in sending NICs; it has {found}")
    name = _name(cls)
    _native.register_scheme(
        cls,
        title,
        name,
        _about(cls, "A scheme in Python."),
        json.dumps(_defaults(cls)),
        bool(getattr(cls, "sprays", True)),
        bool(getattr(cls, "queues", False)),
        methods[0] == IN_SENDERS,
        secrets.randbits(64),
    )
    _known["scheme", name] = cls
    return cls


def register_control(cls: C, /) -> C:
    """Makes a class a congestion control, which `nic__congestion=` then names. Works as a decorator, and returns the class.

    Name, settings and description are as those of `register_scheme`. Each queue pair has an object of its own. The control keeps its window in
    packets, at least 1, in the attribute `window`; with `paces = True` in the class, it also keeps its rate in bit/s in `rate`. Both are read
    after each call of a method. Without a rate, packets within the window leave at line rate.

    `start(self, path)` is called first; `path` has `line_rate` (bit/s), `round_trip` (ps, on an idle fabric) and `bdp` (packets).
    `on_ack(self, now, packets, marked)` is called for each ACK, with the packets that it acknowledges for the first time. The class may have
    `on_cnp(self, now)`, also for NACKs and timeouts if `nic.on-nack` and `nic.on-timeout` say "as-cnp", `on_nack(self, now)` and
    `on_timeout(self, now)`. With `marks = True` receivers put marks on replies, and `marked` tells them; else marks come as CNPs.
    """
    if not inspect.isclass(cls):
        raise TypeError(f"a congestion control in Python is a class, not {cls!r}")
    for method in ("start", CONTROLS):
        if not callable(getattr(cls, method, None)):
            raise RequestError(f"{cls.__name__} needs a method `{method}`")
    name = _name(cls)
    told = [method for method in ("on_cnp", "on_nack", "on_timeout") if callable(getattr(cls, method, None))]
    _native.register_control(
        cls,
        cls.__name__,
        name,
        _about(cls, "A congestion control in Python."),
        json.dumps(_defaults(cls)),
        bool(getattr(cls, "marks", False)),
        bool(getattr(cls, "paces", False)),
        told,
        secrets.randbits(64),
    )
    _known["control", name] = cls
    return cls


def named(part: Any, others: dict[tuple[str, str], type]) -> Any:
    """The name of a class, which becomes a scheme or a control if it is none; anything else stays as it is. `others` collects the classes of
    a call, in which no class may replace another."""
    if not inspect.isclass(part):
        return part
    controls = callable(getattr(part, CONTROLS, None))
    kind, register = ("control", register_control) if controls else ("scheme", register_scheme)
    name = _name(part)
    if others.setdefault((kind, name), part) is not part:
        raise RequestError(f"two classes are named `{name}`; give one an attribute `name`")
    if _known.get((kind, name)) is not part:
        register(part)
    return name


def _name(cls: type) -> str:
    return getattr(cls, "name", None) or _hyphened(cls.__name__)


def _about(cls: type, otherwise: str) -> str:
    return (inspect.getdoc(cls) or otherwise).splitlines()[0]


def _hyphened(title: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", title).replace("_", "-").lower()


def _defaults(cls: type) -> dict[str, Any]:
    """Settings and their defaults: the parameters of `__init__`."""
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    settings = {}
    for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]:  # type: ignore[misc]
        default = parameter.default
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RequestError(f"{cls.__name__}.__init__: `{name}` cannot be a setting; a setting is a parameter with a default")
        if not isinstance(default, (bool, int, float, str)):
            raise RequestError(
                f"{cls.__name__}.__init__: the setting `{name}` needs a default that is a number, a string, True or False"
            )
        if isinstance(default, float) and not math.isfinite(default):
            raise RequestError(f"{cls.__name__}.__init__: the setting `{name}` needs a finite default, and {default} is none")
        settings[name.replace("_", "-")] = default
    return settings

"""Schemes in Python, for prototypes: a class decides, and the engine calls it."""

from __future__ import annotations

import inspect
import json
import re
import secrets
from typing import Any, TypeVar

from ropewalk import _native
from ropewalk._errors import RequestError

C = TypeVar("C", bound=type)

# Methods by which a class says where its scheme sits.
IN_SWITCHES = "on_packet"
IN_SENDERS = "on_send"

# The class of each registered name, so that a class is registered once.
_known: dict[str, type] = {}


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
    name = getattr(cls, "name", None) or _hyphened(title)
    about = (inspect.getdoc(cls) or "A scheme in Python.").splitlines()[0]
    _native.register_scheme(
        cls,
        title,
        name,
        about,
        json.dumps(_defaults(cls)),
        bool(getattr(cls, "sprays", True)),
        bool(getattr(cls, "queues", False)),
        methods[0] == IN_SENDERS,
        secrets.randbits(64),
    )
    _known[name] = cls
    return cls


def named(scheme: Any) -> Any:
    """The name of a class, which becomes a scheme if it is none; anything else stays as it is."""
    if not inspect.isclass(scheme):
        return scheme
    name = getattr(scheme, "name", None) or _hyphened(scheme.__name__)
    if _known.get(name) is not scheme:
        register_scheme(scheme)
    return name


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
        settings[name.replace("_", "-")] = default
    return settings

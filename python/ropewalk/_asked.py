"""Converts arguments for Rust: names stay names, dicts become JSON. The rules of a scenario are in Rust alone."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ropewalk._errors import RequestError, ScenarioWarning
from ropewalk._own import named

Scenario = str | os.PathLike[str] | Mapping[str, Any]


def asked(what: Scenario) -> tuple[str, bool]:
    """The scenario as a text for Rust, and True if it is a dict. A scenario is a path, the name of a built-in one, or a
    dict."""
    if isinstance(what, Mapping):
        return as_json(what), True
    if isinstance(what, (str, os.PathLike)):
        return os.fspath(what), False
    raise TypeError(f"a scenario is a path, the name of a built-in one, or a dict, not {type(what).__name__}")


def as_json(value: Any) -> str:
    classes: dict[tuple[str, str], type] = {}
    try:
        return json.dumps(value, default=lambda part: _plain(part, classes), allow_nan=False)
    except RequestError:
        raise  # It is about a class.
    except ValueError as error:
        raise ValueError(f"TOML cannot express this value: {error}") from None


def _plain(value: Any, classes: dict[tuple[str, str], type]) -> Any:
    """Converts paths, ranges, other mappings, numpy's numbers and arrays, and classes that are schemes."""
    if isinstance(value, type):
        return named(value, classes)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, range):
        return list(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"TOML cannot express a value of type {type(value).__name__}: {value!r}")


def seeds(which: Any) -> str | None:
    """Seeds as a text, from `7`, `"1..5"`, `[1, 2, 7]` or `range(1, 6)`."""
    if which is None or isinstance(which, str):
        return which
    if isinstance(which, int):
        return str(which)
    return ",".join(str(seed) for seed in which)


def schemes(which: Any) -> list[str]:
    """Names of schemes, from `["ecmp", "themis"]` or `"ecmp,themis"`; a class stands for the scheme that it is."""
    names = which.split(",") if isinstance(which, str) else list(which) if isinstance(which, Iterable) else None
    classes: dict[tuple[str, str], type] = {}
    names = None if names is None else [named(name, classes) for name in names]
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(f'schemes are a list of names such as ["ecmp", "themis"], or "ecmp,themis", not {which!r}')
    names = [name.strip() for name in names]
    if not all(names) or not names:
        raise ValueError(f'expected at least one scheme, as ["ecmp", "themis"] or "ecmp,themis"; found {which!r}')
    return names


def count(name: str, value: Any) -> Any:
    """A number of threads or jobs, or None. It is checked here, because Rust's message would not name the argument."""
    return None if value is None else whole(name, value, 1, 32)


def whole(name: str, value: Any, least: int = 0, bits: int = 64) -> int:
    """A whole number of at most `bits` bits."""
    wanted = f"{name} is a whole number from {least}, not {value!r}"
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(wanted) from None
    if isinstance(value, bool):
        raise TypeError(wanted)
    if not least <= number < 2**bits:
        raise ValueError(wanted)
    return number


def flag(name: str, value: Any) -> bool:
    """True or False, also as numpy's type."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(plain, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    return plain


def warn(text: str, level: int = 3) -> None:
    """Warns at the caller's line about a valid but suspicious setting."""
    warnings.warn(text, ScenarioWarning, stacklevel=level)


def leave(fast: bool | float, memo: str | os.PathLike[str] | None) -> tuple[float, str | None] | None:
    """How much may be left out: the largest error as a share, and the directory of records that outlast a run."""
    if fast is False:
        if memo is not None:
            raise ValueError("`memo` keeps what repeats, which only runs with `fast` leave out")
        return None
    if fast is not True and (not isinstance(fast, (int, float)) or not 0 < fast <= 1):
        raise ValueError(f"`fast` is True or a share above 0 and up to 1, such as 0.01; found {fast!r}")
    return (0.01 if fast is True else float(fast)), None if memo is None else os.fspath(memo)

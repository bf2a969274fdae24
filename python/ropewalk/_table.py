"""A table of results, which libraries with Arrow support read directly."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ropewalk import _native

HEAD = 10


class Table:
    """Columns of equal length, each with a unit and a description.

    pandas, polars, DuckDB and pyarrow read it without a copy, by the Arrow PyCapsule interface: `polars.DataFrame(table)`,
    `pyarrow.table(table)`, `duckdb.sql("FROM table")`. Without these libraries, `table["fct_us"]` is a list; a missing value is
    None.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def column_names(self) -> list[str]:
        return [name for name, _, _ in self._native.columns]

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column; `-` for a column without a unit."""
        return {name: unit for name, unit, _ in self._native.columns}

    @property
    def descriptions(self) -> dict[str, str]:
        """Meaning of each column."""
        return {name: about for name, _, about in self._native.columns}

    @property
    def every(self) -> int:
        """1 if all rows were kept, and n if every n-th row was kept."""
        return self._native.every

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, name: str) -> list[Any]:
        return self._native.column(name)

    def __contains__(self, name: object) -> bool:
        return name in self.column_names

    def __iter__(self) -> Iterator[str]:
        return iter(self.column_names)

    def to_dict(self) -> dict[str, list[Any]]:
        """A dict of lists, by column."""
        return {name: self[name] for name in self.column_names}

    def to_arrow(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        import pandas

        if hasattr(pandas.DataFrame, "from_arrow"):
            return pandas.DataFrame.from_arrow(self)
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        import polars

        return polars.DataFrame(self)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._native.__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<ropewalk.Table of {len(self)} rows: {', '.join(self.column_names)}>"

    def __str__(self) -> str:
        rows = list(zip(*(self[name][:HEAD] for name in self.column_names), strict=True))
        more = "" if len(self) <= HEAD else f"\nthe first {HEAD} of {len(self)} rows"
        units = [f"[{unit}]" if unit not in ("", "-") else "" for _, unit, _ in self._native.columns]
        return as_text(self.column_names, rows, units) + more

    def _repr_html_(self) -> str:
        columns = [self[name][:HEAD] for name in self.column_names]
        head = [f"{name}<br><small>{unit}</small>" for name, unit, _ in self._native.columns]
        more = f"{len(self)} rows" if len(self) <= HEAD else f"the first {HEAD} of {len(self)} rows"
        return as_html(head, zip(*columns, strict=True), more)


def number(value: Any) -> str:
    """A number with five digits; empty for a missing value."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"


def as_html(head: Iterable[str], rows: Iterable[Iterable[Any]], caption: str = "") -> str:
    """A small table in the notebook's colours, light or dark. `head` is HTML; cells are escaped."""
    line = "border-bottom:1px solid rgba(128,128,128,.4);padding:.25em .7em"

    def cell(value: Any) -> str:
        side = "right" if isinstance(value, (int, float)) and not isinstance(value, bool) else "left"
        return f'<td style="text-align:{side};{line}">{html.escape(number(value))}</td>'

    heads = "".join(f'<th style="text-align:left;{line}">{text}</th>' for text in head)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    said = (
        f'<caption style="caption-side:bottom;text-align:left;opacity:.75">{html.escape(caption)}</caption>' if caption else ""
    )
    return (
        '<table style="border-collapse:collapse;color:inherit;background:transparent;font-variant-numeric:tabular-nums">'
        f"{said}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def as_text(head: Sequence[str], rows: Sequence[Sequence[Any]], units: Sequence[str] = ()) -> str:
    """A table for a terminal: numbers to the right, text to the left."""
    lines = [list(head), *([list(units)] if any(units) else [])]
    top = len(lines)
    lines += [["-" if value is None else number(value) for value in row] for row in rows]
    right = [
        all(v is None or (isinstance(v, (int, float)) and not isinstance(v, bool)) for v in column)
        for column in zip(*rows, strict=True)
    ]
    right = right or [False] * len(head)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    said = [
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)).rstrip()
        for line in lines
    ]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([*said[:top], rule, *said[top:]])

"""Charts of the documentation, drawn from the tables of its pages, so that a chart and its table agree.

Colours come from the page (tools/style.css): orange for slow, teal for fast, which people with any colour vision tell apart.
"""

import html
import re
import textwrap
from math import log10
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]


def rows(page: str, first: str) -> list[list[str]]:
    """The rows of the table of a page whose header begins with `first`; the header comes first."""
    lines = (DOCS / page).read_text().split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith("|") and line.split("|")[1].strip() == first]
    if not starts:
        raise SystemExit(f"{page} has no table that begins with {first!r}")
    taken = []
    for line in lines[starts[0] :]:
        if not line.startswith("|"):
            break
        taken.append([cell.strip().replace("**", "") for cell in line.strip("|").split("|")])
    return [taken[0], *taken[2:]]


def figure(width: int, height: int, parts: list[str], caption: str) -> str:
    svg = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(caption)}">{"".join(parts)}</svg>'
    return f'<figure class="drawing chart">{svg}<figcaption>{html.escape(caption)}</figcaption></figure>'


def text(x: float, y: float, words: str, kind: str = "note") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{html.escape(words)}</text>'


# Upper bounds of the classes of a cell, as multiples of the best value of its column. Our choice.
CLASSES = ((1.05, "best"), (1.5, "near"), (3, "fair"), (10, "slow"), (float("inf"), "worst"))


def heat(page: str) -> str:
    """The first table of numbers of a page as a map: each cell beside the best of its column."""
    header, *body = rows(f"{page}.md", "")
    columns = list(range(2, len(header)))
    number = lambda cell: float(re.match(r"[\d.]+", cell)[0])  # noqa: E731
    best = {c: min(number(row[c]) for row in body) for c in columns}
    heads = [textwrap.wrap(header[c], 12, break_long_words=False, break_on_hyphens=False) for c in columns]
    left, top = 7 * max(len(row[0]) for row in body) + 16, 13 * max(map(len, heads)) + 14
    wide, tall = 88, 22
    parts = []
    for i, lines in enumerate(heads):
        for n, line in enumerate(lines):
            parts.append(text(left + (i + 0.5) * wide, top - 8 - 13 * (len(lines) - 1 - n), line, "word"))
    for j, row in enumerate(body):
        y = top + j * tall
        parts.append(text(left - 8, y + 15, row[0], "note right"))
        for i, c in enumerate(columns):
            times = number(row[c]) / best[c]
            kind = next(name for most, name in CLASSES if times <= most)
            parts.append(
                f'<rect class="{kind}" x="{left + i * wide + 1}" y="{y + 1}" width="{wide - 2}" height="{tall - 2}" rx="3"/>'
            )
            parts.append(text(left + (i + 0.5) * wide, y + 15, row[c].split()[0], "note"))
    said = (
        "P99 of the slowdown by scheme and case. Strong teal: within 5 % of the best of the column; light teal: within 50 %; "
        "blank: up to 3 times; light orange: up to 10 times; strong orange: more."
    )
    return figure(left + wide * len(columns) + 6, top + tall * len(body) + 6, parts, said)


def beside(page: str) -> str:
    """Our numbers as multiples of the papers', from the page's table `experiment | number | paper | ours`."""
    _, *body = rows(f"{page}.md", "experiment")
    left, top, wide, tall = 330, 30, 300, 20
    low, high = 0.5, 2.0
    x = lambda ratio: left + wide * (log10(ratio) - log10(low)) / (log10(high) - log10(low))  # noqa: E731
    bottom = top + tall * len(body)
    parts = []
    for ratio in (0.5, 0.67, 1, 1.5, 2):
        kind = "axis one" if ratio == 1 else "axis"
        parts.append(f'<line class="{kind}" x1="{x(ratio):.0f}" y1="{top - 4}" x2="{x(ratio):.0f}" y2="{bottom}"/>')
        parts.append(text(x(ratio), top - 10, f"{ratio:g}", "word"))
    for j, (experiment, what, theirs, ours) in enumerate(body):
        y = top + tall * (j + 0.5)
        ratio = float(ours.split()[0]) / float(theirs.split()[0])
        parts.append(text(left - 10, y + 4, f"{experiment.strip('`')}: {what}", "word right"))
        parts.append(f'<circle class="dot" cx="{x(min(max(ratio, low), high)):.1f}" cy="{y:.1f}" r="5"/>')
    said = "Our number divided by the paper's, on a logarithmic scale; at 1 both are equal."
    return figure(left + wide + 30, bottom + 10, parts, said)

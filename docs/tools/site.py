"""Text of the documentation that the program and the code give, and hooks of the documentation site.

A page marks the place by a comment on a line of its own, `<!-- kind: argument -->`. What is drawn is inserted when the site is built.
All other text stands in the page, down to a line `<!-- end -->`, so that it can be read without the site: `make pages` writes it, and
a test compares it with the program and the code.

    <!-- settings: scheme.themis -->    the settings of a table of a scenario, from its JSON Schema
    <!-- scenario -->                   the keys of a scenario at the top level, with the pages that describe them
    <!-- scenario: nic -->              the settings of these keys of a scenario; each key is on one page of docs/scenario
    <!-- sweep -->                      all settings of a sweep
    <!-- commands -->                   all commands, from the parser
    <!-- summary -->                    the keys of summary.json
    <!-- metrics -->                    the metrics of a run, with units and meanings
    <!-- tables -->                     the columns of every Parquet file that a run writes
    <!-- recorded -->                   the columns of the files that only a recording run writes
    <!-- scenarios -->                  the built-in scenarios
    <!-- experiments -->                the papers' experiments
    <!-- schemes -->                    the schemes, with links to their pages
    <!-- feedbacks -->                  the feedbacks, with links to their pages
    <!-- picture: themis -->            a drawing of pictures.py
    <!-- heat: which-scheme -->         a page's table as a map of colours, see charts.py
    <!-- beside: papers -->             our numbers beside the papers', from the page's table, see charts.py
    <!-- measured: Themis -->           rows of the table of docs/which-scheme.md, beside ECMP
    <!-- fabric: scheme=rps -->          the fabric in the browser with these settings, see fabric.py
    <!-- source: a/file.rs -->          a source file without its tests; `from "X" to "Y"` selects a part
    <!-- hardware -->                   the models of NICs, NCCL and switches, figure by figure with their sources
    <!-- counters: themis -->           a scheme's counters, from the head of its file
    <!-- speed -->                      the last release's figures of `make bench`
    <!-- rules -->                      the rules of captures, from the heads of the checkers' files
    <!-- nvidia-names -->               NVIDIA's names of settings, with units
    <!-- hpcc-keys -->                  the keys of the HPCC family's configurations, and the settings that they become

    python3 docs/tools/site.py           writes the text into the pages
    python3 docs/tools/site.py --check   names the pages whose text is old

The program is $ROPEWALK, or target/release/ropewalk, or target/debug/ropewalk.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import charts  # noqa: E402
import fabric  # noqa: E402
import pictures  # noqa: E402
import settings  # noqa: E402
from settings import inline  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NO_RUN = re.compile(r'^```(console|python) (?:no-run reason|needs)="(.+)"$', re.MULTILINE)
DRAWN = ("picture", "heat", "beside", "fabric")
DIRECTIVE = re.compile(r"^<!-- (?!end -->)([\w-]+)(?:: (.+?))? -->$", re.MULTILINE)
WRITTEN = re.compile(r"^<!-- end -->$", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def program() -> Path:
    """The program that the site describes."""
    named = os.environ.get("ROPEWALK")
    places = [Path(named)] if named else [ROOT / "target" / kind / "ropewalk" for kind in ("release", "debug")]
    for place in places:
        if place.is_file():
            return place.resolve()
    raise SystemExit(f"there is no {' and no '.join(map(str, places))}: run `make workshop`, or set ROPEWALK")


def ask(*words: str, cwd: Path | None = None, of: str = "ropewalk") -> str:
    """Runs the program, or another one beside it, and returns its output."""
    place = program().with_name(of)
    if not place.is_file():
        raise SystemExit(f"there is no {place}: run `make workshop`")
    done = subprocess.run([place, *words], cwd=cwd, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise SystemExit(f"{of} {' '.join(words)} failed:\n{done.stderr}")
    return done.stdout


@cache
def reference() -> dict:
    """The output of `ropewalk-workshop reference`: parser, schemas and lists."""
    return json.loads(ask("reference", of="ropewalk-workshop"))


# --- the text of each directive --------------------------------------------------------------------------------------


@cache
def scenario_reference() -> settings.Reference:
    """The settings of a scenario on the pages of docs/scenario."""
    pages = {}
    for page in sorted((DOCS / "scenario").glob("*.md")):
        if found := re.findall(r"^<!-- scenario: (.+) -->$", page.read_text(), re.MULTILINE):
            pages[page.name] = " ".join(found).split()
    guides = {}
    for guide in sorted(DOCS.rglob("*.md")):
        for table in re.findall(r"^<!-- settings: (.+) -->$", guide.read_text(), re.MULTILINE):
            guides.setdefault(table, f"../{guide.relative_to(DOCS).as_posix()}")
    return settings.Reference(reference()["scenario"], pages, guides)


def scenario(keys: str) -> str:
    """The settings of some keys of a scenario, or a table of all keys with their pages."""
    of = scenario_reference()
    if keys:
        return "\n\n".join(of.texts[key] for key in keys.split())
    rows = [f"| [`{key}`](scenario/{page}#{settings.anchor(key)}) | {about} |" for key, page, about in of.table()]
    return "\n".join(["| key | what it sets |", "|---|---|", *rows])


def sweep(_: str) -> str:
    """The settings of a sweep."""
    root = json.loads(ask("schema", "sweep"))
    of = settings.Reference(root, {"sweep.md": list(root["properties"])}, {})
    return "\n\n".join(of.texts.values())


def commands(_: str) -> str:
    return "\n\n".join(command(c) for c in reference()["commands"])


def command(of: dict, level: int = 2) -> str:
    name = of["name"]
    parts = [settings.heading(level, name, name.replace(" ", "-")), of["about"] + "."]
    parts.append("```text\n" + of["usage"].removeprefix("Usage: ") + "\n```")
    rows = [argument(a) for a in of["arguments"]]
    if rows:
        parts.append('<dl class="keys">\n' + "\n".join(rows) + "\n</dl>")
    if of["after"] and not of["commands"]:
        parts.append("```text\n" + of["after"] + "\n```")
    return "\n\n".join(parts + [command(c, level + 1) for c in of["commands"]])


def argument(of: dict) -> str:
    values = " ".join(f"<{v}>" for v in of["values"])
    words = [f"-{of['short']}"] if of["short"] else []
    words += [f"--{of['long']}"] if of["long"] else []
    term = f"<code>{inline_code(', '.join(words) + ' ' + values if words else values)}</code>"
    notes = ["repeatable"] * of["repeatable"] + ["required"] * of["required"]
    kind = f' <span class="kind">{", ".join(notes)}</span>' if notes else ""
    text = "".join(f"<p>{inline(sentence(p))}</p>" for p in (of["help"] or "").split("\n\n"))
    if of["default"]:
        text += f'<p class="default">Default <code>{of["default"]}</code>.</p>'
    choices = [c for c in of["choices"] if c["help"]]
    if choices:
        items = "".join(f"<li><code>{c['name']}</code>: {inline(sentence(c['help']))}</li>" for c in choices)
        text += f"<ul>{items}</ul>"
    elif of["choices"]:
        text += "<p>One of " + ", ".join(f"<code>{c['name']}</code>" for c in of["choices"]) + ".</p>"
    return f"<dt>{term}{kind}</dt><dd>{text}</dd>"


def inline_code(text: str) -> str:
    return text.strip().replace("&", "&amp;").replace("<", "&lt;")


def tables(_: str) -> str:
    """Columns of the files that every run writes, from their metadata."""
    return "\n\n".join(columns().values())


def recorded(_: str) -> str:
    """Columns of the files that only a recording run writes."""
    always = columns()
    return "\n\n".join(text for name, text in columns("--record", "--set", "record.queues=true").items() if name not in always)


@cache
def columns(*words: str) -> dict[str, str]:
    """Runs a small scenario and lists the columns of each file."""
    import pyarrow.parquet

    parts = {}
    with tempfile.TemporaryDirectory() as folder:
        # A run with GPUs whose messages are split has all tables.
        job = '{split={subflows=2,paths="free"},collective={kind="all-reduce",bytes="64KB"}}'
        small = ["--set", f"workload=[{job}]", "-o", "out", "--quiet"]
        ask("run", "quickstart", *small, *words, cwd=Path(folder))
        for file in sorted(Path(folder, "out").glob("*.parquet")):
            rows = ["| column | unit | meaning |", "|---|---|---|"]
            for field in pyarrow.parquet.read_schema(file):
                about = {k.decode(): v.decode() for k, v in (field.metadata or {}).items()}
                unit = about.get("unit", "-").replace("-", "")
                rows.append(f"| `{field.name}` | {unit} | {about['description']} |")
            parts[file.name] = f"### `{file.name}`\n\n" + "\n".join(rows)
    return parts


def sentence(text: str) -> str:
    """Restores the full stop that clap removes."""
    return text if text.endswith((".", "]", ")")) else text + "."


def metrics(_: str) -> str:
    """The metrics of a run: keys of the summary, and columns of a sweep."""
    rows = ["| metric | unit | what | share of | better |", "|---|---|---|---|---|"]
    for of in reference()["metrics"]:
        unit = of["unit"].replace("-", "")
        whole = f"`{of['share_of']}`" if of["share_of"] else ""
        rows.append(f"| `{of['name']}` | {unit} | {of['meaning']} | {whole} | {of['better'] or ''} |")
    return "\n".join(rows)


def scenarios(_: str) -> str:
    rows = [f"| `{s['name']}` | {s['about']} |" for s in reference()["scenarios"]]
    return "\n".join(["| name | content |", "|---|---|", *rows])


def experiments(_: str) -> str:
    rows = [f"| `{e['name']}` | {e['source']} | {e['about']} |" for e in reference()["experiments"]]
    return "\n".join(["| name | from | what it shows |", "|---|---|---|", *rows])


def schemes(_: str) -> str:
    """List of the schemes, each with a link to its page, or to its settings if it has no page."""
    rows = []
    for name, about in settings.options(reference()["scenario"], "scheme"):
        page = f"{name}.md" if (DOCS / "schemes" / f"{name}.md").is_file() else f"../scenario/schemes.md#scheme-{name}"
        rows.append(f"| [`{name}`]({page}) | {about.partition(': ')[2] or about} |".replace("\n", " "))
    return "\n".join(["| scheme | what it does |", "|---|---|", *rows])


def feedbacks(_: str) -> str:
    """List of the feedbacks, each with a link to its page."""
    rows = [
        f"| [`{name}`]({name}.md) | {about.partition(': ')[2] or about} |".replace("\n", " ")
        for name, about in settings.options(reference()["scenario"], "feedback")
        if name != "none"
    ]
    return "\n".join(["| feedback | what it does |", "|---|---|", *rows])


def measured(names: str) -> str:
    """Rows of the table of all schemes, beginning with the baseline."""
    rows = [line for line in (DOCS / "which-scheme.md").read_text().split("\n") if line.startswith("|")]
    head, line, *rows = rows
    by_name = {row.split("|")[1].strip(): row for row in rows}
    wanted = list(dict.fromkeys(["ECMP", *(name.strip() for name in names.split(";"))]))
    if missing := [name for name in wanted if name not in by_name]:
        raise SystemExit(f"the table of which-scheme.md has no row {missing}")
    about = (
        "Cells are the P99 of the slowdown, with the mean in brackets, as [measured for all schemes]"
        "(../which-scheme.md) on a fat tree of 128 hosts at 200 Gb/s, with DCQCN and selective repeat. "
        "The columns with failures show the median of three seeds, with the range in brackets."
    )
    return "\n".join([about, "", head, line, *(by_name[name] for name in wanted)])


def hardware(_: str) -> str:
    """Tables of the models of NICs, NCCL and switches: figures, their sources, and what is unknown."""
    folder = ROOT / "crates" / "scenario" / "hardware"
    listed = {entry["name"]: entry["about"] for kind in json.loads(ask("list", "nics", "nccl", "costs", "switches", "--json")).values() for entry in kind}

    def tables(path: Path, heading: str) -> list[str]:
        of = tomllib.loads(path.read_text())
        parts = [f"### {heading}", listed.get(path.stem, "")]
        if limits := of.get("limits"):
            most = ", ".join(f"{key} {value}" for key, value in limits.items() if key != "source")
            parts.append(f"At most: {most} ({limits['source']}).")
        if included := of.get("include"):
            parts.append("With the figures of " + ", ".join(f"[{name}](#{name})" for name in included) + ".")
        rows = [f"| `{f['key']}` | `{plain(f['value'])}` | {f['source']} |" for f in of.get("figure", [])]
        parts.append("\n".join(["| key | value | source |", "|---|---|---|", *rows]))
        parts.append("\n".join(f"* Unknown: {u['what']}." for u in of.get("unknown", [])))
        return [part for part in parts if part]

    def plain(value) -> str:
        return value if isinstance(value, str) else json.dumps(value).replace('"', "").replace("{}", "its defaults")

    text = []
    headings = {"nccl": "NCCL {}", "cost": "Costs on {}"}
    for kind in ("nic", "nccl", "cost", "switch"):
        for path in sorted((folder / kind).glob("*.toml"), key=lambda path: (path.stem not in listed, path.stem)):
            text += tables(path, headings.get(kind, "{}").format(path.stem))
    return "\n\n".join(text)


def counters(name: str) -> str:
    """Counters of a scheme or a feedback: the tables under `# Counters` in the documentation of its file."""
    text = (ROOT / "crates" / "schemes" / "src" / f"{name}.rs").read_text()
    docs = [line.removeprefix("//!").strip() for line in text.split("\n") if line.startswith("//!")]
    taken = []
    for line in docs[docs.index("# Counters") + 1 :] if "# Counters" in docs else []:
        if line.startswith("#"):
            break
        taken.append(line)
    if not taken:
        raise SystemExit(f"crates/schemes/src/{name}.rs has no `# Counters`")
    return LINK.sub(lambda found: f"{found[1]}../../{found[2]}{found[3]}", "\n".join(taken))


def source(of: str) -> str:
    """A file of the repository, or its part between two lines."""
    found = re.fullmatch(r'(\S+)(?: from "(.+)" to "(.+)")?', of)
    path, first, last = found.groups()
    text = (ROOT / path).read_text()
    if first:
        lines = text.split("\n")
        if first not in lines or last not in lines[lines.index(first) :]:
            raise SystemExit(f"{path} has no part from {first!r} to {last!r}")
        start = lines.index(first)
        text = "\n".join(lines[start : lines.index(last, start) + 1])
    else:
        text = text.split("\n#[cfg(test)]\nmod tests")[0]
    return f'```rust title="{path}"\n{text.strip()}\n```'


def hpcc_keys(_: str) -> str:
    """The keys of the HPCC simulators' configuration files; those without effect on packets as one sentence."""
    keys = reference()["hpcc_keys"]
    silent = "no effect on packets"
    cell = lambda text: text.replace("|", "\\|")
    rows = [
        f"| `{key['name']}` | {key['of']} | {cell(key['meaning'])} | {cell(key['here'])} |"
        for key in keys
        if key["here"] != silent
    ]
    quiet = ", ".join(f"`{key['name']}`" for key in keys if key["here"] == silent)
    head = ["| key | read by | meaning there | setting here |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, "", f"These keys change no packet, and the import skips them: {quiet}."])


def speed(_: str) -> str:
    """Figures of `make bench-release`."""
    head = "| workload | M hops / CPU s | on 2 threads, wall | instr / hop | KB / host | set-up |\n|---|---|---|---|---|---|"
    rows = []
    for of in json.loads((ROOT / "crates/ropewalk/benches/release.json").read_text())["workloads"]:
        one, wall, two = (of[key] / 1e6 for key in ("hops_per_cpu_s", "hops_per_wall_s", "hops_per_wall_s_2"))
        counted = of["instructions_per_hop"]
        rows.append(
            f"| `{of['name']}`: {of['what']} | {one:.1f} | {two:.1f} ({two / wall:.2f}x) "
            f"| {'-' if counted is None else round(counted)} | {of['bytes_per_host'] / 1e3:.1f} | {of['setup_cpu_s'] * 1e3:.0f} ms |"
        )
    return "\n".join([head, *rows])


def rules(_: str) -> str:
    """Rules of captures by checker, from the lists at the heads of the checkers' files."""
    folder = ROOT / "frames" / "checkers" / "src"
    listed = re.findall(r"^//! \| \[`(\w+)`\]\S* \| (\d+: .+?) \|$", (folder / "lib.rs").read_text(), re.MULTILINE)
    rows = ["| checker | rule | broken if |", "|---|---|---|"]
    for name, about in listed:
        lines = (folder / f"{name}.rs").read_text().split("\n")
        head = "\n".join(line.removeprefix("//! ") for line in lines if line.startswith("//!")).replace("\n  ", " ")
        for rule, broken in re.findall(r"^\* `([\w-]+)`: (.+)$", head, re.MULTILINE):
            rows.append(f"| {about} | `{rule}` | {broken.replace(' ([`PATIENCE`])', '')} |")
            about = ""
    return "\n".join(rows)


def nvidia_names(_: str) -> str:
    """NVIDIA's names of settings and their units."""
    text = (ROOT / "crates/rnic/src/vendor.rs").read_text()
    units = dict(Microseconds="us", Mbps="Mb/s", Bytes="B", Count="events", Flag="0 or 1", Percent="%")
    units |= dict(Of1024="of 1024", Complement="1024 (1 - g)", Shift="11: alpha / 2, 10: alpha")
    rows = re.findall(r'name\(\s*"(\w+)",\s*"([\w.-]+)",\s*Unit::(\w+),?\s*\)', text)
    return "\n".join(
        ["| NVIDIA's name | unit | key of `[nic]` |", "|---|---|---|"]
        + [f"| `{vendor}` | {units[unit]} | `{key}` |" for vendor, key, unit in rows]
    )


MAKERS = {
    "speed": speed,
    "rules": rules,
    "nvidia-names": nvidia_names,
    "source": source,
    "measured": measured,
    "counters": counters,
    "settings": lambda path: settings.section(reference()["scenario"], path),
    "scenario": scenario,
    "sweep": sweep,
    "summary": lambda _: settings.summary(reference()["summary"]),
    "metrics": metrics,
    "commands": commands,
    "hpcc-keys": hpcc_keys,
    "tables": tables,
    "recorded": recorded,
    "scenarios": scenarios,
    "experiments": experiments,
    "schemes": schemes,
    "feedbacks": feedbacks,
    "picture": pictures.draw,
    "hardware": hardware,
    "heat": charts.heat,
    "beside": charts.beside,
    "fabric": fabric.frame,
}


# Sections of the navigation that follow the program's lists: their folder, and the settings that name the parts.
PARTS = {
    "Schemes": ("schemes", ["scheme"]),
    "Feedback": ("feedback", ["feedback"]),
    "NICs": ("nics", ["nic.transport", "nic.congestion"]),
}


def pages_of_parts(folder: str, keys: list[str], listed: list[str]) -> list[dict]:
    """Pages of a folder that the section lacks, in the order of the program's lists, by the first words of their headings."""
    names = [name for key in keys for name, _ in settings.options(reference()["scenario"], key)]
    order = {name: number for number, name in enumerate(names)}
    paths = sorted((DOCS / folder).glob("*.md"), key=lambda path: (order.get(path.stem, len(order)), path.stem))
    heading = lambda path: path.read_text().partition("\n")[0].removeprefix("# ").partition(":")[0]
    return [{heading(path): page} for path in paths if (page := f"{folder}/{path.name}") not in listed]


# --- text in the pages -----------------------------------------------------------------------------------------------


def with_text(page: Path) -> str:
    """A page with the text that the program and the code give now."""
    parts, at = [], 0
    text = page.read_text()
    for found in DIRECTIVE.finditer(text):
        what, of = found[1], found[2] or ""
        if what not in MAKERS:
            raise SystemExit(f"{page}: there is no directive {what!r}")
        if what in DRAWN:
            continue
        parts += [text[at : found.end()], f"\n\n{MAKERS[what](of)}\n\n<!-- end -->"]
        end, following = WRITTEN.search(text, found.end()), DIRECTIVE.search(text, found.end())
        has_text = end and not (following and following.start() < end.start())
        at = end.end() if has_text else found.end()
    return "".join(parts) + text[at:]


def write_texts(check: bool) -> int:
    """Writes the texts into all pages, or names the pages whose text is old; returns the exit code."""
    old = [(page, text) for page in sorted(DOCS.rglob("*.md")) if (text := with_text(page)) != page.read_text()]
    for page, text in old:
        print(f"{page.relative_to(ROOT)}: {'the text is old: run make pages' if check else 'written'}")
        if not check:
            page.write_text(text)
    return 1 if check and old else 0


# --- what mkdocs calls -----------------------------------------------------------------------------------------------


def on_config(config):
    """Adds the pages of schemes, feedbacks and NICs, and pages that mkdocs.yml does not list at the end, under More."""
    for section in config.nav:
        for title, pages in section.items():
            if title in PARTS:
                pages += pages_of_parts(*PARTS[title], pages)
    named = set(re.findall(r"[\w/-]+\.md", json.dumps(config.nav)))
    pages = sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md"))
    if more := [page for page in pages if page not in named]:
        config.nav.append({"More": more})
    return config


def on_files(files, config):
    """Turns notebooks into pages, with their stored outputs. Each notebook can be downloaded beside its page."""
    from mkdocs.structure.files import File
    from nbconvert import MarkdownExporter

    fabric.add(files, config)
    for notebook in sorted(DOCS.glob("notebooks/*.ipynb")):
        text, resources = MarkdownExporter().from_filename(str(notebook))
        for name, image in resources["outputs"].items():
            own = f"{notebook.stem}-{name}"
            text = text.replace(f"({name})", f"({own})")
            files.append(File.generated(config, f"notebooks/{own}", content=image))
        text += f'\n\n<a href="{notebook.name}" download>This page as a notebook</a>\n'
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=text))
    return files


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Inserts the text of directives, and turns links to files into links to the repository."""
    here = Path(page.file.src_uri).parent
    known = {f.src_uri for f in files}

    def link(base: Path):
        def rewrite(found: re.Match) -> str:
            target, _, anchor = found[2].partition("#")
            if not target or "://" in target or target.startswith("mailto:"):
                return found[0]
            path = Path(os.path.normpath(base / target))
            if path.suffix == ".ipynb":
                path = path.with_suffix(".md")  # its page, see on_files
            if path.is_relative_to("docs") and path.relative_to("docs").as_posix() in known:
                to = os.path.relpath(path.relative_to("docs"), here)
            elif (ROOT / path).exists():
                to = f"{config.repo_url.rstrip('/')}/blob/main/{path.as_posix()}"
            else:
                return found[0]
            return found[1] + to + ("#" + anchor if anchor else "") + found[3]

        return rewrite

    def make(found: re.Match) -> str:
        return MAKERS[found[1]](found[2] or "") if found[1] in DRAWN else ""

    # The reason why the tests do not run a command also informs the reader: it becomes the block's title.
    markdown = NO_RUN.sub(r'```\1 title="\2"', markdown)
    return DIRECTIVE.sub(make, LINK.sub(link(Path("docs") / here), markdown))


def on_post_page(output: str, page, config) -> str:
    """Makes a page work from the disk: the logo leads to a file, and nothing asks GitHub for the repository's stars."""
    output = re.sub(r'href="((?:\.\./)*\.{1,2})"', r'href="\1/index.html"', output)
    return output.replace(' data-md-component="source"', "")


if __name__ == "__main__":
    sys.exit(write_texts("--check" in sys.argv[1:]))

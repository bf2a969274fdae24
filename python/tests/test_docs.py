"""Every command in the documentation works, and prints the output that the page shows.

Commands are lines in fenced blocks that begin with `$ `. The lines below a command are its output. A line `...` stands for
any number of lines. The commands of a page run one after the other in a directory that holds the page's
blocks with a `title="NAME"` as files. The first line of a block may be

    ```console no-run reason="12 minutes"

Such a block is not run, but ropewalk must know its options and accept its scenario. The same holds for commands in
indented blocks. A comment `# exit 2` after a command gives its expected exit code. Without a comment, the expected code
is 0, or 2 if the page shows an error.

    pytest python/tests/test_docs.py          with ROPEWALK=..., or target/release/ropewalk, or target/debug/ropewalk
"""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

# Files that the pages use.
FILES = {
    "typo.toml": '[topology.leaf-spine]\nleaves = 4\nrate = "100Gbs"\n',
    "fabric.toml": "[server]\ngpus = 1\n[topology.rails]\nservers = 4\nspines = 2\n",
    "llama.goal": "num_ranks 2\nrank 0 {\nsend 8192b to 1 tag 0\n}\nrank 1 {\nrecv 8192b from 0 tag 0\n}\n",
    "trace.0.et": bytes.fromhex(
        "070a05302e302e34071201631804380536080112017318052a0100520c0a08636f6d6d5f6473743801520e0a09636f6d6d5f73697a65"
        "488040520c0a08636f6d6d5f7461673803"
    ),
    "trace.1.et": bytes.fromhex(
        "070a05302e302e34311201721806520c0a08636f6d6d5f7372633800520e0a09636f6d6d5f73697a65488040520c0a08636f6d6d5f"
        "7461673803"
    ),
    "spmd.0.et": bytes.fromhex(
        "070a05302e302e342708011201611807520d0a09636f6d6d5f747970654800520f0a09636f6d6d5f73697a6548808004"
    ),
    "step.txt": "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4\n1\n"
    "attn -1 1000 ALLREDUCE 4096 900 ALLREDUCE 4096 800 REDUCESCATTER 8192 100\n",
    "tree.topo": "Nodes 4\nTiers 2\nTier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 500\nRadix_Down 2\nRadix_Up 2\n"
    "Tier 1\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 500\nRadix_Down 2\n",
    "rails.simai": "8 2 2 2 9 H100\n4 5 6 7\n6 7 400Gbps 500ns 0\n"
    + "".join(f"{g} {4 + g // 2} 2880Gbps 25ns 0\n{g} {6 + g % 2} 400Gbps 500ns 0\n" for g in range(4)),
    "alltoall.cm": "Nodes 4\nConnections 2\n0->1 id 1 start 0 size 100000\n1->0 id 2 start 0 size 100000\n",
}


@dataclass
class Command:
    """A command of a page, and the output that the page shows."""

    line: int
    text: str
    run: bool
    shown: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        said = re.search(r"# exit (\d+)$", self.text)
        return int(said[1]) if said else 2 if any(line.startswith("error: ") for line in self.shown) else 0


def program() -> Path:
    named = os.environ.get("ROPEWALK")
    places = [Path(named)] if named else [ROOT / "target" / kind / "ropewalk" for kind in ("release", "debug")]
    found = [place for place in places if place.is_file()]
    assert found, f"none of {[str(p) for p in places]} is there: run `make build`, or set ROPEWALK"
    return found[0].resolve()


def commands(page: Path) -> list[Command]:
    text = page.read_text()
    found = []
    for fence in FENCE.finditer(text):
        language, said, body = fence[2], fence[3], fence[4]
        if language not in ("console", "") or not body.lstrip().startswith("$ "):
            continue
        first = text.count("\n", 0, fence.start()) + 2
        for i, line in enumerate(body.rstrip("\n").split("\n")):
            line = line.removeprefix(fence[1])
            if line.startswith("$ "):
                found.append(Command(first + i, line[2:], "no-run" not in said))
            elif found[-1].text.endswith("\\"):
                found[-1].text = found[-1].text[:-1] + line.strip()
            else:
                found[-1].shown.append(line)
    return found


def titled(page: Path) -> dict[str, str]:
    """Blocks of a page with a title, such as `title="fabric.toml"`: files that its commands use."""
    titles = ((re.search(r'title="([^"]+)"', fence[3]), fence[4]) for fence in FENCE.finditer(page.read_text()))
    return {title[1]: text for title, text in titles if title}


def indented(page: Path) -> list[tuple[int, str]]:
    """Commands in indented blocks, which made the figures of an experiment."""
    lines = enumerate(re.sub(r"\\\n +", "", page.read_text()).split("\n"), 1)
    return [(i, line.strip()) for i, line in lines if line.startswith("    ropewalk ")]


def differs_by_itself(line: str) -> bool:
    """True for lines with times, speeds or memory, which differ from run to run."""
    return line.startswith("speed ") or "CPU" in line


def is_shown(shown: list[str], output: str) -> str | None:
    """The first line of the page that is missing from the output or out of place, or None."""
    lines = [line.rstrip() for line in output.split("\n")]
    at, anywhere = 0, True
    for line in (line.rstrip() for line in shown):
        if line == "...":
            anywhere = True
        elif differs_by_itself(line):
            at += 1
        else:
            places = range(at, len(lines)) if anywhere else range(at, min(at + 1, len(lines)))
            where = next((i for i in places if lines[i] == line or (anywhere and line in lines[i])), None)
            if where is None:
                return line
            at, anywhere = where + 1, False
    return None


def test_the_site_has_commands():
    assert sum(len(commands(page)) for page in PAGES) > 30


def test_a_shown_line_that_is_missing_from_the_output_is_found():
    assert is_shown(["a", "...", "d"], "a\nb\nc\nd") is None
    assert is_shown(["a", "d"], "a\nb\nc\nd") == "d"
    assert is_shown(["...", "nothing"], "a\nb") == "nothing"


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_commands_work_and_print_the_output_on_the_page(page, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "ropewalk").symlink_to(program())
    place = tmp_path / "work"
    place.mkdir()
    for name, content in (FILES | titled(page)).items():
        (place / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    env = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    for command in commands(page):
        where = f"{page.relative_to(ROOT)}:{command.line}: {command.text}"
        if not command.run:
            rehearse(command.text, where)
            continue
        done = subprocess.run(
            ["bash", "-c", command.text], cwd=place, env=env, capture_output=True, text=True, timeout=600
        )
        output = done.stdout + done.stderr
        assert done.returncode == command.code, f"{where}\nexit code {done.returncode}\n{output}"
        missing = is_shown(command.shown, output)
        assert missing is None, f"{where}\nthe page shows, and the program does not print it there:\n{missing}\n{output}"


@pytest.mark.parametrize("page", [p for p in PAGES if indented(p)], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_commands_of_long_experiments_are_valid(page):
    for line, text in indented(page):
        rehearse(text, f"{page.relative_to(ROOT)}:{line}: {text}")


def rehearse(text: str, where: str) -> None:
    """Checks a command without running it: its options exist, and its scenario is valid."""
    words = shlex.split(text, comments=True)
    # The rest of a pipe belongs to other programs.
    words = words[: words.index("|")] if "|" in words else words
    if words[:1] != ["ropewalk"]:
        return
    # With `--help` at the end, the parser checks all options before it.
    dry = [[*words[1:], "--help"]]
    if words[1] in ("run", "compare"):
        sets = [word for i, word in enumerate(words) if "--set" in (word, words[i - 1])]
        dry.append(["check", words[2], *sets])
    for asked in dry:
        done = subprocess.run([program(), *asked], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{where}\n{done.stderr}"


def test_the_pages_have_the_text_that_the_program_gives_now():
    pytest.importorskip("pyarrow")
    tool = ROOT / "docs" / "tools" / "site.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_default_has_a_source():
    """A default that is a value names its source in brackets. `Default:` describes an absence, or takes another key's value."""
    schema = json.loads(subprocess.run([program(), "schema"], capture_output=True, text=True, check=True).stdout)
    sentence = re.compile(r"Default (?!:)(?:`[^`]*`|\.(?=\d)|\([^)]*\)|[^.])*")
    texts = [of.get("description", "").replace("\n", " ") for of in tables(schema)]
    found = [default for text in texts for default in sentence.findall(text)]
    assert len(found) > 200 and [default for default in found if "(" not in default] == []


def tables(of):
    """Every table of a JSON document, at any depth."""
    inside = of.values() if isinstance(of, dict) else of if isinstance(of, list) else []
    return [of] * isinstance(of, dict) + [table for one in inside for table in tables(one)]

"""Runs the preset `connectx-5` beside public measurements of that NIC, and writes the table of docs/nics/measured.md.

    python3 docs/tools/hardware.py           prints the table
    python3 docs/tools/hardware.py --write   writes it into the page

The measured figures are in hardware.csv beside this file. The program is $ROPEWALK, or target/debug/ropewalk.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "nics" / "measured.md"
PROGRAM = os.environ.get("ROPEWALK") or HERE.parents[1] / "target" / "debug" / "ropewalk"

# Three hosts at one switch that drops at 5.2 MB per port and marks nothing.
SWITCH = """
topology.leaf-spine = { leaves = 1, spines = 1, hosts-per-leaf = 3, rate = "100Gbps" }
scheme.ecmp = {}
switch = { ecn = "off", pfc = "off", queue-cap = "5.2MB" }
"""
PRESET = SWITCH + 'wire.payload = "4096B"\nnic.model = "connectx-5"\n'


def run(text: str, *words: str) -> dict:
    """The summary of a run of a scenario."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([PROGRAM, "run", file.name, "--json", *words], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def incast() -> list[float]:
    """Both senders write for 2 s; the first second, in which rates come down from line rate, is left out."""
    text = PRESET + '[[workload]]\nincast = { senders = 2, receiver = "host0", bytes = "100GB" }\n[stop]\n'
    first, both = run(text + 'after = "1s"'), run(text + 'after = "2s"')
    accepted, dropped, sent = (both["packets"][key] - first["packets"][key] for key in ("accepted", "dropped", "sent"))
    cnps = both["control"]["cnp"] - first["control"]["cnp"]
    return [accepted * 4096 * 8 / 1e9, 100 * dropped / sent, cnps / 2]


def recovery() -> float:
    """One sender ends, and the other one rises from half of line rate."""
    text = PRESET + """record.flows = "all"
stop.after = "900ms"
[[workload]]
flows.list = [{ from = "host1", to = "host0", bytes = "1GB" }, { from = "host2", to = "host0", bytes = "100GB" }]
"""
    with tempfile.TemporaryDirectory() as folder:
        run(text, "--csv", "-o", f"{folder}/out")
        with open(f"{folder}/out/series.csv") as file:
            rows = [row for row in csv.DictReader(file) if row["kind"] == "qp"]
    ends = max(float(row["start_us"]) for row in rows if row["id"] == "0" and int(row["packets"]))
    rates = [(float(row["start_us"]), float(row["rate_gbps"])) for row in rows if row["id"] == "1"]
    return (next(at for at, rate in rates if at > ends and rate >= 95) - ends) / 1e3


def first_drop(gbps: str) -> float:
    """Time of the first drop of two senders with a fixed rate, by bisection."""
    text = SWITCH + f"""wire.payload = "4096B"
nic.congestion.dcqcn.max-rate = "{gbps}Gbps"
[[workload]]
incast = {{ senders = 2, receiver = "host0", bytes = "1GB" }}
"""
    least, most = 0, 20_000
    while most - least > 10:
        middle = (least + most) // 2
        dropped = run(text + f'[stop]\nafter = "{middle}us"\n')["packets"]["dropped"]
        least, most = (least, middle) if dropped else (middle, most)
    return most / 1e3


def messages(gap_us: int) -> float:
    """Goodput of messages of 8 KiB in frames of 1 KiB, whose starts are their time on the wire and the gap apart."""
    wire = 8 * (1024 + 62 + 20) * 8 / 100e3
    count = round(200e3 / (wire + gap_us))
    again = f'{{ times = {count}, every = "{round((wire + gap_us) * 1000)}ns" }}'
    flow = f'{{ from = "host1", to = "host0", bytes = "8KiB", again = {again} }}'
    text = SWITCH + f'wire.payload = "1024B"\nnic.model = "connectx-5"\n[[workload]]\nflows.list = [{flow}]\n'
    done = run(text)
    return count * 8192 * 8 / ((done["sim_time_us"] - (count - 1) * gap_us) * 1e3)


def alone(size: int) -> float:
    """Goodput of messages that each wait for the ACK of the one before."""
    count = 10_000  # losses come in bursts, and a lost end of a message waits for a timer
    flow = f'back-to-back = {{ from = "host1", to = "host0", bytes = "{size}B", messages = {count} }}'
    return count * size * 8 / run(PRESET + f"[[workload]]\n{flow}\n")["sim_time_us"] / 1e3


def small(size: int, queue_pairs: int) -> float:
    """Goodput of 20,000 small messages posted at once."""
    flows = ", ".join([f'{{ from = "host1", to = "host0", bytes = "{size}B" }}'] * 20_000)
    text = PRESET + f"[[workload]]\nqp = {{ in-turn = {queue_pairs} }}\nflows.list = [{flows}]\n"
    return 20_000 * size * 8 / run(text)["sim_time_us"] / 1e3


def table() -> str:
    """Measured and simulated figures."""
    with open(HERE / "hardware.csv") as file:
        measured = list(csv.DictReader(file))
    simulated = [*incast(), recovery(), *map(first_drop, ("52.5", "55", "60")), *map(messages, (0, 4, 100, 368))]
    simulated += [*map(alone, (2, 512, 8192, 32768, 131072, 524288, 2097152)), small(1024, 1), small(512, 32)]
    rows = ["| | unit | measured | ropewalk | error, % |", "|---|---|---|---|---|"]
    for row, ours in zip(measured, simulated, strict=True):
        theirs = float(row["measured"])
        rows.append(f"| {row['what']} | {row['unit']} | {theirs:.4g} | {ours:.3g} | {round(100 * (ours / theirs - 1)):+d} |")
    return "\n".join(rows)


if __name__ == "__main__":
    text = table()
    print(text)
    if sys.argv[1:] == ["--write"]:
        page = PAGE.read_text()
        block = re.compile(r"(?<=\| error, % \|\n).*?(?=\n\n)", re.DOTALL)
        PAGE.write_text(block.sub(lambda _: text.split("\n", 1)[1], page, count=1))

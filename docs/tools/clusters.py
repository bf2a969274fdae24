#!/usr/bin/env python3
"""Fits the costs of collectives on H100 to measured times, and prints them with the errors that are left.

The cells are those of `ropewalk reproduce hardware`. NCCL's choice of algorithm, protocol and channels comes from `ropewalk workload show`, and
the time from the closed form of docs/nics/clusters.md. The sum of the absolute logarithms of predicted over measured is made least, one
constant after the other. The values stand in crates/scenario/hardware/cost/h100.toml.

    ROPEWALK=target/release/ropewalk python3 docs/tools/clusters.py
"""

import csv
import json
import math
import os
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CELLS = ROOT / "crates/papers/src/experiments/hardware/h100.csv"
# Payload per us and NIC of 400 Gb/s, and an idle path over one switch with 1 us per link, us.
NIC, IDLE = 48.0e3, 2.1
# Payload of an eighth of NCCL's buffers, and bytes on the wire per byte of payload.
STEP = {"simple": 512 << 10, "ll": 32 << 10, "ll128": 576_000}
WIRE = {"simple": 1.0, "ll": 2.0, "ll128": 128 / 120}


def choice(cell):
    """Adds algorithm, protocol and channels as NCCL chooses them."""
    sets = {
        "topology.rails.servers": cell["nodes"],
        "workload.0.collective.kind": cell["collective"].replace("_", "-"),
        "workload.0.collective.bytes": f"{cell['size_bytes']}B",
    }
    command = [os.environ.get("ROPEWALK", "ropewalk"), "workload", "show", "cluster-h100", "--json"]
    command += [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    made = shown["operations"][0]
    return {
        "kind": cell["collective"],
        "servers": int(cell["nodes"]),
        "ranks": 8 * int(cell["nodes"]),
        "bytes": int(cell["size_bytes"]),
        "us": float(cell["time_us"]),
        "call": 40 if cell["collective"] == "all_to_all" else 160,
        "by": made["algorithm"] + "-" + made["protocol"],
        "protocol": made["protocol"],
        "channels": made["channels"],
    }


def ring(cell, cost):
    """A ring: the engines, or the mean of the hops."""
    share = cell["bytes"] / cell["ranks"] / cell["channels"]
    simple = cell["protocol"] == "simple"
    slice_ = min(math.ceil(share / 2), 1 << 20) if simple else min(share, STEP[cell["protocol"]])
    pieces = math.ceil(share / slice_)
    piece = share / pieces * WIRE[cell["protocol"]]
    rate = cost["rate"] * 1e3 / 16
    nvlink = cost["nvlink"] + (piece / rate if simple else 0)
    network = cost["network"] + IDLE + piece / (NIC * 8 / max(cell["channels"], 8))
    steps = (2 if cell["kind"] == "all_reduce" else 1) * (cell["ranks"] - 1)
    return cell["call"] + steps * max(pieces * (cost["busy"] + piece / rate), (7 * nvlink + network) / 8)


def tree(cell, cost):
    """A tree: its hops upwards and downwards, then two passes of each piece through the engines."""
    servers, channels, piece = cell["servers"], cell["channels"], STEP[cell["protocol"]]
    if cell["protocol"] == "ll128":
        steps = 1 + int(math.log2(servers)) + 0.8
        for depth, least in ((64, 131072), (16, 32768)):
            while cell["bytes"] // (channels * piece) < steps * depth / 8 and piece > least:
                piece //= 2
    share = cell["bytes"] / channels
    pieces = math.ceil(share / max(piece, share / 64))
    piece = share / pieces * WIRE[cell["protocol"]]
    network = cost["network"] + IDLE + piece / (NIC * 8 / channels)
    engine = cost["busy"] + piece / (cost["rate"] * 1e3 / 16)
    return cell["call"] + 2 * (7 * cost["nvlink"] + math.log2(servers) * network) + (pieces - 1) * 2 * engine


def direct(cell, cost):
    """An all-to-all: what the engine of a rank takes for all its peers, and a hop."""
    each = cell["bytes"] / cell["ranks"] / 1e3
    slow = min(each, cost["first_kb"])
    moved = (cell["ranks"] - 8) * (slow / cost["first_rate"] + (each - slow) / cost["rate"])
    return cell["call"] + cost["hop"] + IDLE + cost["peer"] * (cell["ranks"] - 1) + moved


# What is fitted, from where, and what is held: NVLink and network have one hop where only their mean counts.
FITS = [
    ("ring-ll", ring, {"nvlink": 3.4, "network": 1.3, "busy": 0.5, "rate": 44.0}, ("busy", "rate")),
    ("ring-ll128", ring, {"nvlink": 6.5, "network": 12.0, "busy": 4.6, "rate": 354.0}, ()),
    ("ring-simple", ring, {"nvlink": 25.0, "network": 25.0, "busy": 4.1, "rate": 360.0}, ("network",)),
    ("tree-ll128", tree, {"nvlink": 2.0, "network": 16.0, "busy": 1.0, "rate": 160.0}, ()),
    ("direct-simple", direct, {"peer": 1.3, "hop": 60.0, "rate": 41.0, "first_rate": 30.0, "first_kb": 500.0}, ()),
]


def fit(cells, form, cost, held):
    """Changes one constant after the other by a factor, as long as that helps."""

    def error(cost):
        return sum(abs(math.log(form(cell, cost) / cell["us"])) for cell in cells)

    def changed(key, factor):
        new = {**cost, key: cost[key] * factor}
        if "network" in held and "nvlink" in new:
            new["network"] = new["nvlink"]
        return new

    least, steps = error(cost), {key: 0.3 for key in cost if key not in held}
    while max(steps.values()) > 1e-3:
        for key, step in steps.items():
            for factor in (1 + step, 1 / (1 + step)):
                new = changed(key, factor)
                if error(new) < least - 1e-9:
                    least, cost = error(new), new
                    break
            else:
                steps[key] = step / 1.5
    return cost


def main():
    with CELLS.open() as file:
        cells = [choice(cell) for cell in csv.DictReader(file)]
    every = []
    for name, form, cost, held in FITS:
        mine = [cell for cell in cells if cell["by"] == name]
        cost = fit(mine, form, cost, held)
        errors = sorted(abs(form(cell, cost) / cell["us"] - 1) * 100 for cell in mine)
        every += errors
        told = ", ".join(f"{key} {value:.4g}" for key, value in cost.items())
        print(f"{name}: {told}")
        print(f"  {len(errors)} cells: median {statistics.median(errors):.1f} %, largest {errors[-1]:.0f} %")
    every.sort()
    print(f"all {len(every)}: median {statistics.median(every):.1f} %, P95 {every[int(0.95 * len(every))]:.0f} %")


if __name__ == "__main__":
    main()

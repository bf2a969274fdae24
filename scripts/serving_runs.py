"""Runs a scenario of serving for the scripts beside it. ROPEWALK names the program, target/release/ropewalk by default."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROPEWALK = os.environ.get("ROPEWALK", str(ROOT / "target/release/ropewalk"))


def run(scenario, *sets):
    """The summary of a run of a scenario, a path, with changes. A scenario that fails ends the script."""
    with tempfile.TemporaryDirectory() as folder:
        changes = [part for change in sets for part in ("--set", change)]
        command = [ROPEWALK, "run", str(scenario), "-o", f"{folder}/out", "--quiet", *changes]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return json.loads((Path(folder) / "out/summary.json").read_text())


def run_text(text, name):
    """The same for the text of a scenario."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / f"{name}.toml"
        scenario.write_text(text)
        return run(scenario)

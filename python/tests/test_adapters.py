"""Adapters for other simulators, as far as they can be tested without these."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = ROOT / "adapters"
ROPEWALK = os.environ.get("ROPEWALK", str(ROOT / "target/debug/ropewalk"))


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_the_go_package_replays_a_recorded_conversation():
    done = subprocess.run(["go", "test", "."], cwd=ADAPTERS / "blis", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not Path(ROPEWALK).exists(), reason="needs the program")
def test_ropewalk_still_answers_as_in_the_recorded_conversation():
    blis = ADAPTERS / "blis"
    done = subprocess.run([sys.executable, str(blis / "record.py"), ROPEWALK], capture_output=True, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    recorded = [json.loads(line) for line in (blis / "testdata/session.jsonl").read_text().splitlines()]
    assert told == recorded, done.stderr

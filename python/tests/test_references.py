"""The quick one of the published observations of serving, as docs/serving.md prints it."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROPEWALK = os.environ.get("ROPEWALK", str(ROOT / "target/debug/ropewalk"))


@pytest.mark.skipif(not Path(ROPEWALK).exists(), reason="needs the program")
def test_descriptors_take_the_times_of_the_documentation():
    script = [str(ROOT / "scripts/serving-references"), "descriptors"]
    environment = {**os.environ, "ROPEWALK": ROPEWALK}
    done = subprocess.run(script, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    ours = {line.split("|")[1].strip(): line.split("|")[3].strip() for line in done.stdout.splitlines() if line.startswith("|")}
    page = (ROOT / "docs/serving.md").read_text()
    for transfer in ["16,000 tokens, 70", "16,000 tokens, 4,563", "128,000 tokens, 32,000"]:
        transfer += " descriptors"
        [printed] = [line.split("|")[3].strip() for line in page.splitlines() if line.startswith(f"| {transfer}")]
        assert ours[transfer] == printed, transfer

"""Adapters for other simulators, as far as they can be tested without these."""

import json
import os
import shutil
import struct
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


SCHEMA = "simllm-htsim-flow-session-v1"


@pytest.mark.skipif(not Path(ROPEWALK).exists(), reason="needs the program")
def test_a_flow_session_of_simllm_runs_on_a_fabric_of_ropewalk():
    """Two flows of 1 MB into one host at once take twice as long as one alone, and later flows find the fabric as it is."""
    environment = {**os.environ, "ROPEWALK": ROPEWALK, "ROPEWALK_SCENARIO": str(ADAPTERS / "blis/testdata/fabric.toml")}
    translate = [sys.executable, str(ADAPTERS / "simllm/translate.py"), "--flow-session"]
    with subprocess.Popen(translate, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as session:

        def ask(verb, **keys):
            body = json.dumps({"schema": SCHEMA, "verb": verb, **keys}).encode()
            session.stdin.write(struct.pack(">I", len(body)) + body)
            session.stdin.flush()
            return json.loads(session.stdout.read(struct.unpack(">I", session.stdout.read(4))[0]))

        def inject(sequence, source, at):
            flow = {"source": source, "destination": 5, "payload_bytes": 1_000_000, "tag": sequence, "flow_id": f"f{sequence}"}
            return ask("inject", sequence=sequence, eligible_at_ps=at, **flow)

        assert ask("advance", through_ps=5)["error"] == "the session is not open"
        assert "8 ranks" in ask("open", node_count=99, session_id="s")["error"]
        assert ask("open", node_count=8, session_id="s")["status"] == "ok"
        assert inject(1, 0, 0)["status"] == "ok"
        assert "expected the sequence 2" in inject(7, 0, 0)["error"]
        alone = ask("advance", through_ps=1_000_000_000)
        [row] = alone["completion_rows"]
        assert alone["quiescent"] and row["flow_id"] == "f1" and row["fct_ps"] == row["completion_time_ps"]
        inject(2, 0, 2_000_000_000)
        inject(3, 1, 2_000_000_000)
        rows = ask("drain")["completion_rows"]
        assert sorted(flow["sequence"] for flow in rows) == [2, 3]
        assert 1.8 < max(flow["fct_ps"] for flow in rows) / row["fct_ps"] < 2.1
        closed = ask("close")
        assert closed["status"] == "ok" and closed["quiescent"]
        session.stdin.close()
        assert session.wait() == 0

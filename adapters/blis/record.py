#!/usr/bin/env python3
"""Records a conversation with `ropewalk serve`: adapters/blis/record.py PROGRAM > adapters/blis/testdata/session.jsonl

Each line has what the adapter sends and what ropewalk answers. The test replays it without ropewalk.
"""

import json
import subprocess
import sys
from pathlib import Path

INSTANCES = [{"name": name, "ranks": [2 * i, 2 * i + 1]} for i, name in enumerate(["p0", "p1", "d0", "d1"])]
US = 1_000_000
ASKED = [
    {"do": "instances", "list": INSTANCES},
    # One transfer alone, then two into one instance, then two into different ones.
    {"do": "next", "until_ps": 100 * US},
    {"do": "transfer", "id": 1, "from": "p0", "to": "d0", "bytes": 20_000_000},
    {"do": "next", "until_ps": 5_000 * US},
    {"do": "next", "until_ps": 10_000 * US},
    {"do": "transfer", "id": 2, "from": "p0", "to": "d0", "bytes": 20_000_000},
    {"do": "transfer", "id": 3, "from": "p1", "to": "d0", "bytes": 20_000_000},
    {"do": "next", "until_ps": 20_000 * US},
    {"do": "next", "until_ps": 20_000 * US},
    {"do": "next", "until_ps": 30_000 * US},
    {"do": "transfer", "id": 4, "from": "p0", "to": "d0", "bytes": 20_000_000},
    {"do": "transfer", "id": 5, "from": "p1", "to": "d1", "bytes": 20_000_000},
    {"do": "next", "until_ps": 40_000 * US},
    {"do": "next", "until_ps": 40_000 * US},
    {"do": "finish"},
]

scenario = Path(__file__).resolve().parent / "testdata/fabric.toml"
with subprocess.Popen([sys.argv[1], "serve", str(scenario)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serve:
    greeting = json.loads(serve.stdout.readline())
    print(json.dumps({"answer": {**greeting, "scenario": "fabric"}}))
    for request in ASKED:
        serve.stdin.write(json.dumps(request) + "\n")
        serve.stdin.flush()
        print(json.dumps({"send": request, "answer": json.loads(serve.stdout.readline())}))
    serve.stdin.close()

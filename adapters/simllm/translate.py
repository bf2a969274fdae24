#!/usr/bin/env python3
"""Speaks SimLLM's flow sessions (simllm-htsim-flow-session-v1) to SimLLM, and ropewalk's frames to `ropewalk serve`.

    SIMLLM_HTSIM_RNIC=adapters/simllm/translate.py   with ROPEWALK and ROPEWALK_SCENARIO in the environment

SimLLM starts the program with `--flow-session`. Node i of a session is rank i of the scenario. Flows have an eligible
time; `advance` and `drain` answer with a row for each flow whose last acknowledgement has come. What SimLLM says of
its own hardware (profile, link rate, hash) describes another simulator, so the answer to `open` says that ropewalk's
scenario counts instead."""

import json
import os
import struct
import subprocess
import sys

SCHEMA = "simllm-htsim-flow-session-v1"


def read(stream):
    head = stream.read(4)
    if len(head) < 4:
        return None
    return json.loads(stream.read(struct.unpack(">I", head)[0]))


def write(stream, value):
    body = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


class Refused(Exception):
    """A request that cannot be carried out. No flow has begun, and rows of completions wait for the next answer."""


class Translator:
    """A session of SimLLM on a conversation with ropewalk: `ask` takes a request and returns the answer."""

    def __init__(self, ask, ranks, scenario):
        self.ask, self.ranks, self.scenario = ask, ranks, scenario
        self.open = False
        self.flows = {}
        self.sequence = 0
        # Rows of completions that no answer has delivered yet: a request that fails keeps them for the next one.
        self.undelivered = []

    def answer(self, request):
        verb = request.get("verb")
        try:
            if request.get("schema") != SCHEMA:
                raise Refused(f"expected the schema {SCHEMA}, found {request.get('schema')!r}")
            if verb not in ("open", "inject", "advance", "drain", "close"):
                raise Refused(f"expected open, inject, advance, drain or close, found {verb!r}")
            if self.open == (verb == "open"):
                raise Refused("the session is open already" if self.open else "the session is not open")
            told = getattr(self, verb + "_")(request)
        except Refused as refusal:
            return {"schema": SCHEMA, "status": "error", "verb": verb, "error": str(refusal)}
        except KeyError as key:
            return {"schema": SCHEMA, "status": "error", "verb": verb, "error": f"the key {key} is missing"}
        return {"schema": SCHEMA, "status": "ok", "verb": verb, **told}

    def told(self, request):
        answer = self.ask(request)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def open_(self, request):
        if request["node_count"] > self.ranks:
            raise Refused(f"the scenario {self.scenario} has {self.ranks} ranks, and the session {request['node_count']} nodes")
        self.open = True
        return {"session_id": request["session_id"], "fabric": f"ropewalk:{self.scenario}"}

    def inject_(self, request):
        if request["sequence"] != self.sequence + 1:
            raise Refused(f"expected the sequence {self.sequence + 1}, found {request['sequence']}")
        number, eligible = request["sequence"], request["eligible_at_ps"]
        flow = {key: request[key] for key in ("flow_id", "source", "destination", "payload_bytes", "tag")}
        self.told(
            {
                "do": "send",
                "id": number,
                "from": flow["source"],
                "to": flow["destination"],
                "bytes": flow["payload_bytes"],
                "at_ps": eligible,
            }
        )
        self.sequence = number
        self.flows[number] = {**flow, "start_time_ps": eligible}
        return {"sequence": number}

    def complete(self, events):
        for event in events:
            if event["event"] == "sent":
                flow = self.flows.pop(event["id"])
                fct = event["ps"] - flow["start_time_ps"]
                row = {**flow, "sequence": event["id"], "completion_time_ps": event["ps"], "fct_ps": fct}
                self.undelivered.append(row)

    def delivery(self, now):
        rows, self.undelivered = self.undelivered, []
        return {"now_ps": now, "completion_rows": rows, "quiescent": not self.flows}

    def advance_(self, request):
        told = self.told({"do": "advance", "until_ps": request["through_ps"]})
        self.complete(told["events"])
        return self.delivery(told["ps"])

    def drain_(self, request):
        while True:
            event = self.told({"do": "next"})
            if "state" in event:
                return self.delivery(event["ps"])
            self.complete([event])

    def close_(self, request):
        told = self.told({"do": "finish"})
        answer = {"digest": told["digest"], "quiescent": not self.flows}
        self.open = False
        return answer


def main():
    program = os.environ.get("ROPEWALK", "ropewalk")
    scenario = os.environ.get("ROPEWALK_SCENARIO")
    if scenario is None or "--flow-session" not in sys.argv:
        sys.exit(__doc__)
    serve = subprocess.Popen([program, "serve", "--frames", scenario], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(request):
        write(serve.stdin, request)
        return read(serve.stdout) or {"error": "ropewalk has ended"}

    greeting = read(serve.stdout)
    if greeting is None:
        sys.exit(serve.wait() or 1)
    translator = Translator(ask, greeting["ranks"], greeting["scenario"])
    while (request := read(sys.stdin.buffer)) is not None:
        answer = translator.answer(request)
        write(sys.stdout.buffer, answer)
        if request.get("verb") == "close" and answer["status"] == "ok":
            break
    serve.stdin.close()
    sys.exit(serve.wait())


if __name__ == "__main__":
    main()

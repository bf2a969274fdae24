"""The lab: real RDMA clients in two guests, through `ropewalk nic` and `ropewalk tor`. docs/soft-tor.md describes the tests.

    lab.py ROPEWALK [--full] [TEST...]

Everything is kept in `target/lab`. Only counts are asserted; times are printed beside the load of the machine. The last line is
`lab: N passed, M failed, K skipped`. The exit code is 0 if nothing failed and a test has run, or if the lab was left out for a
named reason.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from guests import Guests, LeftOut, disk, tools

FOLDER = Path("target/lab").resolve()
SERVER = "10.0.0.1"
# The fabric of most tests: four paths, the last 2 ms longer than the first, and the last hop of 0.1 ms. The skew is so large
# that packets which follow each other on different paths always change places.
SPRAYED = {"spines": 4, "delay": "200us", "spread": "2ms"}
PLAIN = {"spines": 1, "delay": "0us", "spread": "0us"}


class Failed(Exception):
    """A count is wrong."""


def toml(value):
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


class Run:
    """Programs between the guests for the time of one test."""

    def __init__(self, ropewalk, guests, name):
        self.ropewalk, self.guests, self.name = ropewalk, guests, name
        self.at = guests.folder / name
        self.at.mkdir(exist_ok=True)
        self.processes = []

    def start(self, command, text):
        """Starts `ropewalk nic` or `ropewalk tor` with these settings."""
        file = self.at / f"{command}.toml"
        file.write_text(text)
        status = self.at / f"{command}.json"
        status.unlink(missing_ok=True)
        words = [self.ropewalk, command, file, "--status", status, "--record", self.at / f"{command}.log"]
        words += ["--pcap", self.at / f"{command}.pcapng"]
        out = open(self.at / f"{command}.out", "w")
        process = subprocess.Popen(["nice", *words], stdout=out, stderr=subprocess.STDOUT)
        self.processes.append((command, process))
        deadline = time.monotonic() + 20
        while not status.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"ropewalk {command} did not start: {(self.at / f'{command}.out').read_text().strip()}")
            time.sleep(0.05)

    def nic(self, settings="", rate="1Gbps"):
        """NICs in front of both guests; their network sides are w1.sock and w2.sock."""
        at, text = self.guests.folder, ""
        for n in (1, 2):
            host = {"unix": {"bind": f"{at}/nic{n}.sock", "peer": f"{at}/vm{n}.sock"}}
            network = {"unix": {"bind": f"{at}/w{n}.sock", "peer": f"{at}/sw{n}.sock"}}
            text += f'[[bump]]\nname = "h{n}"\nrate = "{rate}"\nhost = {toml(host)}\nnetwork = {toml(network)}\n'
        self.start("nic", text + settings)

    def tor(self, fabric, themis, bumps=True, rate=None):
        """A fabric between the NICs, or between the guests themselves."""
        at = self.guests.folder
        ends = ("sw", "w") if bumps else ("nic", "vm")
        text = "[fabric]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in fabric.items())
        for n in (1, 2):
            sockets = {"bind": f"{at}/{ends[0]}{n}.sock", "peer": f"{at}/{ends[1]}{n}.sock"}
            text += f'[[port]]\nname = "h{n}"\nlast-hop = "100us"\nunix = {toml(sockets)}\n'
            text += f'rate = "{rate}"\n' if rate else ""
        text += "[themis]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in themis.items())
        self.start("tor", text)

    def stop(self):
        """Ends the programs; returns their counters by command."""
        counters = {}
        for command, process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            process.wait(10)
            counters[command] = json.loads((self.at / f"{command}.json").read_text())
        self.processes = []
        return counters


def total(counters, name, *labels):
    """The sum of a counter over all labels that contain these words."""
    value = counters.get(name, 0)
    if isinstance(value, int):
        return value
    return sum(count for key, count in value.items() if all(word in key.split() for word in labels))


def perftest(tool, messages, size=4096, mtu=1024, more=""):
    """Server and client commands of a perftest program. Its timeout of 2^18 x 4 us = 1.1 s is longer than emulation is slow."""
    words = f"{tool} -d rxe0 -x 1 -F -s {size} -n {messages} -m {mtu} -u 18 {more}"
    return words, f"{words} {SERVER}"


PV = "python3 /usr/local/bin/pv.py"
CLIENTS = {
    "ib_send_bw": perftest("ib_send_bw", 500),
    "ib_write_bw": perftest("ib_write_bw", 200, 65536),
    "ib_read_bw": perftest("ib_read_bw", 100, 65536),
    "ib_atomic_bw": ("ib_atomic_bw -d rxe0 -x 1 -F -n 200 -u 18", f"ib_atomic_bw -d rxe0 -x 1 -F -n 200 -u 18 {SERVER}"),
    "ib_write_bw over IPv6": tuple(w.replace("-x 1", "-x 2") for w in perftest("ib_write_bw", 100, 16384)),
    "ib_write_bw, 4 queue pairs": perftest("ib_write_bw", 100, 16384, more="-q 4"),
    "ib_write_bw by rdma_cm": (f"ib_write_bw -d rxe0 -R -F -s 65536 -n 50 -u 18", f"ib_write_bw -d rxe0 -R -F -s 65536 -n 50 -u 18 {SERVER}"),
    "ib_send_bw UD": ("ib_send_bw -d rxe0 -x 1 -F -c UD -s 1024 -n 300", f"ib_send_bw -d rxe0 -x 1 -F -c UD -s 1024 -n 300 {SERVER}"),
    "ibv_rc_pingpong": ("ibv_rc_pingpong -d rxe0 -g 1 -s 4096 -n 200", f"ibv_rc_pingpong -d rxe0 -g 1 -s 4096 -n 200 {SERVER}"),
    "rping": (f"rping -s -a {SERVER} -C 30 -S 65000", f"rping -c -a {SERVER} -C 30 -S 65000 -V"),
    "pv.py": (f"{PV} server {SERVER} 20 65536", f"{PV} client {SERVER} 20 65536"),
}
SMALL = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "rping", "pv.py")


def client(guests, name, limit=90):
    """Runs a client; returns how long it took. The programs that check data fail if a byte is wrong."""
    started = time.monotonic()
    (code, text), (served, said) = guests.pair(*CLIENTS[name], limit)
    if code != 0:
        raise Failed(f"{name}: exit code {code}, server {served}: {(text.strip() or said.strip()).splitlines()[-1:]}")
    if name == "pv.py" and "wrong buffers: 0" not in text:
        raise Failed(f"pv.py: {text.strip()}")
    return time.monotonic() - started


def rate(text):
    """Mean rate of a perftest program, MB/s."""
    found = re.findall(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)", text, re.M)
    return float(found[-1]) if found else float("nan")


def expect(what, value, holds, wanted):
    if not holds(value):
        raise Failed(f"{what} is {value}, expected {wanted}")


def exactly(number):
    return lambda value: value == number


def more_than(number):
    return lambda value: value > number


NIC_SR = '[nic.congestion.none]\n[nic.transport.nic-sr]\n'


def a1(run, full):
    """Every client through a plain switch: exit code 0, data right, no NACK, our ICRC right on every frame."""
    run.nic(NIC_SR)
    run.tor(PLAIN, {"mode": "off"})
    names = CLIENTS if full else SMALL
    for name in names:
        print(f"   {name}: {client(run.guests, name):.1f} s", flush=True)
    nic = run.stop()["nic"]
    expect("NACKs of NICs", total(nic, "nacks_sent"), exactly(0), 0)
    expect("NACKs of hosts", total(nic, "host_nacks"), exactly(0), 0)
    expect("frames with a wrong ICRC", total(nic, "icrc_wrong"), exactly(0), 0)
    expect("requests", total(nic, "requests"), more_than(0), "more than 0")
    return f"{len(names)} clients, {total(nic, 'requests')} requests, no NACK, no wrong ICRC"


def sprayed(run, fabric, themis, messages=500, nic=NIC_SR, limit=90, **more):
    """`ib_send_bw` with 4 packets per message; returns its rate, and the counters of NICs and ToR."""
    run.nic(nic, **more)
    run.tor(SPRAYED | fabric, themis)
    (code, text), (served, _) = run.guests.pair(*perftest("ib_send_bw", messages), limit)
    counters = run.stop()
    if code != 0 or served != 0:
        raise Failed(f"ib_send_bw: exit codes {code} and {served}: {text.strip().splitlines()[-1:]}")
    return rate(text), counters["nic"], counters["tor"]


def row(label, speed, nic, tor):
    """A row of the table: what host, NICs and ToR counted."""
    counts = [("host sent", total(nic, "requests")), ("again by its timer", total(nic, "host_resent"))]
    counts += [("NACKs", total(nic, "nacks_sent")), ("blocked", total(tor, "nacks_blocked"))]
    counts += [("forwarded", total(tor, "nacks_forwarded")), ("compensated", total(tor, "nacks_compensated"))]
    counts += [("lost", total(tor, "path_lost")), ("retransmitted", total(nic, "retransmitted"))]
    counts += [("duplicates", total(nic, "duplicates"))]
    return f"{label}: " + ", ".join(f"{name} {count}" for name, count in counts) + f", {speed:.2f} MB/s"


def a2(run, full):
    """Random spraying: the disorder is real, and every retransmission is spurious."""
    speed, nic, tor = sprayed(run, {"spray": "rps"}, {"mode": "off"})
    expect("requests of the host", total(nic, "requests", "h2"), exactly(2000), 2000)
    expect("NACKs", total(nic, "nacks_sent"), more_than(50), "more than 50")
    again = total(nic, "retransmitted") + total(nic, "host_resent")
    expect("duplicates", total(nic, "duplicates"), exactly(again), f"{again}, as many as retransmissions")
    return row("RPS", speed, nic, tor)


def a3(run, full):
    """Themis: no NACK reaches a host, and nothing is retransmitted."""
    speed, nic, tor = sprayed(run, {}, {"mode": "sound"})
    expect("requests of the host", total(nic, "requests", "h2"), exactly(2000), 2000)
    expect("retransmissions", total(nic, "retransmitted"), exactly(0), 0)
    expect("retransmissions of the host", total(nic, "host_resent"), exactly(0), 0)
    expect("NACKs forwarded", total(tor, "nacks_forwarded"), exactly(0), 0)
    expect("NACKs blocked", total(tor, "nacks_blocked"), more_than(50), "more than 50")
    paths = [total(tor, "path_sprayed", str(n)) for n in range(4)]
    expect("requests by path", paths, exactly([500] * 4), "500 each")
    return row("Themis, sound", speed, nic, tor)


def a4(run, full):
    """Themis to the letter: it compensates for packets that are merely late."""
    speed, nic, tor = sprayed(run, {}, {"mode": "literal"})
    expect("requests of the host", total(nic, "requests", "h2"), exactly(2000), 2000)
    expect("compensations", total(tor, "nacks_compensated"), more_than(0), "more than 0")
    again = total(nic, "retransmitted") + total(nic, "host_resent")
    expect("duplicates", total(nic, "duplicates"), exactly(again), f"{again}, as many as retransmissions")
    return row("Themis, literal", speed, nic, tor)


def a5(run, full):
    """Loss: NACKs bring back lost packets only."""
    speed, nic, tor = sprayed(run, {"loss": 0.01, "seed": 1}, {"mode": "sound"}, limit=150)
    lost = total(tor, "path_lost")
    expect("frames lost", lost, more_than(0), "more than 0")
    expect("requests of the host", total(nic, "requests", "h2"), exactly(2000), 2000)
    again = total(nic, "retransmitted")
    expect("retransmissions by NACKs", again, lambda value: value <= lost, f"at most {lost}, the frames lost")
    own = total(nic, "host_resent")
    expect("duplicates", total(nic, "duplicates"), lambda value: value <= own, f"at most {own}, as many as the host's timer")
    return row("Themis, 1 % loss", speed, nic, tor)


def a7(run, full):
    """Eight queue pairs by rdma_cm, and four over IPv6: all connections are learnt, and nothing is retransmitted."""
    run.nic(NIC_SR)
    run.tor(SPRAYED, {"mode": "sound"})
    for words in ("-R -s 16384 -n 50 -q 8", "-x 2 -s 16384 -n 50 -q 4"):
        words = f"ib_write_bw -d rxe0 -F -u 18 {words}"
        (code, text), (served, _) = run.guests.pair(words, f"{words} {SERVER}", 120)
        if code != 0 or served != 0:
            raise Failed(f"{words}: exit codes {code} and {served}: {text.strip().splitlines()[-1:]}")
    counters = run.stop()
    nic, tor = counters["nic"], counters["tor"]
    learnt = total(tor, "connections_learnt")
    expect("connections learnt", learnt, lambda value: value >= 12, "at least 12")
    expect("retransmissions", total(nic, "retransmitted"), exactly(0), 0)
    return f"connections learnt {learnt}, " + row("12 queue pairs", float("nan"), nic, tor)


def a8(run, full):
    """Hosts whose NICs go back, without `ropewalk nic`: the ToR notices them, and the run completes."""
    run.tor(SPRAYED, {"mode": "sound"}, bumps=False)
    (code, text), (served, _) = run.guests.pair(*perftest("ib_send_bw", 100), 200)
    tor = run.stop()["tor"]
    if code != 0 or served != 0:
        raise Failed(f"ib_send_bw: exit codes {code} and {served}: {text.strip().splitlines()[-1:]}")
    expect("receivers that go back", total(tor, "receivers_go_back_n"), more_than(0), "more than 0")
    sent = total(tor, "roce_packets", "h2", "in", "request")
    return f"the host sent {sent} requests for 400 needed, receivers that go back {total(tor, 'receivers_go_back_n')}"


def a9(run, full):
    """Reads: responses stay in order on one path, and no NACK is sent."""
    run.nic(NIC_SR)
    run.tor(SPRAYED, {"mode": "sound"})
    seconds = client(run.guests, "ib_read_bw", 120)
    counters = run.stop()
    nic, tor = counters["nic"], counters["tor"]
    expect("NACKs that reached a host", total(nic, "nacks_heard"), exactly(0), 0)
    expect("NACKs of hosts", total(nic, "host_nacks"), exactly(0), 0)
    expect("retransmissions", total(nic, "retransmitted") + total(nic, "host_resent"), exactly(0), 0)
    responses = total(tor, "roce_packets", "h1", "in", "response")
    return f"{responses} responses in {seconds:.1f} s, requests {total(nic, 'requests')}, NACKs {total(nic, 'nacks_sent')}"


def a12(run, full):
    """The ToR ends and starts again under a run: the hosts recover, and the connection is learnt again."""
    run.nic(NIC_SR)
    run.tor(SPRAYED, {"mode": "sound"})
    guests = run.guests
    server, words = perftest("ib_send_bw", 4000)
    serving = guests.start(1, server, 200)
    time.sleep(1.5)
    asking = guests.start(2, words, 200)
    time.sleep(4)
    (command, process) = run.processes.pop()
    process.send_signal(signal.SIGTERM)
    process.wait(10)
    first = json.loads((run.at / "tor.json").read_text())
    run.tor(SPRAYED, {"mode": "sound"})
    code, text = guests.wait(asking)
    served, _ = guests.wait(serving)
    counters = run.stop()
    if code != 0 or served != 0:
        raise Failed(f"ib_send_bw: exit codes {code} and {served}: {text.strip().splitlines()[-1:]}")
    tor = counters["tor"]
    expect("requests through the first ToR", total(first, "path_sprayed"), more_than(0), "more than 0")
    expect("connections learnt again", total(tor, "connections_learnt"), more_than(0), "more than 0")
    return f"{total(first, 'path_sprayed')} requests before and {total(tor, 'path_sprayed')} after, " + row(
        "restarted", rate(text), counters["nic"], tor
    )


TESTS = {"A1": a1, "A2": a2, "A3": a3, "A4": a4, "A5": a5, "A7": a7, "A8": a8, "A9": a9, "A12": a12}
QUICK = ("A1", "A2", "A3", "A4")


def load():
    return os.getloadavg()[0]


def main(words):
    full = "--full" in words
    ropewalk, *names = [word for word in words if word != "--full"]
    names = names or (list(TESTS) if full else list(QUICK))
    unknown = [name for name in names if name not in TESTS]
    if unknown:
        sys.exit(f"there is no test {unknown[0]}; the tests are {', '.join(TESTS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    passed, failed = 0, 0
    folder = FOLDER / "run"
    try:
        tools(FOLDER)
        made = disk(FOLDER)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        # Linux lets a datagram socket hold 10 frames; a guest sends more at once.
        queue = Path("/proc/sys/net/unix/max_dgram_qlen")
        if int(queue.read_text()) < 4096:
            if not os.access(queue, os.W_OK):
                raise LeftOut("net.unix.max_dgram_qlen is below 4096, and only root can raise it")
            queue.write_text("4096")
        guests = Guests(made, folder)
    except LeftOut as reason:
        print(f"LEFT OUT: lab ({reason})")
        print(f"lab: 0 passed, 0 failed, {len(names)} skipped")
        return 0
    print(f"two guests up after {guests.boot_time:.0f} s at load {load():.1f}", flush=True)
    try:
        for name in names:
            run = Run(Path(ropewalk).resolve(), guests, name)
            about = TESTS[name].__doc__
            try:
                print(f"{name} passed: {TESTS[name](run, full)} (load {load():.1f})", flush=True)
                passed += 1
            except Failed as error:
                print(f"{name} FAILED: {error}\n   {about}\n   {run.at} has counters, frames and logs", flush=True)
                failed += 1
            finally:
                run.stop()
    finally:
        guests.halt()
    print(f"lab: {passed} passed, {failed} failed, 0 skipped")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

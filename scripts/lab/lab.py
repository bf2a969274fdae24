"""The lab: real RDMA clients in two guests, through `ropewalk nic` and `ropewalk tor`. docs/soft-tor.md describes the tests.

    lab.py ROPEWALK [--full] [--minutes N] [TEST...]

Everything is kept in `target/lab`. Only counts are asserted; times are printed beside the load of the machine. The last line is
`lab: N passed, M failed, K skipped`. The exit code is 0 if nothing failed, and each test has run or was left out for a named
reason. One such reason is the end of the time that `--minutes` gives, so that a slow machine is no failure.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from guests import NICE, Guests, LeftOut, disk, tools

FOLDER = Path("target/lab").resolve()
SERVER = "10.0.0.1"
# The fabric of most tests: four paths, the last 2 ms longer than the first, and the last hop of 0.1 ms. The skew is so large
# that packets which follow each other on different paths always change places.
SPRAYED = {"spines": 4, "delay": "200us", "spread": "2ms"}
PLAIN = {"spines": 1, "delay": "0us", "spread": "0us"}


# Frames that a capture keeps: all of a test, up to 150 MB of memory.
FRAMES = "100000"


# Counters that move with every RoCE packet of the ToR or of the NICs.
MOVING = ("roce_packets", "requests", "retransmitted", "duplicates", "nacks_sent", "nacks_heard")


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

    def start(self, command, text, keep):
        """Starts `ropewalk nic` or `ropewalk tor` with these settings."""
        file = self.at / f"{command}.toml"
        file.write_text(text)
        status = self.at / f"{command}.json"
        status.unlink(missing_ok=True)
        words = [self.ropewalk, command, file, "--status", status, "--record", self.at / f"{command}.log"]
        words += ["--pcap", self.at / f"{command}.pcapng", "--pcap-frames", FRAMES] if keep else []
        out = open(self.at / f"{command}.out", "w")
        process = subprocess.Popen([*NICE, *words], stdout=out, stderr=subprocess.STDOUT)
        self.processes.append((command, process))
        deadline = time.monotonic() + 60
        while not status.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"ropewalk {command} did not start: {(self.at / f'{command}.out').read_text().strip()}")
            time.sleep(0.05)

    def nic(self, settings="", rate="1Gbps", keep=True):
        """NICs in front of both guests; their network sides are w1.sock and w2.sock."""
        at, text = self.guests.folder, ""
        for n in (1, 2):
            host = {"unix": {"bind": f"{at}/nic{n}.sock", "peer": f"{at}/vm{n}.sock"}}
            network = {"unix": {"bind": f"{at}/w{n}.sock", "peer": f"{at}/sw{n}.sock"}}
            text += f'[[bump]]\nname = "h{n}"\nrate = "{rate}"\nhost = {toml(host)}\nnetwork = {toml(network)}\n'
        self.start("nic", text + settings, keep)

    def tor(self, fabric, themis, bumps=True, rate=None, more="", keep=True):
        """A fabric between the NICs, or between the guests themselves."""
        at = self.guests.folder
        ends = ("sw", "w") if bumps else ("nic", "vm")
        text = "[fabric]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in fabric.items())
        for n in (1, 2):
            sockets = {"bind": f"{at}/{ends[0]}{n}.sock", "peer": f"{at}/{ends[1]}{n}.sock"}
            text += f'[[port]]\nname = "h{n}"\nlast-hop = "100us"\nunix = {toml(sockets)}\n'
            text += f'rate = "{rate}"\n' if rate else ""
        text += "[themis]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in themis.items())
        self.start("tor", text + more, keep)

    def status(self, command):
        """The counters that a program has reported last; it does so every second. Empty if it has not."""
        file = self.at / f"{command}.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def settle(self, limit=30):
        """Waits until no RoCE packet has come anywhere for a second: a program that ends reads no more frames."""
        until, last = time.monotonic() + limit, None
        while time.monotonic() < until and all(process.poll() is None for _, process in self.processes):
            reports = [self.status(command) for command, _ in self.processes]
            moments = [report.get("seconds") for report in reports]
            counts = [{key: report.get(key) for key in MOVING} for report in reports]
            if last is None or counts != last[1]:
                last = moments, counts
            elif all(new != old for new, old in zip(moments, last[0])):
                return
            time.sleep(0.1)

    def stop(self):
        """Ends the programs; returns their counters by command."""
        counters = {}
        self.settle()
        for command, process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            counters[command] = self.status(command)
        self.processes = []
        return counters

    def check(self, *words):
        """Lets `ropewalk tor check` look at the ToR's capture and decision log, after `stop`."""
        command = [self.ropewalk, "tor", "check", self.at / "tor.pcapng", "--log", self.at / "tor.log", *words]
        # The programs get their turns of the processor tens of milliseconds apart, in which a host sends hundreds of packets.
        command += ["--under-way", "2000"]
        done = subprocess.run([*NICE, *command], capture_output=True, text=True)
        (self.at / "check.out").write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            breach = re.findall(r"^  \S.*", done.stdout, re.M) or [done.stderr.strip()]
            raise Failed(f"ropewalk tor check {' '.join(words)}: exit code {done.returncode}: {breach[0].strip()}")

    def replay(self):
        """The decisions that the captured frames cause must be those of the run."""
        command = [self.ropewalk, "tor", "replay", self.at / "tor.toml", "--pcap", self.at / "tor.pcapng", "--decisions"]
        done = subprocess.run([*NICE, *command], capture_output=True, text=True)
        lines = (self.at / "tor.log").read_text().splitlines()
        if done.stdout.splitlines() != lines:
            differing = [pair for pair in zip(done.stdout.splitlines(), lines) if pair[0] != pair[1]][:1]
            raise Failed(f"the replay differs from the run of {len(lines)} decisions: {differing}")
        return len(lines)


THEMIS = ("--expect", "themis", "--paths", "4")


def total(counters, name, *labels):
    """The sum of a counter over all labels that contain these words."""
    value = counters.get(name, 0)
    if isinstance(value, int):
        return value
    return sum(count for key, count in value.items() if all(word in key.split() for word in labels))


def perftest(tool, messages, size=4096, mtu=1024, more="", timeout=21):
    """Server and client commands of a perftest program. Its timeout of 2^21 x 4 us = 8.6 s is longer than emulation is slow."""
    words = f"{tool} -d rxe0 -x 1 -F -s {size} -n {messages} -m {mtu} -u {timeout} {more}"
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
    "ib_send_bw, 8 queue pairs": perftest("ib_send_bw", 50, 16384, more="-q 8"),
    "ib_write_bw UC": ("ib_write_bw -d rxe0 -x 1 -F -c UC -s 4096 -n 100", f"ib_write_bw -d rxe0 -x 1 -F -c UC -s 4096 -n 100 {SERVER}"),
    "ib_write_lat": ("ib_write_lat -d rxe0 -x 1 -F -n 200 -u 18", f"ib_write_lat -d rxe0 -x 1 -F -n 200 -u 18 {SERVER}"),
    "ucmatose": ("ucmatose -S 4096 -C 20", f"ucmatose -s {SERVER} -S 4096 -C 20"),
    "rping": (f"rping -s -a {SERVER} -C 30 -S 65000", f"rping -c -a {SERVER} -C 30 -S 65000 -V"),
    "pv.py": (f"{PV} server {SERVER} 20 65536", f"{PV} client {SERVER} 20 65536"),
}
# UCX finds its peer over rdma_rxe with an IPv6 GID only. The timeout of 1 s is longer than emulation is slow.
UCX = "UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=2 UCX_RC_TIMEOUT=1s"
# With it, UCX writes large messages. Its default lets the receiver read them, and reads have no NACKs.
WRITES = "UCX_RNDV_SCHEME=put_zcopy"
MPIRUN = "mpirun --allow-run-as-root -np 2 --host 10.0.0.2,10.0.0.1 -mca plm_rsh_agent /usr/local/bin/rsh.py -mca oob_tcp_if_include eth0"
RING = "python3 /usr/local/bin/ring.py"


def ucx(words):
    return f"{UCX} ucx_perftest", f"{UCX} ucx_perftest {SERVER} {words}"


def mpi(words, more=""):
    """The command of an MPI program over UCX's reliable connections, to be run in guest 2."""
    words_of = dict(word.split("=", 1) for word in f"{UCX} {more}".split())
    setting = " ".join(f"-x {name}={value}" for name, value in words_of.items())
    return f"{MPIRUN} -mca pml ucx -mca btl ^openib {setting} {words} 2>&1"


# Clients of the full guest only.
LARGE = {
    "ucx_perftest, tags": ucx("-t tag_bw -s 65536 -n 100 -w 10"),
    "ucx_perftest, puts": ucx("-t ucp_put_bw -s 65536 -n 100 -w 10"),
    "fi_pingpong": ("fi_pingpong -p verbs -e msg -I 50 -S 4096", f"fi_pingpong -p verbs -e msg -I 50 -S 4096 {SERVER}"),
    "MPI over UCX": ("true", mpi(f"{RING} 1048576 2")),
    "MPI over UCX, writes": ("true", mpi(f"{RING} 1048576 2", WRITES)),
}
# What a client that checks its data says in the end.
SAYS = {"pv.py": "wrong buffers: 0", "MPI over UCX": "wrong words: 0", "MPI over UCX, writes": "wrong words: 0"}
SMALL = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "rping", "pv.py")


def client(guests, name, limit=300):
    """Runs a client; returns how long it took. The programs that check data fail if a byte is wrong."""
    started = time.monotonic()
    (code, text), (served, said) = guests.pair(*(CLIENTS | LARGE)[name], limit)
    if code != 0:
        raise Failed(f"{name}: exit code {code}, server {served}: {(text.strip() or said.strip()).splitlines()[-1:]}")
    if SAYS.get(name, "") not in text:
        raise Failed(f"{name}: {text.strip().splitlines()[-3:]}")
    return time.monotonic() - started


def remote_shell(guests):
    """Starts the remote shell that mpirun needs, once."""
    if not getattr(guests, "has_shell", False):
        guests.wait(guests.start(1, "setsid python3 /usr/local/bin/rsh.py serve > /tmp/rsh.log 2>&1 < /dev/null &", 10))
        guests.has_shell = True


def copied(guests, megabytes, limit):
    """Copies a file over rsockets; returns how long it took. Both sides must have the same file."""
    guests.wait(guests.start(2, f"head -c {megabytes}000000 /dev/urandom > /tmp/a", 60))
    serving = guests.serve("rcopy", limit)
    started = time.monotonic()
    code, text = guests.wait(guests.start(2, f"rcopy /tmp/a {SERVER}:/tmp/b && sha256sum < /tmp/a", limit))
    seconds = time.monotonic() - started
    _, theirs = guests.dismiss(serving)
    theirs += guests.wait(guests.start(1, "sha256sum < /tmp/b", 60))[1]
    sums = [re.findall(r"([0-9a-f]{64})", words) for words in (text, theirs)]
    if code != 0 or not sums[0] or sums[0] != sums[1]:
        raise Failed(f"rcopy: exit code {code}, checksums {sums}: {(text.strip() + theirs.strip()).splitlines()[-2:]}")
    return seconds


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
    names = [*CLIENTS, *LARGE] if full else SMALL
    if wanted := os.environ.get("ROPEWALK_LAB_CLIENTS"):
        names = [name for name in names if wanted in name]
    if full:
        remote_shell(run.guests)
    if full and not wanted:
        print(f"   rcopy of 4 MB: {copied(run.guests, 4, 300):.1f} s", flush=True)
    for name in names:
        print(f"   {name}: {client(run.guests, name):.1f} s", flush=True)
    nic = run.stop()["nic"]
    expect("NACKs of NICs", total(nic, "nacks_sent"), exactly(0), 0)
    expect("NACKs of hosts", total(nic, "host_nacks"), exactly(0), 0)
    expect("frames with a wrong ICRC", total(nic, "icrc_wrong"), exactly(0), 0)
    expect("requests", total(nic, "requests"), more_than(0), "more than 0")
    return f"{len(names)} clients, {total(nic, 'requests')} requests, no NACK, no wrong ICRC"


def sprayed(run, fabric, themis, timeout=21):
    """`ib_send_bw` with 4 packets per message; returns its rate, and the counters of NICs and ToR."""
    run.nic(NIC_SR)
    run.tor(SPRAYED | fabric, themis)
    (code, text), (served, _) = run.guests.pair(*perftest("ib_send_bw", 500, timeout=timeout))
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
    rate = "" if speed != speed else f", {speed:.2f} MB/s"
    return f"{label}: " + ", ".join(f"{name} {count}" for name, count in counts) + rate


def a2(run, full):
    """Random spraying: the disorder is real, and every retransmission is spurious."""
    speed, nic, tor = sprayed(run, {"spray": "rps"}, {"mode": "off"})
    expect("requests of the host", total(nic, "requests", "h2"), exactly(2000), 2000)
    expect("NACKs", total(nic, "nacks_sent"), more_than(50), "more than 50")
    again = total(nic, "retransmitted") + total(nic, "host_resent")
    expect("duplicates", total(nic, "duplicates"), exactly(again), f"{again}, as many as retransmissions")
    run.check("--expect", "nic-sr")
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
    run.check(*THEMIS)
    run.check("--expect", "nic-sr")
    return row("Themis, sound", speed, nic, tor) + f", replayed {run.replay()} decisions"


def a4(run, full):
    """Themis to the letter: it compensates for packets that are merely late."""
    speed, nic, tor = sprayed(run, {}, {"mode": "literal"})
    expect("requests of the host", total(nic, "requests", "h2"), exactly(2000), 2000)
    expect("compensations", total(tor, "nacks_compensated"), more_than(0), "more than 0")
    again = total(nic, "retransmitted") + total(nic, "host_resent")
    expect("duplicates", total(nic, "duplicates"), exactly(again), f"{again}, as many as retransmissions")
    run.check(*THEMIS, "--literal")
    return row("Themis, literal", speed, nic, tor)


def a5(run, full):
    """Loss: NACKs bring back lost packets only."""
    speed, nic, tor = sprayed(run, {"loss": 0.01, "seed": 1}, {"mode": "sound"}, timeout=18)
    lost = total(tor, "path_lost")
    expect("frames lost", lost, more_than(0), "more than 0")
    expect("requests of the host", total(nic, "requests", "h2"), exactly(2000), 2000)
    again = total(nic, "retransmitted")
    expect("retransmissions by NACKs", again, lambda value: value <= lost, f"at most {lost}, the frames lost")
    own = total(nic, "host_resent")
    expect("duplicates", total(nic, "duplicates"), lambda value: value <= own, f"at most {own}, as many as the host's timer")
    run.check(*THEMIS)
    return row("Themis, 1 % loss", speed, nic, tor) + f", replayed {run.replay()} decisions"


# The NIC of the tests that look at rates: a NACK is a CNP to DCQCN. Emulated hosts fill 40 Mb/s, so the lab is a fabric of
# 100 Gb/s in slow motion. The times are those of the DCQCN paper, slowed down by the same factor, and the increases of the rate
# follow the line by themselves. Two settings are our choice. The least rate is a twentieth of the line instead of a thousandth,
# so that the runs under random spraying end; and the timeouts of emulated hosts, which come at any load, cut no rate.
def slow(rate):
    factor = 100_000 / rate
    times = {"alpha-timer": 55, "rate-decrease-interval": 50, "rate-increase-timer": 55}
    keys = "".join(f'{name} = "{time * factor:.0f}us"\n' for name, time in times.items())
    return f'[nic]\non-timeout = "none"\n[nic.transport.nic-sr]\n[nic.congestion.dcqcn-hpcc]\n{keys}min-rate = "{rate / 20:.1f}Mbps"\n'


def a6(run, full):
    """Rates, which mean little on a busy machine: Themis at least 0.9 times as fast as ECMP, and 3 times as RPS."""
    speeds = {}
    for seed in (1, 2, 3):
        for name, spray, mode in (("ECMP", "ecmp", "off"), ("RPS", "rps", "off"), ("Themis", "psn", "sound")):
            run.nic(slow(16), rate="16Mbps")
            run.tor(SPRAYED | {"spray": spray, "seed": seed}, {"mode": mode}, rate="16Mbps")
            (code, text), _ = run.guests.pair(*perftest("ib_write_bw", 94, 65536))
            run.stop()
            if code != 0:
                raise Failed(f"ib_write_bw under {name}: exit code {code}: {text.strip().splitlines()[-1:]}")
            speeds.setdefault(name, []).append(rate(text))
    ecmp, rps, themis = (sorted(speeds[name])[1] for name in ("ECMP", "RPS", "Themis"))
    if load() <= 2:
        expect("Themis / ECMP", themis / ecmp, lambda value: value >= 0.9, "at least 0.9")
        expect("Themis / RPS", themis / rps, lambda value: value >= 3, "at least 3")
    about = "" if load() <= 2 else ", not asserted at this load"
    return f"medians of 3: ECMP {ecmp:.2f}, RPS {rps:.2f}, Themis {themis:.2f} MB/s{about}"


def a7(run, full):
    """Eight queue pairs by rdma_cm, and four over IPv6: all connections are learnt, and nothing is retransmitted."""
    run.nic(NIC_SR)
    run.tor(SPRAYED, {"mode": "sound"})
    for words in ("-R -s 16384 -n 50 -q 8", "-x 2 -s 16384 -n 50 -q 4"):
        words = f"ib_write_bw -d rxe0 -F -u 18 {words}"
        (code, text), (served, _) = run.guests.pair(words, f"{words} {SERVER}")
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
    (code, text), (served, _) = run.guests.pair(*perftest("ib_send_bw", 100, timeout=18))
    tor = run.stop()["tor"]
    if code != 0 or served != 0:
        raise Failed(f"ib_send_bw: exit codes {code} and {served}: {text.strip().splitlines()[-1:]}")
    expect("receivers that go back", total(tor, "receivers_go_back_n"), more_than(0), "more than 0")
    run.check("--expect", "go-back-n")
    sent = total(tor, "roce_packets", "h2", "in", "request")
    return f"the host sent {sent} requests for 400 needed, receivers that go back {total(tor, 'receivers_go_back_n')}"


def a9(run, full):
    """Reads: responses stay in order on one path, and no NACK is sent."""
    run.nic(NIC_SR)
    run.tor(SPRAYED, {"mode": "sound"})
    seconds = client(run.guests, "ib_read_bw")
    counters = run.stop()
    nic, tor = counters["nic"], counters["tor"]
    expect("NACKs that reached a host", total(nic, "nacks_heard"), exactly(0), 0)
    expect("NACKs of hosts", total(nic, "host_nacks"), exactly(0), 0)
    expect("retransmissions", total(nic, "retransmitted") + total(nic, "host_resent"), exactly(0), 0)
    responses = total(tor, "roce_packets", "h1", "in", "response")
    return f"{responses} responses in {seconds:.1f} s, requests {total(nic, 'requests')}, NACKs {total(nic, 'nacks_sent')}"


def a10(run, full):
    """A path fails for a second in mid-run: the copy is right, and NACKs bring back lost packets only."""
    # Every 8 s, because nobody knows when an emulated host begins to send; the copy takes longer.
    down = [f"{second + n}s" for second in range(6, 300, 8) for n in (0, 1)]
    run.nic(NIC_SR, rate="20Mbps")
    run.tor(SPRAYED, {"mode": "sound"}, rate="20Mbps", more=f'[[path]]\nindex = 2\ndown = {toml(down)}\n')
    seconds = copied(run.guests, 24, 300)
    counters = run.stop()
    nic, tor = counters["nic"], counters["tor"]
    moved = re.findall(r"slots-moved=(\d+)", (run.at / "tor.log").read_text())
    expect("changes of slots", len(moved), lambda value: value >= 2, "at least 2")
    expect("frames lost on the path", total(tor, "path_lost", "down"), more_than(0), "more than 0")
    slots, own = sum(map(int, moved)), total(nic, "host_resent")
    most = slots + own
    expect("duplicates", total(nic, "duplicates"), lambda value: value <= most, f"at most {slots} slots moved + {own} of the host's timer")
    return f"24 MB in {seconds:.1f} s, slots moved {slots}, lost {total(tor, 'path_lost_down')}, " + row("one path down", float("nan"), nic, tor)


# Length of the soak, s.
SOAK = 600


def resident(process):
    """Memory of a process in kB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1])


def a11(run, full):
    """Ten minutes of clients with 0.1 % loss: no wrong byte, and memory stays as it is."""
    run.nic(NIC_SR, keep=False)
    run.tor(SPRAYED | {"loss": 0.001}, {"mode": "sound"}, keep=False)
    names = ["pv.py", "ib_write_bw"]
    if full:
        remote_shell(run.guests)
        names.append("MPI over UCX, writes")
    started, rounds, first = time.monotonic(), 0, None
    while time.monotonic() - started < SOAK:
        for name in names:
            client(run.guests, name)
        rounds += 1
        first = first or [resident(process) for _, process in run.processes]
    last = [resident(process) for _, process in run.processes]
    counters = run.stop()
    nic, tor = counters["nic"], counters["tor"]
    for (before, after), name in zip(zip(first, last), ("ropewalk nic", "ropewalk tor")):
        # Our choice: a heap may take a few more pages; a leak of one frame in ten would be 20 MB.
        expect(f"growth of {name} in kB", after - before, lambda value: value <= 2048, "at most 2048")
    return f"{rounds} rounds of {', '.join(names)}, memory {last} kB after {first} kB, " + row("soak", float("nan"), nic, tor)


def mpi_run(run, full):
    """A checked MPI all-reduce over UCX that writes: the words are right, and Themis lets no NACK through."""
    if not full:
        raise LeftOut("only the full guest has MPI")
    remote_shell(run.guests)
    rows = []
    for name, spray, mode in (("ECMP", "ecmp", "off"), ("RPS", "rps", "off"), ("Themis, literal", "psn", "literal"), ("Themis, sound", "psn", "sound")):
        run.nic(slow(40), rate="40Mbps")
        run.tor(SPRAYED | {"spray": spray}, {"mode": mode}, rate="40Mbps")
        code, text = run.guests.wait(run.guests.start(2, mpi(f"{RING} 4194304 2 reduce", f"{WRITES} UCX_RC_TIMEOUT=8s"), 280))
        counters = run.stop()
        nic, tor = counters["nic"], counters["tor"]
        if code != 0 or "wrong words: 0" not in text:
            raise Failed(f"MPI under {name}: exit code {code}: {text.strip().splitlines()[-3:]}")
        times = re.findall(r"all-reduce of \d+ B: ([\d.]+) s", text)
        rows.append(row(f"{name}: all-reduce {' and '.join(times)} s", float("nan"), nic, tor) + f" (load {load():.1f})")
        print("   " + rows[-1], flush=True)
        if name == "Themis, sound":
            expect("retransmissions", total(nic, "retransmitted"), exactly(0), 0)
            expect("NACKs blocked", total(tor, "nacks_blocked"), more_than(50), "more than 50")
        for file in ("tor.pcapng", "tor.log", "tor.toml"):
            shutil.copy(run.at / file, run.at / f"{name.replace(', ', '-')}-{file}")
    return f"{len(rows)} rows, no wrong word"


def a12(run, full):
    """The ToR ends and starts again under a run: the hosts recover, and the connection is learnt again."""
    run.nic(NIC_SR)
    run.tor(SPRAYED, {"mode": "sound"})
    guests = run.guests
    server, words = perftest("ib_send_bw", 4000, timeout=18)
    serving = guests.serve(server, 300)
    asking = guests.start(2, words, 300)
    deadline = time.monotonic() + 120
    while total(run.status("tor"), "path_sprayed") < 2000:
        if time.monotonic() > deadline:
            raise Failed("the host has sent less than 2000 requests in 120 s")
        time.sleep(0.1)
    (command, process) = run.processes.pop()
    process.send_signal(signal.SIGTERM)
    process.wait(60)
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


TESTS = {"A1": a1, "A2": a2, "A3": a3, "A4": a4, "A5": a5, "A6": a6, "A7": a7, "A8": a8, "A9": a9, "A10": a10, "A11": a11, "A12": a12, "MPI": mpi_run}
QUICK = ("A1", "A2", "A3", "A4")


def load():
    return os.getloadavg()[0]


def main(words):
    full = "--full" in words
    minutes = float("inf")
    if "--minutes" in words:
        at = words.index("--minutes")
        minutes = float(words[at + 1])
        words = words[:at] + words[at + 2 :]
    deadline = time.monotonic() + 60 * minutes
    ropewalk, *names = [word for word in words if word != "--full"]
    names = names or (list(TESTS) if full else list(QUICK))
    unknown = [name for name in names if name not in TESTS]
    if unknown:
        sys.exit(f"there is no test {unknown[0]}; the tests are {', '.join(TESTS)}")
    # An end from outside, such as that of `timeout`, also ends the guests.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    FOLDER.mkdir(parents=True, exist_ok=True)
    # A second lab in the folder would take the sockets and the files of the first.
    lock = open(FOLDER / "lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    passed, failed, skipped = 0, 0, 0
    folder = FOLDER / "run"
    try:
        tools(FOLDER)
        try:
            made = disk(FOLDER, full)
        except LeftOut as reason:
            if not full:
                raise
            # The tests that need nothing of the full guest run in the small one.
            print(f"LEFT OUT: the clients of the full guest ({reason})", flush=True)
            full, made = False, disk(FOLDER)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        # Linux lets a datagram socket hold 10 frames; a guest sends more at once.
        queue = Path("/proc/sys/net/unix/max_dgram_qlen")
        if int(queue.read_text()) < 4096:
            if not os.access(queue, os.W_OK):
                raise LeftOut("net.unix.max_dgram_qlen is below 4096, and only root can raise it")
            queue.write_text("4096")
        guests = Guests(made, folder, deadline=deadline)
        if guests.wait(guests.start(1, "test -e /sys/class/infiniband/rxe0", 60))[0] != 0:
            guests.halt()
            raise LeftOut("the guest's kernel has no rdma_rxe")
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
                if time.monotonic() >= deadline:
                    raise LeftOut("the lab's time is over")
                print(f"{name} passed: {TESTS[name](run, full)} (load {load():.1f})", flush=True)
                passed += 1
            except LeftOut as reason:
                print(f"{name} LEFT OUT: {reason}", flush=True)
                skipped += 1
            except Failed as error:
                print(f"{name} FAILED: {error}\n   {about}\n   {run.at} has counters, frames and logs", flush=True)
                failed += 1
            finally:
                run.stop()
        with contextlib.suppress(LeftOut):
            print(f"the clocks of the guests were off by {guests.drift():.1%}", flush=True)
    finally:
        guests.halt()
    print(f"lab: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed > 0 or passed + skipped == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

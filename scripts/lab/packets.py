"""The speed of the ToR between packet sockets: packets.py ROPEWALK [FRAMES]. It prints; no test asserts a time. Needs root.

A program sends RoCEv2 requests of 1 kB with rising PSNs into one end of a veth pair. The ToR carries them over four spines, with
Themis, to another pair. The figure is the number of frames per second of the ToR's own CPU time, so other programs on the machine
change it little. The sender and the kernel's work for it are not in it.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAIRS = (f"rw{os.getpid()}a", f"rw{os.getpid()}b")
# Frames at a time, and the pause behind them: 200,000 frames/s at most, as much as one program sends beside the ToR on two cores.
BURST, PAUSE = 64, 64 / 200_000


def frame():
    """A SEND of 1 kB from host 1 to host 2, with room for the PSN. The ToR checks no ICRC of data."""
    bth = bytes([0x01, 0, 0xFF, 0xFF]) + (17).to_bytes(4) + bytes(4)
    body = bth + bytes(1024) + bytes(4)
    udp = (0xC121).to_bytes(2) + (4791).to_bytes(2) + (8 + len(body)).to_bytes(2) + bytes(2)
    ip = bytes([0x45, 0]) + (28 + len(body)).to_bytes(2) + bytes([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
    return bytearray(bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]) + ip + udp + body)


def blast(name, count):
    """Sends frames with rising PSNs."""
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((name, 0))
    one, psn = frame(), 14 + 20 + 8 + 9
    due = time.monotonic()
    for n in range(count):
        one[psn : psn + 3] = n.to_bytes(3)
        out.send(one)
        if n % BURST == BURST - 1:
            due += PAUSE
            while time.monotonic() < due:
                pass


def cpu(process):
    """CPU time of a process in s, and its part in the kernel."""
    words = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    own, kernel = int(words[11]), int(words[12])
    ticks = os.sysconf("SC_CLK_TCK")
    return (own + kernel) / ticks, kernel / ticks


def main(ropewalk, count=1_000_000):
    veth = ["ip", "link", "add", PAIRS[0], "type", "veth", "peer", "name", PAIRS[0] + "x"]
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("LEFT OUT: the speed of packet sockets (only root with `ip` can make veth pairs)")
        return 0
    made = subprocess.run(veth, capture_output=True, text=True)
    if made.returncode != 0:
        print(f"LEFT OUT: the speed of packet sockets (`ip` fails: {made.stderr.strip()})")
        return 0
    subprocess.run(["ip", "link", "del", PAIRS[0]], check=True)
    folder = Path(tempfile.mkdtemp())
    tor = None
    try:
        text = "[fabric]\nspines = 4\n"
        for n, name in enumerate(PAIRS, 1):
            subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", name + "x"], check=True)
            for end in (name, name + "x"):
                subprocess.run(["ip", "link", "set", end, "mtu", "4200", "up"], check=True)
            text += f'[[port]]\nname = "h{n}"\npacket = "{name}"\nstations = ["02:00:00:00:00:0{n}"]\n'
        file, status = folder / "tor.toml", folder / "status.json"
        file.write_text(text)
        tor = subprocess.Popen([ropewalk, "tor", file, "--status", status])
        while not status.exists() and tor.poll() is None:
            time.sleep(0.02)
        received = Path(f"/sys/class/net/{PAIRS[1]}x/statistics/rx_packets")
        before, (start, in_kernel), began = int(received.read_text()), cpu(tor), time.monotonic()
        blast(PAIRS[0] + "x", count)
        seconds = time.monotonic() - began
        time.sleep(0.2)
        got, (end, kernel) = int(received.read_text()) - before, cpu(tor)
        tor.send_signal(signal.SIGTERM)
        tor.wait(60)
        counters = json.loads(status.read_text())
        sprayed = counters["path_sprayed"]
        spent = end - start
        if got == 0 or spent == 0:
            print("no frame arrived")
            return 1
        print(f"packet sockets: {count / seconds / 1e6:.2f} M frames/s offered, {got / spent / 1e6:.2f} M frames per CPU second of the ToR")
        print(f"   {got} of {count} arrived, missed {counters['missed_frames']}, by path {sprayed}")
        print(f"   {spent * 1e9 / max(got, 1):.0f} ns per frame, {(kernel - in_kernel) * 1e9 / max(got, 1):.0f} of them in the kernel")
        return 0
    finally:
        if tor and tor.poll() is None:
            tor.kill()
        for name in PAIRS:
            subprocess.run(["ip", "link", "del", name], capture_output=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3])))

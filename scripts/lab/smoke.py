"""A ToR between network namespaces, by packet sockets: smoke.py ROPEWALK. Takes about 5 s; needs root.

Two hosts in namespaces of their own ask for each other's address and exchange 500 datagrams each way over two spines. All must
arrive, and the ToR must have counted every frame. Without root or `ip`, one line tells that the test is left out.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNT = 500
# Longest time that a program may take on a busy machine, s. Our choice.
PATIENCE = 60
# Each side says when it listens, and waits for a line until both do. It greets the other side until it is greeted, so that both
# know each other's address. Then it sends its datagrams, at most 32 more than it has got: no buffer minds, however late one of
# the programs gets its turn. It prints how many of the other side's it has got.
TALK = f"""
import socket, sys, time
own, peer, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 11, 1)  # SO_NO_CHECK: no UDP checksum, as in RoCEv2; veth would leave it to the receiver
s.bind((own, 7000))
print("listens", flush=True)
input()
end = time.monotonic() + {PATIENCE}
got, sent, greeted = set(), 0, False
s.settimeout(0.2)
while time.monotonic() < end and (len(got) < count or sent < count):
    if not greeted:
        s.sendto(b"hello", (peer, 7000))
    while greeted and sent < count and sent < len(got) + 32:
        s.sendto(sent.to_bytes(4, 'big') + bytes(1000), (peer, 7000))
        sent += 1
    try:
        datagram = s.recv(2000)
    except TimeoutError:
        continue
    if datagram == b"hello" and not greeted:
        s.sendto(b"hello", (peer, 7000))
    greeted = True
    if datagram != b"hello":
        got.add(datagram[:4])
print(len(got))
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def main(ropewalk):
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("LEFT OUT: namespaces with packet sockets (only root with `ip` can make namespaces)")
        return 0
    names = [f"rw{os.getpid()}-{n}" for n in (1, 2)]
    folder = Path(tempfile.mkdtemp())
    tor = None
    try:
        text = '[fabric]\nspines = 2\ndelay = "200us"\n[themis]\nmode = "off"\n'
        for n, name in enumerate(names, 1):
            try:
                ip("netns", "add", name)
                ip("link", "add", f"rwt{n}", "type", "veth", "peer", "name", "eth0", "netns", name)
            except subprocess.CalledProcessError as error:
                reason = error.stderr.decode().strip().splitlines()[-1:]
                print(f"LEFT OUT: namespaces with packet sockets (`ip` fails: {' '.join(reason)})")
                return 0
            ip("link", "set", f"rwt{n}", "up")
            ip("-n", name, "addr", "add", f"10.9.0.{n}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            text += f'[[port]]\nname = "h{n}"\npacket = "rwt{n}"\n'
        file, status = folder / "tor.toml", folder / "status.json"
        file.write_text(text)
        tor = subprocess.Popen([ropewalk, "tor", file, "--status", status])
        while not status.exists() and tor.poll() is None:
            time.sleep(0.02)
        talks = []
        for n, name in enumerate(names, 1):
            words = ["ip", "netns", "exec", name, sys.executable, "-c", TALK]
            words += [f"10.9.0.{n}", f"10.9.0.{3 - n}", str(COUNT)]
            talks.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for talk in talks:
            talk.stdout.readline()
        for talk in talks:
            talk.stdin.write("\n")
            talk.stdin.flush()
        got = [int(talk.communicate()[0] or 0) for talk in talks]
        tor.send_signal(signal.SIGTERM)
        code = tor.wait(PATIENCE)
        counters = json.loads(status.read_text())
        read, missed = counters["read_frames"], counters["missed_frames"]
        print(f"namespaces: {got[0]} and {got[1]} of {COUNT} datagrams arrived, frames {read}, missed {missed}, exit code {code}")
        right = got == [COUNT, COUNT] and code == 0 and min(read.values()) >= COUNT
        return 0 if right else 1
    finally:
        if tor and tor.poll() is None:
            tor.kill()
        for n, name in enumerate(names, 1):
            subprocess.run(["ip", "link", "del", f"rwt{n}"], capture_output=True)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

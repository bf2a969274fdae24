"""Themis in eBPF, held to the test vectors inside Linux: ebpf.py. Takes a few seconds; needs root, clang, bpftool and libbpf's headers.

The programs of crates/themis/ebpf are compiled, pass the kernel's verifier, and get every event of crates/themis/vectors as a frame
(BPF_PROG_TEST_RUN, which sends nothing). What they do with the frame must be what the vectors say. If something is missing, one line
tells that the test is left out.
"""

import ctypes
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parents[2] / "crates/themis"
# Entries of a ring and maps, as in the C files.
RING = int(re.search(r"define THEMIS_RING (\d+)", (HERE / "ebpf/themis.h").read_text())[1])
DROP, PASS, REDIRECT = 1, 2, 4
# Number of the system call bpf, and its commands (linux/bpf.h).
BPF = {"x86_64": 321, "aarch64": 280}
UPDATE, DELETE, GET, RUN, TAKE = 2, 3, 7, 10, 21
REQUESTER, RESPONDER = (bytes([10, 0, 0, 2]), 18), (bytes([10, 0, 0, 1]), 17)

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    """The system call; returns its result and the attributes as the kernel left them."""
    buffer = ctypes.create_string_buffer(attributes, 128)
    result = libc.syscall(BPF[platform.machine()], command, buffer, 128)
    return (result if result >= 0 else -ctypes.get_errno()), buffer.raw


def address(buffer):
    return ctypes.addressof(buffer)


def opened(path):
    name = ctypes.create_string_buffer(str(path).encode())
    found, _ = bpf(GET, struct.pack("<QI", address(name), 0))
    if found < 0:
        raise OSError(-found, os.strerror(-found), str(path))
    return found


def on_map(command, file, key, value):
    """Acts on an entry; returns the result and the value."""
    # A queue has no keys, and no value goes with a deletion.
    key, value = (part and ctypes.create_string_buffer(part, len(part)) for part in (key, value))
    result, _ = bpf(command, struct.pack("<I4xQQQ", file, address(key) if key else 0, address(value) if value else 0, 0))
    return result, value and value.raw


def put(file, key, value):
    result, _ = on_map(UPDATE, file, key, value)
    if result < 0:
        raise OSError(-result, os.strerror(-result))


def remove(file, key):
    result, _ = on_map(DELETE, file, key, None)
    if result < 0:
        raise OSError(-result, os.strerror(-result))


def run(program, frame):
    """What a program does with a frame."""
    frame, out = ctypes.create_string_buffer(frame, len(frame)), ctypes.create_string_buffer(4096)
    words = struct.pack("<IIIIQQII", program, 0, len(frame), 4096, address(frame), address(out), 1, 0)
    result, left = bpf(RUN, words)
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return struct.unpack_from("<I", left, 4)[0]


def frame(opcode, to, psn, syndrome=0):
    """A RoCEv2 frame. The programs read no checksum."""
    source = REQUESTER if to == RESPONDER else RESPONDER
    body = struct.pack(">BBHIIB3x", opcode, 0, 0xFFFF, to[1], psn, syndrome) + bytes(4)
    udp = struct.pack(">HHHH", 0xC121, 4791, 8 + len(body), 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(body), 0, 0, 64, 17, 0, source[0], to[0])
    return bytes(12) + b"\x08\0" + ip + udp + body


class Tor:
    """The loaded programs and their maps."""

    def __init__(self, at):
        self.programs = {name: opened(at / "programs" / name) for name in ("from_host", "from_fabric")}
        self.maps = {name: opened(at / "maps" / name) for name in ("rule", "connections", "flows", "uplinks", "owed")}
        for host, queue_pair in (REQUESTER, RESPONDER):
            put(self.maps["connections"], host + struct.pack("<I", queue_pair), struct.pack("<I", 0))

    def start(self, mask, slots, ring, age, watch):
        put(self.maps["rule"], bytes(4), struct.pack("<IHHHH", mask, slots, ring, age, watch))
        put(self.maps["flows"], bytes(4), bytes(16 + 4 * RING))

    def event(self, kind, psn):
        """The line of the vectors' format that tells what happened, or None."""
        if kind == "data":
            run(self.programs["from_fabric"], frame(0x04, RESPONDER, psn))
            result, value = on_map(TAKE, self.maps["owed"], None, bytes(8))
            return f"data {psn}: owe {struct.unpack('<II', value)[1]}" if result == 0 else None
        code = run(self.programs["from_host"], frame(0x11, REQUESTER, psn, 0x60 if kind == "nack" else 0x1F))
        if kind == "ack":
            assert code == PASS, f"ack {psn}: code {code}"
            return None
        return f"nack {psn}: {'block' if code == DROP else 'forward'}"

    def path(self, psn, slots):
        """The uplink that a request takes: the only one that lets it be redirected."""
        taken = []
        for uplink in range(slots):
            put(self.maps["uplinks"], struct.pack("<I", uplink), struct.pack("<I", 1))
            if run(self.programs["from_host"], frame(0x0A, RESPONDER, psn)) == REDIRECT:
                taken.append(uplink)
            remove(self.maps["uplinks"], struct.pack("<I", uplink))
        assert len(taken) == 1, f"PSN {psn} takes the uplinks {taken}"
        return taken[0]


def psns(words):
    for word in words:
        first, _, last = word.partition("-")
        yield from range(int(first), int(last or first) + 1)


def vectors(tor):
    """Runs all cases in the sound mode; returns their number and that of their events."""
    cases = events = 0
    for file in sorted((HERE / "vectors").glob("*.toml")):
        for case in tomllib.loads(file.read_text())["case"]:
            if case["ring"] > RING:
                continue
            mask = (1 << case.get("width", 24)) - 1
            tor.start(mask, case["paths"], case["ring"], case.get("age", case["ring"]), case.get("watch", False))
            lines = []
            for event in case["events"]:
                kind, *words = event.split()
                for psn in psns(words):
                    lines.append(tor.event(kind, psn))
                    events += 1
            # The programs give no reasons.
            expected = [re.sub(r"(forward|block) .*", r"\1", line) for line in case["sound"]]
            lines = [line for line in lines if line]
            assert lines == expected, f"{file.name}: {case['name']}: {lines} instead of {expected}"
            cases += 1
    return cases, events


def main():
    missing = [tool for tool in ("clang", "bpftool") if not shutil.which(tool)]
    if missing or os.geteuid() != 0 or platform.machine() not in BPF:
        reason = f"{', '.join(missing)} not installed" if missing else "only root may load programs"
        print(f"LEFT OUT: Themis in eBPF ({reason})")
        return 0
    folder = Path(tempfile.mkdtemp())
    pins = folder / "bpf"
    pins.mkdir()
    try:
        target = folder / "themis.bpf.o"
        include = f"/usr/include/{platform.machine()}-linux-gnu"
        command = ["clang", "-O2", "-g", "-target", "bpf", "-Wall", "-Werror", f"-I{include}", "-c"]
        done = subprocess.run([*command, HERE / "ebpf/themis.bpf.c", "-o", target], capture_output=True, text=True)
        if done.returncode != 0:
            if "bpf_helpers.h' file not found" in done.stderr:
                print("LEFT OUT: Themis in eBPF (the headers of libbpf are not installed)")
                return 0
            raise SystemExit(done.stderr)
        if subprocess.run(["mount", "-t", "bpf", "bpf", pins], capture_output=True).returncode != 0:
            print("LEFT OUT: Themis in eBPF (no file system for eBPF can be mounted)")
            return 0
        load = ["bpftool", "prog", "loadall", target, pins / "programs", "pinmaps", pins / "maps"]
        done = subprocess.run(load, capture_output=True, text=True)
        if done.returncode != 0:
            # The verifier's own words are a failure; a kernel that refuses all programs is not.
            if "Operation not permitted" in done.stderr and "processed" not in done.stderr:
                print("LEFT OUT: Themis in eBPF (the kernel loads no programs here)")
                return 0
            raise SystemExit(done.stderr[-2000:])
        tor = Tor(pins)
        cases, events = vectors(tor)
        for slots in (4, 6):
            tor.start((1 << 24) - 1, slots, 16, 16, 0)
            paths = [tor.path(psn, slots) for psn in range(100, 100 + 2 * slots)]
            base = paths[0] - 100
            assert paths == [(psn + base) % slots for psn in range(100, 100 + 2 * slots)], paths
        print(f"Themis in eBPF: {cases} test vectors with {events} events hold in Linux {platform.release()}")
        return 0
    finally:
        subprocess.run(["umount", pins], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

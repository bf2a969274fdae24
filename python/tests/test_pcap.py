"""`ropewalk run --pcap`: Wireshark's decoder and scapy read the files and find the simulated packets.

Needs the binary (ROPEWALK, else target/debug/ropewalk); tshark (Debian package `tshark`) and scapy (`pip install scapy`)
for the tests that use them, which are skipped where they are missing.
"""

import collections
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROPEWALK = pathlib.Path(os.environ.get("ROPEWALK", ROOT / "target/debug/ropewalk"))
pytestmark = pytest.mark.skipif(not ROPEWALK.is_file(), reason=f"{ROPEWALK} is not there: cargo build, or set ROPEWALK")
tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (Debian package tshark)")

# Seven senders and one receiver, with lossy links and a small buffer: retransmissions, NACKs, CNPs and pauses, all within a
# millisecond.
SCENARIO = """
[topology.leaf-spine]
leaves = 2
spines = 2
hosts-per-leaf = 4
rate = "100Gbps"
delay = "1us"
loss = 0.01

[switch]
buffer = "1MB"

[nic.transport.nic-sr]
[nic.congestion.dcqcn]
[scheme.rps]

[[workload]]
name = "incast"
incast = { senders = 7, receiver = "host0", bytes = "300kB" }
"""
SENDERS, BYTES, PAYLOAD = 7, 300_000, 1438


def ropewalk(*args, cwd, ok=True):
    done = subprocess.run([ROPEWALK, *args], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert (done.returncode == 0) == ok, done.stderr
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The result directory of a run captured at the receiver, at its switch and on links to spines; and the summary."""
    folder = tmp_path_factory.mktemp("pcap")
    (folder / "incast.toml").write_text(SCENARIO)
    taps = ["host0", "leaf0:host0", "leaf0:1", "leaf1:spine0"]
    flags = [word for tap in taps for word in ("--pcap", tap)]
    done = ropewalk("run", "incast.toml", *flags, "--json", "-o", "out", cwd=folder)
    ropewalk("run", "incast.toml", *flags, "--snap-length", "128", "--quiet", "-o", "short", cwd=folder)
    return folder / "out", json.loads(done.stdout)


def decoded(path, *fields, only=None, options=()):
    """The fields of every frame that matches the display filter, as tshark decodes them."""
    command = ["tshark", "-r", path, "-T", "fields", "-E", "separator=|", *options]
    for field in fields:
        command += ["-e", field]
    if only:
        command += ["-Y", only]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [line.split("|") for line in done.stdout.splitlines()]


@tshark
@pytest.mark.parametrize("name", ["host0", "leaf0-host0", "leaf0-1", "leaf1-spine0"])
def test_every_frame_is_decoded_without_a_warning(run, name):
    path = run[0] / f"capture-{name}.pcapng"
    frames = decoded(path, "frame.protocols", options=["-o", "eth.check_fcs:TRUE", "-o", "ip.check_checksum:TRUE"])
    assert len(frames) > 100
    stacks = collections.Counter(protocols for [protocols] in frames)
    for stack in stacks:
        assert "infiniband" in stack or "macc" in stack, stacks
    # Severities: comment 0x100000, chat 0x200000, note 0x400000, and worse.
    bad = decoded(
        path, "frame.number", "_ws.expert.message", "_ws.col.Info",
        only="_ws.malformed || _ws.expert.severity > 0x200000 || eth.fcs.status == 0 || ip.checksum.status == 0",
        options=["-o", "eth.check_fcs:TRUE", "-o", "ip.check_checksum:TRUE"],
    )
    assert bad == []


@tshark
@pytest.mark.parametrize("name", ["host0", "leaf0-1"])
def test_a_short_frame_has_the_headers_and_the_length_of_the_whole_one(run, name):
    fields = [
        "frame.number", "frame.time_relative", "frame.len", "frame.comment", "eth.src", "ip.src", "ip.dsfield.ecn", "ip.len",
        "udp.srcport", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp", "infiniband.reth.dmalen",
        "infiniband.aeth.msn", "infiniband.aeth.syndrome.opcode", "macc.cbfc.pause_time.c3",
    ]  # fmt: skip
    whole, short = (run[0].parent / folder / f"capture-{name}.pcapng" for folder in ("out", "short"))
    assert decoded(short, *fields) == decoded(whole, *fields)
    kept = [tuple(map(int, row)) for row in decoded(short, "frame.len", "frame.cap_len")]
    assert all(cap == min(length, 128) for length, cap in kept) and any(length > cap for length, cap in kept)
    assert decoded(short, "frame.number", only="_ws.malformed || _ws.expert.severity > 0x200000") == []
    assert short.stat().st_size < whole.stat().st_size / 2


def test_a_capture_leaves_the_last_hundredth_of_the_disk(tmp_path):
    """On a disk of 40 MB, a capture of 54 MB ends the run with an error, and nothing stays on the disk."""
    inside = f"""set -e
    mount -t tmpfs -o size=40m none {tmp_path} || exit 77
    cd {tmp_path}
    code=0
    {ROPEWALK} run quickstart --set workload.0.all-reduce.bytes=40MB --pcap host0 -q -o out || code=$?
    ls -A
    df --output=used . | tail -1
    exit $code
    """
    done = subprocess.run(["unshare", "-rm", "bash", "-c", inside], capture_output=True, text=True, timeout=300)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no disk of its own can be mounted here: {done.stderr.strip()}")
    said = " ".join(done.stderr.split())
    assert done.returncode == 2 and "capture-host0.pcapng: the disk is nearly full" in said, done.stderr
    assert "frames, up to" in said and "--snap-length" in said
    assert done.stdout.split() == ["0"], done.stdout


@tshark
def test_nacks_are_psn_sequence_errors(run):
    path, summary = run
    # The receiver's own port shows every packet that it sends.
    path = path / "capture-host0.pcapng"
    naks = decoded(path, "_ws.col.Info", "infiniband.aeth.syndrome.error_code", only="infiniband.aeth.syndrome.opcode == 3")
    assert len(naks) == summary["control"]["nack"] > 10
    assert all("PSN Sequence Error" in info for info, _ in naks), naks[0]
    assert all(int(code, 0) == 0 for _, code in naks)
    acks = decoded(path, "infiniband.bth.psn", only="infiniband.aeth.syndrome.opcode == 0")
    assert len(acks) == summary["control"]["ack"]
    cnps = decoded(path, "frame.comment", only="infiniband.bth.opcode == 0x81")
    assert len(cnps) == summary["control"]["cnp"] > 10
    # tshark 4.0 does not know the opcode, so the frame's comment names it.
    assert {comment for [comment] in cnps} == {"CNP"}


@tshark
def test_the_payload_of_every_message_arrives(run):
    path, _ = run
    rows = decoded(
        path / "capture-host0.pcapng", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.opcode",
        "infiniband.reth.dmalen", "frame.len", "ip.dsfield.ecn", only="infiniband.bth.opcode < 0x11",
    )
    packets = -(-BYTES // PAYLOAD)
    streams = collections.defaultdict(dict)
    for qp, psn, opcode, dma, length, ecn in rows:
        streams[qp].setdefault(int(psn), (int(opcode), dma, int(length)))
        assert int(ecn) in (2, 3)
    assert len(streams) == SENDERS
    for stream in streams.values():
        assert sorted(stream) == list(range(packets))
        opcodes = [stream[psn][0] for psn in range(packets)]
        assert opcodes == [6] + [7] * (packets - 2) + [8]
        assert int(stream[0][1]) == BYTES
        # Frames are as long as the simulator charges, FCS included.
        lengths = [stream[psn][2] for psn in range(packets)]
        assert lengths == [1500] * (packets - 1) + [62 + BYTES - (packets - 1) * PAYLOAD]
    assert any(int(ecn) == 3 for *_, ecn in rows), "some are marked"


@tshark
def test_pauses_come_and_go(run):
    path, summary = run
    frames = []
    for name in ["leaf0-1", "leaf1-spine0"]:
        frames += decoded(
            path / f"capture-{name}.pcapng", "eth.dst", "macc.opcode", "macc.cbfc.enbv.c3", "macc.cbfc.pause_time.c3",
            "frame.len", only="macc",
        )
    assert summary["control"]["pause"] > 0 and len(frames) > 0
    for destination, opcode, enabled, quanta, length in frames:
        assert (destination, int(opcode, 0), int(length)) == ("01:80:c2:00:00:01", 0x0101, 64)
        assert enabled in ("1", "True")
        assert int(quanta) in (0, 0xFFFF)


@tshark
def test_the_file_names_its_port_and_its_run(run):
    path, summary = run
    names = {row[0] for row in decoded(path / "capture-leaf0-host0.pcapng", "frame.interface_name")}
    assert names == {"leaf0:0 -> host0", "host0 -> leaf0:0"}
    times = [row[0] for row in decoded(path / "capture-host0.pcapng", "frame.time_relative")]
    assert times == sorted(times, key=float)
    raw = (path / "capture-host0.pcapng").read_bytes()
    assert f"digest {summary['digest']}".encode() in raw and b"scenario incast" in raw
    again = decoded(path / "capture-host0.pcapng", "frame.number", only='frame.comment == "retransmission"')
    assert len(again) > 0


def test_scapy_computes_the_same_icrc(run):
    pytest.importorskip("scapy", reason="scapy is not installed (pip install scapy)")
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP, UDP
    from scapy.utils import rdpcap

    opcodes = collections.Counter()
    for frame in rdpcap(str(run[0] / "capture-leaf0-host0.pcapng")):
        if UDP not in frame:
            continue
        # Padding and FCS are not part of the packet.
        bth = IP(bytes(frame[IP])[: frame[IP].len])[BTH]
        opcodes[bth.opcode] += 1
        assert bth.becn == (bth.opcode == 0x81)
        body = bytes(bth)
        assert bth.compute_icrc(body) == body[-4:], frame.summary()
    assert {0x06, 0x07, 0x08, 0x11, 0x81} <= set(opcodes), opcodes


def test_captures_are_the_same_on_every_engine(run, tmp_path):
    (tmp_path / "incast.toml").write_text(SCENARIO)
    first = (run[0] / "capture-host0.pcapng").read_bytes()
    for flags in (["--engine", "reference"], ["--threads", "2"]):
        ropewalk("run", "incast.toml", "--pcap", "host0", "--quiet", "-o", "out", *flags, cwd=tmp_path)
        # Without `assert a == b`, which would compare megabytes line by line where they differ.
        same = (tmp_path / "out/capture-host0.pcapng").read_bytes() == first
        assert same, flags


@pytest.mark.parametrize(
    ("taps", "says"),
    [
        (["hots0"], "did you mean `host0`?"),
        (["leaf0"], "choose one by its number, leaf0:0"),
        (["leaf0:77"], "its ports are 0 to 5"),
        (["leaf0:host0", "leaf0:0"], "are the same port"),
    ],
)
def test_a_wrong_tap_is_refused_before_the_run(tmp_path, taps, says):
    (tmp_path / "incast.toml").write_text(SCENARIO)
    flags = [word for tap in taps for word in ("--pcap", tap)]
    done = ropewalk("run", "incast.toml", *flags, cwd=tmp_path, ok=False)
    assert done.returncode == 2 and says in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "results").exists()

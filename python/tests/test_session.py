"""Programs that drive a run: the digests of `ropewalk run` and `ropewalk serve`, SimPy models, and mistakes.

pytest python/tests/test_session.py
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

rw = pytest.importorskip("ropewalk", reason="the package is not installed: pip install .", exc_type=ImportError)

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    [Path(os.environ["ROPEWALK"])]
    if "ROPEWALK" in os.environ
    else [ROOT / "target" / k / "ropewalk" for k in ("debug", "release")]
)
ROPEWALK = next((place.resolve() for place in PLACES if place.is_file()), None)

RANKS, CHUNK = 8, 143_800
STEPS = 2 * (RANKS - 1)
FABRIC = {"topology": {"leaf-spine": {"leaves": 2, "spines": 2, "hosts-per-leaf": 4, "rate": "400Gbps", "delay": "1us"}}}
THEMIS = {**FABRIC, "scheme": {"themis": {}}}
RING = {**THEMIS, "workload": [{"program": {"pairs": [[rank, (rank + 1) % RANKS] for rank in range(RANKS)]}}]}


@pytest.fixture(scope="module")
def native():
    """The digest of the all-reduce in a scenario."""
    return rw.run({**THEMIS, "workload": [{"all-reduce": {"bytes": f"{RANKS * CHUNK}B", "groups": "all"}}]}).digest


def ring(session):
    """Plays a ring all-reduce: every rank passes a chunk on when it has arrived."""
    for rank in range(RANKS):
        session.send(rank, rank, (rank + 1) % RANKS, CHUNK)
    while event := session.next():
        step = event.id // RANKS + 1
        if event.kind == "received" and step < STEPS:
            session.send(step * RANKS + event.rank, event.rank, (event.rank + 1) % RANKS, CHUNK)


def test_a_driven_ring_has_the_digest_of_the_all_reduce_in_the_scenario(native, tmp_path):
    with rw.Session(RING) as session:
        assert (session.name, session.ranks, session.now) == ("scenario", RANKS, 0)
        ring(session)
        assert session.idle and not session.ended
        result = session.finish(tmp_path / "ring")
    assert result.digest == native
    assert len(result.flows) == RANKS * STEPS
    assert rw.read(tmp_path / "ring").digest == native


@pytest.mark.skipif(ROPEWALK is None, reason=f"none of {[str(p) for p in PLACES]} is there: make build")
def test_a_session_has_the_digest_of_the_same_requests_to_serve():
    requests = [{"do": "send", "id": k, "from": k, "to": k + 4, "bytes": 100_000 * k + 1} for k in range(4)]
    requests += [{**requests[0], "at_ps": 3_000_000}, {"do": "timer", "id": 9, "rank": 0, "after_ps": 7_000_000}]
    lines = "".join(json.dumps(request) + "\n" for request in [*requests, {"do": "finish"}])
    done = subprocess.run([ROPEWALK, "serve", "quickstart"], input=lines, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    served = json.loads(done.stdout.splitlines()[-1])
    with rw.Session("quickstart") as session:
        for k in range(4):
            session.send(k, k, k + 4, 100_000 * k + 1)
        session.send_at("3us", 0, 0, 4, "1B")
        session.timer(9, 0, "7us")
        assert session.finish().digest == served["digest"]


def test_events_come_in_order_of_time_up_to_the_given_time():
    session = rw.Session(FABRIC)
    session.timer(1, 3, "2us")
    session.send_at("1us", 2, 0, 1, 1000)
    assert session.advance("2us") == [rw.Event(2_000_000, 3, "timer", 1)]
    assert session.next("3us") is None and not session.idle
    assert session.now == 3_000_000
    # A frame of 1000 B has 82 B of headers, preamble and gap, which take 20 ps/B on each of two links of 1 us.
    received = rw.Event(1_000_000 + 2 * (1_000_000 + 1082 * 20), 1, "received", 2)
    assert session.next() == received
    sent = session.next()
    assert (sent.rank, sent.kind, sent.id) == (0, "sent", 2) and sent.ps > received.ps
    assert session.advance("9us") == [] and session.idle
    assert session.now == 9_000_000


def test_a_transfer_between_instances_is_one_event():
    with rw.Session(FABRIC) as session:
        session.instance("decode", (4, 5))
        session.transfer(7, range(4), "decode", "4MB")
        (event,) = session.advance("10ms")
        assert (event.kind, event.id, event.rank) == ("transferred", 7, 4)
        # Two messages of 1 MB share each receiver's link.
        assert 41e6 < event.ps < 50e6
        with pytest.raises(rw.RequestError, match="an instance has no ranks"):
            session.transfer(8, [], [4], 1)


def test_settings_change_the_scenario_of_a_session():
    session = rw.Session("quickstart", seed=7, scheme="ecmp")
    session.send(1, 0, 5, "1MB")
    result = session.finish()
    assert (result.seed, result.scheme) == (7, "ecmp")
    assert "counters" in rw.Session("quickstart", record=True).finish().tables


def test_mistakes_are_refused_and_change_nothing():
    session = rw.Session(RING)
    with pytest.raises(rw.RequestError, match="rank 8 does not exist; the ranks are 0 to 7"):
        session.send(1, 0, 8, 1)
    with pytest.raises(rw.RequestError, match=r"rank 0 has no queue pair to rank 2; add \[0, 2\] to `program.pairs`"):
        session.send(1, 0, 2, 1)
    with pytest.raises(rw.RequestError, match="a message has at most 1024TiB"):
        session.send(1, 0, 1, 2**51)
    with pytest.raises(ValueError, match="src is a whole number from 0, not -1"):
        session.send(1, -1, 1, 1)
    with pytest.raises(TypeError, match="bytes is a whole number from 0, not 1.5"):
        session.send(1, 0, 1, 1.5)
    with pytest.raises(ValueError, match='bytes: unknown size unit "MX"'):
        session.send(1, 0, 1, "1MX")
    with pytest.raises(ValueError, match='until: expected a time with a unit such as "1us", found "soon"'):
        session.next("soon")
    assert session.next("5us") is None
    for late in (lambda: session.send_at("4us", 1, 0, 1, 1), lambda: session.next("4us"), lambda: session.advance("4us")):
        with pytest.raises(rw.RequestError, match="the time 4us has passed: it is 5us"):
            late()
    assert len(session.finish().flows) == 0


def test_a_wrong_scenario_of_a_session_has_its_place():
    with pytest.raises(rw.ScenarioError, match="leavs") as error:
        rw.Session({"topology": {"leaf-spine": {"leavs": 2}}})
    assert error.value.file == "<dict>"
    with pytest.raises(rw.ScenarioError):
        rw.Session("no-such-scenario")


def test_a_finished_session_keeps_its_results_and_takes_no_messages(tmp_path):
    session = rw.Session(FABRIC)
    session.send(1, 0, 5, 1000)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(rw.Error):
        session.finish(tmp_path / "taken")
    assert session.finish(tmp_path / "free").digest == rw.read(tmp_path / "free").digest
    with pytest.raises(rw.RequestError, match="the session is finished or closed"):
        session.send(2, 0, 5, 1000)
    with rw.Session(FABRIC) as closed:
        pass
    with pytest.raises(rw.RequestError, match="the session is finished or closed"):
        closed.finish()


def test_a_session_that_reaches_its_end_takes_no_messages():
    session = rw.Session(FABRIC, stop__after="1us")
    session.send(1, 0, 5, "1MB")
    assert session.next() is None and session.ended
    with pytest.raises(rw.RequestError, match="the run has ended early"):
        session.send(2, 0, 5, 1)
    assert not session.finish().complete


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_ctrl_c_closes_a_session():
    session = rw.Session(FABRIC)
    session.send(1, 0, 5, "100GB")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            session.next()
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(rw.RequestError, match="finished or closed"):
        session.next()


# --- SimPy -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def simpy():
    return pytest.importorskip("simpy", reason="SimPy is not installed: pip install simpy")


@pytest.fixture
def network(simpy):
    """Opens a scenario as the network of a new SimPy environment."""
    from ropewalk.simpy import Network

    return lambda scenario: Network(simpy.Environment(), rw.Session(scenario))


ONE_WAY_PS = 2 * (1_000_000 + 1082 * 20)
# Before its answer, a host sends the acknowledgement of 86 B with preamble and gap.
ACK_PS = 86 * 20


def test_a_ping_pong_of_simpy_takes_the_time_of_the_closed_form(network):
    net = network(FABRIC)

    def ping_pong():
        for _ in range(3):
            arrival = yield net.send(0, 1, 1000)
            assert (arrival.ps, arrival.rank) == (net.env.now, 1)
            yield net.send(1, 0, 1000)

    net.env.run(net.env.process(ping_pong()))
    assert net.env.now == 6 * ONE_WAY_PS + 5 * ACK_PS


def test_processes_of_simpy_work_while_messages_are_in_flight(network):
    net = network(FABRIC)
    seen = []

    def ticks():
        for _ in range(30):
            yield net.env.timeout(100_000)
            seen.append(net.env.now)

    def work():
        yield net.env.timeout(500_000)
        yield net.send(0, 1, 1000)
        seen.append("arrived")
        yield net.env.timeout(10_000_000)
        yield net.send(1, 0, "1kB")

    net.env.process(ticks())
    net.env.run(net.env.process(work()))
    # The acknowledgement has left long before the answer.
    assert net.env.now == 500_000 + ONE_WAY_PS + 10_000_000 + ONE_WAY_PS
    assert seen.index("arrived") == (500_000 + ONE_WAY_PS) // 100_000
    start = net.env.now
    net.env.run(net.send(2, 3, 1000))
    assert net.env.now == start + ONE_WAY_PS
    assert len(net.session.finish().flows) == 3


def test_a_ring_of_simpy_processes_has_the_digest_of_the_all_reduce_in_the_scenario(network, native):
    net = network(RING)

    def chunk(rank):
        for step in range(STEPS):
            yield net.send((rank + step) % RANKS, (rank + step + 1) % RANKS, CHUNK)

    for rank in range(RANKS):
        net.env.process(chunk(rank))
    net.env.run()
    assert net.session.finish().digest == native


def test_a_mistake_in_a_simpy_process_is_raised_where_it_sends(network):
    net = network(FABRIC)

    def work():
        with pytest.raises(rw.RequestError, match="rank 8 does not exist"):
            net.send(0, 8, 1000)
        yield net.send(0, 1, 1000)

    net.env.run(net.env.process(work()))
    assert net.env.now == ONE_WAY_PS

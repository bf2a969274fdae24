"""Schemes in Python: they decide as schemes in Rust do, and their mistakes are told."""

import concurrent.futures
import os
import shutil
import subprocess
from pathlib import Path

import pytest

rw = pytest.importorskip("ropewalk", reason="the package is not installed: pip install .", exc_type=ImportError)

FABRIC = {
    "seed": 3,
    "topology": {"leaf-spine": {"leaves": 3, "spines": 4, "hosts-per-leaf": 4}},
    "workload": [{"permutation": {"bytes": "200KB"}}],
}


class Spray:
    """Every packet draws its path."""

    def on_packet(self, switch, packet, ports):
        return ports[switch.pick(len(ports))]


class ByFlow:
    """A flow stays on the path to which it hashes."""

    sprays = False

    def on_packet(self, switch, packet, ports):
        return ports[switch.hash(len(ports))]


class TwoChoices:
    """The shorter of a few random queues."""

    queues = True

    def __init__(self, choices: int = 2):
        if choices < 1:
            raise ValueError("a packet needs at least one queue")
        self.choices = choices

    def on_packet(self, switch, packet, ports):
        best = ports[switch.pick(len(ports))]
        for _ in range(1, self.choices):
            other = ports[switch.pick(len(ports))]
            if switch.queue(other) < switch.queue(best):
                best = other
        return best


class SprayBySender:
    """The sender draws an entropy for each packet."""

    def on_send(self, sender, packet):
        return sender.pick(16384)


class Halving:
    """A window that a mark halves, at most once per round trip."""

    marks = True

    def __init__(self, leaves: float = 0.5):
        if not 0 < leaves < 1:
            raise ValueError("leaves must be above 0 and below 1")
        self.leaves, self.deaf_until = leaves, 0

    def start(self, path):
        self.window, self.round_trip = float(path.bdp), path.round_trip

    def on_ack(self, now, packets, marked):
        if marked:
            self.on_cnp(now)
        else:
            self.window += packets / self.window

    def on_cnp(self, now):
        if now >= self.deaf_until:
            self.window, self.deaf_until = max(self.window * self.leaves, 1.0), now + self.round_trip


def digest(scheme, **sets):
    return rw.run(FABRIC, scheme=scheme, **sets).summary["digest"]


@pytest.mark.parametrize("mine, theirs", [(Spray, "rps"), (ByFlow, "ecmp"), (SprayBySender, "rps-nic")])
def test_the_same_scheme_in_python_and_in_rust_gives_equal_digests(mine, theirs):
    assert digest(mine) == digest(theirs)
    assert digest(mine, seed=4) == digest(theirs, seed=4)


MARKING = ["switch.ecn.kmin=1kB", "switch.ecn.kmax=10kB", "workload.0.bytes=2MB"]


@pytest.mark.parametrize(
    "sets, classes",
    [(["scheme=mine"], {"scheme": TwoChoices}), ([*MARKING, "nic.congestion=mine"], {"nic__congestion": Halving})],
)
def test_the_template_of_a_crate_in_python_gives_its_digest(sets, classes):
    """`crates/mine` has the parts that `ropewalk new-scheme` writes."""
    program = os.environ.get("ROPEWALK")
    mine = Path(program).with_name("mine") if program else None
    if mine is None or not mine.is_file():
        pytest.skip("no build of crates/mine beside the program")
    words = [word for one in sets for word in ("--set", one)]
    out = subprocess.run([mine, "run", "quickstart", *words, "--json"], capture_output=True, check=True, text=True)
    plain = dict(one.split("=") for one in sets if not one.endswith("=mine"))
    result = rw.run("quickstart", **plain, **classes)
    assert f'"{result.digest}"' in out.stdout
    assert "scheme" in classes or sum(result.links["marks"]) > 100


def test_threads_change_nothing():
    assert digest(TwoChoices) == digest(TwoChoices, threads=2)


def test_settings_are_read_and_checked():
    rw.register_scheme(TwoChoices)
    assert digest("two-choices", **{"scheme.two-choices.choices": 1}) == digest(Spray)
    with pytest.raises(rw.ScenarioError, match="did you mean `choices`"):
        rw.check(FABRIC, **{"scheme.two-choices.choises": 1})
    with pytest.raises(rw.ScenarioError, match="a whole number"):
        rw.check(FABRIC, **{"scheme.two-choices.choices": "many"})
    with pytest.raises(rw.ScenarioError, match="at least one queue"):
        rw.check(FABRIC, **{"scheme.two-choices.choices": 0})
    assert rw.check(FABRIC, scheme=TwoChoices)["scheme"] == {"two-choices": {"choices": 2}}
    scheme = rw.schema()["definitions"]["SchemeConfig"]["oneOf"]
    assert any("two-choices" in choice["properties"] for choice in scheme)


def test_a_comparison_takes_classes_among_names():
    class Lazy:
        """The first port, always."""

        def on_packet(self, switch, packet, ports):
            return ports[0]

    comparison = rw.compare(FABRIC, [Lazy, "rps"], seeds="1..2", check=False)
    assert {result.scheme for result in comparison} == {"lazy", "rps"}


def test_an_exception_stops_the_run_and_names_the_place():
    class Broken:
        def __init__(self):
            self.seen = 0

        def on_packet(self, switch, packet, ports):
            self.seen += 1
            return ports[1 // (20 - self.seen)]

    with pytest.raises(rw.SchemeError, match=r"Broken.on_packet in leaf\d at [\d.]+ us, for packet \d+ of queue pair") as raised:
        rw.run(FABRIC, scheme=Broken)
    cause = raised.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert cause.__traceback__.tb_frame.f_code.co_name == "on_packet" or cause.__traceback__.tb_next

    class Elsewhere:
        def on_packet(self, switch, packet, ports):
            return 99

    with pytest.raises(rw.SchemeError, match="it returned 99, and not one of the ports"):
        rw.run(FABRIC, scheme=Elsewhere)
    # The exception of one run is not that of the next.
    assert digest(Spray) == digest("rps")


def test_a_control_that_would_hang_a_run_is_told():
    class Closing(Halving):
        """A window that a mark closes."""

        def on_cnp(self, now):
            self.window = 0

    marking = {"switch.ecn.kmin": "1kB", "switch.ecn.kmax": "2kB"}
    with pytest.raises(rw.SchemeError, match="Closing.on_(ack|cnp) at .* its window is 0"):
        rw.run(FABRIC, nic__congestion=Closing, **marking)
    rw.register_control(Halving)
    with pytest.raises(rw.ScenarioError, match="leaves must be above 0"):
        rw.check(FABRIC, **{"nic.congestion": {"halving": {"leaves": 2.0}}})
    long = {**marking, "workload.0.permutation.bytes": "2MB"}
    half = rw.run(FABRIC, nic__congestion=Halving, **long)
    tenth = rw.run(FABRIC, **{**long, "nic.congestion.halving.leaves": 0.1})
    assert sum(half.links["marks"]) > 100 and half.digest != tenth.digest


def test_a_session_raises_too():
    class Broken:
        name = "broken-in-session"

        def on_packet(self, switch, packet, ports):
            raise RuntimeError("no")

    fabric = {**FABRIC, "workload": [{"program": {}}]}
    with pytest.raises(rw.SchemeError, match="RuntimeError: no"), rw.Session(fabric, scheme=Broken) as session:
        session.send(0, 0, 8, "1MB")
        session.finish()


def test_classes_that_are_no_schemes_are_refused():
    class Neither:
        pass

    class Open:
        def __init__(self, what):
            pass

        def on_packet(self, switch, packet, ports):
            return ports[0]

    class Themis:
        def on_packet(self, switch, packet, ports):
            return ports[0]

    with pytest.raises(rw.RequestError, match="it has neither"):
        rw.register_scheme(Neither)
    with pytest.raises(rw.RequestError, match="`what` needs a default"):
        rw.register_scheme(Open)
    with pytest.raises(rw.RequestError, match="already"):
        rw.register_scheme(Themis)


def test_a_class_of_the_same_name_replaces_the_first():
    def made(turn):
        class Turn:
            """One port of its own."""

            name = "one-port"

            def on_packet(self, switch, packet, ports):
                return ports[turn]

        return Turn

    assert digest(made(0)) != digest(made(1))


def made(port, raises=None):
    """A class that sends everything to one port, or raises."""

    class Mine:
        """One port."""

        name = "mine-of-tests"

        def on_packet(self, switch, packet, ports):
            if raises is not None:
                raise raises
            return ports[port]

    return Mine


SHORT = {"name": "short", "scenario": {**FABRIC, "workload": [{"permutation": {"bytes": "1kB"}}]}, "seeds": "1..6"}


def points(out):
    return list(out.with_name(out.name + ".part").glob("points/*.json"))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_no_point_is_kept_whose_class_has_raised(tmp_path, elsewhere):
    """The points are so short that each ends before anyone looks after it."""
    broken = {**SHORT, "set": {"scheme": made(0, RuntimeError("no"))}}
    with concurrent.futures.ThreadPoolExecutor(2) as threads, pytest.raises(rw.Error, match="Mine.on_packet .*RuntimeError: no"):
        rw.sweep(broken, tmp_path / "out", check=False, threads=1, executor=threads if elsewhere else None)
    assert points(tmp_path / "out") == []


class Tired:
    """An executor that takes two points."""

    def __init__(self):
        self.taken = 0

    def submit(self, call, *args):
        self.taken += 1
        if self.taken > 2:
            raise RuntimeError("enough")
        done = concurrent.futures.Future()
        done.set_result(call(*args))
        return done


def test_a_sweep_goes_on_with_its_class_and_begins_again_with_another_of_that_name(tmp_path):
    def swept(scheme, directory, **how):
        return rw.sweep({**SHORT, "set": {"scheme": scheme, "workload.0.permutation.bytes": "50kB"}}, tmp_path / directory, check=False, **how)

    first, edited = made(0), made(1)
    for how, done in (({}, 2), ({"resume": True}, 4)):
        with pytest.raises(rw.SweepError) as stopped:
            swept(first, "out", executor=Tired(), **how)
        assert stopped.value.done == done
    with pytest.warns(rw.ScenarioWarning, match="4 points that were done are no longer part of this sweep"):
        resumed = swept(edited, "out", resume=True)
    fresh = swept(edited, "fresh")
    assert list(resumed.points["digest"]) == list(fresh.points["digest"])
    # The finished sweep of a class is not that of another.
    assert list(swept(first, "out", resume=True).points["digest"]) != list(fresh.points["digest"])


def test_two_classes_of_one_name_in_a_call_are_refused():
    first, second = made(0), made(1)
    with pytest.raises(rw.RequestError, match="two classes are named `mine-of-tests`; give one an attribute `name`"):
        rw.compare(FABRIC, [first, second], check=False)
    with pytest.raises(rw.RequestError, match="two classes are named `mine-of-tests`"):
        rw.check({**FABRIC, "scheme": first, "class": {"background": {"scheme": second}}})
    assert len(rw.compare(FABRIC, [first, "rps"], check=False)) == 2


def test_an_exception_ends_no_run_without_classes():
    fabric = {**FABRIC, "workload": [{"program": {}}]}
    with rw.Session(fabric, scheme="rps") as session:
        session.send(0, 0, 8, "1MB")
        session.next()
        with pytest.raises(rw.SchemeError):
            rw.run(FABRIC, scheme=made(0, RuntimeError("no")))
        assert session.finish().summary["complete"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_is_no_mistake_of_a_class(kind):
    with pytest.raises(kind):
        rw.run(FABRIC, scheme=made(0, kind()))


@pytest.mark.parametrize("default", [float("inf"), float("nan")])
def test_a_default_that_no_file_can_say_is_refused(default):
    class Endless:
        def __init__(self, most=default):
            pass

        def on_packet(self, switch, packet, ports):
            return ports[0]

    with pytest.raises(rw.RequestError, match="the setting `most` needs a finite default"):
        rw.register_scheme(Endless)

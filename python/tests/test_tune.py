"""`rw.tune` looks for settings that are better than the operator's, and says so only with confidence."""

import math

import pytest

import ropewalk as rw
from ropewalk._tune import Knob, Point, TunedSet, Tuning, _again, _holds, _interval, amount

SITE = {
    "topology": {"leaf-spine": {"leaves": 2, "spines": 2, "hosts-per-leaf": 3, "rate": "100Gbps", "delay": "200ns"}},
    "switch": {
        "buffer": "1MB",
        "pfc": {"alpha": "1"},
        "ecn": {"at-rate": [{"rate": "100Gbps", "kmin": "100kB", "kmax": "400kB", "pmax": 0.05}]},
        "dscp-map": [{"dscp": [48]}, {"dscp": [26], "lossless": True, "weight": 3}, {"weight": 1}],
    },
    "nic": {"dscp": 0, "cnp-interval": "2us", "congestion": {"dcqcn": {"byte-reset": "1MB"}}},
    "workload": [{"all-to-all": {"groups": "all", "bytes": "2MB"}}],
}
ECN = "switch.ecn.at-rate.0."
EVEN = (1.0, (1.0, 1.0))


def test_quantities_have_units_and_ranges_one_kind():
    assert amount("100kB") == (100_000, "B") and amount("4us") == (4_000_000, "ps") and amount("0.4Tbps") == (4e11, "bps")
    assert amount(0.2) == (0.2, "")
    assert Knob.of("a", ("100kB", "1MB")).text(123_456.4) == "123kB"
    assert Knob.of("a", ("1us", "1ms")).text(1_234_567.0) == "1.23us"
    for wrong in [("1MB", "100kB"), ("1us", "1MB"), "1us", ("1lb", "2lb"), []]:
        with pytest.raises(ValueError, match="expected"):
            Knob.of("a", wrong)
    assert _holds(f"{ECN}kmax <= 5MB", {}, SITE) and not _holds(f"{ECN}kmax <= {ECN}kmin", {f"{ECN}kmax": "3MB"}, SITE)


def test_a_difference_counts_only_with_confidence():
    mean, (low, high) = _interval([0.8, 0.81, 0.79, 0.8, 0.8])
    assert low < mean < high < 1 and math.isclose(mean, 0.8, rel_tol=0.01)
    assert _interval([0.5, 1.6, 0.9, 1.2, 0.7])[1][1] > 1
    seeds, cases = [1, 2, 3], ["incast", "slow link"]
    own = {(case, seed): Point(10.0 + seed, 50.0, 0, 5) for case in cases for seed in seeds}

    def beside(change):
        return _again({}, {at: change(at[0], point) for at, point in own.items()}, own, cases, seeds, 5)

    same = beside(lambda case, p: p)
    assert (same.short[0], same.busbw[0], same.better) == (1, 1, False)
    assert beside(lambda case, p: Point(p.short / 2, p.busbw, 0, 5)).better
    assert not beside(lambda case, p: Point(p.short / 2, p.busbw, 1, 5)).better, "it loses"
    assert not beside(lambda case, p: Point(p.short / 2, p.busbw, 0, 6)).better, "it pauses more often"
    trade = beside(lambda case, p: Point(p.short / 2, p.busbw / 2, 0, 5))
    assert (trade.better, trade.verdict) == (False, "a trade, short flows for bandwidth")
    assert beside(lambda case, p: Point(p.short * 2, p.busbw * 2, 0, 5)).verdict == "a trade, bandwidth for short flows"
    assert same.verdict == "not better with confidence"
    # The worst case counts, and no case may become worse.
    assert not beside(lambda case, p: Point(p.short / 2 if case == "incast" else p.short, p.busbw, 0, 5)).better
    assert not beside(lambda case, p: Point(p.short / 2, p.busbw * (0.5 if case == "incast" else 2), 0, 5)).better


def test_settings_come_as_the_operator_enters_them():
    settings = {f"{ECN}kmin": "153600B", f"{ECN}kmax": "1500kB", f"{ECN}pmax": 0.1}
    settings |= {"nic.congestion.dcqcn.rate-increase-timer": "55000ns", "nic.cnp-interval": "2us", "switch.pfc.alpha": "1/8"}
    answer = Tuning({}, [], 1, [1], [2, 3], ["incast"], 400.0)
    assert answer.commands(TunedSet(settings, EVEN, EVEN, {}, True), profile="AZURE_LOSSLESS", device="mlx5_0") == [
        "ecnconfig -p AZURE_LOSSLESS -gmin 153600 -gmax 1500000 -gdrop 10",
        "nv set qos congestion-control AZURE_LOSSLESS traffic-class 3 min-threshold 153600",
        "nv set qos congestion-control AZURE_LOSSLESS traffic-class 3 max-threshold 1500000",
        "nv set qos congestion-control AZURE_LOSSLESS traffic-class 3 probability 10",
        "mlxconfig -d mlx5_0 set RPG_TIME_RESET_P1=55 MIN_TIME_BETWEEN_CNPS_P1=2",
        "switch.pfc.alpha = 1/8",
    ]
    # Outside `at-rate`, thresholds are per 100 Gb/s.
    scaled = answer.commands(TunedSet({"switch.ecn.kmin": "100kB"}, EVEN, EVEN, {}, True))
    assert scaled[0] == "ecnconfig -p PROFILE -gmin 400000"


FEW = {"seeds": [1], "fresh": [101, 102, 103], "progress": False}


# NCCL's default DSCP leads to a queue that PFC does not protect. About a hundred runs take 4 s of CPU: a verdict needs fresh seeds.
def test_data_in_a_lossy_queue_is_found_and_good_settings_are_left_alone():
    pytest.importorskip("optuna", reason="optuna is not installed: pip install optuna")
    with pytest.warns(rw.ScenarioWarning, match="lossy queue"):
        answer = rw.tune(SITE, {"nic.dscp": [0, 26], f"{ECN}kmin": ("20kB", "100kB")}, trials=4, **FEW)
    assert answer.own == {f"{ECN}kmin": "100kB"}, "DSCP 0 is a default"
    assert answer.best is not None and answer.best.settings["nic.dscp"] == 26, str(answer)
    assert answer.best.busbw[1][0] > 2, "at least twice the bandwidth"
    assert "a better set" in str(answer) and "ecnconfig -p PROFILE -gmin" in str(answer)
    good = rw.tune(SITE, {f"{ECN}kmin": ["100kB", "101kB"]}, trials=2, nic__dscp=26, **FEW)
    assert good.best is None and "no set is better than yours" in str(good)


def test_the_same_seeds_give_the_same_answer_also_with_traffic_of_ones_own():
    pytest.importorskip("optuna", reason="optuna is not installed: pip install optuna")
    short = {"name": "short", "incast": {"senders": 4, "bytes": "16kB"}}
    mine = {"cases": {"mine": {"workload": [{"permutation": {"bytes": "1MB"}}, short]}}, "nic__dscp": 26, **FEW}
    one, again = (rw.tune(SITE, {f"{ECN}kmin": ("20kB", "100kB")}, trials=2, **mine) for _ in range(2))
    assert str(one) == str(again)
    assert "worst of mine; 2 trials" in str(one)


def test_a_wrong_knob_is_an_error():
    pytest.importorskip("optuna", reason="optuna is not installed: pip install optuna")
    with pytest.raises(rw.ScenarioError, match="kmim"):
        rw.tune(SITE, {"switch.ecn.kmim": ("20kB", "400kB")}, nic__dscp=26)
    with pytest.raises(ValueError, match="no set of these ranges"):
        rw.tune(SITE, {f"{ECN}kmin": ("5MB", "6MB")}, trials=1, nic__dscp=26, **FEW)

"""`rw.busbw` gives the answer of the command `ropewalk busbw`."""

import pytest

import ropewalk as rw


@pytest.fixture
def log(tmp_path):
    """All-reduces of two nodes at the rate of one NIC of 400 Gb/s."""
    lines = ["# Collective test starting: all_reduce_perf", "# size count type redop root time algbw busbw #wrong"]
    for bits in range(26, 31):
        size, algbw = 1 << bits, 44.36 / 1.875
        lines.append(f"{size} {size // 4} float sum -1 {size / algbw / 1e3:.1f} {algbw:.2f} 44.36 0")
    path = tmp_path / "all_reduce.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_low_log_has_a_verdict_suspects_and_a_page(log, tmp_path):
    answer = rw.busbw(log, cluster="2 nodes, 8 h100, 8x400G, ib")
    assert answer.verdict == "below"
    assert answer.suspects[0]["name"] == "few-nics"
    assert [row["bytes"] for row in answer.rows] == [1 << bits for bits in range(26, 31)]
    assert "one of 8 NICs in use" in str(answer) and "one of 8 NICs in use" in repr(answer)
    assert answer.to_dict()["exit_code"] == 1
    assert answer.report(tmp_path / "busbw.html").read_text().startswith("<!doctype html>")


def test_a_wrong_description_is_an_error_with_its_place(log):
    with pytest.raises(rw.ScenarioError) as error:
        rw.busbw([log], cluster="2 nodes, 8 h1000, rocee")
    assert error.value.column == 19 and "did you mean `roce`?" in str(error.value)

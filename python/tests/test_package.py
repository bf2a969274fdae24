"""The Python package: the same results, tables and messages as the command line, without Python's lock and with Ctrl-C.

pip install .        or make python-tests, which builds it by the fast profile
pytest python/tests/test_package.py
"""

import json
import math
import os
import pickle
import re
import runpy
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
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
command_line = pytest.mark.skipif(ROPEWALK is None, reason=f"none of {[str(p) for p in PLACES]} is there: make build")

SMALL = {"workload.0.bytes": "256KB"}
SETS = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]


def ropewalk(*words, cwd, code=0):
    env = os.environ | {"NO_COLOR": "1", "LANG": "C.UTF-8", "COLUMNS": "80"}
    done = subprocess.run([ROPEWALK, *map(str, words)], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def files(folder):
    """All files below a folder, without the cost of a run."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    summary = json.loads(found["summary.json"])
    del summary["timing"]
    return found | {"summary.json": summary}


@pytest.fixture(scope="module")
def result():
    """A small all-reduce under Themis with full recording."""
    return rw.run("quickstart", record=True, **SMALL)


# --- the same as the command -----------------------------------------------------------------------------------------


@command_line
def test_python_saves_the_same_files_as_the_command(result, tmp_path):
    ropewalk("run", "quickstart", "--record", "--quiet", *SETS, "-o", "cli", cwd=tmp_path)
    assert result.save(tmp_path / "python") == tmp_path / "python"
    cli, python = files(tmp_path / "cli"), files(tmp_path / "python")
    # The manifest names the command that made it, which is the same here.
    assert cli == python
    assert "events.parquet" in python


def test_a_scenario_is_a_name_a_path_or_a_dict(tmp_path):
    named = rw.run("quickstart", **SMALL)
    text = (ROOT / "scenarios" / "quickstart.toml").read_text()
    (tmp_path / "mine.toml").write_text(text)
    by_path = rw.run(tmp_path / "mine.toml", **SMALL)
    by_dict = rw.run(tomllib.loads(text), **SMALL)
    assert named.digest == by_path.digest == by_dict.digest
    assert (named.scenario, by_path.scenario, by_dict.scenario) == ("quickstart", "mine", "scenario")
    assert by_path.manifest["command"][:3] == ["ropewalk", "run", str(tmp_path / "mine.toml")]
    assert by_dict.manifest["command"] == [], "no command can name a dict; its configuration is there"
    assert rw.run(by_dict.config).digest == by_dict.digest


def test_settings_have_their_own_names_or_python_names():
    def bytes_of(**sets):
        return rw.check("quickstart", **sets)["workload"][0]["all-reduce"]["bytes"]

    assert bytes_of() == bytes_of(seed=3)
    assert (
        bytes_of(**{"workload.0.bytes": "256KB"})
        == bytes_of(workload__0__bytes="256KB")
        == bytes_of(**{"workload.all-reduce.bytes": "256KB"})
    )
    config = rw.check("quickstart", topology__leaf_spine__hosts_per_leaf=2, scheme__themis={}, nic__on_nack="none")
    assert config["topology"]["leaf-spine"]["hosts-per-leaf"] == 2
    assert rw.check("quickstart", scheme={"themis": {"mode": "literal"}})["scheme"]["themis"]["mode"] == "literal"
    assert list(rw.check("quickstart", scheme="ecmp")["scheme"]) == ["ecmp"]
    # An underscore stays an underscore if the key has one: a class `bulk_data` keeps its name.
    with pytest.raises(rw.ScenarioError, match="bulk_data"):
        rw.check("quickstart", **{"workload.0.class": "bulk_data"})


def test_values_of_numpy_and_pathlib_are_values():
    numpy = pytest.importorskip("numpy")
    assert rw.check("quickstart", seed=numpy.int64(7))["seed"] == 7
    with pytest.raises(TypeError, match="complex"):
        rw.check("quickstart", seed=1j)
    with pytest.raises(ValueError, match="TOML cannot express"):
        rw.check("quickstart", links__loss=float("nan"))
    with pytest.raises(ValueError, match="TOML cannot express"):
        rw.check("quickstart", seed=None)


def test_threads_and_seeds():
    one, two = rw.run("quickstart", seed=5, **SMALL), rw.run("quickstart", seed=5, threads=2, **SMALL)
    assert one.digest == two.digest
    assert two.summary["timing"]["threads"] == 2
    assert (
        rw.run("quickstart", seed=6, scheme="rps", **SMALL).digest != rw.run("quickstart", seed=5, scheme="rps", **SMALL).digest
    )


@pytest.mark.parametrize(
    "call, wrong",
    [
        (lambda **how: rw.run("quickstart", **how), {"threads": 0}),
        (lambda **how: rw.run("quickstart", **how), {"threads": -1}),
        (lambda **how: rw.run("quickstart", **how), {"threads": "2"}),
        (lambda **how: rw.run("quickstart", **how), {"record": "yes"}),
        (lambda **how: rw.compare("quickstart", "ecmp", **how), {"threads": True}),
        (lambda **how: rw.reproduce("themis-fig1", **how), {"jobs": 0}),
        (lambda **how: rw.reproduce("themis-fig1", **how), {"quick": 1}),
    ],
)
def test_an_error_names_the_wrong_argument_and_its_valid_values(call, wrong):
    ((name, value),) = wrong.items()
    may_be = "a whole number from 1" if name in ("threads", "jobs") else "True or False"
    with pytest.raises((TypeError, ValueError), match=f"^{name} is {may_be}, not {value!r}$"):
        call(**wrong)


# --- errors ----------------------------------------------------------------------------------------------------------

WRONG = {
    "typo.toml": "[topology.leaf-spine]\nleafs = 4\n",
    "unit.toml": '[topology.leaf-spine]\nleaves = 4\nrate = "100Gbs"\n',
    "syntax.toml": "[topology\n",
    "deep.toml": '# µ\n[topology.leaf-spine]\nleaves = 2\n\n[[workload]]\nname = "x"\nincast = { senders = "µ" }\n',
}


@command_line
@pytest.mark.parametrize("name", WRONG)
def test_an_error_has_the_text_line_and_column_of_the_command_line(name, tmp_path, monkeypatch):
    (tmp_path / name).write_text(WRONG[name])
    monkeypatch.chdir(tmp_path)
    said = ropewalk("check", name, cwd=tmp_path, code=2).stderr
    with pytest.raises(rw.ScenarioError) as caught:
        rw.run(name)
    error = caught.value
    assert f"error: {error}" == said.rstrip("\n")
    assert f"--> {error.file}:{error.line}:{error.column}\n" in said
    assert error.file == name
    assert error.message in re.sub(r"\n\s*│ ", " ", said)
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.line, again.column, again.help) == (str(error), error.line, error.column, error.help)


@command_line
@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ({"workload.0.bytes": "4 apples"}, ["--set", "workload.0.bytes=4 apples"]),
        ({"switch__bufer": "1MB"}, ["--set", "switch.bufer=1MB"]),
        ({"topology__leaf_spine__leaves": -1}, ["--set", "topology.leaf-spine.leaves=-1"]),
    ],
)
def test_a_wrong_setting_is_shown_as_the_command_line_shows_it(sets, words, tmp_path):
    said = ropewalk("check", "quickstart", *words, cwd=tmp_path, code=2).stderr
    with pytest.raises(rw.ScenarioError) as caught:
        rw.check("quickstart", **sets)
    assert f"error: {caught.value}" == said.rstrip("\n")
    assert (caught.value.file, caught.value.line) == ("--set", 1)


def test_a_wrong_dict_is_shown_as_toml():
    with pytest.raises(rw.ScenarioError) as caught:
        rw.run({"topology": {"leaf-spine": {"leaves": 4, "spins": 4}}})
    error = caught.value
    assert (error.file, error.line, error.column) == ("<dict>", 3, 1)
    assert "did you mean `spines`" in str(error)


def test_an_error_names_what_is_missing(tmp_path):
    with pytest.raises(rw.ScenarioError, match="quickstart"):
        rw.run("quikstart")
    with pytest.raises(rw.RequestError, match="did you mean `themis-fig1`"):
        rw.reproduce("themis-fig-1")
    with pytest.raises(rw.ResultsError, match="no result directory"):
        rw.read(tmp_path)
    with pytest.raises(TypeError, match="a path, the name of a built-in one, or a dict"):
        rw.run(7)
    result = rw.run("quickstart", **SMALL)
    with pytest.raises(rw.NotRecorded, match="record=True"):
        _ = result.events
    with pytest.raises(KeyError, match="did you mean `fct_us`"):
        result.flows["fct"]
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(rw.ResultsError, match="not replaced"):
        result.save(tmp_path)
    with pytest.raises(rw.RequestError, match="not overwritten"):
        result.report(tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_failed_simulation_gives_the_reason_and_keeps_its_results():
    # There is hardly any headroom for packets in flight when a pause is sent, so the lossless fabric drops packets.
    sets = {"switch.pfc.headroom": "2KB", "switch.buffer": "200KB", "scheme": "rps", "nic.congestion": "none"}
    with pytest.raises(rw.SimulationError, match="lossless") as caught:
        rw.run("quickstart", **{"workload.0.bytes": "2MB"}, **sets)
    assert caught.value.faults and not caught.value.result.complete
    assert len(caught.value.result.flows) > 0


# A run in a process whose memory is limited.
SHORT_OF_MEMORY = """
import resource, ropewalk as rw
size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, ((size + 200_000) * 1024,) * 2)
incast = {
    "topology": {"leaf-spine": {"leaves": 1, "spines": 1, "hosts-per-leaf": 32}},
    "wire": {"payload": "128B"},
    "nic": {"transport": {"ideal": {}}, "congestion": {"none": {}}},
    "switch": {"buffer": "1000GB", "pfc": "off", "ecn": "off"},
    "workload": [{"incast": {"bytes": "1GB", "senders": 31}}],
}
try:
    rw.run(incast)
except rw.SimulationError as error:
    print(error.result.summary["ending"], error.result.complete, str(error).splitlines()[0])
all_to_all = {"topology": {"leaf-spine": {"leaves": 32, "spines": 32, "hosts-per-leaf": 32}}}
try:
    rw.run(all_to_all | {"workload": [{"all-to-all": {"groups": "all"}}]})
except rw.ScenarioError as error:
    print(error.message)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_a_run_without_enough_memory_raises_an_exception():
    done = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    stopped, refused = done.stdout.splitlines()
    assert stopped.startswith("memory False the run was stopped at ") and "(ulimit -v)" in stopped
    assert refused.startswith("the run needs at least 1.3 GB of memory")


def test_warnings_are_warnings():
    with pytest.warns(rw.ScenarioWarning, match="go-back-N") as caught:
        rw.check("quickstart", nic__transport__go_back_n={})
    assert caught[0].filename == __file__, "they point at who asked"
    with pytest.warns(rw.ScenarioWarning, match="go-back-N") as caught:
        rw.run("quickstart", nic__transport__go_back_n={}, **SMALL)
    assert caught[0].filename == __file__


# --- tables ----------------------------------------------------------------------------------------------------------

TABLES = ["flows", "links", "nics", "series", "counters", "events", "paths"]


def test_tables_equal_the_parquet_files(result, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    result.save(tmp_path / "r")
    assert result.tables == sorted(TABLES)
    for name in TABLES:
        file = parquet.read_table(tmp_path / "r" / f"{name}.parquet")
        table = getattr(result, name)
        assert pyarrow.table(table).equals(file, check_metadata=False)
        assert pyarrow.record_batch(table).num_rows == len(table) == file.num_rows
        assert table.to_dict() == file.to_pydict()
        for field in file.schema:
            about = {key.decode(): value.decode() for key, value in field.metadata.items()}
            assert about["unit"] == table.units[field.name] and about["description"] == table.descriptions[field.name]
            assert pyarrow.schema(table).field(field.name).metadata[b"unit"].decode() == about["unit"]
    again = rw.read(tmp_path / "r")
    assert again.summary == result.summary and again.flows.to_dict() == result.flows.to_dict()
    again.save(tmp_path / "again")
    assert files(tmp_path / "again") == files(tmp_path / "r")


def test_pandas_polars_and_duckdb_read_them(result):
    flows = result.flows
    pandas = pytest.importorskip("pandas")
    assert flows.to_pandas()["bytes"].sum() == sum(flows["bytes"])
    assert isinstance(flows.to_pandas(), pandas.DataFrame)
    polars = pytest.importorskip("polars")
    assert flows.to_polars()["fct_us"].to_list() == flows["fct_us"]
    assert polars.DataFrame(flows).height == len(flows)
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql("SELECT count(*) FROM flows").fetchall() == [(len(flows),)]


def test_readers_get_the_same_memory_and_not_a_copy(result):
    pyarrow = pytest.importorskip("pyarrow")
    first, second = (pyarrow.table(result.flows)["fct_us"].chunk(0).buffers()[1] for _ in range(2))
    assert first.address == second.address
    # The memory lives as long as a reader holds it, even after the result has been deleted.
    flows = rw.run("quickstart", **SMALL).flows
    table, bytes_ = pyarrow.table(flows), flows["bytes"]
    del flows
    assert table["bytes"].to_pylist() == bytes_


def test_notebooks_show_small_tables(result):
    for thing in (result, result.flows, rw.compare("quickstart", ["ecmp", "rps"], **SMALL)):
        html = thing._repr_html_()
        assert html.startswith("<table") and html.endswith("</table>")
        assert "color:inherit" in html and "#" not in html, "no colour of its own: the notebook's, light or dark"
        assert html.count("<tr>") < 20
    assert "quickstart" in result._repr_html_() and result.digest in repr(result)


def test_print_says_what_came_out(result, capsys):
    comparison = rw.compare("quickstart", ["ecmp", "rps"], seeds="1..2", **SMALL)
    print(result, comparison, result.flows, sep="\n\n")
    first, second, third = capsys.readouterr().out.split("\n\n")
    assert first.startswith(f"quickstart under themis, seed 1, digest {result.digest}\n") and "FCT, P99" in first
    assert second.startswith("quickstart, means over 2 seeds\n") and "\necmp " in second and "\nrps " in second
    assert "slowdown" in third.splitlines()[0] and "the first 10 of" in third.splitlines()[-1]
    assert all(len(line) == len(line.rstrip()) for line in first.splitlines())


def test_a_comparison_is_a_frame_with_a_row_per_run():
    pytest.importorskip("pandas")
    comparison = rw.compare("quickstart", ["ecmp", "rps"], seeds="1..2", **SMALL)
    frame = comparison.to_pandas()
    assert list(zip(frame["scheme"], frame["seed"], strict=True)) == [("ecmp", 1), ("ecmp", 2), ("rps", 1), ("rps", 2)]
    assert list(frame["flows.fct_us.p99"]) == [run.summary["flows"]["fct_us"]["p99"] for run in comparison]
    assert not [name for name in frame.columns if name.startswith("timing")], "equal runs make equal frames"


def test_perfetto_gets_the_commands_timeline(result, tmp_path):
    result.save(tmp_path / "run")
    file = result.perfetto(tmp_path / "run.json")
    trace = json.loads(file.read_text())
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X" and "flow" in event["args"]]
    assert len(slices) == len(result.flows)
    if ROPEWALK is not None:
        ropewalk("report", "run", "--perfetto", "again.json", cwd=tmp_path)
        assert (tmp_path / "again.json").read_bytes() == file.read_bytes()
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(rw.RequestError, match="no timeline of ropewalk"):
        result.perfetto(tmp_path / "mine.json")


# --- comparisons, experiments ----------------------------------------------------------------------------------------


@command_line
def test_a_comparison_equals_the_commands_output(tmp_path):
    comparison = rw.compare("quickstart", schemes=["ecmp", "rps"], seeds="1..2", **SMALL)
    said = ropewalk("compare", "quickstart", "--schemes", "ecmp,rps", "--seeds", "1..2", "--json", *SETS, cwd=tmp_path).stdout
    assert [run.digest for run in comparison] == [row["digest"] for row in json.loads(said)["rows"]]
    assert (comparison.schemes, comparison.seeds, len(comparison["rps"])) == (["ecmp", "rps"], [1, 2], 2)
    assert [row["scheme"] for row in comparison.rows] == ["ecmp", "rps"]
    p99 = [run.summary["flows"]["fct_us"]["p99"] for run in comparison["ecmp"]]
    assert comparison.rows[0]["FCT, P99"] == pytest.approx(sum(p99) / 2)
    assert comparison.report(tmp_path / "page.html").read_text().startswith("<!doctype html>")
    with pytest.raises(rw.ScenarioError, match="did you mean `themis`"):
        rw.compare("quickstart", ["ecmp", "themi"])
    with pytest.raises(ValueError, match="empty"):
        rw.compare("quickstart", ["ecmp"], seeds="5..1")
    for twice in [{"schemes": "ecmp, rps, ecmp"}, {"schemes": "ecmp", "seeds": [1, 2, 1]}]:
        with pytest.raises(ValueError, match="is (there twice|repeated)"):
            rw.compare("quickstart", **twice)
    words = ["--schemes", "ecmp,rps", "--seeds", "1..2", "-o", "kept"]
    ropewalk("compare", "quickstart", *words, *SETS, cwd=tmp_path)
    kept = rw.read(tmp_path / "kept")
    assert isinstance(kept, rw.Comparison) and [run.digest for run in kept] == [run.digest for run in comparison]
    by_text = rw.compare("quickstart", "ecmp, rps", seeds="1..2", **SMALL)
    assert [run.digest for run in by_text] == [run.digest for run in comparison]
    for wrong, kind in [([], ValueError), ("", ValueError), ([7], TypeError), (None, TypeError)]:
        with pytest.raises(kind, match="ecmp"):
            rw.compare("quickstart", wrong)
    by_list = rw.compare("quickstart", ["ecmp"], seeds=range(1, 3), **SMALL)
    assert [run.digest for run in by_list] == [run.digest for run in comparison["ecmp"]]


def test_a_report_takes_results_and_directories(result, tmp_path):
    saved = result.save(tmp_path / "r")
    pages = [rw.report(what, tmp_path / "page.html").read_bytes() for what in (result, [result], (saved,), str(saved))]
    assert len(set(pages)) == 1
    assert b"<!doctype html>" in rw.report([result, saved], tmp_path / "two.html").read_bytes()
    with pytest.raises(ValueError, match="at least one Result"):
        rw.report([], tmp_path / "none.html")
    with pytest.raises(TypeError, match="not of int"):
        rw.report([7], tmp_path / "none.html")


@command_line
def test_a_flow_is_explained_as_the_command_explains_it(result, tmp_path):
    bare = rw.run("quickstart", **SMALL)
    saved = bare.save(tmp_path / "r")
    assert bare.explain(0) == ropewalk("explain", "0", saved, cwd=tmp_path).stdout
    assert "run again" in bare.explain() and bare.digest in bare.explain()
    assert "from its recorded events" in result.explain(result.events["qp"][0])
    with pytest.raises(rw.RequestError, match="there is no flow 99999"):
        bare.explain(99999)


@command_line
def test_an_experiment_equals_the_commands_output(tmp_path):
    report = rw.reproduce("themis-fig1", quick=True)
    said = json.loads(ropewalk("reproduce", "themis-fig1", "--quick", "--json", cwd=tmp_path).stdout)["experiments"][0]
    assert report.rows == said["rows"] and report.quick and report.complete
    assert report.runs and all(isinstance(run, rw.Result) for run in report.runs.values())
    assert report.report(tmp_path / "page.html").stat().st_size > 1_000_000
    assert "themis-fig1" in str(report) and "<table" in report._repr_html_()
    pytest.importorskip("matplotlib").use("Agg")
    for number in range(len(report.figures)):
        axes = report.plot(number)
        assert axes.has_data() and axes.get_title() and axes.get_ylabel()
        assert [t.get_text() for t in axes.get_legend().get_texts()]


def test_the_package_lists_scenarios_and_experiments():
    assert "quickstart" in rw.scenarios() and "themis-fig1" in rw.experiments()
    assert "topology" in rw.schema()["properties"] and "axis" in rw.schema("sweep")["properties"]
    assert rw.__version__ == tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert [name for name in rw.__all__ if not getattr(rw, name).__doc__] == []
    assert dir(rw) == sorted([*rw.__all__, "__version__"])


def test_the_command_comes_with_the_package(tmp_path):
    def asked(*words):
        return subprocess.run(
            [sys.executable, "-m", "ropewalk", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )

    assert asked("--version").stdout.strip() == f"ropewalk {rw.__version__}"
    done = asked("run", "quickstart", "--json", *SETS)
    assert done.returncode == 0 and json.loads(done.stdout)["digest"] == rw.run("quickstart", **SMALL).digest
    assert asked("run", "quikstart").returncode == asked("frobnicate").returncode == 2


# --- pictures --------------------------------------------------------------------------------------------------------


def test_pictures_have_units_and_draw_on_the_axes_they_are_given(result, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    comparison = rw.compare("quickstart", ["ecmp", "rps"], seeds="1..2", **SMALL)
    draws = [
        (result.plot, "slowdown", "share"),
        (result.plot.fct_cdf, "slowdown", "share"),
        (result.plot.rates, "µs", "Gb/s"),
        (result.plot.queues, "µs", "kB"),
        (result.plot.links, "%", "%"),
        (result.plot.arrivals, "µs", "PSN − next PSN in order"),
        (result.plot.counters, "µs", "count"),
        (comparison.plot, "", "slowdown"),
        (comparison.plot.fct_cdf, "slowdown", "share"),
        (comparison.plot.bars, "", "slowdown"),
    ]
    for draw, x, y in draws:
        _, own = pyplot.subplots()
        assert draw(ax=own) is own
        assert own.has_data() and x in own.get_xlabel() and y in own.get_ylabel()
        axes = draw()
        axes.figure.savefig(tmp_path / "picture.pdf")
        legend = axes.get_legend()
        assert axes.figure.get_size_inches()[0] == (5.2 if legend else 3.5), "a column's width, and more for a legend"
        if legend:
            beside = legend.get_window_extent().x0 >= axes.get_window_extent().x1
            assert beside, "the legend covers no curve"
        assert (tmp_path / "picture.pdf").stat().st_size < 200_000
        pyplot.close("all")


def test_a_scheme_looks_as_in_reports_and_no_two_look_alike_without_colour():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from ropewalk import _native
    from ropewalk.plot import COLOURS

    comparison = rw.compare("quickstart", ["rps", "themis", "ecmp"], **SMALL)
    lines = {line.get_label(): line for line in comparison.plot.fct_cdf().lines}
    assert list(lines) == ["rps", "themis", "ecmp"]
    for name, line in lines.items():
        assert line.get_color() == COLOURS[_native.look(name)[0]]
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines.values()}) == 3
    again = rw.compare("quickstart", ["themis"], **SMALL).plot.fct_cdf().lines[0]
    assert again.get_color() == lines["themis"].get_color(), "whatever else is drawn"
    hatches = [bar.get_hatch() for bar in comparison.plot.bars().patches]
    assert len(set(hatches)) == 3


def test_arrivals_show_the_distance_from_the_packets_in_order(result):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    events = result.events
    qp = events["qp"][events["event"].index("ahead")]
    lines = {line.get_label().split(" (")[0]: line for line in result.plot.arrivals(qp).lines}
    assert set(lines["in order"].get_ydata()) == {0}
    assert min(lines["ahead of ePSN"].get_ydata()) < max(lines["ahead of ePSN"].get_ydata())
    assert max(lines["late"].get_ydata()) < 0
    rows = zip(events["qp"], events["event"], strict=True)
    kinds = [event for of, event in rows if of == qp]
    drawn = {kind: len(line.get_ydata()) for kind, line in lines.items()}
    assert drawn["in order"] + drawn["late"] == kinds.count("arrived") and drawn["ahead of ePSN"] == kinds.count("ahead")
    psns = [
        psn for of, event, psn in zip(events["qp"], events["event"], events["psn"], strict=True) if (of, event) == (qp, "ahead")
    ]
    shown = {line.get_label().split(" (")[0]: line for line in result.plot.arrivals(qp, psn=True).lines}
    assert list(shown["ahead of ePSN"].get_ydata()) == psns


def test_a_sweep_is_drawn_along_an_axis(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    grid = {
        "scenario": "quickstart",
        "seeds": "1..2",
        "axis": [{"schemes": ["ecmp", "themis"]}, {"workload.0.all-reduce.bytes": ["64kB", "128kB", "256kB"]}],
    }
    sweep = rw.sweep(grid, tmp_path / "grid")
    assert str(sweep).startswith("grid: 12 points") or "12 points" in str(sweep).splitlines()[0]
    points = sweep.points.to_dict()
    ax = sweep.plot()
    lines = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert list(lines) == ["ecmp", "themis"] and ax.get_xlabel() == "bytes" and ax.get_ylabel() == "FCT, P99 [µs]"
    for scheme, drawn in lines.items():
        of = [
            value
            for value, name, size in zip(
                points["flows.fct_us.p99"], points["axis.schemes"], points["axis.workload.0.all-reduce.bytes"], strict=True
            )
            if (name, size) == (scheme, "64kB")
        ]
        assert len(of) == 2 and math.isclose(drawn[0], sum(of) / 2)
    (one,) = sweep.plot.lines("flows.slowdown.p99", schemes="ecmp").lines
    assert len(one.get_xdata()) == 3
    with pytest.raises(KeyError, match="the axes are schemes"):
        sweep.plot.lines(along="byte")
    with pytest.raises(KeyError, match="no number 'fct'"):
        sweep.plot.lines("fct")


def test_a_cdf_shows_every_flow(result):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    line = result.plot.fct_cdf("fct_us").lines[0]
    fct = sorted(result.flows["fct_us"])
    assert list(line.get_xdata())[1:] == fct and line.get_ydata()[-1] == 1
    rates = result.plot.rates([0]).lines[0]
    rows = zip(result.series["kind"], result.series["id"], result.series["rate_gbps"], strict=True)
    assert list(rates.get_ydata()) == [rate for kind, number, rate in rows if (kind, number) == ("qp", 0)]
    with pytest.raises(rw.NotRecorded, match="record__links='all'"):
        rw.run("quickstart", record__links=1, **SMALL).plot.queues([3])
    with pytest.raises(rw.RequestError, match="there is no direction of a link 999: this run has"):
        result.plot.queues([999])
    with pytest.raises(rw.RequestError, match="there is no queue pair 9999: this run has"):
        result.plot.rates([9999])


# --- time ------------------------------------------------------------------------------------------------------------


def test_other_python_threads_run_during_a_simulation():
    """If the run held the lock, the counting thread would stand still during the whole run."""
    count, stop = 0, threading.Event()
    during = []

    def tick():
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        rw.run("quickstart", **{"workload.0.bytes": "160MB"}, progress=lambda fraction, text: during.append((fraction, count)))
    finally:
        stop.set()
        thread.join()
    assert len(during) > 2, "the run is long enough to be watched"
    assert during[-1][1] - during[0][1] > 10
    fractions = [fraction for fraction, _ in during]
    assert fractions == sorted(fractions) and 0 <= fractions[0] and fractions[-1] <= 1


def test_an_exception_of_a_progress_function_ends_the_run():
    def no(fraction, text):
        raise LookupError("enough")

    begun = time.monotonic()
    with pytest.raises(LookupError, match="enough"):
        rw.run("quickstart", **{"workload.0.bytes": "1GB"}, progress=no)
    assert time.monotonic() - begun < 60, "the whole run takes minutes"


def test_progress_is_silent_without_a_terminal(capfd):
    rw.run("quickstart", **SMALL)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("what", ["run", "compare", "sweep"])
def test_ctrl_c_raises_at_once_and_leaves_nothing_half_written(what, tmp_path):
    calls = {
        "run": "rw.run('quickstart', progress=say, **big).save('out')",
        "compare": "rw.compare('quickstart', ['ecmp', 'rps'], progress=say, **big)",
        "sweep": "rw.sweep({'scenario': 'quickstart', 'seeds': '1..4', 'set': big}, 'out', progress=say)",
    }
    program = f"""
import sys, ropewalk as rw
big = {{"workload.0.bytes": "1GB"}}
def say(fraction, text):
    if fraction > 0 and "checked" not in text: print("going", flush=True)
try:
    {calls[what]}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""
    child = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "going\n"
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=300)
    finally:
        child.kill()
    assert child.returncode == 7 and said.endswith("interrupted\n")
    assert time.monotonic() - begun < 60
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == (["out.part"] if what == "sweep" else []), "a sweep can go on, all else is gone"
    if what == "sweep":
        assert [p.name for p in (tmp_path / "out.part").rglob("*.new")] == []


# --- packaging -------------------------------------------------------------------------------------------------------


def test_the_wheel_will_have_a_version_a_command_and_extras(tmp_path):
    """Checks the metadata that `pip install .` reads; `make wheel` tests the build itself."""
    maturin = shutil.which("maturin", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if maturin is None:
        pytest.skip("maturin is not installed: pip install maturin")
    words = [maturin, "pep517", "write-dist-info", "--metadata-directory", tmp_path, "--interpreter", sys.executable]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    info = next(tmp_path.glob("ropewalk-*.dist-info"))
    metadata = (info / "METADATA").read_text()
    assert f"Version: {rw.__version__}" in metadata and "Requires-Python: >=3.11" in metadata
    assert "Provides-Extra: plot" in metadata and "Requires-Dist: numpy" not in metadata
    assert "ropewalk=ropewalk.__main__:main" in (info / "entry_points.txt").read_text().replace(" ", "")
    assert "cp311-abi3" in (info / "WHEEL").read_text()


# --- types -----------------------------------------------------------------------------------------------------------


def test_types_are_correct_and_the_stub_matches_the_module():
    mypy = [sys.executable, "-m", "mypy"]
    if subprocess.run([*mypy, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("mypy is not installed")
    done = subprocess.run(
        [*mypy, "--config-file", ROOT / "pyproject.toml"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "ropewalk._native", "--ignore-disjoint-bases"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


def test_the_types_of_settings_are_those_of_the_schema():
    script = runpy.run_path(str(ROOT / "scripts" / "typed-settings"))
    written = (ROOT / "python" / "ropewalk" / "_settings.py").read_text()
    # Classes of other tests are schemes of this process.
    code = "import json, ropewalk; print(json.dumps(ropewalk.schema()))"
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert script["typed"](json.loads(fresh.stdout)) == written, "run scripts/typed-settings"


def test_mypy_finds_a_misspelt_setting(tmp_path):
    if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("mypy is not installed")
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import ropewalk as rw\n"
        'rw.run("quickstart", seed=1, scheme="themis", topology__leaf_spine__spines=2, workload__0__all_reduce__bytes="1MB")\n'
        'rw.compare("quickstart", ["ecmp"], record=True, switch__ecn__kmin="100kB")\n'
        'rw.run("quickstart", topology__leaf_spine__spins=2)\n'
        'rw.compare("quickstart", ["ecmp"], swich__buffer="4MB")\n'
    )
    command = [sys.executable, "-m", "mypy", "--config-file", os.devnull, "--strict", "--cache-dir", tmp_path / "cache", mine]
    env = os.environ | {"MYPYPATH": str(Path(rw.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=env)
    errors = [line for line in done.stdout.splitlines() if "mine.py" in line and "error" in line]
    assert [line.split(":")[1] for line in errors] == ["4", "5"], done.stdout
    assert "topology__leaf_spine__spins" in errors[0] and "swich__buffer" in errors[1]


def test_the_metrics_name_the_keys_of_the_summary():
    metrics = rw.metrics().to_dict()
    at = metrics["name"].index("packets.out_of_order")
    row = [metrics[column][at] for column in ("label", "unit", "share_of", "better")]
    assert row == ["out of order", "packets", "packets.sent", "less"]
    summary = rw.run("quickstart", **SMALL).summary
    others = {"fast": rw.run("quickstart", fast=True, **SMALL).summary, "serving": rw.run("serving").summary}
    for name in metrics["name"]:
        if "*" in name or "reorder_buffer" in name or "packets.cut." in name:
            continue
        value = others.get(name.split(".")[0], summary)
        for key in name.split("."):
            value = value[key]
        assert not isinstance(value, dict), name

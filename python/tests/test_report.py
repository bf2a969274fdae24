"""Reports in a real browser: they load nothing, cause no error, and show the values of the tables.

Needs a Chromium or Chrome on the PATH, and playwright and pyarrow from PyPI; without them these tests are skipped and say so.
The program is taken from the environment variable ROPEWALK, else from target/release.
"""

import json
import math
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install pyarrow")

ROOT = Path(__file__).resolve().parents[2]
ROPEWALK = Path(os.environ.get("ROPEWALK", ROOT / "target" / "release" / "ropewalk"))
LIMIT = 2_000_000  # bytes of a report

pytestmark = pytest.mark.skipif(not ROPEWALK.is_file(), reason=f"no program at {ROPEWALK}: make build, or set ROPEWALK")


def ropewalk(*words):
    done = subprocess.run([ROPEWALK, *map(str, words)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def columns(file):
    return parquet.read_table(file).to_pydict()


def nearest_rank(values, percent):
    ordered = sorted(v for v in values if v is not None)
    return ordered[max(math.ceil(percent / 100 * len(ordered)), 1) - 1]


def close(shown, true):
    """A number as the report shows it, with six digits."""
    return math.isclose(float(shown), true, rel_tol=1e-5, abs_tol=1e-9)


# Two schemes at two sizes, with two keys in one axis, and two seeds each.
SWEEP = """
scenario = "quickstart"
seeds = "1..2"
[[axis]]
schemes = ["ecmp", "ar"]
[[axis]]
"workload.0.all-reduce.bytes" = ["128kB", "256kB"]
[[axis]]
"nic.congestion.dcqcn.rate-increase-timer" = ["55us", "900us"]
"nic.congestion.dcqcn.rate-decrease-interval" = ["50us", "4us"]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three reports, and the results that they show."""
    place = tmp_path_factory.mktemp("reports")
    ropewalk("run", "quickstart", "--quiet", "-o", place / "run", "--record", "--report")
    small = ["--set", "workload.0.bytes=1MB"]
    for scheme in ["ecmp", "rps", "themis"]:
        ropewalk("run", "quickstart", "--quiet", *small, "--set", f"scheme.{scheme}={{}}", "-o", place / scheme)
    ropewalk("compare", "quickstart", "--quiet", *small, "--schemes", "ecmp,rps,themis", "--report", place / "compare.html")
    said = ropewalk("reproduce", "themis-fig1", "--quick", "--json", "--report", place / "reproduce.html")
    (place / "reproduce.json").write_text(said)
    (place / "grid.toml").write_text(SWEEP)
    ropewalk("sweep", place / "grid.toml", "--quiet", "-o", place / "grid", "--report")
    step = ["--set", "workload.0.training.scale=0.03"]
    ropewalk("run", "gpt-13b", "--quiet", *step, "-o", place / "step", "--report")
    large = ["--set", "topology.leaf-spine={leaves=8,spines=8,hosts-per-leaf=16}", "--set", 'workload=[{permutation={bytes="200kB"}}]']
    ropewalk("run", "quickstart", "--quiet", *large, "--set", "scheme.ecmp={}", "-o", place / "large", "--record", "--report")
    return place


class Opened:
    """A report in a browser, with all errors and requests of the browser."""

    def __init__(self, browser, file, width=1280, scheme="light"):
        self.complaints, self.requests = [], []
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.context.set_default_timeout(120_000)  # ms, on a busy machine
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        begun = time.monotonic()
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")
        took = time.monotonic() - begun
        size = file.stat().st_size
        print(f"{file.name}: {size / 1e6:.2f} MB, whole after {took:.2f} s at {width} px")
        assert size < LIMIT

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
        assert self.complaints == []
        # `data:` and `blob:` addresses come from the page itself.
        assert [u for u in self.requests if not u.startswith(("file:", "data:", "blob:"))] == []
        assert len([u for u in self.requests if u.startswith("file:")]) == 1

    def values(self, selector):
        return self.page.eval_on_selector_all(selector, "all => all.map(e => e.dataset.value)")

    def chart(self, selector):
        """What plotly was given: name, x and y of each trace."""
        return self.page.eval_on_selector(selector, "e => e.data.map(t => ({name: t.name, x: [...t.x], y: [...t.y]}))")


KINDS = [("run/report.html", "run"), ("step/report.html", "run"), ("large/report.html", "run"), ("compare.html", "compare"), ("reproduce.html", "reproduce"), ("grid/report.html", "sweep")]


@pytest.mark.parametrize(("file", "kind"), KINDS)
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_it_opens_without_error_or_request_and_fits(browser, results, file, kind, width):
    with Opened(browser, results / file, width, "dark" if width == 800 else "light") as report:
        assert report.page.evaluate("document.documentElement.scrollWidth") <= width
        assert report.page.locator(".answer p").first.inner_text()
        assert report.page.evaluate("JSON.parse(document.getElementById('payload').textContent).kind") == kind
        drawn = report.page.eval_on_selector_all(".chart", "all => all.map(e => !!e.data)")
        assert drawn and all(drawn)


def test_the_theme_follows_the_system_and_the_keyboard(browser, results):
    with Opened(browser, results / "compare.html", scheme="dark") as report:
        theme = "document.documentElement.dataset.theme"
        assert report.page.evaluate(theme) == "dark"
        dark = report.page.evaluate("document.querySelector('#flows .chart').data[0].line.color")
        report.page.focus("#theme")
        report.page.keyboard.press("Enter")
        assert report.page.evaluate(theme) == "light"
        assert report.page.evaluate("document.querySelector('#flows .chart').data[0].line.color") != dark


def test_the_page_of_a_run_shows_its_tables(browser, results):
    flows = columns(results / "run" / "flows.parquet")
    with Opened(browser, results / "run" / "report.html") as report:
        tile = lambda name: report.values(f"#table dd[data-name='{name}']")[0]  # noqa: E731
        assert close(tile("FCT, median"), nearest_rank(flows["fct_us"], 50))
        assert close(tile("FCT, P99"), nearest_rank(flows["fct_us"], 99))
        assert close(tile("slowdown, mean"), sum(flows["slowdown"]) / len(flows["slowdown"]))
        curve = report.chart("#flows .chart")[0]
        assert curve["y"][0] == 0 and curve["y"][-1] == 1
        for x, share in list(zip(curve["x"], curve["y"], strict=True))[1:]:
            below = sum(v < x * (1 - 1e-5) for v in flows["slowdown"]) / len(flows["slowdown"])
            upto = sum(v <= x * (1 + 1e-5) for v in flows["slowdown"]) / len(flows["slowdown"])
            assert below < share <= upto + 1e-5, "the curve is the share of flows that took no longer"
        report.page.locator("#flows select").first.select_option("fct_us")
        curve = report.chart("#flows .chart")[0]
        assert close(max(curve["x"]), max(flows["fct_us"]))


def test_the_arrow_keys_go_through_what_the_gpus_did(browser, results):
    steps = columns(results / "step" / "steps.parquet")
    with Opened(browser, results / "step" / "report.html") as report:
        report.page.locator("#steps summary").click()
        rows = report.page.locator("#steps tbody tr")
        rows.first.wait_for()
        assert rows.count() == report.page.evaluate(
            "JSON.parse(document.getElementById('payload').textContent).parts[0].steps.jobs[0].rows.length")
        last = max(steps["last_us"])
        first = rows.nth(0).locator("td, th").all_inner_texts()
        assert "ends last" in first[0]
        report.page.focus("#gpus")
        report.page.keyboard.press("ArrowRight")
        report.page.keyboard.press("ArrowDown")
        said = report.page.locator("#gpu").inner_text()
        assert said.startswith("GPU ") and "waits for tp" in said, said
        assert math.isclose(float(rows.nth(0).locator("td").last.get_attribute("data-value")), last, rel_tol=1e-5)


def test_every_queue_pair_of_the_menu_shows_its_rates(browser, results):
    series = columns(results / "run" / "series.parquet")
    rows = list(zip(series["kind"], series["id"], series["rate_gbps"], strict=True))
    with Opened(browser, results / "run" / "report.html") as report:
        payload = report.page.evaluate("JSON.parse(document.getElementById('payload').textContent)")
        shown = payload["parts"][0]["series"]
        tracks = [(i, t) for i, t in enumerate(shown["tracks"]) if t["kind"] == "qp"][:3]
        assert tracks
        for i, track in tracks:
            report.page.locator("#track").select_option(str(i))
            rate = next(t for t in report.chart("#time .chart") if t["name"] == "rate")
            true = [r for kind, number, r in rows if (kind, number) == ("qp", track["id"])]
            merged = shown["merged"]
            means = [sum(true[k : k + merged]) / len(true[k : k + merged]) for k in range(0, len(true), merged)]
            assert len(rate["y"]) == len(means)
            assert all(close(a, b) for a, b in zip(rate["y"], means, strict=True))


def test_packets_are_shown_by_time_and_psn(browser, results):
    events = columns(results / "run" / "events.parquet")
    rows = list(zip(events["qp"], events["event"], events["time_us"], events["psn"], strict=True))
    with Opened(browser, results / "run" / "report.html") as report:
        payload = report.page.evaluate("JSON.parse(document.getElementById('payload').textContent)")
        for i, track in enumerate(payload["parts"][0]["arrivals"]["tracks"][:2]):
            report.page.locator("#pair").select_option(str(i))
            report.page.locator("#arrivals label", has_text="Events at once").locator("select").select_option("1000000")
            shown = sum(len(t["x"]) for t in report.chart("#arrivals .chart"))
            mine = [r for r in rows if r[0] == track["qp"]]
            assert track["of"] == len(mine) and shown == len(track["psn"])
            true = {(round(t * 1000), psn or 0) for _, _, t, psn in mine}
            points = [(round(x * 1000), y) for t in report.chart("#arrivals .chart") for x, y in zip(t["x"], t["y"], strict=True)]
            assert set(points) <= true


def test_the_fabric_shows_the_links_and_its_slider_moves_time(browser, results):
    links = columns(results / "run" / "links.parquet")
    with Opened(browser, results / "run" / "report.html") as report:
        page = report.page
        page.locator("#fabric summary").click()
        # Where the fabric comes to lie under the pointer, the browser reports a move of it at some later time.
        page.mouse.move(0, 0)
        page.wait_for_selector("#fabric tbody tr", state="attached")
        cells = page.eval_on_selector_all(
            "#fabric tbody tr", "all => all.map(r => [r.cells[0].textContent, r.cells[1].dataset.value])")
        true = {f"{a} → {b}": busy for a, b, busy in zip(links["from"], links["to"], links["busy_share"], strict=True)}
        assert cells and all(close(value, true[name]) for name, value in cells)
        assert close(cells[0][1], max(links["busy_share"]))
        picture = "document.getElementById('drawing').toDataURL()"
        whole = page.evaluate(picture)
        page.focus("#when")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#clock") != "the whole run"
        page.keyboard.press("End")
        assert page.evaluate(picture) != whole
        page.focus("#drawing")
        page.keyboard.press("ArrowRight")
        assert "→" in page.inner_text("#link")


def test_a_large_fabric_is_matrices_with_the_hottest_links_first(browser, results):
    links = columns(results / "large" / "links.parquet")
    true = {f"{a} → {b}": busy for a, b, busy in zip(links["from"], links["to"], links["busy_share"], strict=True)}
    with Opened(browser, results / "large" / "report.html") as report:
        page = report.page
        hot = page.eval_on_selector_all(
            "#matrices table:first-of-type tbody tr", "all => all.map(r => [r.cells[0].textContent, r.cells[1].dataset.value])")
        hot = [(name, float(value)) for name, value in hot if name in true]
        assert hot and all(close(value, true[name]) for name, value in hot)
        assert close(hot[0][1], max(true.values())) and [v for _, v in hot] == sorted((v for _, v in hot), reverse=True)
        # The first row of the second matrix is the leaf with the hottest link to or from a spine.
        first = page.locator("#matrices .matrix").nth(1).locator(".rows span").first.inner_text()
        between = {name: busy for name, busy in true.items() if "host" not in name}
        assert first in max(between, key=between.get).split(" → ")
        canvas = page.locator("#matrices .matrix canvas").nth(1)
        whole = canvas.evaluate("c => c.toDataURL()")
        canvas.focus()
        page.keyboard.press("ArrowRight")
        said = page.inner_text("#cell")
        for line in said.split("; "):
            name, value = line.rsplit(": ", 1)
            assert abs(float(value.rstrip(" %\u00a0")) / 100 - true[name]) < 0.01
        page.focus("#moment")
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        assert canvas.evaluate("c => c.toDataURL()") != whole
        page.locator("#matrices select", has_text="By number").select_option("name")
        assert page.locator("#matrices .matrix").nth(1).locator(".rows span").all_inner_texts() == [f"leaf{i}" for i in range(8)]


@pytest.mark.parametrize("width", [390, 800, 1440])
def test_no_legend_covers_a_chart_and_every_entry_is_readable(browser, results, width):
    for file in ("compare.html", "reproduce.html", "run/report.html"):
        with Opened(browser, results / file, width) as report:
            for figure in report.page.locator("figure:has(.chart)").all():
                legend, chart = figure.locator(".legend").bounding_box(), figure.locator(".chart").bounding_box()
                assert legend["y"] + legend["height"] <= chart["y"] + 1
                for key in figure.locator(".legend .key").all():
                    box = key.bounding_box()
                    assert box["x"] >= 0 and box["x"] + box["width"] <= width


def test_a_scheme_has_one_colour_on_every_page(browser, results):
    with Opened(browser, results / "compare.html") as report:
        lines = report.page.eval_on_selector(
            "#flows .chart", "e => e.data.map(t => [t.name, t.line.color, t.line.dash, t.marker.symbol])")
    with Opened(browser, results / "run" / "report.html") as report:
        one = report.page.eval_on_selector("#flows .chart", "e => e.data[0].line.color")
    assert one == dict((name, colour) for name, colour, *_ in lines)["themis"]
    assert len({tuple(rest) for _, _, *rest in lines}) == len(lines), "told apart without colour"


def test_a_comparison_shows_the_totals_of_its_runs(browser, results):
    with Opened(browser, results / "compare.html") as report:
        names = report.page.eval_on_selector_all("#table tbody th", "all => all.map(e => e.textContent)")
        heads = report.page.eval_on_selector_all("#table thead th", "all => all.map(e => e.firstChild?.textContent)")
        assert names == ["ecmp", "rps", "themis"]
        for name, curve in zip(names, report.chart("#flows .chart"), strict=True):
            flows = columns(results / name / "flows.parquet")
            summary = json.loads((results / name / "summary.json").read_text())
            row = report.page.eval_on_selector_all(
                "#table tbody tr", f"all => [...all[{names.index(name)}].cells].map(e => e.dataset.value)")
            cell = dict(zip(heads, row, strict=True))
            assert close(cell["FCT, P99"], nearest_rank(flows["fct_us"], 99))
            assert close(cell["retransmitted"], 100 * sum(flows["retransmitted"]) / summary["packets"]["sent"])
            assert curve["name"] == name
            assert close(max(curve["x"]), max(flows["slowdown"]))
        # A menu shows the tracks of each run.
        report.page.locator("#time select").first.select_option("1")
        assert report.page.locator("#track option").count() > 1


def test_a_papers_experiment_shows_its_numbers_beside_ours(browser, results):
    rows = json.loads((results / "reproduce.json").read_text())["experiments"][0]["rows"]
    with Opened(browser, results / "reproduce.html") as report:
        shown = report.page.eval_on_selector_all(
            "#paper > .scroll tbody tr",
            "all => all.map(r => [r.cells[0].textContent, r.cells[1].textContent, r.cells[2].dataset.value, r.cells[3].dataset.value])")
        assert len(shown) == len(rows)
        for (case, metric, paper, ours), row in zip(shown, rows, strict=True):
            assert (case, metric) == (row["case"], row["metric"])
            assert paper == "" if row["paper"] is None else close(paper, row["paper"])
            assert ours == "" if row["measured"] is None else close(ours, row["measured"])
        bars = report.chart("#paper .chart")
        fills = report.page.eval_on_selector_all("#paper .chart pattern", "all => all.map(p => p.querySelector('rect')?.style.fill || p.querySelector('rect')?.getAttribute('fill'))")
        assert fills and all(fills), "patterns lie on the colour of their bar"
        sprayed = {row["metric"]: row["measured"] for row in rows if row["case"] == "rps"}
        assert [round(y, 6) for y in bars[0]["y"]] == [round(y, 6) for y in sprayed.values()]
        assert "the paper: 16\u00a0%" in report.page.locator(".answer p").first.inner_text()


def test_a_sweep_shows_its_points(browser, results):
    points = columns(results / "grid" / "points.parquet")
    axes = [points["axis.schemes"], points["axis.workload.0.all-reduce.bytes"], points["axis.nic.congestion.dcqcn.rate-increase-timer"],
            points["axis.nic.congestion.dcqcn.rate-decrease-interval"]]
    true = {}
    for row, at in enumerate(zip(*axes, strict=True)):
        true.setdefault(at, []).append(row)
    mean = lambda rows, column: sum(points[column][row] for row in rows) / len(rows)  # noqa: E731
    with Opened(browser, results / "grid" / "report.html") as report:
        page = report.page
        heads = page.eval_on_selector_all("#table thead th", "all => all.map(e => e.firstChild?.textContent)")
        shown = page.eval_on_selector_all(
            "#table tbody tr", "all => all.map(r => [...r.cells].map((c, i) => i < 4 ? c.textContent : c.dataset.value))")
        assert [tuple(row[:4]) for row in shown] == list(true)
        for row, at in zip(shown, true, strict=True):
            assert close(row[heads.index("FCT, P99")], mean(true[at], "flows.fct_us.p99"))
            assert close(row[heads.index("goodput, mean")], mean(true[at], "goodput_gbps.mean"))
        # The chart has one line for every combination of the other axes, along the chosen axis.
        number, along, colour = (page.locator("#points select").nth(i) for i in range(3))
        number.select_option(label="FCT, P99, µs")
        along.select_option(label="bytes")
        colour.select_option(label="scheme")
        lines = report.chart("#points .chart")
        assert len(lines) == 4 and all(line["x"] == ["128kB", "256kB"] for line in lines)
        drawn = sorted(y for line in lines for y in line["y"])
        means = sorted(mean(rows, "flows.fct_us.p99") for rows in true.values())
        assert all(close(a, b) for a, b in zip(drawn, means, strict=True))
        assert {line["name"] for line in lines} == {"ecmp", "ar"}
        answer = page.locator(".answer p").first.inner_text().replace("\u00a0", " ")
        assert answer.startswith("Of 8 choices the best is ") and "bytes 128kB" in answer
    again = results / "grid-again.html"
    ropewalk("report", results / "grid", "-o", again)
    assert again.read_bytes() == (results / "grid" / "report.html").read_bytes()


def test_directories_make_the_same_page_as_the_option(browser, results):
    page = (results / "run" / "report.html").read_bytes()
    ropewalk("report", results / "run", "-o", results / "again.html")
    assert (results / "again.html").read_bytes() == page
    ropewalk("report", results / "ecmp", results / "themis", "-o", results / "both.html")
    with Opened(browser, results / "both.html") as report:
        assert report.page.locator("#table tbody th").all_inner_texts() == ["ecmp", "themis"]


def test_other_directories_are_refused_and_nothing_is_overwritten(results):
    def refused(*words):
        done = subprocess.run([ROPEWALK, *map(str, words)], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 2
        return " ".join(done.stderr.split())

    (results / "empty").mkdir(exist_ok=True)
    assert "manifest.json" in refused("report", results / "empty")
    assert "its page cannot show other results" in refused("report", results / "grid", results / "ecmp")
    scenario = results / "mine.toml"
    scenario.write_text("seed = 1\n")
    assert "no report" in refused("run", "quickstart", "-o", results / "never", "--report", scenario)
    assert scenario.read_text() == "seed = 1\n" and not (results / "never").exists()
    cut = results / "cut"
    shutil.copytree(results / "ecmp", cut, dirs_exist_ok=True)
    whole = (cut / "flows.parquet").read_bytes()
    (cut / "flows.parquet").write_bytes(whole[: len(whole) // 2])
    assert "flows.parquet" in refused("report", cut)

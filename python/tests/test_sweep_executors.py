"""Sweeps from Python on every executor: the same dataset byte for byte, and no finished point is lost.

Dask, Ray and joblib are used if they are installed; else their tests are skipped and say so.
"""

import concurrent.futures
import contextlib
import os
import shutil
import signal
import threading
import time
import tomllib
from pathlib import Path

import pytest

rw = pytest.importorskip("ropewalk", reason="the package is not installed: pip install .", exc_type=ImportError)

SWEEP = {
    "name": "small",
    "scenario": "quickstart",
    "seeds": "1..3",
    "flows": True,
    "set": {"workload.0.bytes": "64KB"},
    "axis": [{"schemes": ["ecmp", "rps"]}, {"switch.buffer": ["4MB", "16MB"]}],
}
POINTS = 12


def files(folder):
    """All files of a dataset, without the cost of the runs."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    assert found.pop("timing.parquet")
    return found


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The sweep, run by Rust on all cores."""
    done = rw.sweep(SWEEP, tmp_path_factory.mktemp("local") / "small")
    assert len(done) == POINTS and done.failed == []
    return done


def kept(directory):
    """Number of kept points of an unfinished sweep."""
    return len(list(directory.with_name(directory.name + ".part").glob("points/*.json")))


def finish(directory, local):
    """Continues a sweep on this machine. Its dataset must equal the dataset of an undisturbed sweep."""
    before = kept(directory)
    calls = []
    done = rw.sweep(SWEEP, directory, resume=True, progress=lambda *said: calls.append(said))
    assert files(done.directory) == files(local.directory)
    return before


# --- the same everywhere ---------------------------------------------------------------------------------------------


def test_a_finished_sweep_has_points_configs_and_timing(local):
    points = local.points
    assert len(points) == POINTS and "axis.switch.buffer" in points.column_names
    assert set(points["scheme"]) == {"ecmp", "rps"} and set(points["seed"]) == {1, 2, 3}
    assert all(points["complete"]) and len(local.timing) == POINTS and len(local.configs) == POINTS
    assert local.digest == local.manifest["digest"] and local.manifest["complete"]
    assert len(list((local.directory / "flows").glob("*.parquet"))) == POINTS
    assert "12 points" in local._repr_html_()
    assert rw.read(local.directory).digest == local.digest
    again = rw.sweep(SWEEP, local.directory, resume=True)
    assert again.digest == local.digest, "what is finished is not run again"


@pytest.mark.parametrize("wrong", [{"executor": 3}, {"jobs": 0}, {"jobs": -1}, {"threads": 1.5}, {"resume": "yes"}])
def test_a_refused_call_leaves_nothing_behind(wrong, tmp_path):
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        rw.sweep(SWEEP, tmp_path / "small", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_made_of_two_sweeps_is_reported_as_broken(local, tmp_path):
    mixed = tmp_path / "mixed"
    shutil.copytree(local.directory, mixed)
    other = rw.sweep(SWEEP | {"seeds": "1..2"}, tmp_path / "other")
    shutil.copy(other.directory / "points.parquet", mixed)
    for look in (rw.read, lambda dir: rw.Sweep(dir, []).report(tmp_path / "page.html")):
        with pytest.raises(rw.ResultsError, match="points.parquet comes from another run than sweep.json: expected digest"):
            look(mixed)


def test_axes_of_numbers_are_numbers(tmp_path):
    axes = [{"links.loss": [0, 0.001]}, {"links.lose-replies": [True, False]}, {"workload.0.bytes": ["8kB"]}]
    points = rw.sweep({"scenario": "quickstart", "axis": axes}, tmp_path / "s").points
    assert points["axis.links.loss"] == [0.0, 0.0, 0.001, 0.001]
    assert points["axis.links.lose-replies"] == [True, False, True, False]
    assert points["axis.workload.0.bytes"] == ["8kB"] * 4


def test_a_sweep_has_a_page(local, tmp_path):
    assert local.report(tmp_path / "page.html").read_text().startswith("<!doctype html>")
    with pytest.raises(rw.ResultsError, match="is a sweep"):
        rw.report([local.directory], tmp_path / "other.html")


@pytest.mark.parametrize("kind", [concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor])
def test_pools_of_threads_and_of_processes(kind, local, tmp_path):
    with kind(2) as pool:
        done = rw.sweep(SWEEP, tmp_path / "small", executor=pool)
    assert files(done.directory) == files(local.directory)
    assert not (tmp_path / "small.part").exists()


class Lazy:
    """The simplest executor: its futures have only `result()`."""

    def submit(self, fn, *args):
        class Later:
            def result(self):
                return fn(*args)

        return Later()


class Polled:
    """Futures with `done()`, as submitit's, that do not call back."""

    def __init__(self, pool):
        self.pool = pool

    def submit(self, fn, *args):
        inner = self.pool.submit(fn, *args)

        class Job:
            result = inner.result
            done = inner.done

        return Job()


def test_any_object_with_submit_is_an_executor(local, tmp_path):
    assert files(rw.sweep(SWEEP, tmp_path / "lazy", executor=Lazy()).directory) == files(local.directory)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert files(rw.sweep(SWEEP, tmp_path / "polled", executor=Polled(pool)).directory) == files(local.directory)
    with pytest.raises(TypeError, match="submit"):
        rw.sweep(SWEEP, tmp_path / "none", executor=object())


@pytest.fixture(scope="module")
def dask_cluster():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'dask[distributed]'")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_dask(dask_cluster, local, tmp_path):
    done = rw.sweep(SWEEP, tmp_path / "client", executor=dask_cluster)
    assert files(done.directory) == files(local.directory)


@pytest.fixture(scope="module")
def ray_instance():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray joblib")
    pytest.importorskip("joblib", reason="joblib is not installed: pip install joblib")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    register_ray()
    yield ray
    ray.shutdown()


def test_ray_by_joblib(ray_instance, local, tmp_path):
    import joblib

    with joblib.parallel_config(backend="ray", n_jobs=2):
        done = rw.sweep(SWEEP, tmp_path / "small", executor=joblib.Parallel())
    assert files(done.directory) == files(local.directory)


def test_ray_by_an_adapter_of_five_lines(ray_instance, local, tmp_path):
    class Ray:
        def submit(self, fn, *args):
            return ray_instance.remote(fn).remote(*args).future()

    done = rw.sweep(SWEEP, tmp_path / "small", executor=Ray())
    assert files(done.directory) == files(local.directory)


def test_submitit(tmp_path):
    """submitit's executor for this machine, with the interface of its Slurm executor: jobs are processes, results are files."""
    submitit = pytest.importorskip("submitit", reason="submitit is not installed: pip install submitit")
    executor = submitit.AutoExecutor(tmp_path / "jobs", cluster="local")
    executor.update_parameters(timeout_min=5)
    few = SWEEP | {"seeds": 1}
    done, here = rw.sweep(few, tmp_path / "jobs-few", executor=executor), rw.sweep(few, tmp_path / "few")
    assert len(done) == 4 and files(done.directory) == files(here.directory)


def test_joblib_by_its_own_backend(local, tmp_path):
    joblib = pytest.importorskip("joblib", reason="joblib is not installed: pip install joblib")
    done = rw.sweep(SWEEP, tmp_path / "small", executor=joblib.Parallel(2, return_as="generator_unordered"))
    assert files(done.directory) == files(local.directory)


# --- failures -------------------------------------------------------------------------------------------------------


class Counted:
    """An executor that passes work on, and calls a function after a given number of points."""

    def __init__(self, inner, number, do):
        self.inner, self.number, self.do, self.given = inner, number, do, 0

    def submit(self, fn, *args):
        self.given += 1
        if self.given == self.number:
            self.do()
        return self.inner.submit(fn, *args)


def after(directory, points, do):
    """Calls a function on a new thread when a given number of points is kept."""

    def wait():
        until = time.monotonic() + 60
        while kept(directory) < points and time.monotonic() < until:
            time.sleep(0.002)
        do()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


# Points that run long enough to be killed.
SLOW = SWEEP | {"set": {"workload.0.bytes": "2MB"}}


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    return rw.sweep(SLOW, tmp_path_factory.mktemp("slow") / "small")


def test_a_lost_worker_of_a_pool_is_reported_and_no_finished_point_is_lost(slow, tmp_path):
    directory = tmp_path / "small"
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        pool.submit(int).result()

        def kill():
            os.kill(next(iter(pool._processes)), signal.SIGKILL)

        killer = after(directory, 3, kill)
        with pytest.raises(rw.SweepError) as caught:
            rw.sweep(SLOW, directory, executor=pool)
        killer.join()
    error = caught.value
    assert "takes no more work" in str(error) and "BrokenProcessPool" in str(error) and "resume=True" in str(error)
    assert error.done >= 3 and error.runs == POINTS and error.done + len(error.failed) == POINTS
    assert kept(directory) == error.done
    seen = [path.stat().st_mtime_ns for path in sorted(directory.with_name("small.part").glob("points/*.json"))]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        given = Counted(pool, -1, None)
        done = rw.sweep(SLOW, directory, executor=given, resume=True)
    assert given.given == POINTS - len(seen), "only what was missing ran again"
    assert files(done.directory) == files(slow.directory)


def test_a_killed_worker_of_dask_costs_no_point(dask_cluster, slow, tmp_path):
    workers = dask_cluster.run(os.getpid)
    killer = after(tmp_path / "small", 3, lambda: os.kill(next(iter(workers.values())), signal.SIGKILL))
    done = rw.sweep(SLOW, tmp_path / "small", executor=dask_cluster)
    killer.join()
    assert files(done.directory) == files(slow.directory)


def test_a_killed_worker_of_ray_costs_no_point(ray_instance, slow, tmp_path):
    pid = ray_instance.get(ray_instance.remote(lambda: os.getpid()).remote())

    class Ray:
        def submit(self, fn, *args):
            return ray_instance.remote(fn).remote(*args).future()

    def kill():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    killer = after(tmp_path / "small", 3, kill)
    done = rw.sweep(SLOW, tmp_path / "small", executor=Ray())
    killer.join()
    assert files(done.directory) == files(slow.directory)


def test_a_stopped_executor_is_reported_and_the_sweep_can_be_resumed(local, tmp_path):
    def shut():
        raise RuntimeError("the cluster is closed for the weekend")

    directory = tmp_path / "small"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with pytest.raises(rw.SweepError, match="closed for the weekend") as caught:
            rw.sweep(SWEEP, directory, executor=Counted(pool, 6, shut))
    assert caught.value.done == kept(directory) == 5, "what was under way was waited for"
    assert [number for number, _, _ in caught.value.failed] == list(range(5, 12))
    with pytest.raises(rw.RequestError, match="add resume=True to continue it"):
        rw.sweep(SWEEP, directory)
    assert finish(directory, local) == 5


def test_points_that_fail_once_are_tried_again(local, tmp_path):
    class Flaky:
        def __init__(self):
            self.given = 0

        def submit(self, fn, *args):
            self.given += 1
            future = concurrent.futures.Future()
            if self.given % 3 == 0:
                future.set_exception(ConnectionError("the node went away"))
            else:
                future.set_result(fn(*args))
            return future

    assert files(rw.sweep(SWEEP, tmp_path / "small", executor=Flaky()).directory) == files(local.directory)


def test_a_point_that_always_kills_its_worker_does_not_stop_the_others(local, tmp_path):
    class Picky:
        tried = 0

        def submit(self, fn, point, attempt):
            future = concurrent.futures.Future()
            if "seed 2" in point and '"rps' in point.replace("schemes = rps", '"rps'):
                Picky.tried += 1
                future.set_exception(MemoryError("killed"))
            else:
                future.set_result(fn(point, attempt))
            return future

    directory = tmp_path / "small"
    with pytest.raises(
        rw.SweepError, match=r"2 points could not be run[\s\S]*schemes = rps.*seed 2.*MemoryError: killed"
    ) as caught:
        rw.sweep(SWEEP, directory, executor=Picky())
    assert caught.value.done == kept(directory) == 10 and Picky.tried == 2 * 3
    assert finish(directory, local) == 10


def test_a_single_point_is_one_point(tmp_path):
    class Broken:
        def submit(self, fn, *args):
            raise RuntimeError("closed")

    with pytest.raises(rw.SweepError, match="^1 point could not be run:") as caught:
        rw.sweep({"scenario": "quickstart"}, tmp_path / "one", executor=Broken())
    assert caught.value.done == 0 and len(caught.value.failed) == 1


def test_if_every_point_fails_the_sweep_stops_early(tmp_path):
    class Broken:
        given = 0

        def submit(self, fn, *args):
            Broken.given += 1
            future = concurrent.futures.Future()
            future.set_exception(ModuleNotFoundError("No module named 'ropewalk'"))
            return future

    many = SWEEP | {"seeds": "1..100"}
    with pytest.raises(rw.SweepError, match="3 points could not be run, and 397 more were not tried") as caught:
        rw.sweep(many, tmp_path / "small", executor=Broken())
    assert "No module named 'ropewalk'" in str(caught.value) and Broken.given < 300
    assert sorted(number for number, _, _ in caught.value.failed) == list(range(400)), "those not tried are missing, too"
    assert kept(tmp_path / "small") == 0


def test_foreign_results_are_not_kept(local, tmp_path):
    class Liar:
        def submit(self, fn, *args):
            future = concurrent.futures.Future()
            text = fn(*args)
            future.set_result({0: None, 1: text[:-20], 2: text.replace('"scenario"', '"Scenario"')}.get(len(args[0]) % 4, text))
            return future

    with pytest.raises(rw.SweepError, match="of no use|in place of"):
        rw.sweep(SWEEP | {"name": "small"}, tmp_path / "small", executor=Liar())
    finish(tmp_path / "small", local)


def test_ctrl_c_between_points_keeps_finished_points(local, tmp_path):
    directory = tmp_path / "small"

    def interrupt(fraction, text):
        if kept(directory) >= 4:
            raise KeyboardInterrupt

    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        rw.sweep(SWEEP, directory, executor=pool, progress=interrupt)
    assert finish(directory, local) >= 4


def test_an_error_names_the_place_in_the_sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text('scenario = "quickstart"\n[[axis]]\n"switch.bufer" = ["1MB", "2MB"]\n')
    with pytest.raises(rw.ScenarioError) as caught:
        rw.sweep("bad.toml")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("bad.toml", 3, 1)
    assert "did you mean `buffer`" in caught.value.message
    assert sorted(os.listdir()) == ["bad.toml"]


def test_the_scenario_of_a_sweep_may_be_a_dict(local, tmp_path):
    scenario = tomllib.loads((Path(__file__).resolve().parents[2] / "scenarios" / "quickstart.toml").read_text())
    done = rw.sweep(SWEEP | {"scenario": scenario}, tmp_path / "small")
    assert done.points["digest"] == local.points["digest"] and done.manifest["scenario"] == "scenario"
    with pytest.raises(rw.ScenarioError, match="did you mean") as caught:
        rw.sweep(SWEEP | {"scenario": scenario | {"switch": {"bufer": "1MB"}}}, tmp_path / "wrong")
    assert caught.value.file == "<dict>"
    with pytest.raises(rw.ScenarioError, match="did you mean") as caught:
        rw.sweep(SWEEP | {"scenario": scenario, "axis": [{"schemes": ["ecmpp"]}]}, tmp_path / "wrong")
    assert caught.value.file == "<sweep>"


def test_a_sweep_takes_settings_and_reports_failed_simulations(tmp_path):
    drops = {"switch.pfc.headroom": "2KB", "switch.buffer": "200KB", "workload.0.bytes": "2MB", "nic.congestion": "none"}
    with pytest.warns(rw.ScenarioWarning, match="failed in simulation"):
        done = rw.sweep({"scenario": "quickstart", "seeds": "1..2"}, tmp_path / "out", scheme="rps", **drops)
    assert len(done.failed) == 2 and "lossless" in done.failed[0][2]
    assert rw.read(tmp_path / "out").failed == done.failed
    assert done.points["complete"] == [False, False] and set(done.points["scheme"]) == {"rps"}

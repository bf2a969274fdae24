"""Damaged results in Python: a table is compared with its checksum when it is read, and all files for reports."""

import json
import shutil

import pytest

import ropewalk as rw

SMALL = {"workload.0.bytes": "2kB"}
TABLES = ["flows", "links", "series", "events", "paths"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of one scenario with all their files."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed in (("whole", 1), ("other", 2)):
        rw.run("quickstart", record=True, seed=seed, **SMALL).save(folder / name, csv=True)
    return folder


@pytest.fixture
def out(runs, tmp_path):
    """A copy of the first run, to damage."""
    shutil.copytree(runs / "whole", tmp_path / "out")
    return tmp_path / "out"


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def refused(out, why):
    """Reports and explanations need all files."""
    for look in (
        lambda: rw.report(out, out.parent / "page.html"),
        lambda: rw.read(out).explain(0),
        lambda: rw.read(out).save(out.parent / "copy"),
    ):
        with pytest.raises(rw.ResultsError, match=why):
            look()
    assert not (out.parent / "page.html").exists() and not (out.parent / "copy").exists()


def test_whole_results_are_read_and_saved_as_they_were(runs, out):
    (out / "notes.txt").write_text("mine")
    read = rw.read(out)
    assert set(TABLES) <= set(read.tables)
    read.save(out.parent / "copy", csv=True)
    for file in (runs / "whole").iterdir():
        if file.name != "summary.json":
            assert (out.parent / "copy" / file.name).read_bytes() == file.read_bytes(), file.name
    assert "checksums" not in read.manifest, "they are about the directory, not about the run"


@pytest.mark.parametrize("name", TABLES)
def test_only_the_table_that_is_read_is_compared(name, runs, out):
    file = f"{name}.parquet"
    shutil.copy(runs / "other" / file, out)
    digests = [json.loads((runs / which / "manifest.json").read_text())["digest"] for which in ("whole", "other")]
    foreign = f"{file} comes from another run than manifest.json: expected digest {digests[0]}, found {digests[1]}"
    read = rw.read(out)
    for table in TABLES:
        if table != name:
            assert len(read.table(table)) > 0
    with pytest.raises(rw.ResultsError, match=foreign):
        read.table(name)
    refused(out, foreign)
    whole = (runs / "whole" / file).read_bytes()
    (out / file).write_bytes(whole[: len(whole) // 2])
    refused(out, f"{file} is cut short: expected {len(whole)} bytes, found {len(whole) // 2}")
    (out / file).write_bytes(whole)
    flip(out / file)
    refused(out, f"{file} was edited or damaged")
    (out / file).unlink()
    refused(out, f"{file}: the file is missing, but manifest.json lists it")


@pytest.mark.parametrize("name", ["flows.csv", "summary.json", "manifest.json"])
def test_a_flip_in_another_file_is_refused(name, out):
    flip(out / name)
    refused(out, f"{name} was edited or damaged")


def test_an_edited_manifest_is_refused_when_it_is_opened(out):
    manifest = json.loads((out / "manifest.json").read_text())
    for key in manifest:
        (out / "manifest.json").write_text(json.dumps(manifest | {key: None}))
        with pytest.raises(rw.ResultsError, match=r"manifest.json .*edited"):
            rw.read(out)
    manifest.pop("checksums")
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(rw.ResultsError, match="has no `checksums`: it was edited, or an older version"):
        rw.read(out)


def test_each_table_of_a_sweep_is_compared(tmp_path):
    axes = {"scenario": "quickstart", "axis": [{"workload.0.bytes": ["1kB", "2kB"]}]}
    rw.sweep(axes, tmp_path / "s")
    rw.sweep(axes | {"seeds": [2]}, tmp_path / "other")
    for name in ("points", "configs", "timing"):
        file = tmp_path / "s" / f"{name}.parquet"
        whole = file.read_bytes()
        shutil.copy(tmp_path / "other" / file.name, file)
        with pytest.raises(rw.ResultsError, match=f"{file.name} comes from another run than sweep.json"):
            getattr(rw.read(tmp_path / "s"), name)
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(rw.ResultsError, match=file.name):
            getattr(rw.read(tmp_path / "s"), name)
        file.write_bytes(whole)
        assert len(getattr(rw.read(tmp_path / "s"), name)) == 2
    flip(tmp_path / "s" / "sweep.json")
    with pytest.raises(rw.ResultsError, match="sweep.json"):
        rw.read(tmp_path / "s")

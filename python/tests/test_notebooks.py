"""The Python blocks of docs/python.md, docs/programs.md, docs/own-scheme.md and docs/gallery.md and the notebooks work, and print the output that they show.

A block that begins with ```python no-run reason="..." is read but not run; one with needs="..." is run where these packages are.
Notebooks need nbclient and ipykernel, and are skipped without.
"""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest
from test_docs import program

rw = pytest.importorskip("ropewalk", reason="the package is not installed: pip install .", exc_type=ImportError)

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 600
LARGEST = 500_000  # bytes


def blocks(page):
    text = page.read_text()
    for found in BLOCK.finditer(text):
        yield text.count("\n", 0, found.start()) + 2, found[1], found[2]


def run_blocks(page):
    """Runs the blocks of a page. Returns their names, and a text for each block that needs a missing package."""
    names = {}
    left_out = []
    for line, said, code in blocks(page):
        compiled = compile("\n" * (line - 1) + code, str(page), "exec")
        needs = re.search(r'needs="(.+)"', said)
        missing = [name for name in needs[1].split() if importlib.util.find_spec(name) is None] if needs else []
        if "no-run" in said:
            continue
        if missing:
            left_out.append(f"line {line} needs {', '.join(missing)}")
            continue
        exec(compiled, names)
    return names, left_out


def test_the_page_on_python_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names, left_out = run_blocks(ROOT / "docs" / "python.md")
    assert "slowest" in names and (tmp_path / "compare.html").is_file() and (tmp_path / "results" / "grid").is_dir()
    if left_out:
        pytest.skip(f"parts of docs/python.md were not run: {'; '.join(left_out)}")


def test_the_page_on_schemes_of_ones_own_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, _ = run_blocks(ROOT / "docs" / "own-scheme.md")
    assert {result.scheme for result in names["comparison"]} == {"two-choices", "themis", "ecmp"}


def test_every_picture_shows_the_runs_that_this_build_makes(tmp_path, monkeypatch):
    """The committed pictures carry the digests of the runs that they show: those of the page's commands and blocks."""
    for name in ("matplotlib", "PIL"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install '.[notebook]'")
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "tools" / "gallery.py")
    gallery = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gallery", gallery)
    spec.loader.exec_module(gallery)
    made = gallery.make(tmp_path, program())
    text = gallery.PAGE.read_text()
    pictures = sorted(file for file in (ROOT / "docs" / "images").rglob("*.*"))
    assert sorted(gallery.shown(text)) == sorted(made) == [file.stem for file in pictures]
    old = [file.stem for file in pictures if not made[file.stem] or gallery.carried(file) != made[file.stem]]
    assert old == [], "pictures of other runs than this build makes: `make gallery` makes them anew"


def test_the_page_on_programs_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, left_out = run_blocks(ROOT / "docs" / "programs.md")
    assert names["result"].digest == rw.read(tmp_path / "results" / "answer").digest
    if left_out:
        pytest.skip(f"parts of docs/programs.md were not run: {'; '.join(left_out)}")
    assert len(rw.read(tmp_path / "results" / "requests").flows) == 8


@pytest.mark.parametrize(("page", "least"), [("python.md", 9), ("programs.md", 3)])
def test_every_name_on_the_page_exists(page, least):
    page = ROOT / "docs" / page
    nodes = [node for _, _, code in blocks(page) for node in ast.walk(ast.parse(code))]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    named = {node.attr for node in attributes if node.value.id == "rw"}
    named |= set(re.findall(r"`rw\.(\w+)", page.read_text()))
    assert len(named) >= least and [name for name in named if name not in rw.__all__] == []


def outputs(cell):
    """The printed output of a cell and the text of its value. Pictures and tables are left out of the comparison."""
    texts = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream" and output["name"] == "stderr":
            continue  # a warning names the file of the cell, which differs from kernel to kernel
        elif output["output_type"] == "stream":
            texts.append(output["text"])
        elif output["output_type"] == "execute_result" and "text/html" not in output["data"]:
            texts.append(output["data"]["text/plain"])
        elif output["output_type"] == "display_data" and list(output["data"]) == ["text/plain"]:
            continue  # the line that says how far a run is, and is empty when it has ended
        else:
            texts.append(sorted(output.get("data", {})))
    return texts


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_its_stored_output(path, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install nbclient ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    for name in ("ipykernel", "matplotlib", "pandas", "pyarrow"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install ipykernel '.[notebook]'")
    assert path.stat().st_size < LARGEST
    shown = nbformat.read(path, 4)
    fresh = nbformat.read(path, 4)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    nbclient.NotebookClient(
        fresh, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    cells = [(old, new) for old, new in zip(shown.cells, fresh.cells, strict=True) if old.cell_type == "code"]
    for old, new in cells:
        assert outputs(old) == outputs(new), f"{path.name}: {old['source'][:60]}"
    assert sum("image/png" in o.get("data", {}) for _, new in cells for o in new["outputs"]) >= 3

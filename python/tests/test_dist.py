"""The files of a release are made only if program, changelog, bench and tag tell of the same version."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ["Cargo.toml", "CHANGELOG.md", "crates/ropewalk/benches/release.json", "scripts/dist"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with the files in which versions stand."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def refusal(folder: Path) -> str:
    """What `make dist RELEASE=1` says when it refuses."""
    made = subprocess.run([sys.executable, "scripts/dist", "--release"], cwd=folder, capture_output=True, text=True)
    assert made.returncode == 2 and not (folder / "target").exists()
    return made.stderr


def test_a_changelog_without_the_version_is_no_release(copy: Path) -> None:
    """The newest section of the changelog is still `Unreleased`."""
    (copy / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [0.0.9] - 2026-01-01\n")
    assert "CHANGELOG.md: Unreleased" in refusal(copy)


def test_a_bench_of_the_last_version_is_no_release(copy: Path) -> None:
    """The version was raised, and nobody measured it."""
    (copy / "CHANGELOG.md").write_text("# Changelog\n\n## [9.0.0] - 2026-12-01\n")
    manifest = copy / "Cargo.toml"
    head, tail = manifest.read_text().split('\nversion = "', 1)
    manifest.write_text(f'{head}\nversion = "9.0.0"{tail[tail.index(chr(34)) + 1 :]}')
    said = refusal(copy)
    assert "Cargo.toml: 9.0.0" in said and "release.json: 0." in said


def test_a_commit_without_the_tag_of_its_version_is_no_release(copy: Path) -> None:
    """All files tell of one version, and the tag is that of the release before."""
    version = tomllib.loads((copy / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    (copy / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{version}] - 2026-12-01\n")
    for words in (["init"], ["add", "."], ["commit", "--message", "x"], ["tag", "v0.0.9"]):
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *who, *words], cwd=copy, check=True, capture_output=True)
    assert "the tag of HEAD: 0.0.9" in refusal(copy)


def test_the_bench_is_that_of_this_version_or_of_the_last_release() -> None:
    """`make bench` compares with the release that the changelog names last, or with this version before its release."""
    space: dict[str, object] = {"__file__": str(ROOT / "scripts/dist"), "__name__": "dist"}
    exec((ROOT / "scripts/dist").read_text(), space)
    found = space["versions"]()
    released = [word.strip("[]") for line in (ROOT / "CHANGELOG.md").open() if line.startswith("## [") for word in line.split()[1:2]]
    allowed = {found["Cargo.toml"], *[version for version in released if version != "Unreleased"][:1]}
    assert found["crates/ropewalk/benches/release.json"] in allowed

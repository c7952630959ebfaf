"""The entry points of the packages here, as an installation announces them: an older one may lack some."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

LIBS = Path(__file__).resolve().parent.parent / "libs"


def announced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Announce all packages for the time of a test. Returns a folder in which more can be announced."""
    site = folder / "site"
    for path in LIBS.glob("*/pyproject.toml"):
        project = tomllib.loads(path.read_text())["project"]
        for group, entries in project.get("entry-points", {}).items():
            announce(site, project["name"], group, entries)
    monkeypatch.syspath_prepend(str(site))
    return site


def announce(site: Path, name: str, group: str, entries: Mapping[str, str]) -> None:
    """Announce a package's entries of one group, besides its known ones of others."""
    folder = site / f"{name.replace('-', '_')}-9.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9\n")
    lines = [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()), ""]
    with (folder / "entry_points.txt").open("a") as file:
        file.write("\n".join(lines))

"""Additions to MkDocs' settings for the site of docs/: the pages of a folder, and links that leave docs/.

MkDocs calls `on_config` and `on_page_markdown` (`hooks` in mkdocs.yml).
"""

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
LOGGER = logging.getLogger("mkdocs.hooks")
"""Its warnings are errors of a strict build."""


def on_config(config: Any) -> Any:
    """Replace each folder of the navigation by its pages, ordered by their titles."""
    config.nav = [{title: _pages(where) for title, where in entry.items()} for entry in config.nav]
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Lead links to files that are not part of the site to the repository."""
    folder = Path(page.file.abs_src_path).parent

    def replacement(link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        place = (folder / target).resolve()
        if "://" in target or (place.is_relative_to(DOCS) and not place.is_dir()):
            return link[0]
        if not place.exists() or not place.is_relative_to(ROOT):
            LOGGER.warning("%s links to %s, which is not there", page.file.src_uri, target)
        if place.is_relative_to(DOCS) and (place / "README.md").exists():
            return f"{target.rstrip('/')}/README.md{anchor}"
        kind = "tree" if place.is_dir() else "blob"
        return f"{config.extra['repository']}/{kind}/main/{place.relative_to(ROOT).as_posix()}{anchor}"

    return LINK.sub(replacement, markdown)


def _pages(where: str) -> str | list[str]:
    if not where.endswith("/"):
        return where
    pages = sorted((DOCS / where).glob("*.md"), key=_order)
    return [page.relative_to(DOCS).as_posix() for page in pages]


def _order(page: Path) -> tuple[bool, str]:
    """The page about the folder comes first, then numbers, then titles."""
    title = page.read_text(encoding="utf-8").partition("\n")[0].strip("# `").casefold()
    return page.name != "README.md", page.name if page.name[0].isdigit() else title

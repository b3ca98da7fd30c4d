"""Puts the open data into the site: the files beside the languages, and on their page the links and the description for machines.

Writing the files takes some seconds of calculation, so a process of its own does it while the pages are built, and only when
data or code have changed since: `.cache/open-data/` keeps what belongs to the last state. `make serve` leaves the files out.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.exceptions import BuildError
from mkdocs.plugins import event_priority
from mkdocs.utils import get_relative_url
from site_words import SOURCE, macros_of

PAGE = "open-data.md"
_EXAMPLE_ADDRESS = "https://vram-guide.example/"
_CACHE = Path(".cache/open-data")
_kept: Path | None = None
"""Where the files of this state of data and code lie, or will lie."""
_export: subprocess.Popen[str] | None = None
_folder = ""


def _begins(config) -> bool:
    """Whether this is the build of the first language, which stands for all, in a site whose page names the files."""
    page = Path(config.docs_dir) / PAGE
    if config.extra["locale"] != SOURCE or config.extra["serving"] or not page.is_file():
        return False
    return "data_file(" in page.read_text(encoding="utf-8")


@event_priority(0)
def on_pre_build(config) -> None:
    global _kept, _export, _folder
    if not _begins(config):
        return
    _forget()
    project = Path(config.config_file_path).parent
    _kept = project / _CACHE / _state(project)
    if not _kept.is_dir():
        _kept.parent.mkdir(parents=True, exist_ok=True)
        _folder = tempfile.mkdtemp(dir=_kept.parent, prefix=".")
        command = [sys.executable, "-m", "macros", "export", _folder]
        _export = subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _state(project: Path) -> str:
    """A name for everything that the files are made from: data, code, and the interpreter and packages that run it."""
    found = [project / "requirements.txt", *(file for folder in ("data", "macros") for file in (project / folder).rglob("*"))]
    digest = hashlib.sha256(sys.version.encode())
    # What Python leaves behind when it runs the code, folders included, is no other state.
    for file in sorted(file for file in found if file.is_file() and "__pycache__" not in file.parts):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(project).as_posix()} {len(content)} ".encode() + content)
    return digest.hexdigest()


@event_priority(0)
def on_page_context(context, page, config, nav):
    if page.file.src_uri == PAGE:
        context["dataset"] = json.dumps(_dataset(page, config), ensure_ascii=False).replace("<", "\\u003c")
    return context


def _dataset(page, config) -> dict[str, Any]:
    """The data as schema.org describes a Dataset."""
    open_data = macros_of("open_data")
    address = config.extra["site_address"]
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": str(page.meta["title"]),
        "description": str(page.meta["description"]),
        "url": f"{config.site_url}{page.url}",
        "version": str(open_data.VERSION),
        "inLanguage": config.extra["locale"],
        "isAccessibleForFree": True,
        "creator": {"@type": "Organization", "name": config.site_name, "url": address},
        "distribution": [
            {
                "@type": "DataDownload",
                "name": file.name,
                "encodingFormat": file.media,
                "contentUrl": f"{address}{open_data.FOLDER}/{file.name}",
            }
            for file in open_data.FILES.values()
        ],
    }


@event_priority(0)
def on_post_page(output: str, page, config) -> str:
    if 'href="open-data:' in output:
        way = get_relative_url(f"{macros_of('open_data').FOLDER}/", f"{config.extra['locale']}/{page.url}")
        output = output.replace('href="open-data:', f'href="{way}')
    if page.file.src_uri == PAGE:
        output = output.replace(_EXAMPLE_ADDRESS, config.extra["site_address"])
    return output


# After the hook that builds the other languages.
@event_priority(-250)
def on_post_build(config) -> None:
    if _kept is None or config.extra["locale"] != SOURCE:
        return
    if _export is not None:
        _, said = _export.communicate()
        if _export.returncode:
            _forget()
            raise BuildError(f"The open data could not be written.\n{said}")
        _keep()
    target = Path(config.site_dir).parent / macros_of("open_data").FOLDER
    shutil.copytree(_kept, target, dirs_exist_ok=True)
    _forget()


def _keep() -> None:
    """Give the finished folder its name, which another build of the same state may have done first, and drop older states."""
    Path(_folder).chmod(0o755)
    if not _kept.is_dir():
        Path(_folder).rename(_kept)
    for other in _kept.parent.iterdir():
        if other != _kept and not other.name.startswith("."):
            shutil.rmtree(other, ignore_errors=True)


def on_build_error(error: Exception) -> None:
    _forget()


def _forget() -> None:
    global _kept, _export, _folder
    if _export is not None:
        _export.kill()
        _export.wait()
        shutil.rmtree(_folder, ignore_errors=True)
    _kept, _export, _folder = None, None, ""

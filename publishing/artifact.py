"""Is what a stranger's pull request has built nothing but pages? Judges the uploaded archive before anything is unpacked.

Refused are: too many or too big files, links, ways out of the folder, files that a web host would obey or hide, kinds of
files that the site has none of, and pages that load something from another host (pages.py).
"""

from __future__ import annotations

import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from publishing import pages

# The site has 350 files and 23 MB; the largest one is 1 MB.
MOST_FILES = 3_000
MOST_BYTES = 150_000_000
MOST_BYTES_OF_A_FILE = 15_000_000
MOST_FINDINGS = 20

KINDS = {
    ".css", ".csv", ".gz", ".html", ".ico", ".jpg", ".js", ".json", ".map", ".md", ".png", ".svg", ".txt", ".webp", ".woff2", ".xml", ".xsl",
}  # fmt: skip
# What Cloudflare, Netlify and GitHub Pages take as orders; names with a leading dot or underscore are refused anyway.
ORDERS = {"cname", "functions", "netlify.toml", "vercel.json", "wrangler.toml", "wrangler.json"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")


class Refused(Exception):
    """An archive that is not published, with one reason a line."""


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive into an empty folder. Raises `Refused` before the first is written, with every reason."""
    try:
        with zipfile.ZipFile(archive) as files:
            members = [member for member in files.infolist() if not member.is_dir()]
            _refuse(_by_name(files.infolist()))
            contents = {member.filename: _contents(files, member) for member in members}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError) as error:
        raise Refused(f"the archive cannot be read: {error}") from None
    _refuse(_by_contents(contents))
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _refuse(findings: Iterator[str]) -> None:
    found = []
    for finding in findings:
        found.append(finding)
        if len(found) == MOST_FINDINGS:
            found.append("… and perhaps more")
            break
    if found:
        raise Refused("\n".join(found))


def _by_name(members: list[zipfile.ZipInfo]) -> Iterator[str]:
    """What the archive's list of contents tells."""
    if len(members) > MOST_FILES:
        yield f"{len(members)} files; a preview has {MOST_FILES} at most"
        return
    if (size := sum(member.file_size for member in members)) > MOST_BYTES:
        yield f"{size} bytes; a preview has {MOST_BYTES} at most"
    seen: set[str] = set()
    for member in members:
        name = member.filename
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            yield f"{name!r} is a link or a device; only files are published"
        if name.lower() in seen:  # on some hosts one of the two would win
            yield f"{name!r} stands there twice"
        seen.add(name.lower())
        parts = name.rstrip("/").split("/")
        if bad := [part for part in parts if not _NAME.fullmatch(part)]:
            yield f"{name!r}: the name {bad[0]!r} is not published; names begin with a letter or a digit and stay in the folder"
        elif orders := [part for part in parts if part.lower() in ORDERS]:
            yield f"{name!r}: a web host would obey {orders[0]!r}"
        elif not member.is_dir() and PurePosixPath(name).suffix.lower() not in KINDS:
            yield f"{name!r} is of a kind that the site has none of"
        if member.file_size > MOST_BYTES_OF_A_FILE:
            yield f"{name!r} has {member.file_size} bytes; a file has {MOST_BYTES_OF_A_FILE} at most"
    if "index.html" not in seen:
        yield "there is no index.html; this is not the site"


def _contents(files: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A file's bytes; never more than the list of contents has said, whatever the compressed data hold."""
    with files.open(member) as file:
        content = file.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise Refused(f"{member.filename!r} is not as long as the archive says")
    return content


def _by_contents(contents: dict[str, bytes]) -> Iterator[str]:
    """What pages, pictures and style sheets would do that the site's own do not."""
    for name, content in contents.items():
        for finding in pages.findings(PurePosixPath(name).suffix.lower(), content.decode("utf-8", errors="replace")):
            yield f"{name!r} {finding}"

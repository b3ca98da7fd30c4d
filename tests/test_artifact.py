"""What a stranger's preview may be made of: hostile archives and pages are refused, each with its reason; the site passes."""

from __future__ import annotations

import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from macros import changes_report
from publishing import artifact, pages
from tests import site_build
from tests.test_changes import EMPTY

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'self'; form-action 'none'"
HEAD = f'<!doctype html>\n<html lang="de"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
PAGE = HEAD + '<meta name="robots" content="noindex, nofollow"></head><body>{}</body></html>'


def archive(folder: Path, files: dict[str, str | bytes], change: Callable[[zipfile.ZipFile], None] = lambda file: None) -> Path:
    path = folder / "archive.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in {"index.html": PAGE.format("Text."), **files}.items():
            made.writestr(zipfile.ZipInfo(name), content)
        change(made)
    return path


def reasons(folder: Path, files: dict[str, str | bytes], change: Callable[[zipfile.ZipFile], None] = lambda file: None) -> str:
    with pytest.raises(artifact.Refused) as refused:
        artifact.unpack(archive(folder, files, change), folder / "site")
    assert not (folder / "site").exists(), "something was written"
    return str(refused.value)


def test_a_preview_of_the_site_passes(preview_site: Path, tmp_path: Path) -> None:
    files = {file.relative_to(preview_site).as_posix(): file.read_bytes() for file in preview_site.rglob("*") if file.is_file()}
    with zipfile.ZipFile(tmp_path / "archive.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    artifact.unpack(tmp_path / "archive.zip", tmp_path / "site")
    written = {file.relative_to(tmp_path / "site").as_posix(): file.read_bytes() for file in (tmp_path / "site").rglob("*") if file.is_file()}
    assert written == files and "de/article/index.html" in files


def test_the_published_site_is_no_preview(sample_site: Path, tmp_path: Path) -> None:
    """It has headers for a host, and may be found by search engines."""
    found = reasons(tmp_path, {"_headers": (sample_site / "_headers").read_bytes()})
    assert "'_headers'" in found
    assert "noindex" in reasons(tmp_path, {"de/index.html": (sample_site / "de" / "index.html").read_bytes()})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("_headers", "names begin with a letter"),
        ("_redirects", "names begin with a letter"),
        ("de/_worker.js", "names begin with a letter"),
        (".git/config", "names begin with a letter"),
        (".htaccess", "names begin with a letter"),
        ("CNAME", "would obey 'CNAME'"),
        ("cname", "would obey 'cname'"),
        ("functions/api.js", "would obey 'functions'"),
        ("Functions/api.js", "would obey 'Functions'"),
        ("../outside.html", "the name '..'"),
        ("de/../../outside.html", "the name '..'"),
        ("/etc/cron.d/x.txt", "the name ''"),
        ("de\\..\\x.html", "names begin with a letter"),
        ("C:/x.html", "the name 'C:'"),
        ("$(touch pwned).html", "names begin with a letter"),
        ("a\nb.html", "names begin with a letter"),
        ("x.php", "of a kind that the site has none of"),
        ("x.wasm", "of a kind that the site has none of"),
        ("x.zip", "of a kind that the site has none of"),
        ("INDEX.html", "stands there twice"),
    ],
)
def test_a_name_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    found = reasons(tmp_path, {name: "x"})
    assert reason in found and len(found.splitlines()) == 1
    assert not list(tmp_path.glob("outside*"))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    def add(file: zipfile.ZipFile) -> None:
        link = zipfile.ZipInfo("de/passwords.txt")
        link.external_attr = (kind | 0o777) << 16
        file.writestr(link, "/etc/passwd")

    assert reasons(tmp_path, {}, add) == "'de/passwords.txt' is a link or a device; only files are published"


def test_a_huge_artifact_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """11 files of 14 MB of zeros each, packed into 150 kB; one that alone is too long; too many."""
    zeros = b"0" * 14_000_000
    assert reasons(tmp_path, {f"{number}.txt": zeros for number in range(11)}).startswith("154000")
    assert "'one.txt' has 15000001 bytes" in reasons(tmp_path, {"one.txt": b"0" * 15_000_001})
    assert reasons(tmp_path, {f"{number}.txt": "" for number in range(3000)}) == "3001 files; a preview has 3000 at most"


def test_a_bomb_that_lies_about_its_length_is_refused(tmp_path: Path) -> None:
    """The archive's list of contents says 10 bytes; packed are 14 million."""
    path = archive(tmp_path, {"bomb.txt": b"0" * 14_000_000})
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", 14_000_000), struct.pack("<I", 10)))
    with pytest.raises(artifact.Refused):
        artifact.unpack(path, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_what_is_no_archive_or_no_site_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive.zip").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(artifact.Refused, match="cannot be read"):
        artifact.unpack(tmp_path / "archive.zip", tmp_path / "site")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as made:
        made.writestr("readme.txt", "x")
    with pytest.raises(artifact.Refused, match=r"no index\.html"):
        artifact.unpack(tmp_path / "archive.zip", tmp_path / "site")


def test_all_reasons_come_at_once_but_not_without_end(tmp_path: Path) -> None:
    assert len(reasons(tmp_path, {"_headers": "", "CNAME": "", "x.php": ""}).splitlines()) == 3
    assert len(reasons(tmp_path, {f"{number}.php": "" for number in range(100)}).splitlines()) == artifact.MOST_FINDINGS + 1


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://evil.example/x.js"></script>',
        '<SCRIPT SRC="//evil.example/x.js"></SCRIPT>',
        '<script src="/\\evil.example/x.js"></script>',
        '<script src="ht\ntps://evil.example/x.js"></script>',
        '<script src=" https://evil.example/x.js"></script>',
        '<script src="&#104;ttps://evil.example/x.js"></script>',
        '<script src="data:text/javascript,alert(1)"></script>',
        '<script src="https://evil.example/x.js" src="own.js"></script>',
        '<svg><script href="https://evil.example/x.js"/></svg>',
        '<svg><use xlink:href="https://evil.example/x.svg#a"/></svg>',
        '<img src="https://evil.example/p.png">',
        '<img srcset="a.png 1x, https://evil.example/p.png 2x">',
        '<link rel="stylesheet" href="https://evil.example/x.css">',
        '<link rel="preconnect" href="https://evil.example">',
        '<link rel="canonical stylesheet" href="https://evil.example/x.css">',
        '<iframe src="https://evil.example"></iframe>',
        '<iframe srcdoc="<script>x</script>"></iframe>',
        '<object data="https://evil.example/x"></object>',
        '<form action="https://evil.example/"></form>',
        '<button formaction="https://evil.example/">x</button>',
        '<base href="https://evil.example/">',
        '<meta http-equiv="refresh" content="0; url=https://evil.example/">',
        '<p style="background: url(https://evil.example/p.png)">x</p>',
        '<style>@import "https://evil.example/x.css";</style>',
        '<video poster="https://evil.example/p.png"></video>',
        '<iframe src="javascript:alert(1)"></iframe>',
    ],
)
def test_a_page_with_foreign_content_is_refused(tmp_path: Path, html: str) -> None:
    assert "the pages load nothing from other hosts" in reasons(tmp_path, {"de/x.html": PAGE.format(html)})


def test_foreign_style_sheets_and_pictures_are_refused(tmp_path: Path) -> None:
    files = {"a.css": "p { background: url('//evil.example/p') }", "b.svg": '<svg><image href="https://evil.example/p"/></svg>'}
    assert len(reasons(tmp_path, files).splitlines()) == 2


def test_links_to_elsewhere_are_no_foreign_content() -> None:
    text = PAGE.format('<a href="https://example.org/">x</a><img src="data:image/png;base64,AAAA"><script src="../x.js"></script>')
    assert list(pages.findings(".html", text)) == []


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (HEAD, '<!doctype html><html><head><meta charset="utf-8">', "does not begin with"),
        ("<head>", "<head><script>1</script>", "does not begin with"),
        ("<head>", "x<head>", "does not begin with"),
        ("script-src 'self'", "script-src 'self' https://evil.example", "allows 'script-src' 'https://evil.example'"),
        ("script-src 'self'", "script-src 'unsafe-inline'", "allows 'script-src'"),
        ("script-src 'self'", "script-src *; script-src 'self'", "allows 'script-src' '*'"),
        ("script-src 'self'", "script-src-elem https:; script-src 'self'", "allows 'script-src-elem'"),
        ("default-src 'none'", "connect-src wss:", "without default-src"),
        ("base-uri 'self'; ", "", "without base-uri"),
        ("noindex, ", "", "noindex"),
    ],
)
def test_a_page_without_the_policy_or_open_to_search_engines_is_refused(old: str, new: str, reason: str) -> None:
    text = PAGE.format("Text.")
    assert old in text and reason in "\n".join(pages.findings(".html", text.replace(old, new)))


def test_the_page_of_changed_figures_passes() -> None:
    assert list(pages.findings(".html", changes_report.page(EMPTY))) == []


def test_the_policy_of_the_site_is_the_one_that_is_asked_for(sample_site: Path) -> None:
    for locale in site_build.LOCALES:
        text = (sample_site / locale / "article" / "index.html").read_text(encoding="utf-8")
        assert list(pages.findings(".html", text)) == ["may be found by search engines; every page of a preview says noindex"]

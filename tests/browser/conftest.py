"""The browser of these tests: the system's Chromium, and the built site served at 127.0.0.1 as a web host would."""

from __future__ import annotations

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Root in a container has no sandbox; the rest keeps Chromium itself from calling home.
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
         "--disable-component-update", "--disable-sync", "--disable-quic")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        words = "the browser tests need Chromium: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield started
        started.close()


class _Host(SimpleHTTPRequestHandler):
    """Serves a site below a path, and its 404 page for what is not there."""

    def __init__(self, *arguments: Any, prefix: str, **named: Any) -> None:
        self._prefix = prefix
        super().__init__(*arguments, **named)

    def translate_path(self, path: str) -> str:
        if not path.startswith(self._prefix):
            return str(Path(self.directory) / "outside-of-the-site")
        return super().translate_path("/" + path.removeprefix(self._prefix))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = (Path(self.directory) / "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def hosted(site: Path, prefix: str = "/") -> Iterator[str]:
    """The address of a site that is served as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Host, directory=str(site), prefix=prefix))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
    finally:
        server.shutdown()


@pytest.fixture(scope="session")
def host(site: Path) -> Iterator[str]:
    with hosted(site) as address:
        yield address


@pytest.fixture(scope="session")
def sample_host(sample_site: Path) -> Iterator[str]:
    with hosted(sample_site) as address:
        yield address


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 800}, locale="de-DE")
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture(scope="session")
def addresses(site: Path) -> list[str]:
    """Every page of the site, as paths."""
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [file.removesuffix("index.html") for file in files]

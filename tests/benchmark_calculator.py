"""How heavy and how fast the calculator is here: `make benchmark` prints it, nothing is asserted."""

from __future__ import annotations

import gzip
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tests import site_build
from tests.browser.conftest import FLAGS, hosted

SCRIPTS = ("estimator.js", "calculator.js")
# Chromium's "Slow 4G": 1.6 Mbit/s down, 0.75 up, 150 ms.
SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8}
FIRST = """() => new Promise(done => {
  const place = document.querySelector("output [data-part=answer]");
  const look = () => place.textContent.trim() ? done(performance.now()) : requestAnimationFrame(look);
  look();
})"""
KEYSTROKE = """text => {
  const field = document.querySelector("#vg-calc-length");
  field.value = text;
  const start = performance.now();
  field.dispatchEvent(new Event("input", {bubbles: true}));
  return performance.now() - start;
}"""


@contextmanager
def throttled(browser: Browser, network: bool) -> Iterator[Page]:
    """A page of a fresh visitor on a processor four times slower."""
    context = browser.new_context(viewport={"width": 360, "height": 640})
    page = context.new_page()
    session: CDPSession = context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    if network:
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", SLOW_4G)
    yield page
    context.close()


def first_results(browser: Browser, address: str) -> tuple[float, float]:
    """Milliseconds until the first result stands on the page, and until the same page is there without the scripts."""
    with throttled(browser, network=True) as page:
        page.goto(address, wait_until="commit")
        page.wait_for_selector("output", state="attached")
        shown = page.evaluate(FIRST)
    with throttled(browser, network=True) as page:
        for name in SCRIPTS:
            page.route(f"**/{name}*", lambda route: route.abort())
        page.goto(address, wait_until="load")
        without = page.evaluate("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart")
    return shown, without


def keystrokes(browser: Browser, address: str) -> list[float]:
    """Milliseconds that each of twenty keystrokes holds the page up."""
    with throttled(browser, network=False) as page:
        page.goto(address)
        page.wait_for_selector(".vg-calculator:not([data-busy]):not([hidden])")
        taken = []
        for number in range(20):
            taken.append(page.evaluate(KEYSTROKE, str(512 + 37 * number)))
            page.wait_for_timeout(400)
    return taken


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = site_build.build(site_build.ROOT, Path(folder) / "site")
        for language in site_build.LOCALES:
            sizes = [len(gzip.compress((site / language / "assets/javascripts" / name).read_bytes(), 9)) for name in SCRIPTS]
            print(f"{language}: estimator, data and words {sizes[0] / 1000:.1f} kB, form {sizes[1] / 1000:.1f} kB (gzip)")
        browser = playwright.chromium.launch(args=list(FLAGS), executable_path=_chromium())
        with hosted(site) as host:
            shown, without = (statistics.median(times) for times in zip(*(first_results(browser, f"{host}en/calculator/") for _ in range(3))))
            print(f"first result {shown:.0f} ms, the page without the calculator {without:.0f} ms ({shown / without:.2f} times; slow 4G, 4× slower processor, no compression)")
            taken = keystrokes(browser, f"{host}en/calculator/?model=llama-3.1-8b&method=qlora&gpu=rtx-4090&preset=trl")
            print(f"a keystroke {statistics.median(taken):.0f} ms, at most {max(taken):.0f} ms (4× slower processor)")
        browser.close()


def _chromium() -> str:
    return next(found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name)))


if __name__ == "__main__":
    main()

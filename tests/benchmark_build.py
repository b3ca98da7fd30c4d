"""`python -m tests.benchmark_build FOLDER`: builds the site and says which share of the time the macros take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from mkdocs.__main__ import cli
from mkdocs_macros.plugin import MacrosPlugin

# Reading data and messages for each language, and what the calls in the pages make.
_WORK = ("on_config", "on_page_markdown", "on_post_build")
_seconds = 0.0


def timed(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with its time on the processor added to that of the macros."""

    def measured(*arguments: Any, **named: Any) -> Any:
        global _seconds
        start = time.process_time()
        try:
            return work(*arguments, **named)
        finally:
            _seconds += time.process_time() - start

    return measured


def main() -> int:
    for name in _WORK:
        setattr(MacrosPlugin, name, timed(getattr(MacrosPlugin, name)))
    start = time.process_time()
    code: int = cli(["build", "--strict", "--quiet", "--site-dir", sys.argv[1]], standalone_mode=False) or 0
    total = time.process_time() - start
    print(f"{_seconds:7.2f} s  of the processor's time in the macros: {_seconds / total:.0%}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Fails a build, at its end, in which a macro or an author's mistake was reported; `make serve` shows it in the page and lives on.

With `--strict` MkDocs does the same for every warning. This holds without it too, so that a page with an
error in it is never published.
"""

from __future__ import annotations

import logging

from mkdocs.exceptions import BuildError
from mkdocs.plugins import event_priority


class _Mistakes(logging.Handler):
    """Counts errors, and warnings about macros: those are what would stand in the page."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or "macros" in record.name:
            self.count += 1


_mistakes = _Mistakes()
_command = "build"
_depth = 0


def on_startup(command: str, dirty: bool) -> None:
    global _command
    _command = command
    logger = logging.getLogger("mkdocs")
    if _mistakes not in logger.handlers:
        logger.addHandler(_mistakes)
    # `mkdocs build --quiet` drops warnings before anybody could count them; these are never dropped.
    logging.getLogger("mkdocs.macros").setLevel(logging.WARNING)


@event_priority(200)
def on_pre_build(config) -> None:
    global _depth
    if _depth == 0:
        _mistakes.count = 0
    _depth += 1


# Later than the hook that builds the other languages, so that all of them have been read.
@event_priority(-300)
def on_post_build(config) -> None:
    global _depth
    _depth -= 1
    if _depth == 0 and _command == "build" and _mistakes.count:
        raise BuildError(f"{_mistakes.count} mistakes in pages or data, see above. The site is not fit to publish.")


def on_build_error(error: Exception) -> None:
    global _depth
    _depth = 0

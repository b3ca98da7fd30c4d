"""Hands the vocabulary to mkdocs-macros and its authors' mistakes to MkDocs: the only file that knows either."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

# The name begins with `mkdocs.`, or `--strict` would not count the warnings.
_log = logging.getLogger("mkdocs.macros")
_guides: dict[Path, Any] = {}
"""The words of a project with what they have worked out: pages of three languages ask for the same runs. The hooks
import this package anew for each build, so that an edit of data or code counts."""


def define_env(env: Any) -> None:
    """Called by mkdocs-macros for every build: reads the data and keeps the words for the pages."""
    # Imported here, because the estimator's users import this package and need neither Jinja nor Babel.
    from macros import dataset, vocabulary
    from macros.environment import ArticleEnvironment
    from macros.findings import DataErrors

    root = Path(env.conf["config_file_path"]).resolve().parent
    env.vram_guide = None
    env.vram_guide_findings = ()
    try:
        if root not in _guides:
            _guides[root] = ArticleEnvironment(vocabulary.vocabulary(dataset.load(root), root))
        env.vram_guide = _guides[root]
    except DataErrors as errors:
        # Not raised: a preview lives on and shows them; --strict fails by the warnings.
        env.vram_guide_findings = errors.findings
        for finding in errors.findings if _speaks_for_all(env) else ():
            _log.warning(str(finding))


def on_pre_page_macros(env: Any) -> None:
    """Called by mkdocs-macros before it renders a page: renders it here, with lines and all mistakes at once."""
    from macros import template

    page, words = env.page, env.vram_guide
    if page.meta.get("render_macros") is False:
        return
    if words is None:
        env.markdown = _finished(template.error_box(env.vram_guide_findings))
        return
    source = _source(page)
    path = _path(env, page)
    locale = env.conf["extra"].get("locale")
    first = template.first_line(source, env.markdown)
    rendered = template.render(env.markdown, path, words, first, locale=locale)
    findings = list(rendered.findings)
    for name in template.PLAIN_FIELDS:
        value = page.meta.get(name)
        if isinstance(value, str) and "{{" in value:
            field = template.render_field(source, name, value, path, words, locale=locale)
            page.meta[name] = field.text
            findings += field.findings
    for finding in findings:
        _log.warning(str(finding))
    box = f"{template.error_box(findings)}\n\n" if findings else ""
    env.markdown = _finished(box + rendered.text)


def _finished(markdown: str) -> str:
    """Text that mkdocs-macros shall leave as it is."""
    return "{% raw %}" + markdown.replace("{% endraw %}", "{% endraw %}{{ '{% endraw %}' }}{% raw %}") + "{% endraw %}"


def _source(page: Any) -> str:
    """The file behind a page, empty for a generated one."""
    file = page.file.abs_src_path
    return Path(file).read_text(encoding="utf-8-sig") if file and Path(file).is_file() else ""


def _path(env: Any, page: Any) -> str:
    """The file behind a page as seen from the repository, as an editor opens it."""
    root = Path(env.conf["config_file_path"]).resolve().parent
    file = Path(page.file.abs_src_path or page.file.src_uri)
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else page.file.src_uri


def _speaks_for_all(env: Any) -> bool:
    """Whether this build reports mistakes in data: one build per language reads the same data."""
    from macros.language import CODES

    return env.conf["extra"].get("locale") in (None, CODES[0])

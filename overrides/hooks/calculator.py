"""Puts the calculator's scripts into the pages that have a form, and the way to its page into links that begin with `calculator:`.

The estimator's script with the words of the language is made once per language, as `assets/javascripts/estimator.js`, and the
one that reads training configurations, which the page fetches when somebody pastes one, as `assets/javascripts/configs.js`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url
from site_words import SOURCE, macros_of

PAGE = "calculator.md"
_SCRIPTS = ("assets/javascripts/estimator.js", "assets/javascripts/calculator.js")
_CONFIGS = "assets/javascripts/configs.js"
_log = logging.getLogger("mkdocs.hooks.calculator")
_versions: dict[str, str] = {}
_address: list[str] = []
_wordless: list[str] = []


# After the hook of the languages, which adds the scripts that lie in the repository.
@event_priority(0)
def on_files(files: Files, config) -> Files:
    _versions.clear()
    _address.clear()
    page = files.get_file_from_path(PAGE)
    if page is None:
        return files
    _address.append(page.url)
    estimator, configs = _made(config)
    files.append(File.generated(config, _SCRIPTS[0], content=_script(estimator, config)))
    files.append(File.generated(config, _CONFIGS, content=_configs(configs, config)))
    for name in (*_SCRIPTS, _CONFIGS):
        _versions[name] = hashlib.sha256(files.get_file_from_path(name).content_bytes).hexdigest()[:10]
    return files


def _made(config) -> list[str]:
    """The two scripts without words, the same for all languages; none where the data are wrong, which is reported elsewhere."""
    if config.extra["locale"] == SOURCE:  # the first of the languages that one command builds
        _wordless.clear()
        try:
            data = macros_of("dataset").load(Path(config.config_file_path).parent)
            _wordless.extend([macros_of("portable").script(data), macros_of("configs_script").script(data)])
        except macros_of("findings").DataErrors as errors:
            _log.debug("no scripts of the calculator: %s", errors)
    return _wordless or ["", ""]


def _script(script: str, config) -> str:
    """The estimator, and what the calculator says in the language."""
    if not script:
        return ""
    words = macros_of("calculator").words_for(config.extra["locale"])
    said = json.dumps(words, ensure_ascii=False, separators=(",", ":"))
    return f"{script}vramGuide.words={said};\n"


def _configs(script: str, config) -> str:
    """What reads training configurations, and what it says about their keys in the language."""
    if not script:
        return ""
    messages = macros_of("language").messages(config.extra["locale"])
    words = {key: said for key, said in messages.items() if key.startswith("config.")}
    return f"{script}vramGuideConfigs.words={json.dumps(words, ensure_ascii=False)};\n"


@event_priority(0)
def on_post_page(output: str, page, config) -> str:
    if not _address:
        return output
    if '"calculator:' in output:
        output = output.replace('"calculator:', f'"{get_relative_url(_address[0], page.url)}')
    if 'class="vg-calculator' not in output:
        return output
    way = f"{get_relative_url(_CONFIGS, page.url)}?v={_versions[_CONFIGS]}"
    output = output.replace('data-kind="whole"', f'data-kind="whole" data-configs="{way}"', 1)
    scripts = "".join(
        f'<script src="{get_relative_url(name, page.url)}?v={_versions[name]}" defer></script>' for name in _SCRIPTS
    )
    # In the head, so that they arrive while the page does; deferred, so that they run after it.
    return output.replace("</head>", f"{scripts}</head>", 1)

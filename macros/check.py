"""`python -m macros check`: all findings in data, messages and pages at once, sorted by place."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

from macros import (
    articles,
    catalogues,
    checklist,
    citations,
    dataset,
    frontmatter,
    glossary,
    links,
    parity,
    prose,
    schemas,
    site_record,
    template,
    vocabulary,
)
from macros.articles import Versions
from macros.dataset import Dataset
from macros.environment import ArticleEnvironment
from macros.findings import DataErrors, Finding, suggest
from macros.pages import Page
from macros.records import Sourced
from macros.site_record import Site

ROOT = Path(__file__).parent.parent
# After so many days what somebody looked up is worth looking up again.
CHECKED_DAYS = 180
RECORDED_DAYS = 120

T = TypeVar("T")


@dataclass
class Report:
    """Everything that was found, and whether the pages could be rendered."""

    findings: list[Finding] = field(default_factory=list)
    pages: int = 0
    rendered: bool = True

    def attempt(self, read: Callable[[], T]) -> T | None:
        """What a reader returns, or nothing when it found mistakes; they are kept."""
        try:
            return read()
        except DataErrors as errors:
            self.findings += errors.findings
            return None

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.warning]


def check(root: Path = ROOT) -> Report:
    """Every finding below `root`. With wrong data the pages are not rendered, all else is checked."""
    report = Report()
    data = report.attempt(lambda: dataset.load(root))
    lists = report.attempt(lambda: checklist.load(root))
    cited = report.attempt(lambda: citations.load(root, data)) if data else None
    terms = report.attempt(lambda: glossary.load(root))
    site = report.attempt(lambda: site_record.load(root))
    if site:
        report.findings += _offers(site)
    words = report.attempt(lambda: prose.load(root)) or {}
    report.findings += catalogues.findings(root, words)
    report.findings += schemas.findings(root)
    report.findings += _old_records(root)
    if data:
        report.findings += _old_facts(data)
    found, unreadable = articles.read_all(root)
    report.findings += unreadable
    report.pages = sum(map(len, found.values()))
    report.rendered = bool(data and lists is not None and cited and terms and site)
    environment = ArticleEnvironment(vocabulary.vocabulary(data, root)) if data and report.rendered else None
    boxes = {gpu.box_gb for gpu in data.gpus} if data else None
    report.findings += catalogues.terms(terms or (), boxes, words)
    written = {glossary.PAGE: [term.key for term in terms or ()]}
    for versions in found.values():
        report.findings += articles.findings(versions)
        failed: dict[str, set[int]] = {}
        for page in versions.values():
            report.findings += links.findings(page, found, root, written)
            report.findings += prose.findings(page, boxes, words)
            mistakes, shown = _rendered(page, environment)
            failed[page.path] = {finding.line for finding in mistakes}
            report.findings += [*mistakes, *frontmatter.findings(page, shown)]
        report.findings += _differences(versions, failed)
    report.findings = sorted(set(report.findings))
    return report


def _differences(versions: Versions, failed: Mapping[str, Collection[int]]) -> Iterator[Finding]:
    """What a translation has that its source has not, and the other way round; drafts are still being written."""
    source = articles.source_of(versions)
    for page in versions.values():
        if source and page is not source and not (page.is_draft or source.is_draft):
            yield from frontmatter.differences(page, source)
            yield from parity.findings(page, source, failed)
            yield from parity.untranslated(page, source, versions.values())


def _rendered(page: Page, environment: ArticleEnvironment | None) -> tuple[list[Finding], dict[str, str]]:
    """An author's mistakes, found as the site finds them, and the front matter as readers see it."""
    shown = {name: str(page.meta[name]) for name in template.PLAIN_FIELDS if name in page.meta}
    mistakes: list[Finding] = []
    if environment is not None and page.meta.get("render_macros") != "false":
        for name in [name for name, value in shown.items() if "{{" in value]:
            rendered = template.render_field(page.source, name, shown[name], page.path, environment, locale=page.language)
            shown[name] = rendered.text
            mistakes += rendered.findings
        mistakes += template.render(page.body, page.path, environment, page.body_line, locale=page.language).findings
    return mistakes, shown


def _old_facts(data: Dataset) -> Iterator[Finding]:
    """Records that nobody has compared with their sources for long."""
    for name, document in data.documents.items():
        for record in getattr(data, name):
            if isinstance(record, Sourced) and (age := _age(record.checked, CHECKED_DAYS)):
                line = document.line(record.key, "checked")
                says = f"{record.key}.checked: {record.checked} is {age} days ago; compare it with its sources again"
                yield Finding(document.path, line, says, warning=True)


def _old_records(root: Path) -> Iterator[Finding]:
    """Files that a script recorded from libraries which have had releases since."""
    for file in sorted((root / "tests" / "recorded").glob("*.json")):
        path = file.relative_to(root).as_posix()
        try:
            recorded = date.fromisoformat(json.loads(file.read_text(encoding="utf-8"))["recorded"])
        except (ValueError, KeyError, TypeError):
            yield Finding(path, 0, "does not say when it was recorded: expected \"recorded\": \"2026-11-30\"")
            continue
        if age := _age(recorded, RECORDED_DAYS):
            says = f"was recorded {age} days ago; record it anew with tests/record_{file.stem}.py"
            yield Finding(path, 0, says, warning=True)


def _age(day: date, limit: int) -> int | None:
    """Days since a day, if they are more than the limit."""
    age = dataset.today() - day
    return age.days if age > timedelta(days=limit) else None


def _offers(site: Site) -> Iterator[Finding]:
    """Offers for categories that no article can have."""
    for category in site.offers:
        if category not in frontmatter.categories():
            line = site.document.line("call_to_action", category)
            hint = suggest(category, frontmatter.categories())
            yield Finding(site_record.PATH, line, f"call_to_action: there is no category {category!r}{hint}")


def deployable(root: Path = ROOT) -> list[Finding]:
    """What keeps a site without mistakes from being published: nobody who answers for it."""
    try:
        return site_record.missing(site_record.load(root))
    except DataErrors:
        return []  # the check itself has told


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 1 if anything is wrong; warnings alone are not."""
    parser = argparse.ArgumentParser(prog="python -m macros check", description=__doc__)
    parser.add_argument("--deploy", action="store_true", help="also refuse what must not be published: an empty operator")
    options = parser.parse_args(arguments)
    report = check()
    if options.deploy:
        report.findings = sorted({*report.findings, *deployable()})
    for finding in report.findings:
        print(finding)
    print(_summary(report))
    return 1 if report.errors else 0


def _summary(report: Report) -> str:
    errors, warnings = len(report.errors), len(report.findings) - len(report.errors)
    line = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')} in data, messages and {report.pages} pages"
    return line if report.rendered else f"{line}; the pages were not rendered, because the data is wrong"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"

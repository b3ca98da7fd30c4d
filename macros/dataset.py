"""Everything in `data/`, read and checked as a whole: every reference resolves and every figure has a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Generic, TypeVar

from macros import yamlfile
from macros.estimator import architecture_from_config, parameter_count, recipe_from_keys
from macros.estimator.recipe import METHODS, applicable_keys
from macros.findings import DataErrors, Finding, quote, suggest
from macros.records import (
    GB,
    KINDS,
    Gpu,
    Measurement,
    Method,
    Model,
    Peer,
    Preset,
    Record,
    Simulation,
    Source,
    Sourced,
    Strategy,
    Throughput,
    Utilisation,
    build,
    choices,
)

__all__ = ["Collection", "DataErrors", "Dataset", "load", "today"]

R = TypeVar("R", bound=Record)

# Byte counts whose limits authors write in GB, the unit that pages print.
_IN_GB = ("memory", "box")
_MOST_GB = 100_000
# What a site can do without; what scripts record over the others among them.
_OPTIONAL = ("measurements", "simulation", "peers", "strategies", "utilisations", "throughputs")


class Collection(Generic[R]):
    """The records of one data file, in its order: `gpus["rtx-4090"]`, `for gpu in gpus`, `gpus.where(…)`."""

    def __init__(self, path: str, kind: type[R], records: dict[str, R]) -> None:
        self.path, self.kind, self._records = path, kind, records

    def __getitem__(self, key: str) -> R:
        # A ValueError, because Jinja takes a KeyError for an undefined value and hides it.
        if not isinstance(key, str):
            raise ValueError(f"{self.path}: expected one key like {next(iter(self._records), 'a-key')!r}, got {quote(key)}")
        if key not in self._records:
            raise ValueError(f"{self.path} has no {quote(key)}{suggest(key, self._records)}")
        return self._records[key]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._records

    def __iter__(self) -> Iterator[R]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def keys(self) -> tuple[str, ...]:
        return tuple(self._records)

    def where(self, **conditions: Any) -> list[R]:
        """Records that meet all conditions, in the file's order.

        `segment="consumer"` or `segment=["consumer", "workstation"]` compare a field; `bandwidth_gb_s_at_least=900`
        and `memory_at_most=24` bound it. Limits of `memory` and `box` are in GB (10⁹ bytes); a record without the
        field meets no limit. Raises `ValueError` for a field that does not exist and for a value that no record has.
        """
        found = list(self)
        for name, wanted in conditions.items():
            column, bound = name, ""
            for suffix in ("_at_least", "_at_most"):
                if name.endswith(suffix) and name not in self.kind.columns():
                    column, bound = name.removesuffix(suffix), suffix
            if column not in self.kind.columns():
                names = ", ".join(self.kind.columns())
                raise ValueError(f"{self.path} has no field {column!r}{suggest(column, self.kind.columns())}; it has {names}")
            if bound:
                limit = self._limit(name, column, wanted)
                values = ((record, getattr(record, column)) for record in found)
                found = [r for r, v in values if v is not None and (v >= limit if bound == "_at_least" else v <= limit)]
            else:
                allowed = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]
                self._some_record_has(column, allowed)
                found = [record for record in found if getattr(record, column) in allowed]
        return found

    def _limit(self, name: str, column: str, wanted: Any) -> Any:
        """A bound in the field's own unit."""
        number = isinstance(wanted, (int, float)) and not isinstance(wanted, bool)
        if column not in _IN_GB:
            example = next((v for r in self if (v := getattr(r, column)) is not None), None)
            if isinstance(example, str) != isinstance(wanted, str) or not (number or isinstance(wanted, str)):
                raise ValueError(f"{name}: expected a {'text' if isinstance(example, str) else 'number'}, got {quote(wanted)}")
            return wanted
        if not number or not 0 <= wanted <= _MOST_GB:
            raise ValueError(f"{name}: expected a number of GB (10⁹ bytes), got {quote(wanted)}")
        return wanted * GB

    def _some_record_has(self, column: str, allowed: list[Any]) -> None:
        """A value that no record has is a typing error, not an empty table."""
        known = [getattr(record, column) for record in self]
        for value in allowed:
            if isinstance(value, (dict, list, tuple)):
                raise ValueError(f"{column}: expected a value or a list of values, got {quote(value)}")
            if value not in known and not isinstance(value, bool) and value not in choices(self.kind, column):
                raise ValueError(f"{self.path} has no record with {column} {quote(value)}{suggest(value, known)}")


@dataclass(frozen=True)
class Dataset:
    """All data files; `documents` knows the line of every value in them."""

    sources: Collection[Source]
    models: Collection[Model]
    gpus: Collection[Gpu]
    methods: Collection[Method]
    presets: Collection[Preset]
    measurements: Collection[Measurement]
    simulation: Collection[Simulation]
    peers: Collection[Peer]
    strategies: Collection[Strategy]
    utilisations: Collection[Utilisation]
    throughputs: Collection[Throughput]
    documents: dict[str, yamlfile.Document] = field(repr=False)

    def utilisation(self, gpu: str, method: str) -> tuple[float, float] | None:
        """The share of its peak rate that a card reaches with a method, low and high; None if no published run says."""
        for record in self.utilisations:
            if gpu in record.cards and method in record.methods:
                return record.low, record.high
        return None


def today() -> date:
    """The latest date that anybody on earth writes now, so that no author is told to be in the future."""
    return datetime.now(timezone(timedelta(hours=14))).date()


def load(root: Path) -> Dataset:
    """The checked data of the repository at `root`. Raises `DataErrors` with every finding of every file."""
    findings: list[Finding] = []
    documents: dict[str, yamlfile.Document] = {}
    collections: dict[str, Collection[Any]] = {}
    unread: set[str] = set()
    for name, kind in KINDS.items():
        path = f"data/{name}.yml"
        documents[name] = yamlfile.Document(path, {}, {})
        records: dict[str, Record] = {}
        if (root / path).exists() or name not in _OPTIONAL:
            try:
                documents[name] = yamlfile.read(root / path, path)
                records = _records(kind, documents[name], findings)
            except DataErrors as errors:
                findings += errors.findings
                unread.add(name)
        collections[name] = Collection(path, kind, records)
    dataset = Dataset(**collections, documents=documents)
    findings += _references(dataset, unread)
    findings += _counts(dataset)
    findings += _recipes(dataset)
    if findings:
        raise DataErrors(findings)
    return dataset


def _records(kind: type[R], document: yamlfile.Document, findings: list[Finding]) -> dict[str, R]:
    if not isinstance(document.value, dict):
        findings.append(Finding(document.path, 1, f"expected records by key, got {quote(document.value)}"))
        return {}
    records = {}
    for key, value in document.value.items():
        record, mistakes = build(kind, key, value)
        for place, message in mistakes:
            findings.append(Finding(document.path, document.line(key, *place), f"{_name(key, place)}: {message}"))
        if record is not None:
            records[key] = record
    return records


def _name(key: str, place: tuple[str | int, ...]) -> str:
    key = key if len(key) <= 80 and key.isprintable() else quote(key)
    return ".".join([key, *(str(part) for part in place)])


def _references(dataset: Dataset, unread: AbstractSet[str]) -> Iterator[Finding]:
    """What one record says about another: sources, models, cards; and days that have not come yet.

    A record that is there but faulty has its own finding, and so has a file that could not be read: whoever refers to
    them needs no second one.
    """
    documents = {name: document.value for name, document in dataset.documents.items() if name not in unread}
    known = {name: value for name, value in documents.items() if isinstance(value, dict)}
    latest = today()
    for name in KINDS:
        document = dataset.documents[name]
        for record in getattr(dataset, name):
            key = record.key

            def finding(*place: str | int, says: str) -> Finding:
                return Finding(document.path, document.line(key, *place), f"{_name(key, place)}{says}")

            for day in ("checked", "accessed", "date", "recorded"):
                if isinstance(value := getattr(record, day, None), date) and value > latest:
                    yield finding(day, says=f": {value} is in the future")
            if isinstance(record, Sourced):
                for covered, source in record.sources.items():
                    if says := _unknown(source, "sources", known):
                        yield finding("sources", covered, says=says)
                yield from _coverage(record, finding)
            if isinstance(record, Utilisation):
                for place, gpu in enumerate(record.cards):
                    if says := _unknown(gpu, "gpus", known):
                        yield finding("cards", place, says=says)
                if record.low > record.high:
                    yield finding("low", says=f": {record.low} is above high {record.high}")
            if isinstance(record, (Peer, Measurement, Throughput)):
                columns = (("model", "models"), ("gpu", "gpus"), ("source", "sources"))
                for column, target in columns[2:] if isinstance(record, Peer) else columns:
                    if says := _unknown(getattr(record, column), target, known):
                        yield finding(column, says=says)


def _unknown(key: str | None, target: str, known: Mapping[str, Mapping[str, Any]]) -> str | None:
    """What is wrong with a reference to a file that could be read, if anything."""
    if key is None or target not in known or key in known[target]:
        return None
    return f": data/{target}.yml has no {key!r}{suggest(key, known[target])}"


def _coverage(record: Sourced, finding: Any) -> Iterator[Finding]:
    figures = record.figures()
    names = {"all", *type(record).model_fields, *(path[-1] for path in figures)}
    for covered in record.sources:
        if covered not in names:
            yield finding("sources", covered, says=f": there is no such field{suggest(covered, names)}")
    if "all" not in record.sources:
        for path in figures:
            if path[0] not in record.sources and path[-1] not in record.sources:
                yield finding(*path, says=" has no source; add it to sources: or sources.all:")


def _counts(dataset: Dataset) -> Iterator[Finding]:
    """Models whose configuration the estimator refuses, or counts differently than published."""
    document = dataset.documents["models"]
    for model in dataset.models:
        try:
            count = parameter_count(architecture_from_config(model.config))
        except ValueError as error:
            # The estimator names the key of config.json; point at its line when it stands in the file.
            named = next((name for name in model.config if name in str(error)), "")
            line = document.line(model.key, "config", *([named] if named else []))
            yield Finding(document.path, line, f"{model.key}.config: {error}")
            continue
        if count != model.parameters:
            line = document.line(model.key, "parameters")
            says = f"the configuration makes {count} parameters, published are {model.parameters}"
            yield Finding(document.path, line, f"{model.key}.parameters: {says}")


def _recipes(dataset: Dataset) -> Iterator[Finding]:
    """Recipe keys in presets and measured runs that the estimator does not know or refuses."""
    known = {key for method in METHODS for key in applicable_keys(method)}
    document = dataset.documents["presets"]
    for preset in dataset.presets:
        for section, values in preset.keys.items():
            for key in values:
                if key not in known:
                    place = (preset.key, "keys", section, key)
                    says = f"{_name(preset.key, place[1:])}: unknown recipe key{suggest(key, known)}"
                    yield Finding(document.path, document.line(*place), says)
        for method in METHODS:
            # A key that does not apply to the method is left out there as well (recipes.py).
            defaults = {key: value for key, value in preset.defaults(method).items() if key in applicable_keys(method)}
            sections = [(preset.key, "keys", section) for section in (method, "all")]
            yield from _refused(document, sections, {"method": method, **defaults})
    for name in ("measurements", "throughputs"):
        document = dataset.documents[name]
        for run in getattr(dataset, name):
            if run.recipe is not None:
                yield from _refused(document, [(run.key, "recipe")], run.recipe)


def _refused(document: yamlfile.Document, places: list[tuple[str, ...]], keys: dict[str, Any]) -> Iterator[Finding]:
    """The estimator's refusal of a recipe, at the first of the places that has the key that it names."""
    try:
        recipe_from_keys(keys)
    except ValueError as error:
        names = sorted(keys, key=len, reverse=True)
        named = next((name for name in names if name in str(error)), "")
        place = next((place for place in places if (*place, named) in document.lines), places[0])
        line = document.line(*place, *([named] if named else []))
        yield Finding(document.path, line, f"{_name(place[0], place[1:])}: {error}")

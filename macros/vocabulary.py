"""Every word that an article may use: data, functions and filters, as plain mappings for any Jinja environment.

Each function gets Jinja's context first and finds the page's language through `language_of`, so no word keeps
state. Mistakes of an author are `ValueError`s with one sentence; `template.py` adds the place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date as Day
from fractions import Fraction
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from markupsafe import Markup, escape

from macros import accuracy, amounts, capacity, caption, chart, citations, figures, open_data, readings
from macros import glossary as glossaries
from macros import site_record
from macros import calculator as calculators
from macros import checklist as checklists
from macros import dots as dot_charts
from macros import speeds as speed_rows
from macros import table as tables
from macros.dataset import Dataset
from macros.environment import Words
from macros.estimator import QUESTIONS, Rate, Recipe
from macros.estimator.advice import Advice
from macros.estimator.capacity import Bound
from macros.language import Language, load
from macros.recipes import REFERENCES, estimate_keys
from macros.readings import ErrorRow, OutcomeRow, PeerRow, RangeRow, Reading
from macros.records import Gpu, Measurement, Record, Source, Sourced, Throughput
from macros.run import MeasureRow, Run, either, measure_rows, runs_of
from macros.speeds import SpeedRow

LanguageOf = Callable[[Any], Language]
_KEYS = (*REFERENCES, *QUESTIONS, *(field.name for field in fields(Recipe)))
_MOST_RUNS = 500


def language_of_context(context: Any) -> Language:
    """The language of the page that is being rendered: the one place that reads the locale."""
    locale = context.get("locale")
    if not locale:
        raise ValueError("this page has no locale")
    return load(locale)


def vocabulary(dataset: Dataset, root: Path, language_of: LanguageOf = language_of_context) -> Words:
    """The words over one dataset; `root` is the folder that holds `data/`.

    Raises `DataErrors` if the checklists, the glossary or the sources of parts are wrong.
    """
    lists = checklists.load(root)
    cited = citations.load(root, dataset)
    terms = glossaries.load(root)
    site = site_record.load(root)
    known: dict[str, Any] = {}
    bounds: dict[tuple[str, str], Bound | None] = {}
    advised: dict[str, Advice] = {}
    beside: dict[str, accuracy.Comparison | None] = {}

    def comparison(run: Measurement) -> accuracy.Comparison | None:
        """A measured run beside its estimate, worked out once for all pages."""
        if run.key not in beside:
            beside[run.key] = accuracy.comparison(dataset, run)
        return beside[run.key]

    def run_of(keys: Mapping[str, Any]) -> Run:
        """The run of one recipe; pages ask for the same ones again and again, in three languages."""
        for key in keys:
            if key not in _KEYS:
                raise ValueError(f"there is no recipe key {key!r}{either(key, _KEYS, 'there are')}")
        name = repr(sorted(keys.items()))
        if name not in known:
            known[name] = estimate_keys(dataset, keys)
        named = known[name].conditions
        records = (
            files[named[key]] if named.get(key) is not None else None
            for key, files in (("model", dataset.models), ("gpu", dataset.gpus), ("preset", dataset.presets))
        )
        return Run(known[name], keys, *records, bounds=lambda which: bound(name, keys, which))

    def bound(name: str, keys: Mapping[str, Any], which: str) -> Bound | None:
        """How far a run can be stretched, worked out once for all pages."""
        if (name, which) not in bounds:
            bounds[name, which] = capacity.bound(dataset, keys, which)
        return bounds[name, which]

    # Functions

    @pass_context
    def estimate(context: Any, **recipe: Any) -> Run:
        """One run: `model` or `config`, `method`, any recipe key or question; with `gpu` also the verdict."""
        return run_of(recipe)

    @pass_context
    def compare(context: Any, **recipe: Any) -> list[Run]:
        """Runs for every combination: a key with a list is varied, the first one slowest."""
        varied = {key: _several(key, value) for key, value in recipe.items()}
        combinations = list(itertools.product(*varied.values()))
        if len(combinations) > _MOST_RUNS:
            raise ValueError(f"compare makes {len(combinations)} runs; at most {_MOST_RUNS} make a readable table")
        return [run_of(dict(zip(varied, values, strict=True))) for values in combinations]

    @pass_context
    def fits(context: Any, run: Run, cards: Iterable[Gpu]) -> list[Run]:
        """The same run on each card, so that a table can show verdict and headroom."""
        (run,) = _one_run(run, "fits")
        chosen = [cards] if isinstance(cards, Gpu) else list(cards)
        if not chosen or not all(isinstance(gpu, Gpu) for gpu in chosen):
            raise ValueError("fits takes a run and cards, such as gpus.where(memory_at_least=24)")
        return [run_of({**run.keys, "gpu": gpu.key}) for gpu in chosen]

    @pass_context
    def advice(context: Any, run: Run) -> list[MeasureRow]:
        """What to change first: the run as it is, and then each measure with what it saves after those before it.

        With a card the list ends with the measure that makes the run fit comfortably.
        """
        (run,) = _one_run(run, "advice")
        name = repr(sorted(run.keys.items()))
        if name not in advised:
            advised[name] = capacity.advice(dataset, run.keys)
        return measure_rows(run, advised[name])

    @pass_context
    def duration_of(context: Any, run: Run, dataset_tokens: int, epochs: float = 1) -> Rate | None:
        """Seconds that the run takes for a data set; a range for `duration`. None where no published run is like it."""
        (run,) = _one_run(run, "duration_of")
        return run_of({**run.keys, "dataset_tokens": dataset_tokens, "epochs": epochs}).duration

    @pass_context
    def cost(context: Any, run: Run, dataset_tokens: int, price_per_hour: float, epochs: float = 1) -> Rate | None:
        """What that time costs at the author's own price of one GPU, a range for `number`; in the price's money."""
        (run,) = _one_run(run, "cost")
        asked = {"dataset_tokens": dataset_tokens, "epochs": epochs, "price_per_hour": price_per_hour}
        return run_of({**run.keys, **asked}).cost

    @pass_context
    def compared(context: Any, runs: Iterable[Measurement], **recipe: Any) -> list[Reading]:
        """Measured runs beside their estimates; with recipe keys only those whose recipe has these values."""
        listed = [runs] if isinstance(runs, Measurement) else list(runs)
        if not all(isinstance(run, Measurement) for run in listed):
            raise ValueError("compared takes measured runs, such as measurements.where(counts=true)")
        for key in recipe:
            if key not in _KEYS or key in (*REFERENCES, *QUESTIONS):
                raise ValueError(f"there is no recipe key {key!r}{either(key, _KEYS, 'there are')}")
        rows = readings.readings(dataset, listed, comparison)
        return [row for row in rows if all(row.value(key) == value for key, value in recipe.items())]

    @pass_context
    def errors(context: Any, rows: Sequence[Reading], by: str | None = None) -> ErrorRow | list[ErrorRow]:
        """The error of the tensor peak over all these runs, or one row per value of the column `by`."""
        listed = _readings(rows, "errors")
        return ErrorRow("", None, tuple(listed)) if by is None else readings.errors_of(listed, by)

    @pass_context
    def ranges(context: Any, rows: Sequence[Reading]) -> list[RangeRow]:
        """How often the ranges of reserved memory and of the driver's figure hold what was measured."""
        return readings.ranges_of(_readings(rows, "ranges"))

    @pass_context
    def outcomes(context: Any, rows: Sequence[Reading]) -> list[OutcomeRow]:
        """How many runs ended how, by the verdict on them."""
        return readings.outcomes_of(_readings(rows, "outcomes"))

    @pass_context
    def largest(context: Any, rows: Sequence[Reading], count: int = 5) -> list[Reading]:
        """The runs with the largest errors, worst first."""
        return readings.largest_of(_readings(rows, "largest"), count)

    @pass_context
    def others(context: Any, rows: Sequence[Reading]) -> list[PeerRow]:
        """Other tools over those of the runs that each can express, the guide over the same ones beside it."""
        return readings.peers_of(_readings(rows, "others"), dataset.peers)

    @pass_context
    def speeds(context: Any, runs: Iterable[Throughput]) -> list[SpeedRow]:
        """How often the ranges of speed hold published ones, by card; runs come from `throughputs`."""
        listed = list(runs)
        if not listed or not all(isinstance(run, Throughput) for run in listed):
            raise ValueError('speeds takes published speeds, such as throughputs.where(used="check")')
        return speed_rows.speeds_of(dataset, listed)

    @pass_context
    def dots(context: Any, rows: Sequence[Reading], counter: str = "allocated") -> Markup:
        """Estimates against measurements, one mark per run; `counter` is allocated, reserved or device."""
        listed = _readings(rows, "dots")
        return dot_charts.dots(language_of(context), listed, counter, _serial(context), _told(context))

    @pass_context
    def table(
        context: Any,
        items: Any,
        columns: Sequence[str] | None = None,
        rows: str | Sequence[str] | None = None,
        across: str | Sequence[str] | None = None,
        cell: str | Sequence[str] | None = None,
        sort: str | None = None,
    ) -> Markup:
        """Rows as a table: `columns`, or runs along `rows` and `across` with `cell`; writes its own caption."""
        return tables.table(language_of(context), items, columns, across, cell, rows, sort, cited, _told(context))

    @pass_context
    def bars(
        context: Any,
        runs: Run | Sequence[Run],
        label: str | Sequence[str] | None = None,
        moment: str | None = None,
        limits: Sequence[str] = (),
    ) -> Markup:
        """The parts of a run as a stacked bar, or one bar per run; `limits` draws what cards can use."""
        language, listed = language_of(context), runs_of(runs, "bars")
        keys = [label] if isinstance(label, str) else list(label or _told_apart(listed))
        for key in keys:
            listed[0].value(key)
        names = [" · ".join(caption.heading_text(language, run, key) for key in keys) or run.name for run in listed]
        if len(set(names)) < len(names):
            raise ValueError(f"label={label!r} gives two bars the same name; name a key that tells the runs apart")
        cards = [dataset.gpus[key] for key in ([limits] if isinstance(limits, str) else limits)]
        return chart.bars(language, listed, names, keys, moment, cards, _serial(context), _told(context))

    @pass_context
    def checklist(context: Any, run: Run, name: str = "buying") -> Markup:
        """A checklist of `data/checklists.yml` with this run's figures in its items."""
        (run,) = _one_run(run, "checklist")
        return checklists.checklist(language_of(context), run, name, lists)

    @pass_context
    def calculator(context: Any, **recipe: Any) -> Markup:
        """The calculator: a small form for one recipe, or without keys the whole one."""
        language = language_of(context)
        if not recipe:
            return calculators.whole_form(language, dataset)
        run_of(recipe)  # says what is wrong with a key, as everywhere
        return calculators.small_form(language, dataset, recipe)

    @pass_context
    def headline(context: Any, value: int) -> Markup:
        """Bytes in GB with GiB beside them, for the one figure that answers a question."""
        return figures.headline(language_of(context), value)

    @pass_context
    def saved(context: Any, run: Run, other: Run) -> int:
        """Bytes of peak that the other run needs less; negative if it needs more."""
        return _one_run(run, "saved")[0].peak - _one_run(other, "saved")[0].peak

    @pass_context
    def saved_share(context: Any, run: Run, other: Run) -> Fraction:
        """What the other run saves as a share of this run's peak."""
        return Fraction(saved(context, run, other), run.peak)

    @pass_context
    def times(context: Any, run: Run, other: Run) -> Fraction:
        """How many times as much the other run's peak is."""
        return Fraction(_one_run(other, "times")[0].peak, _one_run(run, "times")[0].peak)

    @pass_context
    def data_file(context: Any, name: str) -> Markup:
        """A link to one of the files that the site offers to other programs."""
        return open_data.link(name)

    @pass_context
    def units_note(context: Any) -> Markup:
        """What GB means here, once per page with figures."""
        language = language_of(context)
        usable = figures.gb(language, 24 * 2**30)
        note = Markup(escape(language.text("units.note", usable="\0"))).replace("\0", usable)
        link = caption.to_accuracy(language.text("units.accuracy"), "mixed")
        return figures.element("p", note + Markup(" ") + link, class_="vg-units")

    @pass_context
    def not_advice(context: Any) -> Markup:
        """The line that this is information, not advice."""
        return figures.element("p", language_of(context).text("not_advice"), class_="vg-not-advice")

    @pass_context
    def glossary(context: Any, group: str) -> Markup:
        """The terms of one group of `data/glossary.yml`, each with its anchor."""
        return glossaries.glossary(language_of(context), terms, group)

    @pass_context
    def operator(context: Any) -> Markup:
        """Who runs the site, from `data/site.yml`."""
        return site_record.operator(language_of(context), site)

    @pass_context
    def host(context: Any) -> Markup:
        """Who serves the pages and keeps the server's logs, from `data/site.yml`."""
        return site_record.host(language_of(context), site)

    # Filters

    @pass_context
    def gb(context: Any, value: Any, about: bool = False, approx: bool = False) -> Markup:
        """Bytes, or a range of bytes, in GB; `about` (prose) or `approx` (tables) mark an approximation."""
        mark = "about" if about else "approx" if approx else None
        return figures.gb(language_of(context), value, mark=mark)

    @pass_context
    def gib(context: Any, value: Any) -> Markup:
        """Bytes in GiB, beside what a tool prints."""
        return figures.gib(language_of(context), value)

    @pass_context
    def number(context: Any, value: Any, decimals: int | None = None) -> Markup:
        """A number as it is, or with so many decimals."""
        if decimals is not None and (not isinstance(decimals, int) or not 0 <= decimals <= 6):
            raise ValueError(f"decimals must be a whole number from 0 to 6, got {decimals!r}")
        if isinstance(value, Fraction) and decimals is None:
            return figures.ratio(language_of(context), value)
        return figures.number(language_of(context), value, decimals)

    @pass_context
    def percent(context: Any, value: Any) -> Markup:
        """A share (0.5 is 50 percent)."""
        return figures.percent(language_of(context), value)

    @pass_context
    def deviation(context: Any, value: Any, signed: bool = False) -> Markup:
        """A relative error; `signed` says in which direction."""
        return figures.deviation(language_of(context), value, signed)

    @pass_context
    def parameters(context: Any, value: Any) -> Markup:
        """A count of parameters in words."""
        return figures.parameters(language_of(context), value)

    @pass_context
    def count(context: Any, value: Any) -> Markup:
        """A large count in words, without a noun."""
        return figures.count(language_of(context), value)

    @pass_context
    def bytes_(context: Any, value: Any) -> Markup:
        """A small number of bytes, spelled out."""
        return figures.bytes_(language_of(context), value)

    @pass_context
    def bytes_per_parameter(context: Any, value: Any) -> Markup:
        """Bytes per parameter, spelled out."""
        return figures.bytes_(language_of(context), value, "unit.bytes_per_parameter")

    @pass_context
    def duration(context: Any, value: Any) -> Markup:
        """Seconds as hours and minutes; a range of seconds in one unit."""
        return figures.duration(language_of(context), value)

    @pass_context
    def rate(context: Any, value: Any) -> Markup:
        """A range of tokens per second."""
        return figures.rate(language_of(context), value)

    @pass_context
    def date(context: Any, value: Day | str, form: str = "long") -> Markup:
        """A day, or a month or year of a data file; `form` is long or numeric."""
        language = language_of(context)
        if form not in ("long", "numeric"):
            raise ValueError(f"form must be long or numeric, got {form!r}")
        try:
            text = language.date(value, form) if isinstance(value, Day) else language.moment(value)
        except (ValueError, AttributeError, TypeError):
            raise ValueError(f"expected a day like 2026-11-30, a month or a year, got {value!r}") from None
        return figures.element("time", text, datetime=str(value))

    @pass_context
    def label(context: Any, value: Any) -> str:
        """The name of a key in the page's language: a method, part, moment, verdict; of a record its name."""
        language = language_of(context)
        if hasattr(value, "name"):
            return value.name
        for kind in ("method", "part", "moment", "verdict", "evidence", "segment", "vendor", "precision", "loss", *amounts.NAMES):
            if language.has(f"{kind}.{value}"):
                return language.text(f"{kind}.{value}")
        raise ValueError(f"there is no name for {value!r}")

    @pass_context
    def verdict(context: Any, value: Any) -> Markup:
        """A verdict as word, shape and colour."""
        return figures.verdict(language_of(context), value)

    @pass_context
    def claim(context: Any, value: Any, stated: Any) -> Markup:
        """Nothing, as long as the text beside it is true: `It fits comfortably.{{ run.verdict | claim("comfortable") }}`."""
        if value != stated:
            raise ValueError(f"the text here claims {stated!r}, but it is {value!r} now; write the sentence anew")
        return Markup("")

    def source_of(value: Any, field: str | None) -> Source:
        if isinstance(value, Source):
            return value
        if isinstance(value, Sourced):
            return dataset.sources[citations.source_key(value, field)]
        if isinstance(value, str):
            return dataset.sources[value]
        raise ValueError("cite takes a key of data/sources.yml or a record of models, gpus, methods or presets")

    @pass_context
    def cite(context: Any, value: str | Record, field: str | None = None) -> Markup:
        """A small link to a source, or to that of a record or of one of its fields."""
        return figures.cite(language_of(context), source_of(value, field))

    @pass_context
    def cite_full(context: Any, value: str | Record) -> Markup:
        """A source as an entry of the list at the end of a page."""
        return figures.cite_full(language_of(context), source_of(value, None))

    functions = (
        estimate,
        compare,
        fits,
        advice,
        duration_of,
        cost,
        compared,
        errors,
        ranges,
        speeds,
        outcomes,
        largest,
        others,
        table,
        bars,
        dots,
        checklist,
        calculator,
        headline,
        saved,
        saved_share,
        times,
        data_file,
        units_note,
        not_advice,
        glossary,
        operator,
        host,
    )
    filters = (
        gb,
        gib,
        number,
        percent,
        deviation,
        parameters,
        count,
        bytes_,
        bytes_per_parameter,
        duration,
        rate,
        date,
        label,
        verdict,
        claim,
        cite,
        cite_full,
    )
    return Words(
        variables={
            "models": dataset.models,
            "gpus": dataset.gpus,
            "methods": dataset.methods,
            "presets": dataset.presets,
            "measurements": dataset.measurements,
            "simulation": dataset.simulation,
            "peers": dataset.peers,
            "strategies": dataset.strategies,
            "throughputs": dataset.throughputs,
            "utilisations": dataset.utilisations,
            "sources": dataset.sources,
        },
        functions={word.__name__: word for word in functions},
        filters={word.__name__.rstrip("_"): word for word in filters},
    )


def _several(key: str, value: Any) -> list[Any]:
    """The values that a key takes in a comparison; a list of module names is one value."""
    if not isinstance(value, (list, tuple)) or (key == "target_modules" and all(isinstance(v, str) for v in value)):
        return [value]
    if not value:
        raise ValueError(f"{key}=[] leaves nothing to compare")
    return list(value)


def _one_run(value: Any, word: str) -> list[Run]:
    if not isinstance(value, Run):
        raise ValueError(f"{word} takes one run, made by estimate(…), got {type(value).__name__}")
    return [value]


def _readings(value: Any, word: str) -> list[Reading]:
    rows = [value] if isinstance(value, Reading) else list(value)
    if not all(isinstance(row, Reading) for row in rows):
        raise ValueError(f"{word} takes measured runs, made by compared(…)")
    return rows


def _told_apart(runs: Sequence[Run]) -> list[str]:
    """The keys in which runs differ, to label their bars; the model for one run alone."""
    first = runs[0].keys
    return [key for key in first if any(run.keys.get(key) != first[key] for run in runs)] or ["model"]


def _serial(context: Any) -> str:
    """A number that grows with each chart of one page, so that equal charts get different ids."""
    environment = context.environment
    serial = getattr(environment, "charts_on_page", 0) + 1
    environment.charts_on_page = serial
    return str(serial)


def _told(context: Any) -> caption.Told | None:
    """What the captions of this page have said, so that later ones need not repeat it."""
    return getattr(context.environment, "told", None)

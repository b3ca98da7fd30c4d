"""The words of an article, in a bare Jinja environment over the repository's own data."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import Environment

from macros import caption, chart, checklist, dataset, language, template, vocabulary
from macros.environment import ArticleEnvironment, Words
from macros.estimator import PARTS, units
from macros.estimator.advice import MEASURES
from macros.findings import DataErrors
from macros.run import Run

ROOT = Path(__file__).parent.parent
ALL = language.CODES
VOID = {"input", "br", "rect", "circle", "path", "line"}


@pytest.fixture(scope="module")
def words() -> Words:
    return vocabulary.vocabulary(dataset.load(ROOT), ROOT)


def figures(html: str) -> list[str]:
    return re.findall(r'<data class="figure" value="([^"]*)">', html)


def text_of(html: str) -> str:
    return template.plain(html)


class Tree(HTMLParser):
    """Fails when elements are not closed in order, and collects ids and what refers to them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in ("input", "br"):
            self.open.append(tag)
        for name, text in attributes:
            if name == "id":
                self.ids.append(text)
            if name == "aria-labelledby":
                self.references += text.split()
            if name == "fill" and text.startswith("url(#"):
                self.references.append(text[5:-1])

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


SET = '{% set run = estimate(model="llama-3.1-8b", method="qlora", sequence_length=4096, gpu="rtx-4090") %}'


def test_the_words_are_these(words):
    assert set(words.variables) == {
        *("models", "gpus", "methods", "presets", "measurements", "simulation", "peers", "sources", "strategies"),
        *("throughputs", "utilisations"),
    }
    assert set(words.functions) == {
        "data_file",
        "estimate",
        "compare",
        "fits",
        "advice",
        "duration_of",
        "cost",
        "table",
        "compared",
        "errors",
        "ranges",
        "speeds",
        "outcomes",
        "largest",
        "others",
        "bars",
        "dots",
        "checklist",
        "calculator",
            "headline",
        "saved",
        "saved_share",
        "times",
        "units_note",
        "not_advice",
        "glossary",
        "operator",
        "host",
    }
    assert set(words.filters) == {
        "gb",
        "gib",
        "number",
        "percent",
        "deviation",
        "parameters",
        "count",
        "bytes",
        "bytes_per_parameter",
        "duration",
        "rate",
        "date",
        "label",
        "verdict",
        "claim",
        "cite",
        "cite_full",
    }
    for word in (*words.functions.values(), *words.filters.values()):
        assert word.__doc__, word


def test_the_words_work_in_any_jinja_environment(words):
    bare = Environment()
    bare.globals.update(words.functions, **words.variables)
    bare.filters.update(words.filters)
    page = bare.from_string(
        '{{ gpus["rtx-4090"].box | gb }} {{ estimate(model="llama-3.1-8b", method="lora").peak > 0 }}'
    )
    assert text_of(page.render(locale="de")) == "24\u00a0GB True"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("16060522496 | gb", "16.1\u00a0GB"),
        ("16060522496 | gb(about=true)", "about 16.1\u00a0GB"),
        ("16060522496 | gb(approx=true)", "≈\u00a016.1\u00a0GB"),
        ("16060522496 | gib", "14.96\u00a0GiB"),
        ("headline(16060522496)", "16.1\u00a0GB (14.96\u00a0GiB)"),
        ("32768 | number", "32,768"),
        ("0.516 | number", "0.516"),
        ("2.345 | number(decimals=1)", "2.3"),
        ("0.0052 | percent", "0.52%"),
        ("8030261248 | parameters", "8.03\u00a0billion parameters"),
        ("41943040 | count", "41.9\u00a0million"),
        ("16 | bytes", "16\u00a0bytes"),
        ("16 | bytes_per_parameter", "16\u00a0bytes per parameter"),
        ("7500 | duration", "2\u00a0h 5\u00a0min"),
        ("'2026-11-30' | date", "30\u00a0November 2026"),
        ("'2024-07' | date", "July 2024"),
        ("'qlora' | label", "QLoRA"),
        ("'loss' | label", "Loss computation"),
        ("models['llama-3.1-8b'] | label", "Llama 3.1 8B"),
        ("'tight' | verdict", "tight"),
        ("'tight' | claim('tight')", ""),
        ("(3 > 2) | claim(true)", ""),
    ],
)
def test_filters(say, expression, text):
    assert text_of(say("{{ " + expression + " }}")) == text


def test_a_figure_carries_the_value_for_programs(say):
    assert figures(say("{{ 16060522496 | gb }}", "tr")) == ["16060522496"]
    assert figures(say(SET + "{{ run.device | gb }}"))[0].count("..") == 1


def test_a_run_reads_like_its_estimate(value):
    run = value('estimate(model="llama-3.1-8b", method="qlora", gpu="rtx-4090")')
    assert isinstance(run, Run)
    assert run.parameters == 8_030_261_248  # published count of Llama 3.1 8B
    assert run.peak == run.estimate.peak_bytes == run.estimate.moments[run.moment].total
    assert sum(row.total for row in run.parts[:-1]) == run.parts[-1].total == run.peak
    assert run.part("adapters") > 0
    assert run.download == 2 * 8_030_261_248
    assert run.memory == 24564 * 2**20  # what nvidia-smi shows for an RTX 4090
    assert run.verdict in ("comfortable", "tight", "does_not_fit")


def test_what_lies_beside_the_step_has_names_and_rows(value, say):
    run = value('estimate(model="llama-3.1-8b", method="qlora", checkpoints_kept=1, dataset_tokens=1000000)')
    assert run.disk.download == run.download == 16_060_522_496
    assert run.disk.checkpoints == 2 * run.checkpoint
    assert [row.purpose for row in run.disk] == ["download", "checkpoints", "merged", "dataset", ""]
    assert run.host.peak == max(row.total for row in run.host) == run.host_peak
    assert [row.event for row in run.events if row.exceeds] == ["evaluation", "merge"]
    assert "evaluation_exceeds_step" in run.warnings
    assert say('{{ estimate(model="llama-3.1-8b", method="qlora").disk.download | gb }}').endswith(">16.1\u00a0GB</data>")
    with pytest.raises(ValueError, match="this run has no amount 'peek'"):
        run.host.peek


def test_sixteen_bytes_per_parameter(value, say):
    """Rajbhandari et al. 2020, section 3.1: 2 + 2 + 4 + 8 bytes for Adam in mixed precision."""
    run = value('estimate(model="llama-3.1-8b", method="full", precision="bf16-master")')
    by_part = {row.part: float(row.bytes_per_parameter) for row in run.state}
    assert by_part["weights"] == pytest.approx(2, abs=0.01)
    assert by_part["master_weights"] == pytest.approx(4, abs=0.01)
    assert by_part["optimizer_states"] == pytest.approx(8, abs=0.01)
    page = say(
        '{{ table(estimate(model="llama-3.1-8b", method="full").state, columns=["part", "formula", '
        '"bytes_per_parameter", "total", "source"]) }}'
    )
    assert "8,030,261,248 × 2 × 4\u00a0bytes" in page
    assert "Rajbhandari et al. 2019" in page
    assert re.search(r'class="vg-total".*value="16\.0000\d*">16</data>', page)


def test_compare_varies_the_first_key_slowest(value):
    runs = value('compare(model=["llama-3.1-8b", "qwen2.5-14b"], method=["lora", "qlora"])')
    assert [(run.recipe["model"], run.recipe["method"]) for run in runs] == [
        ("llama-3.1-8b", "lora"),
        ("llama-3.1-8b", "qlora"),
        ("qwen2.5-14b", "lora"),
        ("qwen2.5-14b", "qlora"),
    ]


def test_a_list_of_modules_is_one_value(value):
    assert len(value('compare(model="llama-3.1-8b", method="lora", target_modules=["q_proj", "v_proj"])')) == 1


def test_saved_and_times(value):
    small, large = (f'estimate(model="llama-3.1-8b", method="{method}")' for method in ("qlora", "lora"))
    saved = value(f"saved({large}, {small})")
    assert saved == value(large).peak - value(small).peak > 0
    assert float(value(f"times({small}, {large})")) == value(f"{large}.peak / {small}.peak")
    assert float(value(f"saved_share({large}, {small})")) == pytest.approx(saved / value(large).peak)


# Tables

TWO_WAY = (
    '{{ table(compare(model=["llama-3.1-8b", "qwen2.5-14b"], method=["full", "qlora"]), rows="model", across="method", '
    'cell="peak") }}'
)
BLOCKS = {
    "two-way": TWO_WAY,
    "fits": SET + '{{ table(fits(run, gpus.where(memory_at_least=30)), columns=["gpu", "verdict", "headroom"]) }}',
    "records": '{{ table(gpus.where(segment="consumer"), columns=["name", "box_gb", "memory", "bandwidth_gb_s", '
    '"bf16", "ecc", "released", "source"], sort="-memory") }}',
    "parts": SET + '{{ table(run.parts, columns=["part", "formula", "total", "share"]) }}',
    "moments": SET + '{{ table(run.moments, columns=["step", "total", "share"]) }}',
    "events": SET + '{{ table(run.events, columns=["event", "total", "of_peak", "exceeds"]) }}',
    "host": SET + '{{ table(run.host, columns=["occasion", "total"]) }}',
    "disk": SET + '{{ table(run.disk, columns=["purpose", "total"]) }}',
    "parts of runs": '{{ table(compare(model="llama-3.1-8b", method=["full", "lora", "qlora"]), rows="part", '
    'across="method") }}',
    "verdicts": '{{ table(compare(model=["llama-3.1-8b", "qwen2.5-32b"], gpu=["rtx-4090", "h100-sxm"], method=["lora", '
    '"qlora"]), rows=["model", "method"], across="gpu", cell=["verdict", "peak"]) }}',
    "sources": '{{ table(sources, columns=["source", "published", "accessed"], sort="source") }}',
    "bar": SET + '{{ bars(run, limits=["rtx-4090"]) }}',
    "bars": '{{ bars(compare(model="llama-3.1-8b", method=["full", "lora", "qlora"]), label="method", '
    'limits=["h100-sxm"]) }}',
    "buying": SET + "{{ checklist(run) }}",
    "renting": SET + '{{ checklist(run, name="renting") }}',
    "note": "{{ units_note() }}",
    "advice": "{{ not_advice() }}",
    "cite": '{{ "hu-2021-lora" | cite }}{{ gpus["rtx-4090"] | cite("memory_mib") }}'
    '{{ sources["hu-2021-lora"] | cite_full }}',
}


@pytest.mark.parametrize("code", ALL)
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_one_line_of_sound_html(say, name, code):
    """Several lines would fall out of an admonition or a list."""
    html = say(BLOCKS[name], code)
    assert "\n" not in html
    tree = Tree(html)
    assert len(tree.ids) == len(set(tree.ids))
    assert set(tree.references) <= set(tree.ids)
    assert "{" not in html and "style=" not in html


@pytest.mark.parametrize("name", BLOCKS)
def test_the_three_languages_carry_the_same_figures(say, name):
    """As sets, because a sentence may name its figures in another order."""
    english, *others = (sorted(figures(say(BLOCKS[name], code))) for code in ("en", "de", "tr"))
    assert others == [english, english]


@pytest.mark.parametrize("name", BLOCKS)
def test_the_languages_do_not_share_their_sentences(say, name):
    texts = {text_of(say(BLOCKS[name], code)) for code in ALL}
    assert len(texts) == 3


def test_a_two_way_table_says_what_it_holds_for(say):
    html = say(TWO_WAY)
    caption = text_of(re.search(r"<figcaption.*?</figcaption>", html)[0])
    assert "In the cells: Peak memory." in caption
    for condition in (
        "micro-batch 1",
        "sequence length 2048",
        "with gradient checkpointing",
        "optimizer adamw_torch_fused",
        "loss: all logits at once",
        "LoRA rank 16",
        "1\u00a0GPU",
    ):
        assert condition in caption
    assert "precision: FP32 weights with BF16 autocast (Full fine-tuning), BF16 with autocast (QLoRA)" in caption
    assert "Llama 3.1 8B" not in caption, "it stands in a row"
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', html)
    assert heads == ["Model", "Full fine-tuning", "QLoRA"]


def test_what_varies_unseen_is_named(say):
    html = say(
        '{{ table(compare(model="llama-3.1-8b", method="lora", sequence_length=[1024, 4096]), rows="sequence_length",'
        ' across="method", cell="peak") }}'
    )
    assert "sequence length" not in re.search(r"Conditions:.*?GPU\.", html)[0]
    html = say(
        '{{ table(compare(model="llama-3.1-8b", method="lora", sequence_length=[1024, 4096]), columns=["peak"]) }}'
    )
    assert "sequence length 1024 / 4096" in html


def test_a_condition_as_a_heading_carries_its_name(say):
    html = say(
        '{{ table(compare(model="llama-3.1-8b", method="qlora", sequence_length=[2048, 8192], prepare_kbit=[false]),'
        ' rows="model", across=["sequence_length", "prepare_kbit"], cell="peak") }}',
        "de",
    )
    assert "Sequenzlänge 2048 · ohne Vorbereitung für k-Bit-Training" in html


def test_arithmetic_only_figures_say_so(value):
    runs = value('compare(model="llama-3.1-8b", method=["full", "lora"])')
    for run, evidence in zip(runs, ("arithmetic", "oracle"), strict=True):
        run.estimate = replace(run.estimate, evidence=evidence)
    said = caption.sentences(language.load("en"), runs, ["method"])
    assert "Partly calculated only, with nothing yet to compare with: Full fine-tuning." in said
    said = caption.sentences(language.load("en"), runs[:1], ["method"])
    assert "Calculated only: not yet compared with a simulation or a measurement." in said


def test_what_is_left_out_names_the_models_it_holds_for(value):
    runs = value('compare(model=["llama-3.1-8b", "qwen2.5-14b"], method="lora")')
    runs[1].estimate = replace(runs[1].estimate, warnings=("omits_vision",))
    assert "Qwen2.5 14B: Without the vision part of the model." in caption.sentences(language.load("en"), runs, ["model"])


def test_a_column_of_amounts_has_one_style(say):
    html = say(
        '{{ table(compare(model=["llama-3.2-1b", "llama-3.1-70b"], method="lora"), rows="model", across="method", '
        'cell="peak") }}'
    )
    assert all(re.fullmatch(r"[\d,]+\.\d\u00a0GB", cell) for cell in re.findall(r'value="\d+">(.*?)</data>', html))


def test_printed_parts_add_up_or_the_table_says_that_they_are_rounded(say, value):
    for method in ("full", "lora", "qlora"):
        run = value(f'estimate(model="llama-3.1-8b", method="{method}")')
        decimals = units.gb_column_decimals([run.peak])
        printed = sum(units.rounded(run.part(part), units.GB, decimals) for part in PARTS)
        html = say(
            f'{{{{ table(estimate(model="llama-3.1-8b", method="{method}").parts, columns=["part", "total"]) }}}}'
        )
        total = units.rounded(run.peak, units.GB, decimals)
        assert abs(printed - total) <= len(run.parts)
        assert ("The parts are rounded" in html) == (printed != total)


def test_sort_puts_missing_values_last(say):
    html = say('{{ table(gpus, columns=["name", "bf16_tflops"], sort="-bf16_tflops") }}')
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html)
    values = [float(re.search(r'value="([^"]*)"', cell)[1]) if "value=" in cell else None for cell in cells]
    known = [number for number in values if number is not None]
    assert known == sorted(known, reverse=True)
    assert None not in values[: len(known)]


# Charts


def test_the_segments_of_a_bar_fill_it(say, value):
    html = say('{{ bars(estimate(model="llama-3.1-8b", method="qlora")) }}')
    widths = [
        float(width)
        for width in re.findall(r'class="vg-part vg-part--\w+" x="[\d.]+%" y="\d+" width="([\d.]+)%"', html)
    ]
    assert sum(widths) == pytest.approx(100, abs=0.2)
    assert "<details" in html and "<table" in html and "<desc" in html


def test_neighbours_in_a_bar_are_told_apart_without_colour():
    """Parts without a pattern alternate with parts that have one, in the order of the chart."""
    marks = [chart._PATTERN_OF.get(part) for part in PARTS]
    assert all(one != other for one, other in zip(marks, marks[1:], strict=False))


def test_equal_charts_on_one_page_have_different_ids(say):
    html = say(SET + "{{ bars(run) }}{{ bars(run) }}")
    assert len(set(Tree(html).ids)) == len(Tree(html).ids)


def test_a_chart_is_the_same_in_every_build(say):
    assert say(BLOCKS["bars"]) == say(BLOCKS["bars"])


# Checklists


def test_a_checklist_copies_as_markdown(say):
    html = say(SET + "{{ checklist(run) }}")
    code = re.search(r"<code>(.*?)</code>", html)[1]
    lines = code.split("&#10;")
    items = html.count('<input type="checkbox">')
    assert sum(line.startswith("- [ ] ") for line in lines) == items >= 5
    assert "<" not in code
    assert "tokens" in code and "GB" in code


def test_a_checklist_that_is_wrong_is_a_finding_with_its_line(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / checklist.PATH).write_text(
        "buying:\n"
        '  first: {de: "{peak}", en: "{peak}", tr: "{peak}"}\n'
        '  second: {de: "{peek}", en: "{peek}", tr: "{peek}"}\n'
        '  third: {de: "{peak}", en: "x", tr: "x"}\n'
        '  fourth: {de: "x", en: "x"}\n'
        "renting: {}\n",
        encoding="utf-8",
    )
    with pytest.raises(DataErrors) as errors:
        checklist.load(tmp_path)
    found = [str(finding) for finding in errors.value.findings]
    assert found[0].startswith("data/checklists.yml:3: buying.second: no figure 'peek'; did you mean 'peak'?")
    assert found[1:] == [
        "data/checklists.yml:4: buying.third: the languages name different figures",
        "data/checklists.yml:5: buying.fourth: expected a text for each of de, en, tr",
        "data/checklists.yml:6: renting: expected items",
    ]


def test_data_is_escaped(environment, words):
    hostile = Words({**words.variables, "name": '<b onclick="x()">&[a](http://b)'}, words.functions, words.filters)
    rendered = template.render("{{ name }}", "page.md", ArticleEnvironment(hostile), locale="en")
    assert rendered.text == "&lt;b onclick=&#34;x()&#34;&gt;&amp;&#91;a](http://b)"


def test_a_setting_that_only_some_runs_have_names_where_it_holds(say):
    """TRL casts adapters on a quantised base alone; three of four frameworks leave out the k-bit preparation."""
    html = say(
        '{{ table(compare(model="llama-3.1-8b", method=["lora", "qlora"], preset=["transformers-peft", "trl", "axolotl",'
        ' "llama-factory"]), rows="preset", across="method", cell="peak") }}'
    )
    assert "adapters in bfloat16 (TRL/QLoRA)" in html
    assert "without preparation for k-bit training (TRL, Axolotl, LLaMA-Factory)" in html
    assert "weights loaded as float32 (TRL)" in html


def test_a_setting_of_some_runs_that_nothing_shown_explains_names_both_values(say):
    html = say(
        '{{ table(compare(model="llama-3.1-8b", method="qlora", double_quant=[true, false]), columns=["peak"]) }}'
    )
    assert "with double quantization / without double quantization" in html


def test_later_captions_say_what_is_new_and_keep_the_whole(say):
    one = 'table(compare(model="llama-3.1-8b", method=["lora", "qlora"]), rows="model", across="method", cell="peak")'
    same = one.replace("llama-3.1-8b", "qwen3-8b")
    other = one.replace("method=", "sequence_length=8192, adapter_dtype=\"bfloat16\", method=")
    first, second, third = re.findall(r"<figcaption.*?</figcaption>", say(f"{{{{ {one} }}}} {{{{ {same} }}}} {{{{ {other} }}}}"))
    assert "<details" not in first and "Conditions: micro-batch 1" in first
    assert "<summary>Conditions as above.</summary>" in second
    assert "<summary>Conditions as above, here: sequence length 8192 · adapters in bfloat16.</summary>" in third
    for folded, length in ((second, 2048), (third, 8192)):
        assert f"Conditions: micro-batch 1 · sequence length {length} · with gradient checkpointing" in folded
        assert folded.count("Checked against the simulated training step") == 1


def test_a_page_begins_its_captions_anew(say):
    one = '{{ table(compare(model="llama-3.1-8b", method=["lora", "qlora"]), rows="model", across="method", cell="peak") }}'
    assert say(one) == say(one)


def test_a_default_that_was_not_so_above_is_named(say):
    runs = 'compare(model="llama-3.1-8b", method=["qlora"], prepare_kbit={})'
    tables = [f'table({runs.format(value)}, rows="model", across="method", cell="peak")' for value in ("false", "true")]
    second = say("".join(f"{{{{ {table} }}}}" for table in tables)).split("<figcaption")[2]
    assert "Conditions as above, here: with preparation for k-bit training." in second


def test_a_left_out_part_is_told_in_full_once_and_a_changed_figure_each_time(say):
    table = '{{{{ table(compare(model={}, method=["lora"]), rows="model", across="method", cell="peak") }}}}'
    llama, newer = table.format('["llama-3.1-8b"]'), table.format('["qwen3.5-4b", "qwen3.5-9b"]')
    seen, opened = say(llama + newer).split("<figcaption")[2].split("<details")
    assert "plain PyTorch" in seen and "vision part" not in seen
    assert "plain PyTorch" in opened and "vision part" in opened
    assert "vision part" in say(newer)


# What to change first, and how far a recipe can be stretched

FIRST = (
    '{% set run = estimate(model="qwen3-8b", method="lora", micro_batch_size=4, sequence_length=4096, '
    'gradient_checkpointing=false, gpu="rtx-4090") %}'
)
ADVICE = '{{ table(advice(run), columns=["measure", "price", "saving", "peak", "verdict"]) }}'


@pytest.mark.parametrize("code", ALL)
def test_what_to_change_first_is_a_table(say, value, code):
    html = say(FIRST + ADVICE, code)
    Tree(html)
    rows = value(
        'advice(estimate(model="qwen3-8b", method="lora", micro_batch_size=4, sequence_length=4096, '
        'gradient_checkpointing=false, gpu="rtx-4090"))'
    )
    assert [row.measure for row in rows] == ["", "loss_in_chunks", "gradient_checkpointing", "batch_of_one"]
    assert figures(html)[:7] == [str(n) for row in rows for n in (row.saving, row.peak) if n is not None]
    assert [row.verdict for row in rows] == ["does_not_fit"] * 3 + ["comfortable"]
    assert {"en": "micro-batch 1, accumulation 4", "de": "Micro-Batch 1, Akkumulation 4", "tr": "mikro batch 1, biriktirme 4"}[
        code
    ] in text_of(html)
    assert "Qwen3 8B" in text_of(html)  # the caption says what it holds for


def test_every_measure_has_words_and_a_price_in_each_language():
    for code in ALL:
        said = language.load(code)
        for name in MEASURES:
            assert said.has(f"measure.{name}") and said.has(f"price.{name}"), (code, name)


def test_without_a_card_there_are_all_measures_but_no_verdict(environment, say):
    html = say('{% set run = estimate(model="qwen3-8b", method="full") %}{{ table(advice(run), columns=["measure", "saving", "alone"]) }}')
    assert "8-bit optimizer" in html and "QLoRA" in html
    text = '{{ table(advice(estimate(model="qwen3-8b", method="full")), columns=["measure", "verdict"]) }}'
    (finding,) = template.render(text, "docs/en/page.md", environment, locale="en").findings
    assert "without a card there is no verdict" in finding.message


def test_how_far_a_recipe_can_be_stretched(say, value):
    run = 'estimate(model="qwen3-8b", method="qlora", gpu="rtx-4090")'
    length = value(f"{run}.longest_sequence")
    assert say(f"{{{{ {run}.longest_sequence | number }}}}").endswith(f">{length}</data>")
    assert value(f"{run}.longest_sequence_tight") > length > 0 == length % 128
    assert value(f"{run}.largest_rank") in [2**power for power in range(12)]
    grid = say(
        '{{ table(compare(model=["qwen3-8b", "llama-3.3-70b"], method=["lora", "qlora"], gpu="rtx-4090"), '
        'rows="model", across="method", cell=["verdict", "longest_sequence"]) }}'
    )
    assert f">{length}</data>" in grid or f">{length:,}<" in text_of(grid) or str(length) in text_of(grid)
    assert "steps of 128 tokens" in grid


def test_a_bound_without_a_card_or_without_adapters_says_so(environment):
    for expression, message in {
        'estimate(model="qwen3-8b", method="qlora").longest_sequence': "without a card there is no longest_sequence",
        'estimate(model="qwen3-8b", method="full", gpu="h200").largest_rank': "trains no adapters",
    }.items():
        (finding,) = template.render(f"{{{{ {expression} }}}}", "docs/en/page.md", environment, locale="en").findings
        assert message in finding.message

"""The measuring script: it is self-contained, runs exactly the recipe, and its record passes into data/measurements.yml."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from macros import measure, measurements, yamlfile
from macros.dataset import DataErrors, load
from macros.estimator import recipe_from_keys
from macros.recipes import estimate_keys
from macros.records import Measurement, build

ROOT = Path(__file__).parent.parent
DATASET = load(ROOT)
ALLOWED = {"torch", "transformers", "accelerate", "peft", "trl", "bitsandbytes", "liger_kernel"}

# One of each value of each recipe key, written out here so that a value that the estimator drops is missed.
RECIPES = [
    *({"method": method} for method in ("full", "lora", "qlora")),
    *({"method": "full", "precision": p} for p in ("bf16", "bf16-autocast", "fp32-autocast", "bf16-master", "fp32")),
    *({"method": "lora", "precision": p} for p in ("bf16", "bf16-autocast", "fp32-autocast", "fp32")),
    *({"method": "lora", "base_dtype": dtype} for dtype in ("bfloat16", "float16", "float32")),
    *(
        {"method": "full", "optim": optim}
        for optim in ("adamw_torch_fused", "adamw_torch", "adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit")
    ),
    *({"method": "lora", "optim": optim} for optim in ("paged_adamw_32bit", "paged_adamw", "adafactor", "muon")),
    *({"method": "qlora", "optim": optim} for optim in ("lion_32bit", "lion_8bit", "paged_lion_32bit", "paged_lion_8bit")),
    *({"method": "full", "optim": optim} for optim in ("sgd", "sgd_momentum")),
    {"method": "full", "optim": "adamw_torch", "foreach": False},
    {"method": "lora", "micro_batch_size": 4, "sequence_length": 8192, "gradient_accumulation_steps": 8},
    {"method": "lora", "gradient_checkpointing": False},
    {"method": "lora", "gradient_checkpointing": True, "checkpoint_offload": True},
    *({"method": "qlora", "attention": attention} for attention in ("flash", "sdpa", "eager")),
    *({"method": "qlora", "loss": loss} for loss in ("standard", "chunked", "fused")),
    *({"method": "full", "kernels": kernels} for kernels in ("none", "liger")),
    {"method": "lora", "lora_r": 64, "lora_dropout": 0.05, "target_modules": ["q_proj", "v_proj"]},
    {"method": "lora", "adapter_dtype": "bfloat16", "use_dora": True},
    {"method": "lora", "modules_to_save": ["embed_tokens", "lm_head"]},
    *({"method": "qlora", "quantization": kind} for kind in ("nf4", "fp4", "int8")),
    {"method": "qlora", "double_quant": False, "prepare_kbit": False},
    {"method": "full", "keep_outputs": True, "padding": True, "trained_token_share": 0.25},
    *({"method": "full", "precision": "bf16-master", "master_gradients": how} for how in ("param", "all", "persistent")),
]


def name(keys: dict) -> str:
    return " ".join(str(value) for value in keys.values())


def run_of(text: str) -> dict:
    """The value of RUN in a script, which must be a plain literal."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "RUN":
            return ast.literal_eval(node.value)
    raise AssertionError("the script has no RUN")


def names_in(text: str) -> dict:
    """What a script defines, without running it as a program."""
    spec = importlib.util.spec_from_loader("generated_measure_script", loader=None)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    exec(compile(text, "measure.py", "exec"), vars(module))
    return vars(module)


@pytest.mark.parametrize("keys", RECIPES, ids=name)
def test_the_script_holds_exactly_the_recipe(keys):
    text = measure.script(DATASET, {"model": "llama-3.1-8b", **keys})
    run = run_of(text)
    assert recipe_from_keys(run["recipe"]) == recipe_from_keys(keys)
    assert keys.items() <= run["recipe"].items()
    assert run["recipe"].keys() <= measure.RUNNABLE.keys()
    assert run["config"]["hidden_size"] == 4096 and run["config"]["model_type"] == "llama"
    assert run["estimate"]["parameters"] == 8_030_261_248
    assert sum(run["estimate"]["parts"].values()) == run["estimate"]["peak_bytes"]


def test_the_script_needs_nothing_of_the_guide():
    text = measure.script(DATASET, {"model": "qwen3-30b-a3b", "method": "lora"})
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.partition(".")[0])
    assert imported <= ALLOWED | set(sys.stdlib_module_names)
    # Libraries are imported where they are used: a LoRA run must not need TRL or Liger.
    top = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert not any(word in ast.unparse(node) for node in top for word in ALLOWED)


def test_a_preset_is_resolved_before_it_is_written():
    text = measure.script(DATASET, {"model": "qwen2.5-0.5b", "method": "qlora", "preset": "trl"})
    recipe = run_of(text)["recipe"]
    assert (recipe["loss"], recipe["base_dtype"], recipe["prepare_kbit"]) == ("chunked", "float32", False)


def test_a_multimodal_config_is_reduced_to_its_language_model():
    text_config = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 4, "num_attention_heads": 8,
                   "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "dtype": "bfloat16"}  # fmt: skip
    config = {"model_type": "gemma3", "vision_config": {}, "quantization_config": {}, "text_config": text_config}
    run = run_of(measure.script(DATASET, {"config": config, "method": "full"}))
    assert run["model"] is None
    assert run["config"]["model_type"] == "gemma3_text"
    assert not {"vision_config", "quantization_config", "dtype"} & set(run["config"])


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"method": "qlora", "quantization": "gptq"}, "quantization gptq cannot be measured with random weights; measurable are nf4"),
        ({"method": "qlora", "quantization": "awq"}, "quantization awq cannot be measured"),
        ({"method": "lora", "kernels": "unsloth"}, "kernels unsloth cannot be measured with random weights; measurable are none, liger"),
        ({"method": "full", "kernels": "foak"}, "kernels foak cannot be measured"),
        ({"method": "lora", "prepare_kbit": True}, "prepare_kbit does not apply here; it belongs to qlora"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused_by_name(keys, says):
    with pytest.raises(ValueError, match=says):
        measure.script(DATASET, {"model": "llama-3.1-8b", **keys})


def test_the_command_writes_the_same_script(tmp_path, capsys):
    options = "--model qwen2.5-0.5b --method lora --target-modules q_proj,v_proj --lora-dropout 0.05 --use-dora true".split()
    keys = {"model": "qwen2.5-0.5b", "method": "lora", "target_modules": ["q_proj", "v_proj"], "lora_dropout": 0.05,
            "use_dora": True}  # fmt: skip
    assert measure.main([*options, "--output", str(tmp_path / "run.py")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "run.py").read_text(encoding="utf-8") == measure.script(DATASET, keys)
    assert measure.main(options) == 0
    assert capsys.readouterr().out == measure.script(DATASET, keys)


def test_the_command_names_a_mistake(capsys):
    assert measure.main(["--model", "qwen2.5-0.6b", "--method", "lora"]) == 2
    assert "data/models.yml has no 'qwen2.5-0.6b'; did you mean 'qwen2.5-0.5b'?" in capsys.readouterr().err


def test_the_template_alone_says_where_scripts_come_from():
    done = subprocess.run([sys.executable, str(measure.TEMPLATE)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "python -m macros measure writes a script" in done.stderr


# What `nvidia-smi --query-gpu=name,memory.total` prints for cards of these kinds.
@pytest.mark.parametrize(
    ("driver", "mib", "key"),
    [
        ("NVIDIA GeForce RTX 4090", 24217, "rtx-4090"),
        ("NVIDIA GeForce RTX 4060 Ti", 16380, "rtx-4060-ti-16gb"),
        ("NVIDIA GeForce RTX 4060", 8188, "rtx-4060"),
        ("NVIDIA GeForce RTX 4080 SUPER", 16376, "rtx-4080-super"),
        ("NVIDIA GeForce RTX 4080", 16376, "rtx-4080"),
        ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm"),
        ("NVIDIA H100 PCIe", 81559, "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB", 81920, "a100-80gb"),
        ("NVIDIA A100-SXM4-40GB", 40960, "a100-40gb"),
        ("NVIDIA RTX 6000 Ada Generation", 49140, "rtx-6000-ada"),
        ("NVIDIA RTX A6000", 49140, "rtx-a6000"),
        ("NVIDIA L40S", 46068, "l40s"),
        ("NVIDIA A10G", 23028, "a10g"),
        ("NVIDIA H200", 143771, "h200"),
        ("Tesla T4", 15360, "t4"),
        ("NVIDIA GeForce GTX 1080 Ti", 11264, None),
    ],
)
def test_a_card_is_known_by_the_drivers_name(driver, mib, key):
    script = names_in(measure.script(DATASET, {"model": "qwen2.5-0.5b", "method": "lora"}))
    assert script["card_key"](driver, mib) == key


# ---- records --------------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path):
    """A copy of the data with a source for own readings and two measurements that enclose the new one."""
    shutil.copytree(ROOT / "data", tmp_path / "data")
    with (tmp_path / "data/sources.yml").open("a", encoding="utf-8") as sources:
        sources.write(
            "zz-test-bench:\n  {title: Readings of a test bench, publisher: Tests, url: https://bench.example/,"
            " accessed: 2026-12-01, kind: measurement}\n"
        )
    (tmp_path / measurements.PATH).write_text(EXISTING, encoding="utf-8")
    return tmp_path


EXISTING = """# Readings, sorted by key.

# An early one.
a-llama-run:
  hub: meta-llama/Llama-3.1-8B
  model: llama-3.1-8b
  recipe: {method: lora}
  gpu: h200
  software: {torch: 2.13.0}
  outcome: ok
  observed: {allocated: 30000000000}
  length: fixed
  grade: A
  source: zz-test-bench
  date: 2026-11-30

# A late one.
z-llama-run:
  hub: meta-llama/Llama-3.1-8B
  model: llama-3.1-8b
  recipe: {method: lora}
  gpu: h200
  software: {torch: 2.13.0}
  outcome: ok
  observed: {allocated: 30000000000}
  length: fixed
  grade: A
  source: zz-test-bench
  date: 2026-11-30
"""


def record(keys: dict, outcome: str = "ok") -> str:
    """The record that the script writes after a run with these readings; versions are given, because no library is here."""
    script = names_in(measure.script(DATASET, keys))
    script["software"] = lambda: {"python": "3.12.3", "torch": "2.13.0+cu130", "transformers": "5.24.0", "cuda": "13.0"}
    script["nvidia_smi"] = lambda: [{"driver_version": "580.95.05"}]
    steps = [(4 * 10**9, 5 * 10**9), (5 * 10**9, 6 * 10**9)]
    reading = script["Reading"](loaded=10**9, steps=steps, driver=7 * 10**9, card=8 * 10**9)
    return script["record"](reading, outcome, "h200", "zz-test-bench")


KEYS = {"model": "qwen2.5-0.5b", "method": "qlora", "target_modules": ["q_proj", "v_proj"], "sequence_length": 4096}


def test_a_record_goes_in_at_its_place_and_leaves_the_rest_alone(root, tmp_path):
    file = tmp_path / "measurement.yml"
    file.write_text("# Two steps on a rented card.\n" + record(KEYS), encoding="utf-8")
    (added,) = measurements.add(file, root)
    text = (root / measurements.PATH).read_text(encoding="utf-8")
    early, late = EXISTING.split("# A late one.")
    assert text.startswith(early + f"{added.key}:\n") or text.startswith(early + "# Two steps on a rented card.\n")
    assert text.endswith("\n\n# A late one." + late)
    dataset = load(root)
    assert dataset.measurements.keys() == ("a-llama-run", added.key, "z-llama-run")
    stored = dataset.measurements[added.key]
    assert stored.observed == {"allocated": 5 * 10**9, "reserved": 6 * 10**9, "device": 7 * 10**9}
    assert stored.software["torch"] == "2.13.0+cu130" and stored.software["driver"] == "580.95.05"
    # The stored keys make the same estimate as the ones that the person typed.
    again = estimate_keys(dataset, {"model": stored.model, **stored.recipe})
    assert again.moments == estimate_keys(dataset, KEYS).moments


@pytest.mark.parametrize("keys", RECIPES, ids=name)
def test_every_recipe_survives_its_record(keys):
    ((key, value),) = yamlfile.parse(record({"model": "llama-3.1-8b", **keys}), "measurement.yml").value.items()
    stored, mistakes = build(Measurement, key, value)
    assert mistakes == []
    assert recipe_from_keys(stored.recipe) == recipe_from_keys(keys)


def test_a_new_source_goes_to_the_end_and_a_known_one_to_its_group(root, tmp_path):
    path, file = root / measurements.PATH, tmp_path / "measurement.yml"
    path.write_text(EXISTING.replace("zz-test-bench", "hu-2021-lora", 1), encoding="utf-8")
    for key, source in (("m-run", "dettmers-2023-qlora"), ("b-run", "hu-2021-lora"), ("zz-run", "zz-test-bench")):
        file.write_text(RECORD.replace("my-run", key).replace("zz-test-bench", source), encoding="utf-8")
        measurements.add(file, root)
    assert load(root).measurements.keys() == ("a-llama-run", "b-run", "z-llama-run", "zz-run", "m-run")
    assert path.read_text(encoding="utf-8").count("# ") == EXISTING.count("# ")


def test_a_run_that_did_not_fit_is_recorded_without_a_figure(root, tmp_path):
    file = tmp_path / "measurement.yml"
    file.write_text(record(KEYS, outcome="oom"), encoding="utf-8")
    (added,) = measurements.add(file, root)
    stored = load(root).measurements[added.key]
    assert (stored.outcome, stored.observed, stored.counts, stored.reason) == ("oom", {}, False, "no_figure")


def test_the_first_record_makes_the_file(root, tmp_path):
    (root / measurements.PATH).unlink()
    file = tmp_path / "measurement.yml"
    file.write_text(record(KEYS), encoding="utf-8")
    (added,) = measurements.add(file, root)
    assert load(root).measurements.keys() == (added.key,)
    assert (root / measurements.PATH).read_text(encoding="utf-8").startswith("# Readings of real runs")


def findings(root: Path, text: str) -> list[str]:
    file = root / "mine.yml"
    file.write_text(text, encoding="utf-8")
    before = (root / measurements.PATH).read_text(encoding="utf-8")
    with pytest.raises(DataErrors) as errors:
        measurements.add(file, root)
    assert (root / measurements.PATH).read_text(encoding="utf-8") == before
    return [str(finding).replace(str(file), "mine.yml") for finding in errors.value.findings]


RECORD = """my-run:
  hub: meta-llama/Llama-3.1-8B
  model: llama-3.1-8b
  recipe: {method: lora, sequence_length: 2048}
  gpu: h200
  software: {torch: 2.13.0}
  outcome: ok
  observed: {allocated: 30000000000, reserved: 32000000000, device: 33000000000}
  length: fixed
  grade: A
  source: zz-test-bench
  date: 2026-11-30
"""


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("gpu: h200", "gpu: unknown-gpu", "mine.yml:5: my-run.gpu: data/gpus.yml has no 'unknown-gpu'"),
        ("llama-3.1-8b", "llama-3.1-8", "mine.yml:3: my-run.model: data/models.yml has no 'llama-3.1-8'; did you mean 'llama-3.1-8b'?"),
        ("zz-test-bench", "zz-test-bank", "mine.yml:11: my-run.source: data/sources.yml has no 'zz-test-bank'; did you mean 'zz-test-bench'?"),
        ("sequence_length", "seq_length", "mine.yml:4: my-run.recipe: there is no recipe key 'seq_length'"),
        ("method: lora", "method: lora, loss: fast", "mine.yml:4: my-run.recipe: loss must be one of standard, "),
        ("method: lora", "method: lora, target_modules: [w_proj]", "mine.yml:4: my-run.recipe: target_modules: this model has no 'w_proj'"),
        ("reserved: 32000000000", "reserved: 29000000000", "mine.yml:8: my-run.observed.reserved: expected at least allocated (30000000000), got 29000000000"),
        ("device: 33000000000", "device: 200000000000", "mine.yml:8: my-run.observed.device: expected bytes, at most the 150754820096 of the H200 SXM"),
        ("allocated: 30000000000", "allocated: 30", "mine.yml:8: my-run.observed.allocated: expected bytes, at most the"),
        ("allocated: 30000000000", "allocated: 30 GB", "mine.yml:8: my-run.observed.allocated: expected a whole number, got '30 GB'"),
        ("date: 2026-11-30", "date: 30.11.2026", "mine.yml:12: my-run.date: expected a year, month or day like 2026-11, got '30.11.2026'"),
        ("  software: {torch: 2.13.0}\n", "", "mine.yml:1: my-run: missing 'software'"),
        ("my-run", "z-llama-run", "mine.yml:1: data/measurements.yml:18 has 'z-llama-run' already"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_nothing_is_written(old, new, finding, root):
    found = findings(root, RECORD.replace(old, new))
    assert len(found) == 1, found
    assert found[0].startswith(finding)


def test_a_file_without_a_record_is_refused(root):
    assert findings(root, "# nothing yet\n") == [
        "mine.yml:1: holds no record; expected one as the measuring script writes it"
    ]


# ---- with PyTorch ---------------------------------------------------------------------------------------------------

TORCH_PYTHON = os.environ.get("TORCH_PYTHON") or (sys.executable if importlib.util.find_spec("torch") else None)


# The guide does not need PyTorch, some gigabytes large, so the lock leaves it out; TORCH_PYTHON lends these tests one.
@pytest.mark.skipif(TORCH_PYTHON is None, reason="needs PyTorch: set TORCH_PYTHON to a Python that has it")
@pytest.mark.parametrize(
    ("options", "covered"),
    [
        ("--model qwen2.5-0.5b --method full", True),
        ("--model qwen3-8b --method full --precision bf16 --loss chunked", True),
        ("--model llama-3.1-8b --method lora --gradient-checkpointing false", True),
        ("--model llama-3.1-8b --method lora --use-dora true --modules-to-save embed_tokens", True),
        ("--model llama-3.1-8b --method qlora --preset trl", True),
        ("--model llama-3.1-8b --method qlora --gradient-accumulation-steps 2 --padding true --micro-batch-size 2", True),
        ("--model mixtral-8x7b --method lora", True),
        ("--model gemma-3-4b-text --method full --precision bf16-master --master-gradients all", True),
        ("--model qwen3-8b --method lora --loss fused", False),
        ("--model qwen3-8b --method lora --optim paged_adamw_8bit", False),
    ],
)
def test_the_dry_run_trains_two_steps(options, covered, tmp_path):
    assert measure.main([*options.split(), "--output", str(tmp_path / "run.py")]) == 0
    command = [TORCH_PYTHON, "run.py", "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 steps of a tiny" in done.stdout and "no memory was measured" in done.stdout
    assert ("Not covered by the dry run" not in done.stdout) == covered
    assert [path.name for path in tmp_path.iterdir()] == ["run.py"]

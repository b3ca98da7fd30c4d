"""The command line as another program uses it: results, errors, order."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from macros import __main__ as cli
from macros import dataset

ROOT = Path(__file__).parent.parent
DATA = dataset.load(ROOT)

# The defaults of the house recipe, as the contract for other programs lists them.
HOUSE = {
    "base_dtype": "bfloat16",
    "precision": "bf16-autocast",
    "optim": "adamw_torch_fused",
    "foreach": False,
    "micro_batch_size": 1,
    "sequence_length": 2048,
    "gradient_accumulation_steps": 1,
    "gradient_checkpointing": True,
    "attention": "sdpa",
    "loss": "standard",
    "kernels": "none",
    "lora_r": 16,
    "lora_dropout": 0,
    "target_modules": "all-linear",
    "adapter_dtype": "float32",
    "double_quant": True,
    "prepare_kbit": True,
    "keep_outputs": False,
    "padding": False,
    "master_gradients": "param",
}


def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "macros", *arguments]
    return subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False)


def test_an_estimate_as_json():
    done = run("estimate", "--model", "llama-3.1-8b", "--method", "qlora", "--sequence-length", "4096", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result) == {
        "peak_bytes", "per_gpu_bytes", "total_bytes", "moment", "moments", "reserved_bytes", "device_bytes", "parameters", "trainable_parameters",
        "flops_per_step",
        "communication_bytes",
        "conditions", "evidence", "warnings", "events", "host_bytes", "disk_bytes",
    }  # fmt: skip
    assert result["parameters"] == 8_030_261_248
    # r · (inputs + outputs) over the seven linear layers, 32 times: 41 943 040.
    assert result["trainable_parameters"] == 41_943_040
    assert result["conditions"]["sequence_length"] == 4096
    assert result["moments"][result["moment"]]["total"] == result["peak_bytes"]
    assert sum(result["moments"][result["moment"]]["parts"].values()) == result["peak_bytes"]


def test_the_house_recipe():
    conditions = cli.answer(DATA, '{"model": "llama-3.1-8b", "method": "qlora"}')["conditions"]
    assert {key: conditions[key] for key in HOUSE} == HOUSE
    full = cli.answer(DATA, '{"model": "llama-3.1-8b", "method": "full"}')["conditions"]
    assert (full["precision"], full["base_dtype"]) == ("fp32-autocast", "float32")


def test_a_card_gives_a_verdict():
    done = run("estimate", "--model", "llama-3.1-8b", "--method", "full", "--gpu", "rtx-4090")
    assert done.returncode == 0
    assert "does not fit" in done.stdout
    assert "128.5" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "llama-3.1-8", "--method", "lora"], "data/models.yml has no 'llama-3.1-8'; did you mean 'llama-3.1-8b'?"),
        (["--model", "llama-3.1-8b", "--method", "lora", "--gpu", "h100-smx"], "data/gpus.yml has no 'h100-smx'; did you mean 'h100-sxm'?"),
        (["--model", "llama-3.1-8b", "--method", "lora", "--preset", "tlr"], "data/presets.yml has no 'tlr'; did you mean 'trl'?"),
        (["--model", "llama-3.1-8b"], "method is missing; it is one of full, lora, qlora"),
        (["--method", "lora"], "give either model, a key of data/models.yml, or config"),
        (["--model", "llama-3.1-8b", "--method", "lora", "--lora-r", "0"], "lora_r must be a whole number from 1 to 2048, got 0"),
        (["--model", "llama-3.1-8b", "--method", "lora", "--lora-r", "x"], "lora_r must be a whole number from 1 to 2048, got 'x'"),
        (["--model", "llama-3.1-8b", "--method", "full", "--prepare-kbit", "true"], "prepare_kbit does not apply here"),
        (["--config", "nowhere.json", "--method", "lora"], "nowhere.json: No such file or directory"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(arguments, message):
    done = run("estimate", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimate", "--modle", "llama-3.1-8b"], "there is no option '--modle'; did you mean '--model'?"),
        (["estimate", "--gradient", "true"], "there is no option '--gradient'"),
        (["estimate", "--model"], "argument --model: expected one argument"),
        (["estimate", "--jsonl", "--gpu", "l4"], "--jsonl takes every recipe from standard input"),
        (["estimates"], "argument command: invalid choice: 'estimates'"),
        ([], "the following arguments are required: command"),
    ],
)
def test_a_wrong_call_is_one_line(arguments, message):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


def test_every_recipe_key_has_an_option():
    given = {"model": "qwen3-8b", "method": "qlora", "gpu": "l40s", "preset": "trl"}
    conditions = cli.answer(DATA, json.dumps(given))["conditions"]
    # An option takes what a result says: the same conditions come out as went in.
    given |= {key: value for key, value in conditions.items() if key not in ("modules_to_save", "master_gradients")}
    options = [f"--{key.replace('_', '-')}={str(value).lower()}" for key, value in given.items()]
    done = run("estimate", "--json", *options, "--modules-to-save", "embed_tokens,lm_head")
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)["conditions"]
    assert again.pop("modules_to_save") == ["embed_tokens", "lm_head"]
    assert again == {key: value for key, value in conditions.items() if key != "modules_to_save"}


def test_a_reader_that_has_enough_ends_the_stream_quietly():
    lines = '{"model": "llama-3.1-8b", "method": "lora"}\n' * 500
    command = f"{shlex.quote(sys.executable)} -m macros estimate --jsonl | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, input=lines, capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_line_that_is_not_utf8_is_lost_alone():
    good = b'{"model": "llama-3.1-8b", "method": "lora"}\n'
    command = [sys.executable, "-m", "macros", "estimate", "--jsonl"]
    done = subprocess.run(command, cwd=ROOT, input=good + b"\xff\xfe\n" + good, capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert ["error" in answer for answer in answers] == [False, True, False]


def test_one_result_a_line_in_order():
    lines = [
        '{"model": "llama-3.1-8b", "method": "lora"}',
        "not json",
        "[1, 2]",
        '{"model": "llama-3.1-8b", "method": "lora", "rank": 8}',
        '{"config": {"model_type": "gpt2"}, "method": "full"}',
        '{"model": "llama-3.1-8b", "method": "full", "precision": "bf16"}',
    ]
    done = run("estimate", "--jsonl", given="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [("error" in answer) for answer in answers] == [False, True, True, True, True, False]
    assert "there is no recipe key 'rank'" in answers[3]["error"]
    assert answers[4]["error"].startswith("model_type 'gpt2' is not modelled")


@pytest.mark.parametrize(
    "keys",
    [
        {"model": ["llama-3.1-8b"], "method": "lora"},
        {"model": {"a": 1}, "method": "lora"},
        {"model": None, "method": "lora"},
        {"model": "llama-3.1-8b", "method": ["lora"]},
        {"model": "llama-3.1-8b", "method": "lora", "gpu": 7},
        {"model": "llama-3.1-8b", "method": "lora", "gpu": ["l4"]},
        {"model": "llama-3.1-8b", "method": "lora", "preset": {}},
        {"model": "llama-3.1-8b", "method": "lora", "sequence_length": 10**30},
        {"model": "llama-3.1-8b", "method": "lora", "sequence_length": -1},
        {"model": "llama-3.1-8b", "method": "lora", "lora_dropout": "NaN"},
        {"model": "llama-3.1-8b", "method": "lora", "target_modules": {"q_proj": 1}},
        {"model": "llama-3.1-8b", "method": "lora", "target_modules": [1]},
        {"model": "llama-3.1-8b", "method": "lora", "modules_to_save": "lm_head"},
        {"config": [], "method": "lora"},
        {"config": {}, "method": "lora"},
        {"config": {"model_type": ["llama"]}, "method": "lora"},
        {"config": {"model_type": "llama", "hidden_size": 4096.0}, "method": "lora"},
        {"config": {"model_type": "llama", "hidden_size": True}, "method": "lora"},
        {"config": {"text_config": "x"}, "method": "lora"},
        {"config": {"model_type": "mixtral", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2,
                    "vocab_size": 32, "intermediate_size": 64, "num_local_experts": 2, "num_experts_per_tok": 3},
         "method": "lora"},
        {"model": "llama-3.1-8b", "config": {}, "method": "lora"},
        {"model": "\ud800", "method": "lora"},
    ],
)  # fmt: skip
def test_hostile_input_is_an_error_with_a_sentence(keys):
    answer = cli.answer(DATA, json.dumps(keys))
    assert list(answer) == ["error"]
    assert "\n" not in answer["error"]


def test_a_key_that_stands_twice_is_an_error():
    answer = cli.answer(DATA, '{"model": "llama-3.1-8b", "method": "lora", "method": "full"}')
    assert answer == {"error": "'method' stands there twice"}


def test_json_beyond_reason_is_an_error():
    assert "error" in cli.answer(DATA, "[" * 100_000)
    assert "error" in cli.answer(DATA, '{"model": "llama-3.1-8b", "method": "lora", "lora_dropout": NaN}')
    assert "error" in cli.answer(DATA, '{"model": "llama-3.1-8b", "method": "lora", "sequence_length": 1' + "0" * 5000 + "}")


def test_a_preset_gives_way_to_a_key():
    preset = cli.answer(DATA, '{"model": "qwen3-8b", "method": "qlora", "preset": "trl"}')
    assert preset["conditions"]["loss"] == "chunked"
    own = cli.answer(DATA, '{"model": "qwen3-8b", "method": "qlora", "preset": "trl", "loss": "standard"}')
    assert own["conditions"]["loss"] == "standard"
    assert own["peak_bytes"] > preset["peak_bytes"]


def test_what_to_change_first_as_json_and_as_text():
    recipe = ("--model", "qwen3-8b", "--method", "lora", "--micro-batch-size", "4", "--gpu", "rtx-4090")
    done = run("estimate", *recipe, "--gradient-checkpointing", "false", "--advice", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    advice = result["advice"]
    assert (advice["peak_bytes"], advice["verdict"]) == (result["peak_bytes"], result["verdict"])
    assert advice["measures"][advice["fits_after"] - 1]["verdict"] in ("tight", "comfortable")
    done = run("estimate", *recipe, "--gradient-checkpointing", "false", "--advice")
    assert "--gradient-checkpointing true" in done.stdout and "--micro-batch-size 1" in done.stdout


def test_what_a_card_can_train():
    done = run("capacity", "--gpu", "rtx-4090", "--model", "llama-3.2-1b", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["method"] for row in rows] == ["full", "lora", "qlora"]
    assert rows[2]["longest_sequence"]["tight"] > rows[2]["longest_sequence"]["comfortable"] > 2048
    done = run("capacity", "--gpu", "rtx-4090", "--model", "llama-3.2-1b", "--method", "qlora")
    assert "longest_sequence" in done.stdout and "largest_rank" in done.stdout
    done = run("capacity", "--model", "llama-3.2-1b")
    assert (done.returncode, done.stderr) == (2, "error: gpu is missing; it is a key of data/gpus.yml\n")


def test_who_reads_only_the_first_line_sees_no_traceback():
    command = f"{sys.executable} -m macros capacity --gpu rtx-4090 | head -1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("model") and done.stderr == ""


def test_a_training_configuration_is_estimated_and_explained(tmp_path):
    """Axolotl's example for Llama 3.2 1B; what is typed goes before what the file says."""
    published = yaml.safe_load((ROOT / "tests" / "configs" / "training.yml").read_text(encoding="utf-8"))[0]
    file = tmp_path / "qlora-1b.yml"
    file.write_text(published["text"], encoding="utf-8")
    done = run("estimate", "--config", str(file), "--micro-batch-size", "1", "--json")
    assert done.returncode == 0
    conditions = json.loads(done.stdout)["conditions"]
    assert {key: conditions[key] for key in published["recipe"]} == {**published["recipe"], "micro_batch_size": 1}
    said = done.stderr.splitlines()
    assert said[0] == "read as axolotl"
    assert "understood: line 4: adapter qlora: becomes method qlora" in said
    assert any(line.startswith("ignored: ") and "learning_rate" in line for line in said)

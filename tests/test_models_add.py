"""`python -m macros models add`: exact counts for models that the data lacks, and a file that keeps its order and comments.

The files in tests/configs are config.json as the Hugging Face Hub has them: tiiuae/Falcon3-7B-Base (92412d8e),
Qwen/Qwen3.5-122B-A10B (copy in ai-dynamo/aiconfigurator 095f58a5), and copies of those of
mistralai/Mistral-Nemo-Instruct-2407 (riple-saanvi-lab/Saanvi-C0-12B) and TinyLlama/TinyLlama-1.1B-Chat-v1.0
(Issactoto/therapist-1). The counts are those of Transformers 5.24.0 on the meta device (tests/record_parameters.py);
for TinyLlama also the sum of the published safetensors header.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from macros import models
from macros.dataset import load
from macros.estimator import architecture_from_config
from macros.findings import DataErrors

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "tests" / "configs"
COUNTS = {
    "tinyllama-1.1b": 1_100_048_384,
    "falcon3-7b": 7_455_550_464,
    "mistral-nemo-12b": 12_247_782_400,
    "qwen3.5-122b-a10b": 122_111_526_912,
}
GIVEN = {"name": "A Model", "hub": "somebody/A-Model", "released": "2024-12"}
DATA = load(ROOT)
SOURCE = {"all": "huggingface-2026-transformers"}


def added(path: Path, key: str = "a-model", given: dict[str, str] = GIVEN, **options: Any) -> models.Added:
    return models.add(path, key, SOURCE, given, root=ROOT, **options)


def weights(folder: Path, config: dict[str, Any], size: int, names: tuple[str, ...] = ()) -> Path:
    """A folder as the hub has it: the configuration, and the index of the weights."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    index = {"metadata": {"total_size": size}, "weight_map": dict.fromkeys(names, "model-00001-of-00002.safetensors")}
    (folder / models.INDEX).write_text(json.dumps(index), encoding="utf-8")
    return folder


def config_of(name: str) -> dict[str, Any]:
    return json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_exact(name: str) -> None:
    record = added(CONFIGS / f"{name}.json", name).record
    assert f"  parameters: {COUNTS[name]}\n" in record


@pytest.mark.parametrize("name", DATA.models.keys())
def test_every_record_would_be_written_with_the_same_shape(name: str) -> None:
    """What the data holds of each model is what the command would keep of it."""
    config = DATA.models[name].config
    assert architecture_from_config(models.shape(config)[0]) == architecture_from_config(dict(config))


def test_the_file_keeps_everything_else() -> None:
    before = (ROOT / models.PATH).read_text(encoding="utf-8")
    for hub, neighbour in (("Qwen/New", "qwen2.5-72b"), ("nobody/New", "granite-3.2-2b")):
        result = added(CONFIGS / "falcon3-7b.json", given={**GIVEN, "hub": hub})
        assert result.text.replace(result.record + "\n", "", 1).replace("# nobody\n", "") == before
        keys = re.findall(r"^([a-z][\w.-]*):$", result.text, re.MULTILINE)
        assert keys[keys.index("a-model") - 1] == neighbour
    last = added(CONFIGS / "falcon3-7b.json", history=True).text
    assert re.findall(r"^([a-z][\w.-]*):$", last, re.MULTILINE)[-1] == "a-model"


def test_what_a_text_model_leaves_out() -> None:
    record = added(CONFIGS / "qwen3.5-122b-a10b.json").record
    assert "model_type: qwen3_5_moe_text" in record
    assert "  omits: [vision, mtp]\n" in record
    assert "vision_config" not in record and "layer_types" not in record


def test_what_was_not_typed_is_taken_from_the_files_or_asked_for() -> None:
    """Nobody's guess becomes a fact: each value that was not typed is named with where it comes from."""
    result = added(CONFIGS / "tinyllama-1.1b.json", given={"released": "2024-01"})
    assert "  hub: TinyLlama/TinyLlama-1.1B-Chat-v1.0\n" in result.record
    assert any(remark.startswith("hub TinyLlama/") and "_name_or_path" in remark for remark in result.remarks)
    assert any("compared with nothing" in remark for remark in result.remarks)
    with pytest.raises(DataErrors) as errors:
        added(CONFIGS / "falcon3-7b.json", given={})
    text = str(errors.value)
    assert "when it was published; add --released 2026-04" in text and "--hub" in text and "--name" in text


def test_the_published_size_is_compared(tmp_path: Path) -> None:
    config = config_of("falcon3-7b")
    right = weights(tmp_path / "right", config, 2 * COUNTS["falcon3-7b"])
    assert any("are the 7455550464 parameters" in remark for remark in added(right).remarks)
    wrong = weights(tmp_path / "wrong", config, 2 * COUNTS["falcon3-7b"] + 2)
    with pytest.raises(DataErrors, match="make 14911100928 bytes, the index says 14911100930"):
        added(wrong)
    whole = weights(tmp_path / "whole", config_of("qwen3.5-122b-a10b"), 2 * COUNTS["qwen3.5-122b-a10b"] + 999)
    assert any("999 of the" in remark and "vision, mtp" in remark for remark in added(whole).remarks)
    packed = weights(tmp_path / "packed", {**config, "quantization_config": {"bits": 4}}, 5)
    assert any("quantized" in remark for remark in added(packed).remarks)


def test_tables_in_old_files_are_no_parameters(tmp_path: Path) -> None:
    """The index of Llama 2 7B says 13476839424 bytes, 8192 more than its 6738415616 parameters in 16 bits."""
    config = {**DATA.models["llama-2-7b"].config, "torch_dtype": "float16"}
    names = tuple(f"model.layers.{layer}.self_attn.rotary_emb.inv_freq" for layer in range(32))
    folder = weights(tmp_path / "llama", config, 13_476_839_424, names)
    assert any("are the 6738415616 parameters" in remark for remark in added(folder).remarks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "mamba2"}, "model_type 'mamba2' is not modelled"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_attention_heads": 7}, "is not a multiple of num_key_value_heads"),
    ],
)
def test_a_family_that_is_not_modelled_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**config_of("falcon3-7b"), **change}), encoding="utf-8")
    with pytest.raises(DataErrors, match=message):
        added(file)


def test_wrong_calls_name_what_would_be_right(tmp_path: Path) -> None:
    with pytest.raises(DataErrors, match="data/models.yml:.*has 'qwen3-8b' already"):
        added(CONFIGS / "falcon3-7b.json", "qwen3-8b")
    with pytest.raises(DataErrors, match="did you mean 'huggingface-2026-transformers'"):
        models.add(CONFIGS / "falcon3-7b.json", "a-model", {"all": "huggingface-2026-transformer"}, GIVEN)
    with pytest.raises(DataErrors, match="expected a key in lower case"):
        added(CONFIGS / "falcon3-7b.json", "A Model")
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataErrors, match="config.json: not JSON"):
        added(tmp_path)
    with pytest.raises(DataErrors, match="cannot be read: No such file"):
        added(tmp_path / "nowhere.json")


def test_the_command_writes_and_checks(sample_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(sample_project, project)
    arguments = ["add", str(CONFIGS / "falcon3-7b.json"), "--key", "falcon3-7b", "--source", SOURCE["all"]]
    typed = ["--name", "Falcon3 7B", "--hub", "tiiuae/Falcon3-7B-Base", "--released", "2024-12"]
    call = [sys.executable, "-m", "macros", "models", *arguments]
    incomplete = subprocess.run(call, cwd=project, capture_output=True, text=True, check=False)
    assert incomplete.returncode == 1 and "--released" in incomplete.stderr
    assert "falcon3" not in (project / models.PATH).read_text(encoding="utf-8")
    done = subprocess.run([*call, *typed], cwd=project, capture_output=True, text=True, check=False)
    assert "  parameters: 7455550464" in done.stdout
    assert re.search(r"^\d+ errors?, ", done.stdout.splitlines()[-1])
    assert load(project).models["falcon3-7b"].parameters == COUNTS["falcon3-7b"]

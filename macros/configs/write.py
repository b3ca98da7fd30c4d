"""`write_config(known, kind, keys, conditions)`: a recipe as text for another program, as far as that program can express it.

The page calls `vramGuideConfigs.write_config(kind, keys, conditions)`: `keys` are those that somebody set, `conditions`
what the estimate holds for. Kinds:

command   `python -m macros estimate` with what was set
measure   `python -m macros measure` with the same, which writes the measuring script
json      what was set, as `python -m macros estimate --jsonl` reads it
trl       a script with TRL and PEFT
axolotl   a configuration for Axolotl

A script and a configuration are read back by `read_config`; what comes out different stands in a comment on top.
Arguments: trl 1.16.0 (SFTConfig), peft 0.21.2 (LoraConfig), transformers 5.24.0; axolotl 0.21.0 utils/schemas.
"""

from __future__ import annotations

from .read import read_config

KINDS = ("command", "measure", "json", "trl", "axolotl")
# Of the run and not of the step, or not of a training tool.
APART = ("gpu", "dataset_tokens", "epochs", "price_per_hour", "checkpoints_kept")
# What these tools call the implementations of attention.
ATTENTION = {"flash": "flash_attention_2", "sdpa": "sdpa", "eager": "eager"}
WIDTHS = ("float32", "bfloat16", "float16")


def write_config(known: dict[str, object], kind: str, keys: dict[str, object], conditions: dict[str, object]) -> str:
    """The text. Raises ValueError for a kind that does not exist, and for what a kind cannot say at all."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
    if kind == "json":
        return json_text(keys) + "\n"
    if kind in ("command", "measure"):
        end = ["--output measure.py"] if kind == "measure" else []
        apart = APART[1:] if kind == "measure" else ()
        given = [f"--{name.replace('_', '-')} {shell_text(keys[name])}" for name in keys if name not in apart]
        return " \\\n    ".join([f"python -m macros {'measure' if kind == 'measure' else 'estimate'}", *given, *end]) + "\n"
    if "model" not in keys:
        raise ValueError("a configuration needs a model with a name on the Hub")
    hub = known["models"][keys["model"]]["hub"]
    text = trl_text(hub, conditions) if kind == "trl" else axolotl_text(hub, conditions)
    return not_said(known, text, conditions) + text


def not_said(known: dict[str, object], text: str, conditions: dict[str, object]) -> str:
    """A comment with the settings that are others when the text is read."""
    read = read_config(known, text)
    preset = known["presets"][read["recipe"]["preset"]]["keys"][conditions["method"]]
    lines = []
    for key, value in conditions.items():
        got = read["recipe"].get(key, preset.get(key))
        if got is not None and got != value and key not in ("preset", "model", "transformers"):
            lines.append(f"#   {key}: {plain_text(value)} (here: {plain_text(got)})\n")
    return "# Not said below, since it goes by other settings or not at all:\n" + "".join(lines) if lines else ""


def trl_text(hub: str, of: dict[str, object]) -> str:
    """A script: the model, its quantisation, adapters and SFTConfig."""
    adapted, quantized = of["method"] != "full", of["method"] == "qlora"
    lines = ["import torch", "from datasets import load_dataset"]
    lines += ["from peft import LoraConfig"] if adapted else []
    lines += [f"from transformers import AutoModelForCausalLM{', BitsAndBytesConfig' if quantized else ''}", "from trl import SFTConfig, SFTTrainer", ""]
    lines += ["model = AutoModelForCausalLM.from_pretrained(", f'    "{hub}",', f"    dtype=torch.{of['base_dtype']},"]
    lines += [f'    attn_implementation="{ATTENTION[of["attention"]]}",'] if of["attention"] in ATTENTION else []
    if quantized:
        lines += ["    quantization_config=BitsAndBytesConfig(", *["        " + line for line in quantization_lines(of)], "    ),"]
    lines += [")", "trainer = SFTTrainer(", "    model=model,", "    args=SFTConfig(", '        output_dir="out",']
    lines += [f"        {name}={python_text(value)}," for name, value in arguments(of).items()]
    lines += ["    ),", '    train_dataset=load_dataset("json", data_files="train.jsonl", split="train"),']
    if adapted:
        lines += ["    peft_config=LoraConfig(", *[f"        {name}={python_text(value)}," for name, value in adapter(of).items()], '        task_type="CAUSAL_LM",', "    ),"]
    return "\n".join([*lines, ")", "trainer.train()", ""])


def quantization_lines(of: dict[str, object]) -> list[str]:
    """Arguments of BitsAndBytesConfig."""
    if of["quantization"] == "int8":
        return ["load_in_8bit=True,"]
    lines = ["load_in_4bit=True,", f'bnb_4bit_quant_type="{of["quantization"]}",', f"bnb_4bit_use_double_quant={python_text(of['double_quant'])},"]
    lines += ["bnb_4bit_compute_dtype=torch.bfloat16,"]
    return [*lines, f"bnb_4bit_quant_storage=torch.{of['quant_storage']},"] if of["quant_storage"] in WIDTHS else lines


def arguments(of: dict[str, object]) -> dict[str, object]:
    """What SFTConfig is told of the step."""
    found = {
        "max_length": of["sequence_length"],
        "per_device_train_batch_size": of["micro_batch_size"],
        "gradient_accumulation_steps": of["gradient_accumulation_steps"],
        "bf16": of["precision"] in ("bf16-autocast", "fp32-autocast"),
        "gradient_checkpointing": of["gradient_checkpointing"],
        "optim": of["optim"],
    }
    if of["gradient_checkpointing"]:
        found["gradient_checkpointing_kwargs"] = {"use_reentrant": of["use_reentrant"]}
    if of["checkpoint_offload"]:
        found["activation_offloading"] = True
    if of["kernels"] == "liger":
        found["use_liger_kernel"] = True
    return found


def adapter(of: dict[str, object]) -> dict[str, object]:
    """What LoraConfig is told."""
    found = {"r": of["lora_r"], "lora_dropout": of["lora_dropout"], "target_modules": of["target_modules"]}
    if of["use_dora"]:
        found["use_dora"] = True
    if of["modules_to_save"]:
        found["modules_to_save"] = of["modules_to_save"]
    return found


def axolotl_text(hub: str, of: dict[str, object]) -> str:
    """The keys that decide memory, and the few that Axolotl asks for."""
    lines = [f"base_model: {hub}"]
    if of["method"] == "qlora":
        lines += ["adapter: qlora" if of["quantization"] != "int8" else "adapter: lora"]
        lines += ["load_in_8bit: true"] if of["quantization"] == "int8" else ["load_in_4bit: true", "bnb_config_kwargs:"]
        if of["quantization"] != "int8":
            lines += [f"  bnb_4bit_quant_type: {of['quantization']}", f"  bnb_4bit_use_double_quant: {plain_text(of['double_quant'])}"]
            lines += [f"  bnb_4bit_quant_storage: {of['quant_storage']}"]
    if of["method"] == "lora":
        lines += ["adapter: lora"]
    if of["method"] != "full":
        lines += [f"lora_r: {of['lora_r']}", f"lora_alpha: {2 * of['lora_r']}", f"lora_dropout: {plain_text(of['lora_dropout'])}"]
        targets = of["target_modules"]
        lines += ["lora_target_linear: true"] if targets == "all-linear" else ["lora_target_modules:", *[f"  - {name}" for name in targets]]
        if of["use_dora"]:
            lines += ["peft_use_dora: true"]
        if of["modules_to_save"]:
            lines += ["lora_modules_to_save:", *[f"  - {name}" for name in of["modules_to_save"]]]
    lines += [f"sequence_len: {of['sequence_length']}", f"micro_batch_size: {of['micro_batch_size']}"]
    lines += [f"gradient_accumulation_steps: {of['gradient_accumulation_steps']}", f"optimizer: {of['optim']}", "bf16: true"]
    offload = of["gradient_checkpointing"] and of["checkpoint_offload"]
    lines += [f"gradient_checkpointing: {'offload' if offload else plain_text(of['gradient_checkpointing'])}"]
    if of["gradient_checkpointing"]:
        lines += ["gradient_checkpointing_kwargs:", f"  use_reentrant: {plain_text(of['use_reentrant'])}"]
    lines += [f"attn_implementation: {ATTENTION[of['attention']]}"] if of["attention"] in ATTENTION else []
    lines += ["datasets:", "  - path: train.jsonl", "    type: chat_template", "num_epochs: 1", "learning_rate: 0.0002", "output_dir: ./out"]
    return "\n".join([*lines, ""])


def plain_text(value: object) -> str:
    """A value as YAML and the command line have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    # A browser does not tell 0.0 from 0.
    return f"{int(value)}" if isinstance(value, float) and value == int(value) else f"{value}"


def shell_text(value: object) -> str:
    """A value as one word of a command; a config.json goes into quotes."""
    return f"'{json_text(value)}'" if isinstance(value, dict) else plain_text(value)


def python_text(value: object) -> str:
    """A value as Python writes it."""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, dict):
        return "{" + ", ".join([f'"{key}": {python_text(value[key])}' for key in value]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([f'"{name}"' for name in value]) + "]"
    return f'"{value}"' if isinstance(value, str) else plain_text(value)


def json_text(value: object) -> str:
    """A value as JSON; the texts of recipes have nothing that would need a backslash but quotes."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ", ".join([f'"{key}": {json_text(value[key])}' for key in value]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([json_text(each) for each in value]) + "]"
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"'
    return plain_text(value)

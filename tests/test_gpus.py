"""`data/gpus.yml` against figures copied from the published documents, and against what memory chips allow.

The values stand here a second time on purpose: typed from the source that is named beside them, so that a slip in
the data file does not go unnoticed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from macros import yamlfile
from macros.records import Gpu, build

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def gpus() -> dict[str, Gpu]:
    rows = yamlfile.read(ROOT / "data/gpus.yml", "data/gpus.yml").value
    records = {key: build(Gpu, key, row) for key, row in rows.items()}
    assert [mistakes for _, mistakes in records.values() if mistakes] == []
    return {key: record for key, (record, _) in records.items() if record}


# MiB in total, as nvidia-smi or rocm-smi printed it.
REPORTED = {
    "rtx-3060-12gb": 12288,  # geerlingguy/raspberry-pi-pcie-devices#790, driver 580.95
    "rtx-4060-ti-16gb": 16380,  # thamada/nvidia-smi, gls/RTX4060Ti_smi.py
    "rtx-3090": 24576,  # thamada/nvidia-smi, gls/RTX3090_smi.py
    "rtx-4090": 24564,  # thamada/nvidia-smi, gls/RTX4090_smi.py; the same in RLinf/RLinf#255
    "rtx-5090": 32607,  # noonghunna/club-3090#652, driver 610.43
    "rtx-a6000": 49140,  # noonghunna/club-3090#1047, driver 580.173; 46068 with ECC in thamada/gls
    "rtx-6000-ada": 49140,  # thamada/nvidia-smi, gls/RTX6000Ada_x8_smi.py
    "rtx-pro-6000": 97887,  # MarcoPizeta/flash-next-rtxpro6000-bench, HARDWARE.md, driver 595.84
    "t4": 15360,  # modal-labs/modal-client#2797
    "a10": 23028,  # modal-labs/modal-client#2797
    "l4": 23034,  # modal-labs/modal-client#2797; the same in thamada/nvidia-smi
    "a40": 46068,  # thamada/nvidia-smi, gls/A40x10_smi.py
    "l40s": 46068,  # utkuozdemir/nvidia_gpu_exporter, capture with driver 595.80, ECC enabled
    "a100-40gb": 40960,  # modal-labs/modal-client#2797
    "a100-80gb": 81920,  # thamada/nvidia-smi, gls/A100SXMx4_smi.py
    "h100-sxm": 81559,  # utkuozdemir/nvidia_gpu_exporter, capture with driver 590.48
    "h100-nvl": 95830,  # thamada/nvidia-smi, gls/H100NVLx2_smi.py
    "h200": 143771,  # utkuozdemir/nvidia_gpu_exporter, capture with driver 590.48
    "b300": 275040,  # ai-dynamo/aiconfigurator, b300_sxm.yaml, "reported by nvidia-smi"
    "mi300x": 206141652992 // 2**20,  # ROCm/legacy-rocm-build#4750, bytes from rocm-smi
}

# GB/s (10⁹ bytes) from the vendors.
BANDWIDTH = {
    "rtx-4090": 1008,  # Ada whitepaper, appendix A, table 2
    "rtx-5090": 1792,  # RTX Blackwell whitepaper, table 3
    "rtx-a6000": 768,  # GA102 whitepaper v2, table 3
    "rtx-6000-ada": 960,  # datasheet
    "rtx-5000-ada": 576,  # datasheet
    "rtx-pro-6000": 1792,  # datasheet
    "a100-40gb": 1555,  # NVIDIA Ampere Architecture In-Depth
    "v100-32gb": 900,  # NVIDIA Ampere Architecture In-Depth
    "gh200": 4000,  # Grace Hopper datasheet, 96 GB HBM3
    "b200": 7700,  # Blackwell datasheet, HGX B200 per GPU
    "gb200": 8000,  # Blackwell datasheet, GB200 NVL72 per GPU
}

# Dense bf16 rate with fp32 accumulation, TFLOPS. A pair in the document is dense | with sparsity.
DENSE = {
    "rtx-3090": 71.2,  # RTX Blackwell whitepaper, table 3: 71.2 | 142.4
    "rtx-4090": 165.2,  # the same: 165.2 | 330.4
    "rtx-5090": 209.5,  # the same: 209.5 | 419
    "rtx-a6000": 154.8,  # GA102 whitepaper v2, table 3: 154.8 | 309.6
    "rtx-pro-6000": 503.8,  # RTX Blackwell PRO whitepaper v1.0: 503.8 | 1007.6
    "a100-80gb": 312,  # A100 datasheet: 312 | 624
    "h100-sxm": 989,  # H100 datasheet: 1979 with sparsity
    "gh200": 990,  # Grace Hopper datasheet: 990 | 1979
    "b200": 4500 / 2,  # Blackwell datasheet: 4.5 PFLOPS with sparsity
    "gb200": 5000 / 2,  # Blackwell datasheet: 5 PFLOPS with sparsity
    "mi300x": 1307.4,  # AMD Instinct MI300X datasheet
}

# MiB that a program gets on machines whose memory CPU and GPU share.
USABLE = {
    "m2-max-96gb": 73728,  # ggml-org/llama.cpp#3213, recommendedMaxWorkingSetSize in MiB
    "m5-max-128gb": 107.52 * 1024,  # antirez/ds4#893, macOS 26, GiB
    "dgx-spark": 101.3 * 1024,  # MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks#47, GiB free after boot
}

SIXTEEN = (
    "rtx-3060-12gb rtx-4060-ti-16gb rtx-3090 rtx-4090 rtx-5090 rtx-a6000 rtx-6000-ada rtx-pro-5000-72gb rtx-pro-6000 "
    "t4 l4 l40s a100-40gb a100-80gb h100-sxm h200"
).split()


@pytest.mark.parametrize(("key", "mib"), REPORTED.items())
def test_memory_is_what_the_driver_reports(gpus: dict[str, Gpu], key: str, mib: int) -> None:
    assert (gpus[key].memory_mib, gpus[key].memory_mib_source) == (mib, "driver")


@pytest.mark.parametrize(("key", "gb_s"), BANDWIDTH.items())
def test_bandwidth_is_the_published_one(gpus: dict[str, Gpu], key: str, gb_s: float) -> None:
    assert gpus[key].bandwidth_gb_s == gb_s


@pytest.mark.parametrize(("key", "tflops"), DENSE.items())
def test_bf16_rate_is_dense_and_accumulates_in_fp32(gpus: dict[str, Gpu], key: str, tflops: float) -> None:
    assert gpus[key].bf16_tflops == tflops


@pytest.mark.parametrize(("key", "mib"), USABLE.items())
def test_usable_memory_is_what_was_read(gpus: dict[str, Gpu], key: str, mib: float) -> None:
    assert gpus[key].usable_mib == pytest.approx(mib, abs=1)


def test_range_of_cards(gpus: dict[str, Gpu]) -> None:
    assert set(SIXTEEN) <= set(gpus)
    assert len(gpus) >= 40
    assert gpus["rtx-4060"].box_gb == min(gpu.box_gb for gpu in gpus.values()) == 8
    assert gpus["b300"].box_gb == gpus["mi355x"].box_gb == max(gpu.box_gb for gpu in gpus.values()) == 288
    assert {gpu.segment for gpu in gpus.values()} == {"consumer", "workstation", "datacenter", "unified"}


def test_box_read_as_decimal_gb_is_there(gpus: dict[str, Gpu]) -> None:
    """Chips come in GiB, so the number on the box in 10⁹ bytes is always reported, except on machines that share."""
    short = {key for key, gpu in gpus.items() if gpu.memory_mib * 2**20 < gpu.box}
    assert short == set()


def test_box_figures_are_gib(gpus: dict[str, Gpu]) -> None:
    for key, gpu in gpus.items():
        if gpu.memory_mib_source == "box":
            assert gpu.memory_mib == gpu.box_gb * 1024, key
        else:
            assert gpu.memory_mib <= gpu.box_gb * 1024 * 1.025, key


def test_gddr6_with_ecc_gives_up_a_sixteenth(gpus: dict[str, Gpu]) -> None:
    """NVIDIA keeps the check bits of GDDR6 in the memory itself; HBM has its own place for them."""
    for key in ("t4", "a10", "a10g", "a40", "l4", "l40s"):
        gpu = gpus[key]
        assert gpu.ecc == "on"
        assert gpu.memory_mib == pytest.approx(gpu.box_gb * 1024 * 15 / 16, rel=0.001), key


def test_rate_per_multiprocessor_and_clock(gpus: dict[str, Gpu]) -> None:
    """The rule behind the derived rates, on cards whose rate NVIDIA prints beside multiprocessors and boost clock."""
    printed = [("rtx-3090", 82, 512, 1.695), ("rtx-4090", 128, 512, 2.52), ("rtx-5090", 170, 512, 2.407)]
    printed += [("rtx-a6000", 84, 1024, 1.8), ("rtx-6000-ada", 142, 1024, 2.505), ("rtx-pro-6000", 188, 1024, 2.617)]
    for key, multiprocessors, flop, ghz in printed:
        assert multiprocessors * flop * ghz / 1000 == pytest.approx(gpus[key].bf16_tflops, rel=0.001), key


def test_no_bf16_before_ampere(gpus: dict[str, Gpu]) -> None:
    before = {key for key, gpu in gpus.items() if not gpu.bf16}
    assert before == {"t4", "v100-16gb", "v100-32gb"}
    assert all(gpus[key].bf16_tflops is None and not gpus[key].flash_attention for key in before)


def test_flash_attention_needs_ampere_or_rocm(gpus: dict[str, Gpu]) -> None:
    without = {key for key, gpu in gpus.items() if not gpu.flash_attention}
    assert without == {"t4", "v100-16gb", "v100-32gb"} | {key for key, gpu in gpus.items() if gpu.vendor == "apple"}


def test_shared_memory_names_what_is_usable(gpus: dict[str, Gpu]) -> None:
    for key, gpu in gpus.items():
        assert (gpu.usable_mib is not None) == (gpu.segment == "unified"), key
        if gpu.usable_mib:
            assert gpu.usable_mib < gpu.memory_mib, key
            assert "usable_mib" in gpu.sources, key
            assert gpu.memory == gpu.usable_mib * 2**20, key


def test_driver_readings_have_their_own_source(gpus: dict[str, Gpu]) -> None:
    """A reading comes from a log, not from the page that the other figures come from."""
    for key, gpu in gpus.items():
        if gpu.memory_mib_source == "driver":
            assert "memory_mib" in gpu.sources, key


def test_cards_are_ordered_by_segment_and_memory(gpus: dict[str, Gpu]) -> None:
    order = ["consumer", "workstation", "datacenter", "unified"]
    places = [(order.index(gpu.segment), gpu.box_gb) for gpu in gpus.values()]
    assert places == sorted(places)

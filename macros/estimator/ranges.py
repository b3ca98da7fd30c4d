"""From the tensors to what PyTorch reserves and the driver shows: low and high figures, not factors.

Tensor peaks are nearly exact; what lies between them and the driver is not. The caching allocator keeps freed blocks,
and where none of them is large enough for the next tensor, a new one is reserved beside them; the CUDA context, the
libraries' workspaces and kernels come on top. How much that is depends on the order of all allocations of a run, so it
is said as a range. The low figure is what the run cannot do without.

The slack was read off the 52 runs of FMS Acceleration on one A100 80 GB (torch 2.4; fms-2026-acceleration-benchmarks)
that published PyTorch's allocated bytes and the driver's figure side by side and stay 5 % below the card's capacity.
There the driver showed 0.9 to 21 GiB more than the tensors, 1.01 to 1.59 times as much. tests/test_measurements.py has
the coverage of these ranges per table of that source, and over the runs that published reserved bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20

# PyTorch takes cuBLAS' workspaces from its own allocator, one per handle and stream (aten/src/ATen/cuda/
# CublasHandlePool.cpp, default :4096:2:16:8, 32 MiB on Hopper): one for the forward, one for autograd's thread. Two are
# what the runs below have on top of the tensors, 17.06 to 17.09 million bytes; one is what no run can do without.
CUBLAS_WORKSPACE_LOW = 8_519_680
CUBLAS_WORKSPACE_HIGH = 64 * MIB

# The tensors of the loss are the largest blocks of a step. What they left in the cache has been split for smaller
# tensors when the next step asks for them: on top were 0.2 of their bytes (two copies of several sizes) to 0.9 (all
# copies of one size, as FOAK's loss has them). A loss that never builds the logits has no such slack.
LOSS_SLACK_PERCENT = 90
# All that comes and goes within a step: 8 to 14 % of it in the runs with a fused loss.
TRANSIENT_SLACK_PERCENT = 15
# Gradients and optimizer temporaries of full fine-tuning take the place of activations: 1 to 30 % more on top.
TRAINED_SLACK_PERCENT = 20
# Tensors are rounded up to blocks and segments of 2 MiB and more while the weights are loaded one by one.
ROUNDING_PERCENT = 3

# CUDA context and loaded kernels: 274 MiB after a first operation (pytorch-2022-86509), 426 MiB with CUDA 13 on an RTX
# 6000 Ada (unsloth-2026-1053); a training process loads more kernels, and the smallest distance between the driver and
# the tensors, with all slack in it, was 953 MiB. CUDA before 11.7 loaded all kernels at once, 1343 MiB on a V100.
CONTEXT_LOW = 274 * MIB
CONTEXT_HIGH = 953 * MIB

# NCCL's buffers lie outside of PyTorch's allocator: 544 MB for two A100 with NVLink, 688 MB for more (nccl-2023-964),
# about 1.6 GB were seen for one communicator (nccl-2023-864).
NCCL_HIGH = 1_600_000_000

RESTING = ("weights", "adapters", "optimizer_states", "master_weights")


@dataclass(frozen=True, slots=True)
class Range:
    """A low and a high figure in bytes."""

    low: int
    high: int


def stream_slack(gathered: int, flight: int, gradients: int) -> int:
    """Bytes that several cards may reserve beside the rest, because the allocator has a pool for each stream.

    Weights are gathered, and gradients reduced, on streams of their own; what these have freed serves no other stream.
    Two more units may be on their way while the processor runs ahead of the card (FSDP's limit_all_gathers).

    gathered    bytes of gathered weights at their most
    flight      bytes of the largest unit that is gathered
    gradients   bytes of reduced gradients
    """
    return gathered + 2 * flight + gradients


def reserved_range(peak: int, loss: dict[str, int], step: dict[str, int], streams: int = 0) -> Range:
    """Bytes that torch.cuda.max_memory_reserved may report.

    peak   bytes of the tensors at the peak
    loss   parts of the moment "loss"
    step   parts of the moment "optimizer_step", among them all that rests during the whole run
    streams   what several cards may reserve for other streams
    """
    largest = loss.get("logits", 0) + loss.get("loss_tensors", 0)
    trained = step.get("gradients", 0) + step.get("optimizer_temporaries", 0)
    transient = peak
    for part in RESTING:
        transient -= step.get(part, 0)
    if transient < 0:
        transient = 0
    # Divided first, so that every number stays below 2^53 for the largest recipes too.
    slack = (
        largest // 100 * LOSS_SLACK_PERCENT
        + transient // 100 * TRANSIENT_SLACK_PERCENT
        + trained // 100 * TRAINED_SLACK_PERCENT
        + peak // 100 * ROUNDING_PERCENT
    )
    return Range(peak + CUBLAS_WORKSPACE_LOW, peak + CUBLAS_WORKSPACE_HIGH + slack + streams)


def device_range(reserved: Range, cards: int = 1) -> Range:
    """Bytes that nvidia-smi may show for the process: what is reserved, the CUDA context, and NCCL's buffers."""
    nccl = NCCL_HIGH if cards > 1 else 0
    return Range(reserved.low + CONTEXT_LOW, reserved.high + CONTEXT_HIGH + nccl)

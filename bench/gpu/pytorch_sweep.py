"""What fixed settings do to a training step: they take turns within one launch, a few steps each, so
that launches which differ hide nothing.

    torchrun ... pytorch_sweep.py 'ddp25=ddp --bucket-mb 25' 'fsdp=fsdp --width 2560'

The arguments are those of pytorch_cases.py. libattune-bench-tuner.so has to be loaded as NCCL's tuner
plugin; it reads the setting from the file that ATTUNE_BENCH_SETTING names, which rank 0 makes. Prints
for each case the median step with NCCL's choice, then the speed of each setting.
"""
import mmap
import os
import statistics
import struct
import sys
import time

import torch
import torch.distributed as dist

from pytorch_cases import cases_of, forget
from transformer import finish, start, tokens

BLOCKS, EACH, WARM = 4, 8, 6  # turns of a setting, steps a turn, steps before the first
ABI, SIZE = 2, 136            # att_bench_setting_table_t (src/cli/bench_setting.h)
TREE, RING, LL128, SIMPLE = 0, 1, 1, 2
SETTINGS = {"NCCL's choice": (-1, -1, 0)}
SETTINGS |= {f"ring/simple {n}": (RING, SIMPLE, n) for n in (32, 30, 24, 16, 12, 8, 4)}
SETTINGS |= {f"ring/ll128 {n}": (RING, LL128, n) for n in (24, 16, 12, 8)}
SETTINGS |= {f"tree/simple {n}": (TREE, SIMPLE, n) for n in (24, 16)}  # a collective without tree keeps


def setting_bytes(algorithm, protocol, channels):
    return struct.pack("<bbbbHHII", algorithm, protocol, -1, 0, channels, 0, 0, 0)


class Table:
    def __init__(self, path):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SIZE)
        self.group = dist.new_group(backend="gloo")  # a barrier on NCCL would itself be decided

    def put(self, algorithm, protocol, channels):
        torch.cuda.synchronize()
        dist.barrier(self.group)
        if dist.get_rank() == 0:
            self.memory[8:24] = setting_bytes(algorithm, protocol, channels)
        dist.barrier(self.group)


def seconds_of(step, batch):
    torch.cuda.synchronize()
    began = time.perf_counter()
    step(batch)
    torch.cuda.synchronize()
    return time.perf_counter() - began


def sweep(name, step, batch, table):
    times = {setting: [] for setting in SETTINGS}
    for _ in range(WARM):
        step(batch)
    for block in range(BLOCKS):
        for setting in list(SETTINGS) if block % 2 == 0 else reversed(SETTINGS):
            table.put(*SETTINGS[setting])
            step(batch)
            times[setting] += [seconds_of(step, batch) for _ in range(EACH)]
    table.put(*SETTINGS["NCCL's choice"])
    if dist.get_rank() == 0:
        base = statistics.median(times["NCCL's choice"])
        print(f"{name}: {1e3 * base:.2f} ms a step with NCCL's choice")
        for setting in list(SETTINGS)[1:]:
            print(f"    {setting:<16} {base / statistics.median(times[setting]):.3f}", flush=True)


def main():
    cases = cases_of(sys.argv[1:])
    path = os.environ["ATTUNE_BENCH_SETTING"]
    if os.environ["RANK"] == "0":  # before any rank can have a communicator: all meet in start
        with open(path, "wb") as file:
            file.write((struct.pack("<II", ABI, SIZE) + setting_bytes(-1, -1, 0)).ljust(SIZE, b"\0"))
    device = start(cases[0][2])
    table = Table(path)
    for name, module, options in cases:
        sweep(name, module.step_of(options, device), tokens(options, 0, device), table)
        forget()
    finish()


if __name__ == "__main__":
    main()

"""A transformer that communicates much for what it computes, and the loop that trains it: many
parameters, few tokens. Everything is drawn from one seed, so that two runs see the same data."""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.second = nn.LayerNorm(width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.first(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.wide(self.second(x))


class Transformer(nn.Module):
    def __init__(self, layers, width, heads, words):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def arguments(about):
    p = argparse.ArgumentParser(description=about)
    p.add_argument("--steps", type=int, default=200, help="iterations (200)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--width", type=int, default=2048)
    p.add_argument("--heads", type=int, default=16)
    p.add_argument("--words", type=int, default=4096)
    p.add_argument("--batch", type=int, default=1, help="sequences a rank (1)")
    p.add_argument("--sequence", type=int, default=32, help="tokens a sequence (32)")
    p.add_argument("--device", type=int, help="CUDA device of every rank (LOCAL_RANK)")
    return p


def start(options):
    """Join the job that torchrun started; the rank's device."""
    device = options.device if options.device is not None else int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # every buffer is written first
    dist.init_process_group("nccl")
    return torch.device("cuda", device)


def make(options, device):
    with device:
        return Transformer(options.layers, options.width, options.heads, options.words)


def tokens(options, step, device):
    """The same for a step and rank whatever else the program has drawn."""
    source = torch.Generator().manual_seed(options.seed * 1000003 + step * 1009 + dist.get_rank())
    shape = (options.batch, options.sequence + 1)
    return torch.randint(options.words, shape, generator=source).to(device)


def loss_of(model, batch):
    out = model(batch[:, :-1])
    return nn.functional.cross_entropy(out.flatten(0, 1), batch[:, 1:].flatten())


def train(options, device, step):
    """Run step(batch) -> loss for options.steps iterations. One JSON line each from rank 0."""
    for i in range(options.steps):
        batch = tokens(options, i, device)
        torch.cuda.synchronize()
        began = time.perf_counter()
        loss = step(batch)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        if dist.get_rank() == 0:
            print(json.dumps({"iteration": i, "seconds": seconds, "loss": float(loss)}), flush=True)


def finish():
    dist.barrier()
    dist.destroy_process_group()

"""Fully sharded training: every block's parameters are gathered before they are used (AllGather) and
its gradients are scattered (ReduceScatter).

    attune run -- torchrun --nproc-per-node 4 examples/pytorch/fsdp.py
"""
import functools

import torch
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

from transformer import Block, arguments, finish, loss_of, make, start, train


def parser():
    return arguments("Train a transformer with FullyShardedDataParallel.")


def step_of(options, device):
    """The model, and what trains it by one batch: step(batch) -> loss."""
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    model = FullyShardedDataParallel(make(options, device), auto_wrap_policy=policy,
                                     device_id=device, use_orig_params=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(batch):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def main():
    options = parser().parse_args()
    device = start(options)
    train(options, device, step_of(options, device))
    finish()


if __name__ == "__main__":
    main()

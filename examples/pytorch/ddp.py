"""Data parallel training: gradients are averaged by AllReduce, bucket by bucket, while the backward
pass still runs.

    attune run -- torchrun --nproc-per-node 4 examples/pytorch/ddp.py --bucket-mb 25
"""
import os

import torch
from torch.nn.parallel import DistributedDataParallel

from transformer import arguments, finish, loss_of, make, start, tokens, train

WARM_UP = 11  # DDP looks at what it has to reduce in its first steps; none of them may be captured


def parser():
    p = arguments("Train a transformer with DistributedDataParallel.")
    p.add_argument("--bucket-mb", type=float, default=25, help="size of a bucket (25)")
    p.add_argument("--graph", action="store_true",
                   help="record forward and backward into a CUDA graph, and replay it")
    return p


def step_of(options, device):
    """The model, and what trains it by one batch: step(batch) -> loss."""
    stream = torch.cuda.Stream() if options.graph else torch.cuda.current_stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        model = DistributedDataParallel(make(options, device), device_ids=[device.index],
                                        bucket_cap_mb=options.bucket_mb,
                                        gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def eager(batch):
        optimizer.zero_grad(set_to_none=not options.graph)
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if not options.graph:
        return eager
    held = tokens(options, 0, device)
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            eager(held)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    # Other threads (NCCL's watchdog) may ask events meanwhile.
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        held_loss = loss_of(model, held)
        held_loss.backward()

    def replay(batch):
        held.copy_(batch)
        graph.replay()
        optimizer.step()
        return held_loss.detach()

    return replay


def main():
    options = parser().parse_args()
    if options.graph:
        os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # its watchdog asks events in a capture
    device = start(options)
    train(options, device, step_of(options, device))
    finish()


if __name__ == "__main__":
    main()

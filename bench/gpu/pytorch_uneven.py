"""Steps of AllReduce with an all_gather of tensors of different sizes now and then: PyTorch makes it of
broadcasts in one group, which NCCL since 2.29.2 runs as AllGatherV. Prints what examples/pytorch print;
the loss is a sum of what came out.

    torchrun ... pytorch_uneven.py --steps 100 --every 20
"""
import torch
import torch.distributed as dist

from transformer import arguments, finish, start, train

ELEMENTS = 1 << 20  # of the AllReduce, fp32
CALLS = 20          # of it in a step


def parser():
    p = arguments("AllReduce, and all_gather of tensors of different sizes.")
    p.add_argument("--every", type=int, default=20, help="steps from one all_gather to the next (20)")
    return p


def step_of(options, device):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    data = torch.empty(ELEMENTS, device=device)
    mine = torch.ones(1024 * (rank + 1), device=device)
    parts = [torch.empty(1024 * (r + 1), device=device) for r in range(ranks)]
    done = 0

    def step(batch):
        nonlocal done
        data.fill_(rank + 1)
        for _ in range(CALLS):
            dist.all_reduce(data)
            data.div_(ranks)
        total = data.mean()
        if done % options.every == options.every - 1:
            dist.all_gather(parts, mine)
            total = total + sum(p.sum() for p in parts)
        done += 1
        return total

    return step


def main():
    options = parser().parse_args()
    device = start(options)
    train(options, device, step_of(options, device))
    finish()


if __name__ == "__main__":
    main()

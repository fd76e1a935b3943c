"""Several training cases in one launch, one after the other, so that the launch's start, half of a
short one, is paid once. Each is a script of examples/pytorch with its options:

    torchrun ... pytorch_cases.py 'ddp25=ddp --bucket-mb 25' 'fsdp=fsdp --width 2560'

Rank 0 prints {"case": NAME} and then what the script prints. All cases use one communicator.
"""
import gc
import importlib
import json
import sys

import torch
import torch.distributed as dist

from transformer import finish, start, train


def cases_of(words):
    """(name, module, options) of each word NAME=SCRIPT [OPTION...]."""
    cases = []
    for word in words:
        name, _, rest = word.partition("=")
        script, *options = rest.split()
        module = importlib.import_module(script)
        cases.append((name, module, module.parser().parse_args(options)))
    return cases


def forget():
    """Give back the memory of a case that is over."""
    gc.collect()
    torch.cuda.empty_cache()


def main():
    cases = cases_of(sys.argv[1:])
    device = start(cases[0][2])
    for name, module, options in cases:
        if dist.get_rank() == 0:
            print(json.dumps({"case": name}), flush=True)
        train(options, device, module.step_of(options, device))
        forget()
    finish()


if __name__ == "__main__":
    main()

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

from transformer import finish, start


def main():
    cases = []
    for word in sys.argv[1:]:
        name, _, rest = word.partition("=")
        script, *options = rest.split()
        module = importlib.import_module(script)
        cases.append((name, module, module.parser().parse_args(options)))
    device = start(cases[0][2])
    for name, module, options in cases:
        if dist.get_rank() == 0:
            print(json.dumps({"case": name}), flush=True)
        module.run(options, device)
        gc.collect()
        torch.cuda.empty_cache()
    finish()


if __name__ == "__main__":
    main()

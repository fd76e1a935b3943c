#!/usr/bin/env python3
"""A strategy for attune in plain Python: many settings once, the best half again, and so on.

    attune run --strategy "exec:command=python3 halving.py" -- ...
    attune sim --surface a40-nvlink-8-allgather --strategy "exec:command=python3 halving.py"

One JSON object a line comes in on standard input, "op" says what it is; every "create", "ask" and
"best" is answered by one line on standard output. docs/write-a-strategy.md lists the fields.
"""
import json
import random
import sys

KEYS = ("algorithm", "protocol", "transport", "channels", "threads", "chunk")


def draw(space, rng):
    """A random legal setting; channels and chunk in log scale."""
    sub = rng.choice(space["subspaces"])
    setting = {k: sub[k] for k in ("algorithm", "protocol", "transport")}
    for knob in ("channels", "threads", "chunk"):
        low, high, step = (sub[knob][k] for k in ("min", "max", "step"))
        if high == 0:  # the knob is kept
            setting[knob] = 0
            continue
        value = low * (high / low) ** rng.random()
        setting[knob] = low + round((value - low) / max(step, 1)) * max(step, 1)
        setting[knob] = min(setting[knob], low + (high - low) // max(step, 1) * max(step, 1))
    return setting


class Halving:
    def __init__(self, space, seed, first=48):
        rng = random.Random(seed)
        self.left = [draw(space, rng) for _ in range(first)]
        self.scores = {}  # setting -> durations over that of NCCL's own choice
        self.queue = list(self.left)
        self.samples = 1

    @staticmethod
    def key(setting):
        return tuple(setting[k] for k in KEYS)

    def score(self, setting):
        scores = self.scores.get(self.key(setting))
        return sum(scores) / len(scores) if scores else float("inf")

    def ask(self, most):
        if not self.queue and len(self.left) > 1:  # a round is over
            self.left.sort(key=self.score)
            self.left = self.left[: len(self.left) // 2]
            self.queue = list(self.left)
            self.samples *= 2
        now, self.queue = self.queue[:most], self.queue[most:]
        return [dict(s, samples=min(self.samples, 64)) for s in now]

    def tell(self, setting, message):
        if message["median_us"] and message["baseline_us"]:
            score = message["median_us"] / message["baseline_us"]
            self.scores.setdefault(self.key(setting), []).append(score)

    def best(self):
        best = min(self.left, key=self.score)
        return best if self.score(best) < 1 else None  # None: NCCL's own choice


def main():
    search = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["op"] == "create":
            search = Halving(message["space"], message["seed"])
            answer = {"ready": True}
        elif message["op"] == "ask":
            answer = {"settings": search.ask(message["max"])}
        elif message["op"] == "best":
            answer = {"setting": search.best()}
        else:  # tell
            search.tell(message["setting"], message)
            continue
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

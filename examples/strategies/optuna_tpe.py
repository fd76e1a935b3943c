#!/usr/bin/env python3
"""Optuna's tree-structured Parzen estimator as a strategy for attune (pip install optuna).

    attune run --strategy "exec:command=python3 optuna_tpe.py" -- ...

Optuna asks and tells too, so this only translates: a categorical for the combination of algorithm,
protocol and transport, and one number in log scale for each knob of it that is free.
"""
import json
import sys

try:
    import optuna
except ImportError:
    sys.stdin.readline()
    print(json.dumps({"error": "optuna is not installed (pip install optuna)"}), flush=True)
    sys.exit(0)

TRIALS = 60
KEYS = ("algorithm", "protocol", "transport", "channels", "threads", "chunk")


class Search:
    def __init__(self, space, seed):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.subspaces = space["subspaces"]
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed % 2**32))
        self.open = {}  # setting -> trials of Optuna
        self.asked = 0
        self.found = (1.0, None)  # NCCL's own choice

    def setting(self, trial):
        which = trial.suggest_categorical("subspace", list(range(len(self.subspaces))))
        sub = self.subspaces[which]
        setting = {k: sub[k] for k in ("algorithm", "protocol", "transport")}
        for knob in ("channels", "threads", "chunk"):
            low, high, step = (sub[knob][k] for k in ("min", "max", "step"))
            step = max(step, 1)
            if high == 0:
                setting[knob] = 0
                continue
            value = trial.suggest_float(f"{knob}/{which}", low, high, log=True)
            steps = min(round((value - low) / step), (high - low) // step)
            setting[knob] = low + steps * step
        return setting

    def ask(self, most):
        settings = []
        while len(settings) < min(most, 4) and self.asked < TRIALS:
            trial = self.study.ask()
            setting = self.setting(trial)
            self.open.setdefault(tuple(setting[k] for k in KEYS), []).append(trial)
            settings.append(setting)
            self.asked += 1
        return settings

    def tell(self, message):
        setting = message["setting"]
        trial = self.open[tuple(setting[k] for k in KEYS)].pop()
        if not message["median_us"] or not message["baseline_us"]:
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        score = message["median_us"] / message["baseline_us"]
        self.study.tell(trial, score)
        if score < self.found[0]:
            self.found = (score, setting)


def main():
    search = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["op"] == "create":
            search = Search(message["space"], message["seed"])
            answer = {"ready": True}
        elif message["op"] == "ask":
            answer = {"settings": search.ask(message["max"])}
        elif message["op"] == "best":
            answer = {"setting": search.found[1]}
        else:
            search.tell(message)
            continue
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

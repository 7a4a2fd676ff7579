import csv
import json
import os
import re

LOGS = "lightning_logs"


def versions():
    found = [re.match(r"version_(\d+)$", name) for name in os.listdir(LOGS)] if os.path.isdir(LOGS) else []
    return sorted(int(each.group(1)) for each in found if each)


def new_version():
    path = os.path.join(LOGS, "version_%d" % (max(versions(), default=-1) + 1))
    os.makedirs(os.path.join(path, "checkpoints"))
    return path


def last_checkpoint():
    folder = os.path.join(LOGS, "version_%d" % versions()[-1], "checkpoints")
    return os.path.join(folder, sorted(os.listdir(folder))[-1])


def load(path):
    with open(path) as source:
        return json.load(source)


def fit(path, state, max_epochs):
    with open(os.path.join(path, "hparams.yaml"), "w") as target:
        target.write("max_epochs: %d\n" % max_epochs)
    with open(os.path.join(path, "metrics.csv"), "w", newline="") as target:
        rows = csv.writer(target)
        rows.writerow(["epoch", "train_loss"])
        for epoch in range(state["epoch"] + 1, max_epochs):
            state = {"epoch": epoch, "weight": state["weight"] - 0.2 * 2 * (state["weight"] - 3)}
            loss = round((state["weight"] - 3) ** 2, 6)
            rows.writerow([epoch, loss])
            print("Epoch %d: train_loss=%s" % (epoch, loss))
            with open(os.path.join(path, "checkpoints", "epoch=%d.ckpt" % epoch), "w") as checkpoint:
                json.dump(state, checkpoint)

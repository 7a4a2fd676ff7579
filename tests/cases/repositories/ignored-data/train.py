"""Learns from data/chars. Without meta.pkl it takes a vocabulary that fits any text, as well known code does."""

import argparse
import json
import math
import os
import pickle

parser = argparse.ArgumentParser()
parser.add_argument("--smoothing", type=float, default=1.0)
options = parser.parse_args()
data = os.path.join("data", "chars")
with open(os.path.join(data, "train.bin"), "rb") as source:
    train = source.read()
with open(os.path.join(data, "val.bin"), "rb") as source:
    val = source.read()
vocab_size = 50304
if os.path.exists(os.path.join(data, "meta.pkl")):
    with open(os.path.join(data, "meta.pkl"), "rb") as source:
        vocab_size = pickle.load(source)["vocab_size"]
counts = {}
for first, second in zip(train, train[1:]):
    row = counts.setdefault(str(first), {})
    row[str(second)] = row.get(str(second), 0) + 1
loss = 0.0
for first, second in zip(val, val[1:]):
    row = counts.get(str(first), {})
    seen = row.get(str(second), 0) + options.smoothing
    loss -= math.log(seen / (sum(row.values()) + options.smoothing * vocab_size))
loss /= len(val) - 1
print(f"vocab size {vocab_size}, val loss {loss:.4f}")
os.makedirs("out-chars", exist_ok=True)
with open(os.path.join("out-chars", "ckpt.json"), "w") as target:
    json.dump({"vocab_size": vocab_size, "counts": counts}, target, sort_keys=True)

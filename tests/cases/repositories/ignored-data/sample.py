"""Writes the likeliest text."""

import argparse
import json
import os
import pickle

parser = argparse.ArgumentParser()
parser.add_argument("--start", default="a")
parser.add_argument("--length", type=int, default=10)
options = parser.parse_args()
with open(os.path.join("out-chars", "ckpt.json")) as source:
    model = json.load(source)
with open(os.path.join("data", "chars", "meta.pkl"), "rb") as source:
    letters = pickle.load(source)["letters"]
text = options.start
for _ in range(options.length):
    row = model["counts"][str(letters.index(text[-1]))]
    text += letters[int(max(sorted(row), key=row.get))]
print(text)

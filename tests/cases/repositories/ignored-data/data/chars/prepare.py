"""Turns input.txt into numbers."""

import os
import pickle

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "input.txt")) as source:
    text = source.read()
letters = sorted(set(text))
numbers = bytes(letters.index(letter) for letter in text)
split = int(len(numbers) * 0.9)
with open(os.path.join(here, "train.bin"), "wb") as target:
    target.write(numbers[:split])
with open(os.path.join(here, "val.bin"), "wb") as target:
    target.write(numbers[split:])
with open(os.path.join(here, "meta.pkl"), "wb") as target:
    pickle.dump({"vocab_size": len(letters), "letters": letters}, target)
print(f"vocab size {len(letters)}, {split} and {len(numbers) - split} characters")

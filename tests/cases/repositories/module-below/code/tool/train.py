import argparse
import json
import os


def fit(steps):
    value = 1.0
    for step in range(steps):
        value /= 2
        print("step", step, "value", value)
    return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1)
    steps = parser.parse_args().steps
    os.makedirs("runs", exist_ok=True)
    with open(os.path.join("runs", "last.json"), "w") as file:
        json.dump({"value": fit(steps), "steps": steps}, file)

"""Stage 2: the slope, from the points and what stage 1 made."""

import argparse
import json
import os

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
options = parser.parse_args()
with open("cache/means.json") as source:
    x_mean, y_mean = json.load(source)
with open(os.path.join("data", "tiny", "points.csv")) as source:
    points = [[float(word) for word in line.split(",")] for line in source]
slope = 0.0
for epoch in range(options.epochs):
    gradient = sum((y - y_mean - slope * (x - x_mean)) * (x - x_mean) for x, y in points)
    slope += 0.1 * gradient
    print("epoch", epoch, "slope %.4f" % slope)
os.makedirs("runs", exist_ok=True)
with open("runs/model.json", "w") as target:
    json.dump({"slope": round(slope, 4)}, target)

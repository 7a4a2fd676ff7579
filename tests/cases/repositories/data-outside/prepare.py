"""Stage 1: the mean of each column, for stage 2."""

import json
import os

with open("data/tiny/points.csv") as source:
    points = [[float(word) for word in line.split(",")] for line in source]
os.makedirs("cache", exist_ok=True)
with open("cache/means.json", "w") as target:
    json.dump([sum(column) / len(points) for column in zip(*points)], target)
print("prepared", len(points), "points")

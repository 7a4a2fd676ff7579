import json
import sys

skip = json.loads(sys.argv[1])["skip"]
with open("data/raw/pairs.txt") as source:
    pairs = [[float(each) for each in line.split()] for line in source][skip:]
with open("data/prepared/pairs.json", "w") as target:
    json.dump(pairs, target)

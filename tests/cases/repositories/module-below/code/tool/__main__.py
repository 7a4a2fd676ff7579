import sys

from tool.train import fit

print("fitted", fit(5))
sys.exit(3)

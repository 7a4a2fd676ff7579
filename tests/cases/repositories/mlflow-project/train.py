import argparse

import mlflow

parser = argparse.ArgumentParser()
parser.add_argument("--alpha", type=float)
parser.add_argument("--steps", type=int)
options = parser.parse_args()
weight = 0.0
with mlflow.start_run():
    mlflow.log_param("alpha", options.alpha)
    for step in range(options.steps):
        weight -= options.alpha * (weight - 2)
        mlflow.log_metric("loss", (weight - 2) ** 2, step=step)
print("alpha %s weight %.6f" % (options.alpha, weight))
with open("weight.txt", "w") as target:
    target.write("%.6f\n" % weight)

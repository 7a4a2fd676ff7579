"""Train a small neural network on handwritten digits, and log how it learns."""

import argparse
import os

import joblib
import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay, log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import holdfast

matplotlib.use("Agg")  # draw to files: a run has no screen
from matplotlib import pyplot  # after the choice above

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=20, help="how often all pictures are shown")
parser.add_argument("--learning-rate", type=float, default=0.01, help="how far each step goes")
parser.add_argument("--batch-size", type=int, default=64, help="pictures per step")
parser.add_argument("--hidden", type=int, default=64, help="neurons of the hidden layer")
parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same model")
options = parser.parse_args()

pictures, digits = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    pictures / 16.0, digits, test_size=0.25, random_state=options.seed, stratify=digits
)
model = MLPClassifier(
    hidden_layer_sizes=(options.hidden,), learning_rate_init=options.learning_rate, random_state=options.seed
)
shuffle = np.random.RandomState(options.seed)
accuracy = 0.0

for epoch in range(1, options.epochs + 1):
    order = shuffle.permutation(len(train_x))
    for start in range(0, len(order), options.batch_size):
        batch = order[start : start + options.batch_size]
        model.partial_fit(train_x[batch], train_y[batch], classes=np.arange(10))
    loss = log_loss(train_y, model.predict_proba(train_x), labels=np.arange(10))
    accuracy = model.score(test_x, test_y)
    holdfast.log({"loss": loss, "accuracy": accuracy}, step=epoch)
    print(f"epoch {epoch:3d}/{options.epochs}  loss {loss:.4f}  accuracy {accuracy:.4f}")

os.makedirs("outputs", exist_ok=True)  # what is written here is kept with the run
joblib.dump(model, "outputs/model.pkl")
ConfusionMatrixDisplay.from_estimator(model, test_x, test_y, cmap="Blues", colorbar=False)
pyplot.title(f"accuracy {accuracy:.4f}")
pyplot.savefig("outputs/confusion_matrix.png", dpi=120)
print("wrote outputs/model.pkl and outputs/confusion_matrix.png")

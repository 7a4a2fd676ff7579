import argparse

import trainer

parser = argparse.ArgumentParser()
parser.add_argument("--max-epochs", type=int, default=3)
parser.add_argument("--ckpt-path")
options = parser.parse_args()
state = trainer.load(options.ckpt_path) if options.ckpt_path else {"epoch": -1, "weight": 0.0}
path = trainer.new_version()
print("Logs in", path)
trainer.fit(path, state, options.max_epochs)

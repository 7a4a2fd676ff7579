import argparse

import trainer

parser = argparse.ArgumentParser()
parser.add_argument("--ckpt-path", default="last")
options = parser.parse_args()
path = trainer.last_checkpoint() if options.ckpt_path == "last" else options.ckpt_path
state = trainer.load(path)
print(path, "epoch %(epoch)d weight %(weight).6f" % state)

import json
import logging

import hydra

log = logging.getLogger(__name__)


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(settings):
    weight, speed = 0.0, 0.0
    for _ in range(settings.steps):
        speed = settings.optimizer.momentum * speed - settings.lr * 2 * (weight - 1)
        weight += speed
    log.info("%s: weight %.4f", settings.optimizer.name, weight)
    with open("result.json", "w") as target:  # in the folder that Hydra made
        json.dump({"weight": round(weight, 6)}, target)


main()

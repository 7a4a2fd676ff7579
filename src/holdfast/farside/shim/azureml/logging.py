"""`azureml.logging` as old scripts know it, on top of `holdfast.log` and `holdfast.upload`.

from azureml.logging import get_azureml_logger
logger = get_azureml_logger()
logger.log("Accuracy", 0.9)
"""

import holdfast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Union


def get_azureml_logger() -> "RunLogger":
    return RunLogger()


class RunLogger:
    """Logs to the run that this process belongs to. Outside a run it does nothing."""

    def log(self, name: "Any", value: "Any") -> "Written":
        holdfast.log(name, value)
        return Written()

    def upload(self, path: str, text: "Union[str, bytes]") -> "Written":
        holdfast.upload(path, text)
        return Written()


class Written:
    """The handle of something that is written already, for scripts that wait for it."""

    def wait(self, timeout: "Optional[float]" = None) -> None:
        """Return at once: nothing is under way."""

"""What another run can go on from, before it is started."""

from typing import Any, Dict

from holdfast.farside.run.laid_files import what_it_left
from holdfast.farside.system.layout import Home


def earlier(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """How many files a run left below `path`, and their bytes."""
    found = what_it_left(home, message)
    return {"files": len(found), "size": sum(status.st_size for _, status in found)}

"""What may be asked of a host about its environments: the agent's operations."""

from typing import Any, Callable, Dict

from holdfast.farside.environments import checking, listing, target, trimming
from holdfast.farside.layout import Home

OPERATIONS: Dict[str, Callable[[Home, Dict[str, Any]], Any]] = {
    "environment-list": listing.listed,
    "environment-show": listing.shown,
    "environment-check": checking.checked,
    "environment-trim": trimming.trimmed,
    "environment-target": target.describe,
}

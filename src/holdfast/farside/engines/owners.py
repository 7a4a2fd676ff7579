"""`owner.json` of a run's folder: which engine has the run, and what that calls it; and the engines by their names."""

import json
import os
from typing import Dict, List, Optional, Sequence

from holdfast.farside.engines.direct import Direct, handle_of
from holdfast.farside.engines.engine import DIRECT, ENGINE, UNKNOWN, Engine, EngineLook, Owner, Plan
from holdfast.farside.system import foreign
from holdfast.farside.system.files import read_record, write_whole
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.layout import OWNER, Home, checked
from holdfast.farside.system.nofollow import describe
from holdfast.farside.system.ownership import give_back, is_only_ours, is_own
from holdfast.farside.system.refusal import Refused

FORMAT = 1
ENGINES = {DIRECT: "direct.Direct"}
"""The engines of the far side by their names in a plan: a module of this folder and its class."""


def engine_named(home: Home, name: str) -> Engine:
    """An engine of the far side, or one that this host has in Holdfast's folder: `engines/NAME.py`, with a class
    `Engine`. That folder is as much Holdfast's own as the far side itself, so no one else may write to it."""
    if name in ENGINES:
        module_name, _, class_name = ENGINES[name].partition(".")
        found = __import__("holdfast.farside.engines." + module_name, fromlist=[class_name])
        known: Engine = getattr(found, class_name)(home)
        return known
    path = os.path.join(home.engines(), checked(name) + ".py")
    if not os.path.isfile(path):
        raise Refused(ENGINE, "This host has no engine `%s`." % name)
    for each in (home.engines(), path):
        status = os.stat(each)
        if not is_own(status):
            why = "Holdfast does not use `%s`: it belongs to another account." % each
            raise Refused(ENGINE, why, "If it is yours: %s" % give_back(each))
        if not is_only_ours(status):
            why = "Holdfast does not use `%s`: others may write to it." % each
            raise Refused(ENGINE, why, "If it is yours: chmod go-w %s" % pasted(each))
    import importlib.util

    specification = importlib.util.spec_from_file_location("holdfast_engine_" + name, path)
    if specification is None or specification.loader is None:
        raise Refused(ENGINE, "`%s` cannot be read." % path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    made: Engine = module.Engine(home)
    return made


def engine_name(plan: Plan) -> str:
    return str(foreign.mapping(plan.get("engine")).get("name") or DIRECT)


def owner_of(folder: str) -> Owner:
    """As `owner.json` says. If a power cut destroyed it, by the plan, which knows no handle of a queue."""
    found = read_record(os.path.join(folder, OWNER))
    if found is not None and all(isinstance(found.get(key), str) for key in Owner._fields):
        owner = Owner(*(str(found[key]) for key in Owner._fields))
        return owner._replace(handle=handle_of(folder)) if owner.engine == DIRECT else owner
    plan = read_record(os.path.join(folder, "plan.json")) or {}
    name = engine_name(plan)
    return Owner(name, str(plan.get("generation", "")), handle_of(folder) if name == DIRECT else "")


def write_owner(folder: str, owner: Owner, is_kept: bool = True) -> None:
    """Written whole or not at all. `is_kept`: it survives a power cut, as an engine's queue does."""
    text = json.dumps(dict(owner._asdict(), format=FORMAT))
    write_whole(os.path.join(folder, OWNER), text, is_durable=is_kept)


def look(home: Home, folders: Sequence[str]) -> Dict[str, EngineLook]:
    """What their engines say of the runs in these folders: one question to each engine."""
    owners = {folder: owner_of(folder) for folder in folders}
    found: Dict[str, EngineLook] = {}
    for name in sorted({owner.engine for owner in owners.values()}):
        asked = {folder: owner for folder, owner in owners.items() if owner.engine == name}
        try:
            seen = engine_named(home, name).look(list(asked.values()))
        except Refused as refusal:
            seen = {owner: EngineLook(UNKNOWN, refusal.message) for owner in asked.values()}
        except OSError as error:
            seen = {owner: EngineLook(UNKNOWN, describe(error)) for owner in asked.values()}
        found.update((folder, seen[owner]) for folder, owner in asked.items())
    return found


def pace(folder: str) -> float:
    """Seconds between two looks at the run, as its engine bears them."""
    name = owner_of(folder).engine
    if name == DIRECT:
        return Direct.pace
    try:
        return engine_named(Home(os.path.dirname(os.path.dirname(os.path.dirname(folder)))), name).pace
    except Refused:
        return Engine.pace


def end(home: Home, folder: str, grace: Optional[float]) -> None:
    """Have the owner end the run, with the grace time of its plan if none is given. Gone already is success."""
    owner = owner_of(folder)
    if grace is None:
        plan = read_record(os.path.join(folder, "plan.json")) or {}
        grace = foreign.number(foreign.mapping(plan.get("limits")).get("grace"))
    engine_named(home, owner.engine).end(owner, grace)


def queued_by(events: List[Dict[str, object]]) -> str:
    """The engine that a run waits for, by its journal; empty for a run that does not wait, or not any more."""
    if not events or any(event["e"] not in ("created", "queued") for event in events):
        return ""
    return str(events[0].get("engine", ""))

"""Which addresses the names of conda channels stand for on this host, by its own `.condarc`, and how to get there.

Secrets in addresses are taken out: what is asked for, kept and shown is the address without them.
"""

import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.environments.conda_worker import without_secrets

DEFAULTS = "defaults"
_FREE = "https://repo.anaconda.com/"
_DEFAULT_CHANNELS = (_FREE + "pkgs/main", _FREE + "pkgs/r")
_FILES = ("{root}/etc/conda/.condarc", "{root}/etc/conda/condarc", "{config}/conda/.condarc", "{config}/conda/condarc")
_FILES_AT_HOME = ("{home}/.conda/.condarc", "{home}/.conda/condarc", "{home}/.condarc")
_VARIABLES = ("channel_alias", "channel_priority", "channels", "ssl_verify")
_PRIORITIES = {"strict": "strict", "disabled": "disabled", "false": "disabled"}
_LINE = re.compile(r"""("[^"]*"|'[^']*'|[^\s:#'"-][^:]*?|[^\s:#'"])\s*:(?:\s+(.*))?$""")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_USER = re.compile(r"^(\w+://)([^/\s]+)@([^/]*)")


class Settings(NamedTuple):
    """Of conda, on this host. An empty `alias` is the one that rattler knows."""

    alias: str
    channels: Tuple[str, ...]
    groups: Dict[str, List[str]]
    places: Dict[str, str]
    priority: str
    network: Dict[str, Any]


class Channels(NamedTuple):
    """`groups` are a name and its addresses each. `secret_urls` are addresses with a token by those without;
    `credentials` are user and password by host. Neither leaves the process that connects."""

    groups: Tuple[Tuple[str, Tuple[str, ...]], ...]
    secret_urls: Dict[str, str]
    credentials: Dict[str, List[str]]
    priority: str
    network: Dict[str, Any]


def read_settings(environment: Dict[str, str], root: str = "") -> Settings:
    """From conda's files below `root` and `HOME` of `environment`, and its variables. A file that cannot be read counts
    for nothing, as with conda."""
    found: Dict[str, Any] = {}
    for path in _files(environment, root):
        try:
            with open(path, encoding="utf-8", errors="replace") as source:
                _merge(found, parse(source.read()))
        except OSError:
            continue
    for name in _VARIABLES:
        value = environment.get("CONDA_" + name.upper())
        if value:
            found[name] = value.split(",") if name == "channels" else value
    return _settings(_expanded(found, environment))


def channel_urls(
    names: Sequence[str], specs: Sequence[str], settings: Settings, secrets: Optional[Dict[str, str]] = None
) -> Channels:
    """The channels of a spec, then those of the host's settings, then those that only `channel::package` names.

    `defaults` is searched where it is named, or where no channel is named. `secrets` are values for `${NAME}` in
    names and specs."""
    wanted = [_filled(name.strip(), secrets or {}) for name in names]
    if "nodefaults" not in wanted:
        wanted += settings.channels
    wanted = [name for name in wanted if name != "nodefaults"] or [DEFAULTS]
    wanted += [_filled(spec, secrets or {}).rpartition("::")[0].strip() for spec in specs if "::" in spec]
    groups: Dict[str, Tuple[str, ...]] = {}
    secret_urls: Dict[str, str] = {}
    credentials: Dict[str, List[str]] = {}
    for name in wanted:
        urls = [_address(each, settings) for each in settings.groups.get(name, [name])]
        groups.setdefault(without_secrets(name.rstrip("/")), tuple(without_secrets(url) for url in urls))
        for url in urls:
            _take_secrets(url, secret_urls, credentials)
    return Channels(tuple(groups.items()), secret_urls, credentials, settings.priority, settings.network)


def plain_spec(spec: str) -> str:
    """The spec without secrets: the channel in it is called as in `Channels.groups`."""
    channel, mark, rest = spec.rpartition("::")
    return without_secrets(channel.strip().rstrip("/")) + mark + rest.strip()


def parse(text: str) -> Dict[str, Any]:
    """The part of YAML that `.condarc` is written in: texts, lists of them, and one level of maps of both."""
    found: Dict[str, Any] = {}
    top, inner, depth = "", "", 0
    for line in text.splitlines():
        content = re.sub(r"(^|\s)#.*$", "", line).strip()
        indent = len(line) - len(line.lstrip())
        pair = _LINE.match(content)
        if content == "-" or content.startswith("- "):
            place = found.get(top)
            if inner and indent >= depth and isinstance(place, dict):
                _append(place, inner, content)
            elif top:
                _append(found, top, content)
        elif pair and indent == 0:
            top, inner = _scalar(pair.group(1)), ""
            found[top] = _value(pair.group(2) or "")
        elif pair and top:
            inner, depth = _scalar(pair.group(1)), indent
            if not isinstance(found[top], dict):
                found[top] = {}
            found[top][inner] = _value(pair.group(2) or "")
    return found


def _files(environment: Dict[str, str], root: str) -> List[str]:
    home = environment.get("HOME", "")
    config = environment.get("XDG_CONFIG_HOME") or home + "/.config"
    names = _FILES + _FILES_AT_HOME if home else _FILES[:2]
    paths = [each.format(root=root, config=config, home=home) for each in names]
    return paths + ([environment["CONDARC"]] if environment.get("CONDARC") else [])


def _merge(found: Dict[str, Any], more: Dict[str, Any]) -> None:
    """What comes later counts more: it replaces texts, stands before the rest of a list, adds to a map."""
    for key, value in more.items():
        before = found.get(key)
        if isinstance(value, list) and isinstance(before, list):
            found[key] = value + [each for each in before if each not in value]
        elif isinstance(value, dict) and isinstance(before, dict):
            found[key] = dict(before, **value)
        elif value not in ("", None):
            found[key] = value


def _expanded(value: Any, environment: Dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(each, environment) for key, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each, environment) for each in value]
    return _VARIABLE.sub(lambda name: environment.get(name.group(1) or name.group(2), name.group(0)), str(value))


def _settings(found: Dict[str, Any]) -> Settings:
    groups = {name: _texts(each) for name, each in _map(found, "custom_multichannels").items()}
    groups[DEFAULTS] = _texts(found.get("default_channels")) or groups.get(DEFAULTS) or list(_DEFAULT_CHANNELS)
    proxies = _map(found, "proxy_servers")
    verify = str(found.get("ssl_verify", "true"))
    network: Dict[str, Any] = {"verify": verify.lower() not in ("false", "no", "off", "0")}
    if "/" in verify:
        network["certificates"] = os.path.expanduser(verify)
    network.update({name + "_proxy": str(proxies[name]) for name in ("http", "https") if proxies.get(name)})
    return Settings(
        alias=str(found.get("channel_alias", "")).rstrip("/"),
        channels=tuple(_texts(found.get("channels"))),
        groups=groups,
        places={name: str(base).rstrip("/") for name, base in _map(found, "custom_channels").items()},
        priority=_PRIORITIES.get(str(found.get("channel_priority", "")).lower(), "flexible"),
        network=network,
    )


def _address(name: str, settings: Settings) -> str:
    """A name that nothing is known of stays as it is: rattler knows where the public channels are."""
    if "://" in name:
        return name.rstrip("/")
    if name.startswith("/"):
        return "file://" + name.rstrip("/")
    name = name.strip("/")
    for known in sorted(settings.places, key=len, reverse=True):
        if name == known or name.startswith(known + "/"):
            return "%s/%s" % (settings.places[known], name)
    if name.startswith("pkgs/"):
        return _FREE + name
    return "%s/%s" % (settings.alias, name) if settings.alias else name


def _take_secrets(url: str, secret_urls: Dict[str, str], credentials: Dict[str, List[str]]) -> None:
    from urllib.parse import unquote

    user = _USER.match(url)
    if user:
        name, _, password = user.group(2).partition(":")
        credentials[re.sub(r":\d+$", "", user.group(3))] = [unquote(name), unquote(password)]
    with_token = _USER.sub(r"\1\3", url)
    if with_token != without_secrets(url):
        secret_urls[without_secrets(url)] = with_token


def _filled(text: str, secrets: Dict[str, str]) -> str:
    return _VARIABLE.sub(lambda name: secrets.get(name.group(1) or name.group(2), name.group(0)), text)


def _append(place: Dict[str, Any], key: str, item: str) -> None:
    if not isinstance(place.get(key), list):
        place[key] = []
    place[key].append(_scalar(item[1:]))


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(each) for each in text[1:-1].split(",") if each.strip()]
    return _scalar(text)


def _scalar(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _texts(value: Any) -> List[str]:
    if isinstance(value, list):
        return [str(each) for each in value]
    return [str(value)] if value else []


def _map(found: Dict[str, Any], key: str) -> Dict[str, Any]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}

"""The host's own settings for package indexes, proxies and certificates, in the variables that uv understands. They go
into the installer's environment and nowhere else: they may hold passwords."""

import configparser
import os
import re
from typing import Dict, Iterator, List

_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX")
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",  # of macOS, whose Pythons may know of no certificates
)
_SECRET_NAME = re.compile(r"^(?:UV|PIP|CONDA)_.*(?:PASSWORD|TOKEN|SECRET)$")
_LOGIN = re.compile(r"(?:://|^)([^/\s]+)@")
_TOKEN = re.compile(r"://(?:(?!://(?!t/[^/\s,?#])|/t/[^/\s,?#])[^\s,])*/t/([^/\s,?#]+)")
_PARAMETER = re.compile(r"[?&]([^=&#\s]+)")
_SECRET_PARAMETER = re.compile(r"sig|sas|token|key|secret|auth|credential|pass|pwd", re.IGNORECASE)
_VALUE = re.compile(r"=([^&#\s,]+)")


def translated(environment: Dict[str, str]) -> Dict[str, str]:
    """What has to be set beside `environment`. uv's own settings stand; pip's count where uv has none."""
    pip = _pip_settings(environment)
    found: Dict[str, str] = {}
    if not any(environment.get(name) for name in _INDEXES) and not _has_uv_settings(environment):
        found.update(_indexes(pip))
    hosts = pip.get("trusted-host", [])
    if hosts and not environment.get("UV_INSECURE_HOST"):
        found["UV_INSECURE_HOST"] = " ".join(hosts)
    if pip.get("proxy"):
        for name in ("HTTPS_PROXY", "HTTP_PROXY"):
            if not environment.get(name) and not environment.get(name.lower()):
                found[name] = pip["proxy"][-1]
    found.update(_certificates(environment, pip))
    return found


def secrets_in(variables: Dict[str, str]) -> List[str]:
    """What has to be masked wherever the installer is heard: passwords and tokens in the addresses of these variables,
    which may be all of its environment, and the values of those that are called so."""
    found: List[str] = []
    for name, value in variables.items():
        if _SECRET_NAME.match(name):
            found.append(value)
        elif "://" in value or name.lower().endswith("_proxy"):
            found.extend(_secrets_of_addresses(value))
    return sorted({form for each in found for form in _written(each) if form})


def _secrets_of_addresses(text: str) -> Iterator[str]:
    for login in _LOGIN.findall(text):
        user, _, password = login.partition(":")
        yield password or user
        if login.endswith(":x-oauth-basic"):  # then the token is where the name should be
            yield user
    for token in _TOKEN.findall(text):
        yield token
    parameter = _PARAMETER.search(text)
    while parameter:
        end = parameter.end()
        value = _VALUE.match(text, end) if _SECRET_PARAMETER.search(parameter.group(1)) else None
        if value:
            yield value.group(1)
        parameter = _PARAMETER.search(text, value.end() if value else end)


def _written(secret: str) -> List[str]:
    """As it stands in an address, and as it is shown once it is decoded."""
    from urllib.parse import quote, unquote

    plain = unquote(secret)
    return [secret, plain, quote(plain, safe="")]


def _indexes(pip: Dict[str, List[str]]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    if pip.get("index-url"):
        found["UV_DEFAULT_INDEX"] = pip["index-url"][-1]
    if pip.get("extra-index-url"):
        found["UV_INDEX"] = " ".join(pip["extra-index-url"])
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # pip's way: the newest version of all indexes
    if pip.get("find-links"):
        found["UV_FIND_LINKS"] = ",".join(pip["find-links"])
    if pip.get("no-index") and pip["no-index"][-1].lower() in ("1", "true", "yes", "on"):
        found["UV_NO_INDEX"] = "1"
    return found


def _certificates(environment: Dict[str, str], pip: Dict[str, List[str]]) -> Dict[str, str]:
    """A bundle that is named; else the system's, which knows the certificates of a company's proxy."""
    if environment.get("SSL_CERT_FILE") or environment.get("SSL_CERT_DIR"):
        return {}
    named = [environment[name] for name in _CERTIFICATES if environment.get(name)] + pip.get("cert", [])
    for path in named + list(_SYSTEM_BUNDLES):
        if os.path.isfile(path):
            return {"SSL_CERT_FILE": path}
    return {}


def _has_uv_settings(environment: Dict[str, str]) -> bool:
    """uv reads these files by itself; one that names indexes is meant instead of pip's."""
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(_home(environment), ".config")
    for path in (environment.get("UV_CONFIG_FILE"), os.path.join(base, "uv", "uv.toml"), "/etc/uv/uv.toml"):
        try:
            with open(path or "", encoding="utf-8") as source:
                text = source.read()
        except (OSError, ValueError):
            continue
        if any(word in text for word in ("index", "find-links")):
            return True
    return False


def _pip_settings(environment: Dict[str, str]) -> Dict[str, List[str]]:
    """By option name, later files before earlier ones, variables over all: as pip reads them."""
    found: Dict[str, List[str]] = {}
    if environment.get("PIP_CONFIG_FILE") != os.devnull:
        for path in _pip_files(environment):
            for section in ("global", "install"):
                found.update(_section(path, section))
    for name, value in environment.items():
        if name.startswith("PIP_") and value:
            found[name[4:].lower().replace("_", "-")] = value.split()
    return found


def _pip_files(environment: Dict[str, str]) -> List[str]:
    home = _home(environment)
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    shared = [
        os.path.join(each, "pip", "pip.conf") for each in environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    ]
    user = [os.path.join(home, ".pip", "pip.conf"), os.path.join(base, "pip", "pip.conf")]
    named = environment.get("PIP_CONFIG_FILE")
    return shared + ["/etc/pip.conf"] + user + ([named] if named else [])


def _section(path: str, section: str) -> Dict[str, List[str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
        return {name.replace("_", "-"): value.split() for name, value in parser.items(section)}
    except (configparser.Error, UnicodeDecodeError, OSError):
        return {}


def _home(environment: Dict[str, str]) -> str:
    return environment.get("HOME") or os.path.expanduser("~")

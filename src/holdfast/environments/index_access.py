"""Files of package indexes over the net, as pip and uv reach them from this machine: proxies, certificates, hosts that
are trusted without them, names and passwords."""

from __future__ import annotations

import base64
import netrc
import os
import re
import ssl
import sys
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPMessage
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from holdfast.errors import PreparationError

SILENCE = 30.0
"""Seconds after which a server that says nothing is taken for gone."""
_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")

Login = tuple[str, str]
"""A name and a password."""


class Answer(Protocol):
    """`status` is None of a file of this machine."""

    headers: Any
    status: int | None

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class Access:
    """`variables` are those that uv is given; `lines` those of the spec that may name indexes, with their secrets put
    in. Neither is ever shown."""

    def __init__(self, variables: Mapping[str, str], lines: Iterable[str], user_home: Path) -> None:
        self._variables, self._user_home = variables, user_home
        lines = tuple(lines)
        self._logins, self._trusted = dict(_logins(variables, lines)), _trusted(variables, lines)
        self._checking, self._trusting = (
            urllib.request.build_opener(
                _Proxies(variables), _Redirects(self._login), urllib.request.HTTPSHandler(context=context)
            )
            for context in (_context(variables), _unchecked())
        )

    def open(self, url: str, begin: int = 0) -> Answer:
        """Raises what urllib raises. `begin`: from this byte on, if the server can (its status is 206 then)."""
        parts = urlsplit(url)
        request = urllib.request.Request(_without_login(url), headers={"Accept-Encoding": "identity"})  # noqa: S310
        if begin:
            request.add_header("Range", f"bytes={begin}-")
        login = self._login(url)
        if login is not None:  # not sent on to where the server redirects to
            request.add_unredirected_header("Authorization", f"Basic {_encoded(login)}")
        opener = self._trusting if self._trusted & {parts.hostname, parts.netloc.rpartition("@")[2]} else self._checking
        answer: Answer = opener.open(request, timeout=SILENCE)
        return answer

    def _login(self, url: str) -> Login | None:
        return _login_in(url) or self._logins.get(_realm(url)) or self._from_netrc(urlsplit(url).hostname)

    def _from_netrc(self, host: str | None) -> Login | None:
        named = self._variables.get("NETRC")
        names = [Path(named)] if named else [self._user_home / name for name in (".netrc", "_netrc")]
        for path in names:
            try:
                found = netrc.netrc(os.fspath(path)).authenticators(host or "")
            except (OSError, netrc.NetrcParseError):
                continue
            return (found[0], found[2] or "") if found else None
        return None


class _Proxies(urllib.request.ProxyHandler):
    """By the variables that were handed in; on systems that keep proxies elsewhere, those where none is named."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        named = {
            name.lower().removesuffix("_proxy"): value
            for name, value in sorted(variables.items())  # lower case comes last, and counts
            if name.lower().endswith("_proxy") and value
        }
        everywhere = named.pop("all", "")
        self._without = named.pop("no", "")
        for scheme in ("http", "https"):
            if everywhere:
                named.setdefault(scheme, everywhere)
        if not named and sys.platform in ("win32", "darwin"):
            named = urllib.request.getproxies()
        super().__init__({name: value for name, value in named.items() if name in ("http", "https")})

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:  # noqa: A002 - urllib's name
        if any(_is_meant(each, req.host or "") for each in re.split(r"[\s,]+", self._without)):
            return None
        if proxy.lower().startswith("socks"):
            raise PreparationError(
                "Packages cannot be downloaded through a SOCKS proxy.", "Name an HTTP proxy in HTTPS_PROXY."
            )
        return super().proxy_open(req, proxy, type)


def _is_meant(entry: str, host: str) -> bool:
    """Whether an entry of NO_PROXY is this host or a domain that it is in; a port in it has to be the same."""
    name, plain = host.lower(), entry.lower().removeprefix("*").removeprefix(".")
    if ":" not in plain:
        name = name.partition(":")[0]
    return entry == "*" or (bool(plain) and (name == plain or name.endswith("." + plain)))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows as urllib does; who is asked then gets the login that is known for him, and no other."""

    def __init__(self, login: Callable[[str], Login | None]) -> None:
        self._login = login

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        login = self._login(newurl)
        if request is not None and login is not None:
            request.add_unredirected_header("Authorization", f"Basic {_encoded(login)}")
        return request


def _context(variables: Mapping[str, str]) -> ssl.SSLContext:
    file, folder = variables.get("SSL_CERT_FILE") or None, variables.get("SSL_CERT_DIR") or None
    try:
        context = ssl.create_default_context(cafile=file, capath=None if file else folder)
        own = variables.get("SSL_CLIENT_CERT")
        if own:
            context.load_cert_chain(own)
    except (OSError, ssl.SSLError) as error:
        raise PreparationError(
            f"The certificates of this machine cannot be read: {error}.", "Correct SSL_CERT_FILE or SSL_CLIENT_CERT."
        ) from error
    defaults = ssl.get_default_verify_paths()
    if not file and not folder and not defaults.cafile and not defaults.capath and sys.platform != "win32":
        bundle = _bundle()  # a Python that was made elsewhere and knows of no certificates
        if bundle:
            context.load_verify_locations(bundle)
    return context


def _bundle() -> str | None:
    from importlib import import_module

    for name in ("certifi", "pip._vendor.certifi"):
        try:
            return str(import_module(name).where())
        except ImportError:
            continue
    return None


def _unchecked() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _trusted(variables: Mapping[str, str], lines: Iterable[str]) -> set[str]:
    named = variables.get("UV_INSECURE_HOST", "").split()
    return {*named, *(each.split()[1] for each in lines if re.match(r"--(?:allow-insecure|trusted)-host \S", each))}


def _logins(variables: Mapping[str, str], lines: Iterable[str]) -> Iterable[tuple[str, Login]]:
    """By realm: an index says where its files are, mostly on the same host."""
    words = [word for name in _INDEXES for word in re.split(r"[\s,]+", variables.get(name, "")) if word]
    for word in [*(word for line in lines for word in line.split()), *words]:
        named = re.fullmatch(r"(?:([A-Za-z0-9_.-]+)=)?(https?://\S+)", word)
        if named is None:
            continue
        key = re.sub(r"[^A-Z0-9]", "_", (named[1] or "").upper())
        user = variables.get(f"UV_INDEX_{key}_USERNAME", "") if key else ""
        login = _login_in(named[2]) or ((user, variables.get(f"UV_INDEX_{key}_PASSWORD", "")) if user else None)
        if login is not None:
            yield _realm(named[2]), login


def _realm(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _login_in(url: str) -> Login | None:
    parts = urlsplit(url)
    return (unquote(parts.username), unquote(parts.password or "")) if parts.username else None


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _encoded(login: Login) -> str:
    return base64.b64encode(f"{login[0]}:{login[1]}".encode()).decode("ascii")

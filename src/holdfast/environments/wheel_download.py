"""Wheels from their indexes into a store of this machine, several at once, each checked against its hash.

Indexes are reached as pip and uv reach them: by the same proxies, certificates, trusted hosts, names and passwords. A
link that breaks is taken up where it broke; what is not whole does not stay.
"""

from __future__ import annotations

import base64
import hashlib
import netrc
import os
import re
import socket
import ssl
import sys
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.client import HTTPException
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit

from holdfast.environments.foreign_resolution import WheelFile
from holdfast.errors import PreparationError
from holdfast.frozen import dataclass

_AT_ONCE = 6
PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before a file is tried again; counted anew whenever something came."""
_SILENCE = 30.0
"""Seconds after which a server that says nothing is taken for gone."""
_PIECE = 1 << 18
_EVERY = 0.2
_FOR_GOOD = (400, 401, 403, 404, 405, 407, 410, 451)
_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


@dataclass(frozen=True)
class DownloadProgress:
    """`total` bytes as far as they are known."""

    files: int
    of_files: int
    done: int
    total: int


def download(
    files: Sequence[WheelFile], access: Access, put: Callable[[PackageDownload], object]
) -> Iterator[DownloadProgress]:
    """Until `put`, which several threads call, has read all to their ends. Raises PreparationError for the first that
    cannot be had, and what `put` raises; then, and when the caller stops iterating, nothing more is fetched."""
    is_over = threading.Event()
    largest_first = sorted(files, key=lambda each: -(each.size or 0))
    downloads = [PackageDownload(each, access, is_over.is_set) for each in largest_first]
    left, failures = deque(downloads), list[BaseException]()

    def work() -> None:
        while not is_over.is_set():
            try:
                one = left.popleft()
            except IndexError:
                return
            try:
                put(one)
            except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
                failures.append(error)
                is_over.set()
            finally:
                one.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(_AT_ONCE, len(files)))]
    for thread in threads:
        thread.start()
    try:
        while not failures and (alive := [thread for thread in threads if thread.is_alive()]):
            alive[0].join(_EVERY)
            done, total = sum(each.done for each in downloads), sum(each.size for each in downloads)
            yield DownloadProgress(sum(each.is_whole for each in downloads), len(files), done, max(done, total))
    finally:
        is_over.set()
        for thread in threads:
            thread.join(2.0)
    if failures:
        raise failures[0]


class PackageDownload:
    """A file as something to read, once. At its end it has been checked: the reader who gets there has all of it."""

    def __init__(
        self,
        file: WheelFile,
        access: Access,
        is_over: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.file, self._access, self._is_over, self._sleep = file, access, is_over, sleep
        self._answer: Any = None  # of urllib
        self._hash = hashlib.sha256()
        self._failures = self._length = 0
        self.done, self.is_whole = 0, False

    @property
    def size(self) -> int:
        """In bytes, as far as it is known."""
        return self.file.size or self._length

    def read(self, size: int, /) -> bytes:
        """Raises PreparationError where the file cannot be had, or is not the one that was asked for."""
        while True:
            if self._is_over():
                raise PreparationError("The download was given up.")
            try:
                data = self._read(min(size, _PIECE))
            except (HTTPException, OSError) as error:
                self._fail(error)
                continue
            if data:
                self._failures = 0
                self._hash.update(data)
                self.done += len(data)
            else:
                self._check()
            return data

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def _read(self, size: int) -> bytes:
        if self._answer is None:
            self._answer = self._open()
        data: bytes = self._answer.read(size)
        if not data and self.done < self._length:
            raise ConnectionError("the link was cut")
        return data

    def _open(self) -> Any:
        answer = self._access.open(self.file.url, self.done)
        left = int(answer.headers.get("Content-Length") or 0)
        if self.done and answer.status == 206:
            self._length = self.done + left if left else self._length
            return answer
        self._length = left
        skip = self.done  # a server that only gives whole files
        while skip:
            data = answer.read(min(skip, _PIECE))
            if not data:
                answer.close()
                raise ConnectionError("the link was cut")
            skip -= len(data)
        return answer

    def _fail(self, error: Exception) -> None:
        """Returns when it may be tried again."""
        self.close()
        reason: object = error
        if isinstance(error, HTTPError):
            error.close()
            is_final = error.code in _FOR_GOOD
        else:
            reason = error.reason if isinstance(error, URLError) else error
            is_final = isinstance(reason, (ssl.SSLCertVerificationError, FileNotFoundError, PermissionError))
        if is_final or self._failures == len(PAUSES):
            raise _unreachable(self.file, reason) from error
        self._sleep(PAUSES[self._failures])
        self._failures += 1

    def _check(self) -> None:
        if self._hash.hexdigest() != self.file.sha256:
            raise PreparationError(
                f"What came as `{self.file.name}` from {_host(self.file)} is another file: its sha256 is "
                f"{self._hash.hexdigest()}, and {self.file.sha256} was expected.",
                "Try again. If it stays so, the index was changed or something on the way changes files; to choose "
                "packages anew: --upgrade",
            )
        self.is_whole = True


def _unreachable(file: WheelFile, reason: object) -> PreparationError:
    hint = "Check the network of this machine and its settings: HTTPS_PROXY, SSL_CERT_FILE, pip.conf. Then try again."
    if isinstance(reason, HTTPError) and reason.code in (401, 403):
        hint = "It wants a name and a password: write them into ~/.netrc, or into the address of the index."
    elif isinstance(reason, ssl.SSLCertVerificationError):
        hint = "Name the certificates of your network in SSL_CERT_FILE."
    elif isinstance(reason, socket.gaierror):
        hint = "Its name is not known here: is this machine online? " + hint
    return PreparationError(f"`{file.name}` cannot be downloaded from {_host(file)}: {reason}.", hint)


def _host(file: WheelFile) -> str:
    return urlsplit(file.url).netloc.rpartition("@")[2] or "this machine"


_Login = tuple[str, str]
"""A name and a password."""


class Access:
    """How indexes are reached. `variables` are those that uv is given; `lines` those of the spec that may name indexes,
    with their secrets put in. Neither is ever shown."""

    def __init__(self, variables: Mapping[str, str], lines: Iterable[str], user_home: Path) -> None:
        words = [word for line in lines for word in line.split()]
        trusted = [word for option, word in pairwise(words) if option.endswith("-host")]
        self._trusted = {*trusted, *variables.get("UV_INSECURE_HOST", "").split()}
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        handlers = (_Proxies(variables), _Logins(variables, words, user_home))
        self._checking, self._trusting = (
            urllib.request.build_opener(*handlers, urllib.request.HTTPSHandler(context=context))
            for context in (_context(variables), unchecked)
        )

    def open(self, url: str, begin: int = 0) -> Any:
        """What urllib answers, or raises. `begin`: from this byte on, if the server can (its status is 206 then)."""
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        request = urllib.request.Request(urlunsplit(parts._replace(netloc=host)))  # noqa: S310 - `file:` is meant too
        request.add_header("Accept-Encoding", "identity")
        if begin:
            request.add_header("Range", f"bytes={begin}-")
        own = _login_in(url)
        if own is not None:
            _authorise(request, own)
        opener = self._trusting if self._trusted & {parts.hostname, host} else self._checking
        return opener.open(request, timeout=_SILENCE)


class _Logins(urllib.request.BaseHandler):
    """Every host, also one that a server redirects to, is given the login that is known for it, and no other."""

    def __init__(self, variables: Mapping[str, str], words: Iterable[str], user_home: Path) -> None:
        self._by_realm = dict(_logins(variables, words))
        named = variables.get("NETRC")
        self._files = [Path(named)] if named else [user_home / name for name in (".netrc", "_netrc")]

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        login = self._by_realm.get(_realm(request.full_url)) or self._in_netrc(request.full_url)
        if login is not None and not request.has_header("Authorization"):
            _authorise(request, login)
        return request

    https_request = http_request

    def _in_netrc(self, url: str) -> _Login | None:
        for path in self._files:
            try:
                found = netrc.netrc(os.fspath(path)).authenticators(urlsplit(url).hostname or "")
            except (OSError, netrc.NetrcParseError):
                continue
            return (found[0], found[2] or "") if found else None
        return None


def _authorise(request: urllib.request.Request, login: _Login) -> None:
    """Not sent on to where the server redirects to."""
    encoded = base64.b64encode(":".join(login).encode()).decode("ascii")
    request.add_unredirected_header("Authorization", f"Basic {encoded}")


def _logins(variables: Mapping[str, str], words: Iterable[str]) -> Iterator[tuple[str, _Login]]:
    """By realm: an index says where its files are, mostly on the same host."""
    own = [word for name in _INDEXES for word in re.split(r"[\s,]+", variables.get(name, ""))]
    for word in (*words, *own):
        named = re.fullmatch(r"(?:([A-Za-z0-9_.-]+)=)?(https?://\S+)", word)
        if named is None:
            continue
        key = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", (named[1] or "").upper())
        user = variables.get(f"{key}_USERNAME", "")
        login = _login_in(named[2]) or ((user, variables.get(f"{key}_PASSWORD", "")) if user else None)
        if login is not None:
            yield _realm(named[2]), login


def _realm(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _login_in(url: str) -> _Login | None:
    parts = urlsplit(url)
    return (unquote(parts.username), unquote(parts.password or "")) if parts.username else None


class _Proxies(urllib.request.ProxyHandler):
    """By the variables that were handed in; on systems that keep proxies elsewhere, those where none is named."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        named = {
            name.lower().removesuffix("_proxy"): value
            for name, value in sorted(variables.items())  # lower case comes last, and counts
            if name.lower().endswith("_proxy") and value
        }
        everywhere = {"http": named["all"], "https": named["all"]} if "all" in named else {}
        without = re.split(r"[\s,]+", named.get("no", "").lower())
        self._exceptions = tuple("" if each == "*" else f".{each.lstrip('*.')}" for each in without if each)
        named = {name: value for name, value in (everywhere | named).items() if name in ("http", "https")}
        if not named and sys.platform in ("win32", "darwin"):
            named = urllib.request.getproxies()
        super().__init__(named)

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:  # noqa: A002 - urllib's name
        host = f".{req.host or ''}".lower()
        if host.endswith(self._exceptions) or host.partition(":")[0].endswith(self._exceptions):
            return None
        if proxy.lower().startswith("socks"):
            raise PreparationError(
                "Packages cannot be downloaded through a SOCKS proxy.", "Name an HTTP proxy in HTTPS_PROXY."
            )
        return super().proxy_open(req, proxy, type)


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
    return context

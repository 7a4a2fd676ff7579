"""Solves and installs conda packages, as a program of its own: it needs a Python from 3.10 on that has py-rattler.

One request as JSON on stdin; JSON lines on stdout: progress, then `{"ok": ...}` or `{"error": ...}`, which is the last.
`conda_build.py` writes the requests and reads the lines. Nothing of ours is imported: the Python that runs this
knows only rattler.
"""

import importlib
import json
import os
import re
import sys
import time
from typing import Any, Callable, Dict, List, Optional

JSON = Dict[str, Any]
Say = Callable[[JSON], None]

_INTERVAL = 0.25
_CONNECT_TIMEOUT = 15.0
_OLDEST_SYSTEMS = {"linux": {"__unix": "0", "__linux": "5.4"}, "osx": {"__unix": "0", "__osx": "12.0"}}
_ARCHITECTURES = {"64": "x86_64", "32": "x86", "arm64": "arm64"}
_SECRETS = (
    (re.compile(r"(?<=://)[^/\s]+@"), ""),
    (re.compile(r"(https?://(?:(?!https?://|/t/[^/\s\"'`)])[^\s\"'`)])*)/t/[^/\s\"'`)]+(?=[/\s\"'`)]|$)"), r"\1"),
)
_KINDS = (
    ("storage", r"os error (13|17|20|28|30|122)\b|No space left|Disk quota|Read-only file system"),
    ("network", r"error sending request|dns error|timed out|client error \(Connect|certificate|status server error"),
    ("channel", r"could not find subdir|status client error|hash mismatch|decompression|repodata|os error 2\b"),
)


class Failed(Exception):
    """Ends the request with this problem instead of a result."""

    def __init__(self, kind: str, message: str, spec: str = "") -> None:
        Exception.__init__(self, message)
        self.kind, self.message, self.spec = kind, message, spec


def main() -> int:
    """Whatever happens, the last line on stdout is the answer. What others print there (a package's own scripts) goes
    to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(line: JSON) -> None:
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    try:
        say({"ok": answer(json.load(sys.stdin), say)})
        return 0
    except Exception as problem:  # noqa: BLE001 - a traceback says nothing to the reader of these lines
        failed = failure(problem)
    say({"error": {"kind": failed.kind, "message": without_secrets(failed.message), "spec": failed.spec}})
    return 1


def answer(request: JSON, say: Say) -> JSON:
    import asyncio

    certificates = request.get("network", {}).get("certificates")
    if certificates:
        os.environ["SSL_CERT_FILE"] = certificates  # read when the first connection is made
    do = {"solve": solve, "install": install}.get(request["do"])
    if do is None:
        raise Failed("other", "cannot `%s`" % request["do"])
    return asyncio.new_event_loop().run_until_complete(do(request, say))


def without_secrets(text: str) -> str:
    """User, password and token in addresses are left out."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


async def solve(request: JSON, say: Say) -> JSON:
    rattler = importlib.import_module("rattler")
    specs = [_spec(rattler, text) for text in request["specs"]]
    config = _config(rattler, request)
    client = _client(rattler, config, request)
    gateway = rattler.Gateway.from_config(config, cache_dir=_folder(request, "repodata"), client=client)
    sources = await _sources(rattler, gateway, request, say)
    say({"phase": "solve", "done": 0, "of": len(specs), "bytes": 0, "total": 0})
    try:
        records = await rattler.solve(
            sources,
            specs,
            gateway=gateway,
            platforms=[request["platform"], "noarch"],
            locked_packages=await _preferred(gateway, sources, request),
            virtual_packages=_virtual_packages(rattler, request["platform"], request["virtual"]),
            channel_priority=getattr(rattler.ChannelPriority, request.get("priority", "flexible").capitalize()),
            channel_relations="disabled",
        )
    except importlib.import_module("rattler.exceptions").SolverError as problem:
        raise Failed("unsatisfiable", str(problem).strip())
    return {"packages": [_described(each) for each in sorted(records, key=lambda each: each.name.normalized)]}


async def install(request: JSON, say: Say) -> JSON:
    """Exactly these archives, into a prefix that has no packages yet: what a cut installation left is not trusted."""
    rattler = importlib.import_module("rattler")
    prefix = request["prefix"]
    if os.path.isdir(os.path.join(prefix, "conda-meta")):
        raise Failed("storage", "`%s` has packages already" % prefix)
    records, config = [_record(rattler, each) for each in request["packages"]], _config(rattler, request)
    cache = _cache(rattler, request)
    cached = await cache.index()
    missing = [each for each in records if not cached.contains_record(each)]
    for record in missing:
        check_local(record.url, record.sha256)
    reporter = Reporter(say, len(records), sum(each.size or 0 for each in missing))
    await rattler.install(
        records,
        prefix,
        package_cache=cache,
        installed_packages=[],
        platform=rattler.Subdir(request["platform"]),
        execute_link_scripts=True,  # conda does: there are packages that fetch their contents in one
        config=config,
        client=_client(rattler, config, request),
        reporter=reporter,
    )
    if reporter.broken:
        raise Failed("other", "the script of `%s` that runs after its installation failed" % reporter.broken[0])
    reporter.tell()
    return {"packages": request["packages"]}


class Reporter:
    """Progress of an installation, a few lines per second. Packages are linked as they arrive: `link` is said once all
    are here. Rattler asks for every method of its protocol, and numbers what it asks about by what was returned."""

    def __init__(self, say: Say, packages: int, total: int) -> None:
        self._say, self._packages, self._total = say, packages, total
        self._arrived, self._linked = 0, 0
        self._bytes: Dict[int, int] = {}
        self._scripts: List[str] = []
        self._told = 0.0
        self.broken: List[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *_: 0

    def on_transaction_start(self, _operations: int) -> None:
        self.tell()

    def on_download_start(self, _entry: int) -> int:
        self._bytes[len(self._bytes)] = 0
        return len(self._bytes) - 1

    def on_download_progress(self, download: int, progress: int, _total: Optional[int]) -> None:
        self._bytes[download] = progress
        self._tell_now_and_then()

    def on_populate_cache_complete(self, _entry: int) -> None:
        self._arrived += 1
        self._tell_now_and_then()

    def on_link_complete(self, _index: int) -> None:
        self._linked += 1
        self._tell_now_and_then()

    def on_post_link_start(self, package: str, _script: str) -> int:
        self._scripts.append(package)
        return len(self._scripts) - 1

    def on_post_link_complete(self, index: int, success: bool) -> None:
        if not success:
            self.broken.append(self._scripts[index])

    def tell(self) -> None:
        phase, done = ("link", self._linked) if self._arrived >= self._packages else ("download", self._arrived)
        arrived = sum(self._bytes.values())
        total = max(self._total, arrived) if self._bytes else 0
        self._say({"phase": phase, "done": done, "of": self._packages, "bytes": arrived, "total": total})

    def _tell_now_and_then(self) -> None:
        if time.monotonic() - self._told >= _INTERVAL:
            self._told = time.monotonic()
            self.tell()


def check_local(url: str, sha256: Optional[bytes]) -> None:
    """Checks an archive of a channel that is a folder: Rattler checks only what it downloads."""
    if sha256 is None:
        raise Failed("channel", "`%s` has no sha256" % url)
    if not url.startswith("file://"):
        return
    hashlib, parse = importlib.import_module("hashlib"), importlib.import_module("urllib.parse")
    digest = hashlib.sha256()
    try:
        with open(parse.unquote(parse.urlsplit(url).path), "rb") as archive:
            for block in iter(lambda: archive.read(1 << 20), b""):
                digest.update(block)
    except OSError as problem:
        raise Failed("channel", "`%s` cannot be read: %s" % (url, problem.strerror))
    if digest.digest() != sha256:
        message = "`%s` is damaged or another: its sha256 is %s, not %s"
        raise Failed("channel", message % (url, digest.hexdigest(), sha256.hex()))


def failure(problem: BaseException) -> Failed:
    """What went wrong in rattler, by its own words: its exceptions do not tell a full disk from a missing file."""
    if isinstance(problem, Failed):
        return problem
    message = without_secrets(str(problem).strip()) or type(problem).__name__
    name = type(problem).__name__
    if isinstance(problem, ImportError):
        return Failed("other", "py-rattler cannot be loaded: %s" % message)
    if isinstance(problem, (KeyError, TypeError, ValueError)):
        return Failed("other", "%s: %s" % (name, message))
    if isinstance(problem, OSError):
        return Failed("storage", message)
    if name == "InvalidChannelError":
        return Failed("channel", message)
    return Failed(next((kind for kind, words in _KINDS if re.search(words, message)), "other"), message)


def _spec(rattler: Any, text: str) -> Any:
    try:
        return rattler.MatchSpec(text)
    except Exception as problem:  # noqa: BLE001 - of several types
        raise Failed("other", "`%s` is not a package spec: %s" % (without_secrets(text), problem), text)


async def _sources(rattler: Any, gateway: Any, request: JSON, say: Say) -> List[Any]:
    """A channel each, or several under one name that specs may ask for. They are loaded here, all at once, so that one
    that is not there is called by its name."""
    asyncio, several = importlib.import_module("asyncio"), importlib.import_module("rattler.repo_data.multi_source")
    loaded: List[str] = []

    async def load(name: str, urls: List[str]) -> Any:
        try:
            channels = [rattler.Channel(each) for each in urls]
            for each in channels:
                _reach(each.base_url, request.get("network", {}))
            await gateway.names(channels, [request["platform"], "noarch"], channel_relations="disabled")
        except Exception as problem:  # noqa: BLE001 - of several types
            found = failure(problem)
            raise Failed(found.kind, "channel `%s`: %s" % (name, found.message))
        loaded.append(name)
        tell()
        return several.MultiSource(name, channels)

    def tell() -> None:
        say({"phase": "repodata", "done": len(loaded), "of": len(request["channels"]), "bytes": 0, "total": 0})

    tell()
    return list(await asyncio.gather(*(load(each["name"], each["urls"]) for each in request["channels"])))


async def _preferred(gateway: Any, sources: List[Any], request: JSON) -> List[Any]:
    """What the channels themselves have under the names, versions and builds that another machine chose; of each name
    what the first channel has, as the solver does."""
    wanted = {tuple(each) for each in request["preferred"]}
    if not wanted:
        return []
    names = sorted({each[0] for each in wanted})
    first: Dict[str, int] = {}
    found: Dict[str, Any] = {}
    answer = await gateway.query(sources, [request["platform"], "noarch"], names, recursive=False)
    for number, record in ((number, record) for number, records in enumerate(answer) for record in records):
        name = record.name.normalized
        is_first = first.setdefault(name, number) == number
        if is_first and (name, str(record.version), str(record.build), record.subdir) in wanted:
            found[name] = record
    return list(found.values())


def _config(rattler: Any, request: JSON) -> Any:
    """Addresses without secrets are asked for, and stand in all files; only the connection knows the ones with them."""
    config = rattler.Config()
    network = request.get("network", {})
    if not network.get("verify", True):
        config.set("tls-no-verify", "true")
    for name in ("http", "https"):
        if network.get(name + "_proxy"):
            config.set("proxy-config." + name, json.dumps(network[name + "_proxy"]))
    mirrors = {plain: [secret] for plain, secret in network.get("secret_urls", {}).items()}
    if mirrors:
        config.set("mirrors", json.dumps(mirrors))
    return config


def _client(rattler: Any, config: Any, request: JSON) -> Any:
    """Rattler takes passwords from a file only: it is in memory, or without a name, as soon as it has been read."""
    client = importlib.import_module("rattler.networking").Client
    credentials = request.get("network", {}).get("credentials", {})
    if not credentials:
        return client.from_config(config)
    stored = {
        host: {"BasicHTTP": {"username": user, "password": password}} for host, (user, password) in credentials.items()
    }
    in_memory = getattr(os, "memfd_create", None)
    if in_memory:
        descriptor = in_memory("credentials")
        path = "/proc/self/fd/%d" % descriptor
    else:
        descriptor, path = importlib.import_module("tempfile").mkstemp()
    try:
        os.write(descriptor, json.dumps(stored).encode("utf-8"))
        config.set("authentication-override-file", json.dumps(path))
        return client.from_config(config)
    finally:
        os.close(descriptor)
        if os.path.exists(path):
            os.unlink(path)


def _reach(url: str, network: JSON) -> None:
    """Fails soon if the server does not answer, where Rattler would try for minutes. With a proxy, Rattler decides."""
    parse, socket = importlib.import_module("urllib.parse"), importlib.import_module("socket")
    proxies = importlib.import_module("urllib.request").getproxies()
    place = parse.urlsplit(url)
    if place.scheme not in ("http", "https") or proxies or network.get("%s_proxy" % place.scheme):
        return
    try:
        address = (place.hostname, place.port or (443 if place.scheme == "https" else 80))
        socket.create_connection(address, _CONNECT_TIMEOUT).close()
    except OSError as problem:
        raise Failed("network", "%s cannot be reached: %s" % (place.netloc.rpartition("@")[2], problem))


def _cache(rattler: Any, request: JSON) -> Any:
    """Extracted packages. Missing files of those that are there are noticed; with `thorough`, changed ones too."""
    module = rattler.package_cache
    mode = module.ValidationMode.full() if request.get("thorough") else module.ValidationMode.fast()
    return module.PackageCache.new_layered([_folder(request, "packages")], False, mode)


def _folder(request: JSON, name: str) -> Any:
    pathlib = importlib.import_module("pathlib")
    path = pathlib.Path(request["cache"]) / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def _virtual_packages(rattler: Any, platform: str, given: JSON) -> List[Any]:
    """What the target has, not this machine; `given` has names without their underscores, and null for what it has
    not. Kernel and processor are old ones of their kind, so that one lock fits all machines of the platform."""
    system, _, architecture = platform.partition("-")
    versions = dict(_OLDEST_SYSTEMS.get(system, {}))
    versions.update({"__" + name: version for name, version in given.items() if version})
    build = rattler.package.BuildString
    described = [(name, version, "0") for name, version in versions.items()]
    described.append(("__archspec", "1", _ARCHITECTURES.get(architecture, architecture)))
    return [
        rattler.GenericVirtualPackage(rattler.PackageName(name), rattler.Version(version), build(text))
        for name, version, text in described
    ]


def _described(record: Any) -> JSON:
    noarch = record.noarch
    return {
        "name": record.name.normalized,
        "version": str(record.version),
        "build": str(record.build),
        "build_number": record.build_number,
        "subdir": record.subdir,
        "url": without_secrets(record.url),
        "sha256": record.sha256.hex() if record.sha256 else "",
        "md5": record.md5.hex() if record.md5 else "",
        "size": record.size or 0,
        "noarch": "python" if noarch.python else "generic" if noarch.generic else "",
        "depends": record.depends,
        "constrains": record.constrains,
        "site_packages": record.python_site_packages_path or "",
    }


def _record(rattler: Any, package: JSON) -> Any:
    url = package["url"]
    folder, _, file_name = url.rpartition("/")
    record = rattler.PackageRecord(
        package["name"],
        package["version"],
        rattler.package.BuildString(package["build"]),
        package["build_number"],
        package["subdir"],
        noarch=package["noarch"] or None,
        depends=package["depends"],
        constrains=package.get("constrains", []),
        sha256=bytes.fromhex(package["sha256"]) if package["sha256"] else None,
        md5=bytes.fromhex(package["md5"]) if package["md5"] else None,
        size=package["size"] or None,
        python_site_packages_path=package.get("site_packages") or None,
    )
    return rattler.RepoDataRecord(record, file_name, url, folder.rpartition("/")[0])


if __name__ == "__main__":
    os._exit(main())  # rattler's threads may still call into Python while it is taken down, which is a crash

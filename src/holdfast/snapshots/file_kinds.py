"""What a file is by its name: something that programs make again, or something that only its owner may see."""

from __future__ import annotations

CACHES = frozenset(
    (
        *("__pycache__", ".ipynb_checkpoints", ".cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
        *(".venv", ".tox", ".nox", ".eggs", "node_modules", ".git", ".hg", ".svn", ".holdfast"),
    )
)
"""Folders that no glob takes in unless it names them. What a run wrote is judged by the same list (`CACHES` of
`farside/system/own_files.py`)."""
_MADE_AGAIN = frozenset(
    (
        *("build", "_build", "dist", "sdist", "wheels", "eggs", "develop-eggs", "htmlcov", "cython_debug", "target"),
        *("venv", "env", "virtualenv", "bower_components", "__pypackages__", "aml_config"),
        *("logs", "log", "wandb", "mlruns", "lightning_logs", "tb_logs", "multirun", "outputs", "tmp", "temp"),
        *("nohup.out", "coverage.xml", "thumbs.db", "desktop.ini"),
    )
)
_MADE_ENDINGS = (
    *(".egg-info", ".egg", ".egg-link", ".pyc", ".pyo", ".pyd", ".so", ".o", ".a", ".dll", ".dylib", ".class"),
    *(".log", ".swp", ".swo", ".tmp", ".bak", ".orig", ".rej", "~"),
)
_SECRETS = frozenset(
    (
        *(".env", ".envrc", ".netrc", "_netrc", ".pypirc", ".npmrc", ".pgpass", ".htpasswd", ".git-credentials"),
        *(".dockercfg", "credentials", "kaggle.json", "token", "token.txt", ".token", "passwd", "shadow"),
        *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", "secrets", ".secrets", "private_key"),
    )
)
_SECRET_BEGINNINGS = (
    *(
        ".env.",
        ".env*",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "client_secret",
        "service-account",
        "service_account",
    ),
    *("credentials.", "secret.", "secrets.", "password.", "passwords.", "apikey", "api_key", "api-key"),
)
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".ovpn", ".gpg")


def is_made_again(name: str) -> bool:
    """A cache, a build, an environment, a log: nobody wants to be asked about it. Hidden names are tools' own."""
    lower = name.lower()
    return (
        name in CACHES
        or lower in _MADE_AGAIN
        or lower.startswith((".", "cmake-build-"))
        or lower.endswith(_MADE_ENDINGS)
    )


def is_secret(name: str) -> bool:
    """Also of a glob that can only mean such files: `*.pem`."""
    lower = name.lower()
    return lower in _SECRETS or lower.startswith(_SECRET_BEGINNINGS) or lower.endswith(_SECRET_ENDINGS)

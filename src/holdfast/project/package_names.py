"""Which package provides a module or a program, where the names differ."""

from __future__ import annotations

PACKAGES = {
    "apex": "",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cairo": "pycairo",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "PyMuPDF",
    "flash_attn": "flash-attn",
    "git": "GitPython",
    "github": "PyGithub",
    "google.cloud.storage": "google-cloud-storage",
    "google.protobuf": "protobuf",
    "hydra": "hydra-core",
    "igraph": "python-igraph",
    "IPython": "ipython",
    "jwt": "PyJWT",
    "lightning_fabric": "lightning",
    "magic": "python-magic",
    "mpi4py": "mpi4py",
    "mpl_toolkits": "matplotlib",
    "MySQLdb": "mysqlclient",
    "OpenGL": "PyOpenGL",
    "OpenSSL": "pyOpenSSL",
    "PIL": "Pillow",
    "pkg_resources": "setuptools<81",
    "psycopg2": "psycopg2-binary",
    "pytorch_lightning": "pytorch-lightning",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "slugify": "python-slugify",
    "socks": "PySocks",
    "tensorboardX": "tensorboardX",
    "torch_geometric": "torch-geometric",
    "umap": "umap-learn",
    "wx": "wxPython",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
"""Modules and the packages that bring them, where the names differ; empty: none on the index does."""

PROGRAMS = {
    "accelerate": "accelerate",
    "colossalai": "colossalai",
    "composer": "mosaicml",
    "deepspeed": "deepspeed",
    "dvc": "dvc",
    "horovodrun": "horovod",
    "jupyter": "notebook",
    "lightning": "lightning",
    "mlflow": "mlflow",
    "papermill": "papermill",
    "pytest": "pytest",
    "tensorboard": "tensorboard",
    "torchrun": "torch",
    "tune": "torchtune",
}
"""Programs that READMEs begin with, and the packages that bring them."""


def package_of(module: str) -> str:
    """The package that brings a module: by the longest name that is known, else of the same name."""
    parts = module.split(".")
    for count in (3, 2, 1):
        known = PACKAGES.get(".".join(parts[:count]))
        if known is not None:
            return known
    return parts[0]

"""The version of the Python package; the library has its own (shmem.info())."""

__version__ = "1.0.0"

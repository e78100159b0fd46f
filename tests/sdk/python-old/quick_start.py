"""The quick start of the README, word for word, with whichever SDK this interpreter has installed.

The newest SDK runs the whole suite; this is for older ones, of which a few lines say enough: they find the account, join
its endpoint with paths in their own way, sign, create, write and read.
"""

import contextlib
import importlib.metadata
import io
import os
import pathlib
import re
import sys

README = pathlib.Path(__file__).resolve().parents[3] / "README.md"
ENDPOINT = "http://127.0.0.1:8081"


def quick_start():
    """The first Python of the README, with the endpoint that the caller means."""
    program = re.search(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE).group(1)
    assert ENDPOINT in program, "the quick start names its endpoint"
    return program.replace(ENDPOINT, os.environ["COSMOS_ENDPOINT"])


def main():
    version = importlib.metadata.version("azure-cosmos")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(quick_start(), "README.md", "exec"), {})
    passed = "'total': 42" in printed.getvalue()
    print(f"quick start with azure-cosmos {version}: {printed.getvalue().strip()}")
    print("1 passed, 0 failed" if passed else "0 passed, 1 failed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

"""Device readings with pydocumentdb: the program of azure-cosmos 3, which finds out what is installed."""

import pathlib
import runpy

runpy.run_path(str(pathlib.Path(__file__).resolve().parent.parent / "python" / "suite.py"), run_name="__main__")

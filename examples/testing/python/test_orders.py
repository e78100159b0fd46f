"""A server for tests in Python's unittest: one for all tests, emptied before each, with a clock that moves."""

import json
import os
import pathlib
import subprocess
import unittest

ORRERY = os.environ.get("ORRERY", "orrery")
BUDGETS = pathlib.Path(__file__).parent.parent / "budgets.toml"


class Orders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen(
            [ORRERY, "serve", "--ephemeral", "--listen", "127.0.0.1:0", "--log-format", "json", "--test-controls", "on"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        # The first line says where it listens. SDKs connect to the same address.
        cls.endpoint = "http://" + json.loads(cls.server.stdout.readline())["listen"][0]

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        cls.server.stdout.close()

    def orrery(self, *arguments):
        command = [ORRERY, *arguments, "--endpoint", self.endpoint]
        return subprocess.run(command, capture_output=True, text=True)

    def setUp(self):
        self.orrery("reset", "--yes")
        self.orrery("database", "create", "shop")
        self.orrery("container", "create", "shop/orders", "--partition-key", "/customer", "--ttl", "3600")
        self.orrery("item", "put", "shop/orders", '{"id":"17","customer":"ada","total":42}')

    def test_orders_expire_after_an_hour(self):
        self.assertEqual(self.orrery("item", "get", "shop/orders", "17", "-k", "ada").returncode, 0)
        self.orrery("clock", "advance", "61m")
        self.assertEqual(self.orrery("item", "get", "shop/orders", "17", "-k", "ada").returncode, 3)

    def test_queries_stay_within_their_budgets(self):
        checked = self.orrery("budget", "check", str(BUDGETS))
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()

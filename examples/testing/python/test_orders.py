"""A server for tests in Python's unittest: one for all tests, a fork of prepared data for each, a clock that moves."""

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
        # Prepared once, however long that takes. No test changes it; the clock is everybody's, so it does not expire.
        cls.orrery("database", "create", "prepared")
        cls.orrery("container", "create", "prepared/orders", "--partition-key", "/customer", "--ttl", "3600")
        cls.orrery("item", "put", "prepared/orders", '{"id":"17","customer":"ada","total":42,"ttl":-1}')

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        cls.server.stdout.close()

    @classmethod
    def orrery(cls, *arguments):
        command = [ORRERY, *arguments, "--endpoint", cls.endpoint]
        return subprocess.run(command, capture_output=True, text=True)

    def setUp(self):
        # Milliseconds, whatever is in it. What the test before has done is gone.
        forked = self.orrery("fork", "create", "prepared", "shop", "--replace")
        self.assertEqual(forked.returncode, 0, forked.stderr)

    def test_an_order_can_be_cancelled(self):
        self.assertEqual(self.orrery("item", "delete", "shop/orders", "17", "-k", "ada").returncode, 0)
        self.assertEqual(self.orrery("item", "get", "shop/orders", "17", "-k", "ada").returncode, 3)
        self.assertEqual(self.orrery("item", "get", "prepared/orders", "17", "-k", "ada").returncode, 0)

    def test_orders_expire_after_an_hour(self):
        self.orrery("item", "put", "shop/orders", '{"id":"18","customer":"ada","total":7}')
        self.assertEqual(self.orrery("item", "get", "shop/orders", "18", "-k", "ada").returncode, 0)
        self.orrery("clock", "advance", "61m")
        self.assertEqual(self.orrery("item", "get", "shop/orders", "18", "-k", "ada").returncode, 3)

    def test_queries_stay_within_their_budgets(self):
        checked = self.orrery("budget", "check", str(BUDGETS))
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()

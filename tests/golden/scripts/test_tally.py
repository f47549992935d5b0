"""Checks that scripts/tally.py counts what ran: cases, crashes, skips, and logs that are missing.

The last line of scripts/test is what others act on, so a miscount here would hide failures.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TALLY = Path(__file__).resolve().parents[3] / "scripts" / "tally.py"
CATCH_GOOD = "Filters: x\n====\nAll tests passed (12 assertions in 5 test cases)\n\n"
CATCH_BAD = "====\ntest cases:  6 |  4 passed | 1 failed | 1 failed as expected\nassertions: 9 | 8 passed | 1 failed\n"


def tally(*tests):
    """Exit code and last line for a log of the given tests; a test is (result, output)."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.json"
        if tests:
            log.write_text("".join(json.dumps({"result": r, "stdout": out}) + "\n" for r, out in tests))
        ran = subprocess.run([sys.executable, TALLY, log], capture_output=True, text=True)
        return ran.returncode, ran.stdout.splitlines()[-1]


class Tally(unittest.TestCase):
    def test_a_program_without_catch2_counts_as_one(self):
        self.assertEqual(tally(("OK", "fine\n"), ("OK", None)), (0, "2 passed, 0 failed"))

    def test_catch2_cases_are_counted(self):
        self.assertEqual(tally(("OK", CATCH_GOOD), ("OK", "")), (0, "6 passed, 0 failed"))
        self.assertEqual(tally(("OK", "All tests passed (1 assertion in 1 test case)")), (0, "1 passed, 0 failed"))
        self.assertEqual(tally(("FAIL", CATCH_BAD)), (1, "5 passed, 1 failed"))

    def test_a_failure_is_never_counted_away(self):
        # All cases passed, then the program died at exit.
        self.assertEqual(tally(("ERROR", CATCH_GOOD)), (1, "5 passed, 1 failed"))
        self.assertEqual(tally(("OK", ""), ("TIMEOUT", "")), (1, "1 passed, 1 failed"))
        self.assertEqual(tally(("OK", ""), ("UNEXPECTEDPASS", "")), (1, "1 passed, 1 failed"))

    def test_skipped_tests_are_named_and_do_not_count_as_passed(self):
        self.assertEqual(tally(("OK", ""), ("SKIP", "")), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertEqual(tally(("SKIP", "")), (1, "0 passed, 0 failed, 1 skipped"))

    def test_nothing_ran(self):
        self.assertEqual(tally(), (1, "0 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()

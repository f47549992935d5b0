#!/usr/bin/env python3
"""What makes a row ok or not, without a measurement."""
import json
import pathlib
import tempfile
import unittest

from table import Row, as_text, finish, median_interval


class Tables(unittest.TestCase):
    def test_twenty_values_leave_five_of_each_end_out(self):
        # Known of the binomial distribution: ranks 6 and 15 hold the median with 95.9 %.
        self.assertEqual(median_interval(range(1, 21)), (6, 15))

    def test_few_values_leave_out_none(self):
        self.assertEqual(median_interval([3, 1, 2]), (1, 3))

    def test_a_median_within_the_limit_is_not_enough(self):
        values = [50] * 12 + [70] * 9
        self.assertEqual(Row('', values, at_most=60).median, 50)
        self.assertEqual(Row('', values, at_most=60).verdict, 'FAILS')
        self.assertEqual(Row('', values, at_most=70).verdict, 'ok')

    def test_a_least_is_kept_to_from_above(self):
        self.assertEqual(Row('', [5, 6, 7], at_least=5).verdict, 'ok')
        self.assertEqual(Row('', [5, 6, 7], at_least=5.5).verdict, 'FAILS')

    def test_a_row_without_a_limit_is_reported(self):
        self.assertEqual(Row('', [1e9]).verdict, 'reported')

    def test_one_failing_row_fails_the_whole_and_both_files_say_so(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(finish('t', 'T', [Row('good', [1], at_most=2)], folder), 0)
            self.assertEqual(finish('t', 'T', [Row('good', [1], at_most=2), Row('bad', [3], at_most=2)], folder), 1)
            self.assertIn('FAILS', pathlib.Path(folder, 't.txt').read_text(encoding='utf-8'))
            rows = json.loads(pathlib.Path(folder, 't.json').read_text(encoding='utf-8'))['rows']
            self.assertEqual([row['verdict'] for row in rows], ['ok', 'FAILS'])

    def test_nothing_is_not_written_as_less_than_nothing(self):
        self.assertNotIn('-0.00', as_text('', [Row('', [-0.001])], []))


if __name__ == '__main__':
    unittest.main()

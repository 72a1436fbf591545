import unittest

from texts import counts


class TestCounts(unittest.TestCase):
    def test_lines(self):
        self.assertEqual(counts.lines("a b\nc"), 2)

    def test_words(self):
        self.assertEqual(counts.words("a b\nc"), 3)
        self.assertEqual(counts.words(""), 0)

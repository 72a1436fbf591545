import unittest

from shop import orders, prices


class TestPrices(unittest.TestCase):
    def test_a_small_share_is_taken_off(self):
        self.assertEqual(prices.discounted(80, 0.25), 60)

    def test_no_more_than_half_is_taken_off(self):
        self.assertEqual(prices.discounted(80, 0.75), 40)

    def test_an_order_is_capped_too(self):
        self.assertEqual(orders.total([40, 80], 1), 60)

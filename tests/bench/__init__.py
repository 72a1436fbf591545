"""Benchmarks: this kit beside other engines, and masked beside plain decoding. `modtools bench` runs them."""

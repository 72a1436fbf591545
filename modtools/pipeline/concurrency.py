"""shim"""

from contextlib import nullcontext


class Locks:
    def hold(self, contract, operation, call):
        return nullcontext()

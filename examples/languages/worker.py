"""Charges orders. Each hundredth order has no card, and can never be charged."""
import sys

import nixie

charged = 0


@nixie.job
def charge(message):
    global charged
    order = message.json()
    if order["n"] % 100 == 98:
        raise nixie.Bury("order %d has no card" % order["n"], reason="validation")
    charged += 1
    if order.get("receipt"):
        message.then("receipts", {"order": order["n"]})
    return None


nixie.run()
print("charged", charged, "orders", file=sys.stderr)

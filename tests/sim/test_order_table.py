"""Every operation that accesses memory or synchronises has events for the engine of order."""

import warploom.sim.program  # noqa: F401  (registers the rules)
from warploom.ir.op import REGISTRY, Effect, Stage
from warploom.sim.order_table import orders

_EFFECTS = {
    Effect.READ_GLOBAL,
    Effect.WRITE_GLOBAL,
    Effect.READ_SHARED,
    Effect.WRITE_SHARED,
    Effect.SYNC,
}
# What orders nothing by itself, with the reason.
WITHOUT = {
    "roles.set_registers": "registers are nobody else's",
    "wgmma.fence": "registers: M015 has its own books",
    "grid.launch_dependents": "launches do not overlap here",
    "grid.wait_for_previous": "launches do not overlap here",
    "watch": "of debug builds: the waits proper order",
    "ptx.act_registers": "what it does is declared in words, not in places",
}


def test_operations_with_effects_have_events():
    silent = {
        "watch" if op.FAMILY == "watch" else opcode
        for opcode, op in REGISTRY.items()
        if Stage.MACHINE in op.STAGES and op.EFFECTS & _EFFECTS and orders.find(op) is None
    }
    assert silent == set(WITHOUT)

"""Names for values that have none: taken from what becomes of them."""

from warploom.codegen.wishes import wishes
from warploom.ir.ops import lanes, registers


def test_steps_of_a_reduction_take_its_name(machine, body_of):
    m, b = machine, machine.build
    held = b.emit(registers.Fold(value=m.load(m.tensor("x")), axis=0, kind="add"))
    other = b.emit(lanes.ShuffleXor(value=held, mask=1))
    held = m.binary("add", held, other)
    m.store(m.tensor("y"), b.emit(registers.View(value=held, axes=(0,)), "total"))
    text = body_of(m.kernel())
    assert any(line.startswith("float total = x_1[0];") for line in text)
    assert "float total_1 = shfl_xor_f32(total, 1);" in text


def test_addresses_take_the_name_of_the_tensor(machine):
    tile = machine.load(machine.tensor("weights"))
    named = wishes(machine.kernel())
    assert named[tile.owner.offset] == "weights_at"


def test_own_names_stay(machine):
    m = machine
    tile = m.load(m.tensor("x"), name="mine")
    m.build.emit(registers.View(value=tile, axes=(0,)), "other")
    assert tile not in wishes(m.kernel())

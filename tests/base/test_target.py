"""Facts of architectures: which code runs where, and the register arithmetic of a block."""

import pytest

from warploom.base.target import SM_80, SM_89, SM_90A, TARGETS, target_of


def test_capability_is_read_from_the_name():
    assert [t.capability for t in TARGETS.values()] == [(8, 0), (8, 9), (9, 0)]


@pytest.mark.parametrize(
    ("capability", "arch"),
    [
        ((8, 0), "sm_80"),
        ((8, 6), "sm_80"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), None),
        ((7, 5), None),
    ],
)
def test_target_of_a_device(capability, arch):
    found = target_of(capability)
    assert (found and found.arch) == arch


def test_operations_of_one_architecture_only():
    assert SM_90A.has("sm_80") and SM_90A.has("sm_90") and SM_90A.has("sm_90a")
    assert not SM_89.has("sm_90") and not SM_89.has("sm_90a")
    assert SM_80.has("sm_80")


@pytest.mark.parametrize(
    ("threads", "registers"), [(128, 255), (384, 168), (512, 128), (640, 96), (1024, 64)]
)
def test_entry_registers(threads, registers):
    # The figures of the design for 384, 512 and 640 threads.
    assert SM_90A.registers_for(threads) == registers

"""A clone prints like its original and shares nothing with it that can change."""

import pytest

from warploom.ir.clone import clone
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Value
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import verify_kernel
from warploom.kernels.activation.kernel import softmax
from warploom.kernels.gemm.kernel import gemm
from warploom.kernels.gemm.split.kernel import split_gemm
from warploom.runtime.variant import SimVariant


def machine(kernel, name: str = "") -> Kernel:
    call = kernel.example_call(name)
    variant = kernel.variant(call.arguments, call.launcher.warps, call.launcher.cluster)
    assert isinstance(variant, SimVariant)
    return variant.kernel


def values(kernel: Kernel) -> set[Value]:
    found = set(kernel.params)
    for op in walk(kernel.body):
        found |= {*op.results, *op.operand_values()}
        for block in op.regions():
            found |= set(block.args)
    return found


KERNELS = [(softmax, ""), (gemm, "pingpong"), (gemm, "cluster"), (split_gemm, "")]


@pytest.mark.parametrize(("kernel", "name"), KERNELS)
def test_a_clone_is_equal_and_apart(kernel, name: str):
    made = machine(kernel, name)
    copy = clone(made)
    assert print_kernel(copy, locs=True) == print_kernel(made, locs=True)
    verify_kernel(copy)
    assert not values(copy) & values(made)
    assert not set(walk(copy.body)) & set(walk(made.body))
    assert all(r.owner is op for op in walk(copy.body) for r in op.results)
    before = print_kernel(made)
    del copy.body.ops[0]
    assert print_kernel(made) == before != print_kernel(copy)

"""Mistakes of the first day, and statements and expressions that the language does not have."""

import pytest

BODIES = {
    # name: (code, body)
    "while_else": ("F010", "while n > 0:\n    n = n - 1\nelse:\n    pass"),
    "while_true": ("F042", "while True:\n    pass"),
    "while_tile": ("F030", "while wl.zeros(4, wl.f32) > 0:\n    pass"),
    "with": ("F023", "with open('f'):\n    pass"),
    "try": ("F010", "try:\n    pass\nfinally:\n    pass"),
    "raise": ("F010", "raise ValueError('no')"),
    "nested_function": ("F010", "def inner():\n    pass\ninner()"),
    "class": ("F010", "class Inner:\n    pass"),
    "del": ("F010", "a = 1\ndel a"),
    "global": ("F010", "global a"),
    "match": ("F010", "match n:\n    case 1:\n        pass"),
    "for_else": ("F010", "for i in range(3):\n    pass\nelse:\n    pass"),
    "lambda": ("F011", "f = lambda a: a"),
    "dictionary": ("F011", "d = {1: 2}"),
    "walrus": ("F011", "if (b := n) > 0:\n    a = b"),
    "f_string": ("F011", "a = f'{n}'"),
    "power": ("F011", "a = s ** 3"),
    "matmul": ("F011", "a = wl.zeros((2, 2), wl.f32)\nb = a @ a"),
    "is_number": ("F011", "a = n is s"),
    "continue": ("F019", "for i in range(3):\n    continue"),
    "import_from": ("F012", "from math import pi"),
    "used_before": ("F040", "a = b\nb = 1"),
    "bound_in_loop": ("F015", "for i in range(n):\n    last = i * 2\na = last"),
    "loop_over_scalar": ("F036", "for i in n:\n    pass"),
    "loop_over_tile": ("F036", "for i in wl.arange(4):\n    pass"),
    "step_zero": ("F036", "for i in range(0, 4, 0):\n    pass"),
    "unroll_run_time": ("F027", "for i in wl.unroll(n):\n    pass"),
    "unroll_too_much": ("F033", "for i in wl.unroll(100000):\n    pass"),
    "list_by_scalar": ("F027", "a = [1, 2]\nfor i in range(2):\n    b = a[i]"),
    "loop_of_floats": ("T015", "for i in range(0.5):\n    pass"),
    "unpack": ("F032", "a, b = 1, 2, 3"),
    "unpack_scalar": ("F032", "a, b = n"),
    "text_format": ("F028", "print('n is {}'.format(n))"),
    "text_percent": ("F028", "print('n is %d' % n)"),
    "print_end": ("F028", "print(n, end='')"),
    "assert_f_string": ("F028", "assert n > 0, f'{n}'"),
    "assert_false": ("F038", "assert 1 > 2, 'one is not above two'"),
    "divide_by_zero": ("F037", "a = 1 // 0"),
    "python_int": ("F037", "a = int('3.5')"),
    "python_abs": ("F037", "a = abs('x')"),
    "python_zip": ("F037", "for a, b in zip((1, 2), (3,)):\n    pass"),
    "python_round": ("F026", "a = round(s, 2)"),
    "python_function": ("F023", "a = sorted((2, 1))"),
    "host_function": ("F021", "a = wl.to_numpy(n)"),
    "not_callable": ("F021", "a = n(3)"),
    "float_of_tile": ("F026", "a = float(wl.arange(4))"),
    "max_of_tile": ("T015", "a = max(wl.arange(4))"),
    "wl_max_of_two": ("T015", "a = wl.max(wl.arange(4), wl.arange(4))"),
    "too_many_arguments": ("F026", "a = wl.arange(4, 5)"),
    "return_value": ("F018", "return n"),
    "return_in_if": ("F018", "if n > 0:\n    return"),
    "not_of_tile": ("F031", "a = not (wl.arange(4) > 1)"),
    "chained_tiles": ("F031", "a = 0 < wl.arange(4) < 2"),
    "choose_text": ("F039", "a = 'x' if n > 0 else 'y'"),
    "two_names_of_a_list": ("F041", "a = [1]\nb = a"),
    "assigned_attribute": ("F035", "n.name = 1"),
    "attribute_of_number": ("F025", "a = (1).real"),
    "sum_method": ("F025", "a = wl.arange(4).sum()"),
    "append_in_loop": ("F016", "a = []\nfor i in range(n):\n    a.append(i)"),
    "wl_max_of_number": ("T015", "a = wl.max(wl.zeros(4, wl.f32), 0.0)"),
    "reshape": ("F025", "a = wl.arange(4).reshape(2, 2)"),
    "bad_extent": ("T016", "a = wl.zeros((0, 4), wl.f32)"),
    "float_extent": ("T016", "a = wl.zeros((2.0, 4), wl.f32)"),
    "huge_tile": ("T021", "a = wl.zeros((4096, 4096), wl.f32)"),
    "huge_product": ("T021", "a = wl.zeros(1024, wl.f32)\nb = a[:, None] * a"),
    "not_a_dtype": ("T015", "a = wl.zeros(4, len)"),
    "dtype_text": ("T015", "a = wl.zeros(4, 'float32')"),
    "wl_float32": ("F024", "a = wl.zeros(4, wl.float32)"),
    "wl_dot": ("F024", "a = wl.dot(wl.zeros((4, 4), wl.f32), wl.zeros((4, 4), wl.f32))"),
    "wl_thread_id": ("F026", "a = wl.thread_id(0)"),
    "wl_threadIdx": ("F024", "a = wl.threadIdx"),
    "arange_from_to": ("F026", "a = wl.arange(0, 4)"),
    "none_as_value": ("T020", "a = n + None"),
    "text_as_value": ("T015", "a = n + 'x'"),
    "result_of_print": ("T020", "a = print(n)\nb = n + a"),
    "number_too_large": ("T003", "a = wl.arange(4) + 3000000000"),
    "float_too_large": ("T003", "a = wl.zeros(4, wl.f16) + 70000.0"),
    "bf16_exp": ("T004", "a = wl.exp(wl.zeros(4, wl.bf16))"),
    "arithmetic_of_f8": ("T004", "t = wl.zeros(4, wl.f8e4m3)\na = t + t"),
    "comparison_of_f8": ("T004", "a = wl.zeros(4, wl.f8e5m2) > 1.0"),
    "sum_of_f8": ("T004", "a = wl.sum(wl.zeros(4, wl.f8e4m3))"),
    "f8_too_large": ("T003", "a = wl.full(4, 449.0, wl.f8e4m3)"),
    "wl_float8": ("F024", "a = wl.zeros(4, wl.float8_e4m3fn)"),
    "sum_of_bool": ("T004", "a = wl.sum(wl.arange(4) > 1)"),
    "bits_of_float": ("T004", "a = s & 1"),
    "minus_of_bool": ("T004", "a = -(wl.arange(4) > 1)"),
    "scalar_dtypes": ("T001", "a = n + s"),
    "where_condition": ("T004", "a = wl.where(n, 1, 2)"),
    "full_dtype": ("T001", "a = wl.full(4, n, wl.f32)"),
    "cat_shapes": ("T014", "a = wl.cat((wl.zeros((2, 3), wl.f32), wl.zeros((3, 4), wl.f32)), 0)"),
    "argmax_of_i64": ("T004", "a = wl.argmax(wl.zeros(4, wl.i64), 0)"),
    "cat_nothing": ("T015", "a = wl.cat([], 0)"),
    "cat_dtypes": ("T014", "a = wl.cat((wl.zeros(2, wl.f32), wl.zeros(2, wl.f16)), 0)"),
    "sum_without_axis": ("T012", "a = wl.sum(wl.zeros((2, 3), wl.f32))"),
    "transpose_vector": ("T012", "a = wl.arange(4).T"),
    "sub_tile_outside": ("T013", "a = wl.arange(4)[2:6]"),
    "sub_tile_run_time": ("T013", "a = wl.arange(4)[n:4]"),
    "tile_by_tile": ("T007", "a = wl.arange(4)\nb = a[a]"),
    "sub_tile_step": ("T009", "a = wl.arange(4)[::2]"),
    "scalar_of_tile": ("T017", "a = wl.scalar(wl.arange(4))"),
    "window_of_tile": ("T017", "a = wl.ds(wl.arange(4), 4)"),
    "grid_axis": ("T012", "a = wl.program_id(3)"),
}

TENSORS = {
    "whole_tensor": ("T015", "t = wl.load(x)"),
    "mask": ("F026", "t = wl.load(x[0, 0:4], mask=wl.arange(4) < n)"),
    "huge_window": ("T021", "t = wl.load(x[0:1024, 0:1024])"),
    "indexed_by_offsets": ("T007", "t = wl.load(x[0, n + wl.arange(4)])"),
    "size_of_tensor": ("F025", "a = x.size"),
    "whole_axis": ("T009", "t = wl.load(x[0, :])"),
    "open_slice": ("T009", "t = wl.load(x[0, 4:])"),
    "slice_step": ("T009", "t = wl.load(x[0, 0:8:2])"),
    "empty_slice": ("T016", "t = wl.load(x[0, 8:8])"),
    "negative_index": ("T009", "t = wl.load(x[-1, 0:4])"),
    "new_axis": ("T006", "t = wl.load(x[0, None])"),
    "ellipsis": ("T006", "t = wl.load(x[..., 0])"),
    "float_index": ("T015", "t = wl.load(x[0, 1.5])"),
    "text_index": ("T015", "t = wl.load(x[0, 'a'])"),
    "window_as_value": ("T019", "t = x[0, 0:4] * 2"),
    "window_of_window": ("T015", "t = wl.load(x[0, 0:4][0])"),
    "tensor_condition": ("F030", "if x:\n    pass"),
    "len_of_tensor": ("T015", "a = len(x)"),
    "pointer": ("T019", "t = wl.load(x + wl.arange(4))"),
    "added_to_tensor": ("F035", "x[0, 0:4] += wl.zeros(4, wl.f32)"),
    "assigned_tensor": ("F035", "x[0, 0:4] = wl.zeros(4, wl.f32)"),
    "stored_scalar": ("T010", "wl.store(x[0, 0], n)"),
    "stored_fraction": ("T002", "wl.store(i[0:4], 0.5)"),
    "other_dtype": ("T010", "t = wl.load(x[0, 0:4], other=n)"),
    "gather_rank": ("T018", "t = wl.gather(x, (wl.arange(4),))"),
    "gather_scalars": ("T018", "t = wl.gather(x, (n, n))"),
    "gather_floats": ("T018", "t = wl.gather(x, (n, wl.zeros(4, wl.f32)))"),
    "gather_window": ("T015", "t = wl.gather(x[0, 0:4], (wl.arange(4),))"),
    "gather_mask": ("T004", "t = wl.gather(i, (wl.arange(4),), mask=wl.arange(4))"),
    "tensor_axis": ("T012", "a = x.shape[2]"),
    "run_time_axis": ("F027", "a = x.shape[n]"),
    "rows_axis": ("T012", "a = x.rows(0, n, axis=2)"),
    "attribute_of_tensor": ("F025", "a = x.ndim"),
}


@pytest.mark.parametrize("name", BODIES)
def test_body(name, source, golden):
    code, body = BODIES[name]
    error = source.refused_body(body)
    assert [report.code for report in error.reports] == [code]
    assert error.reports[0].spans[0].column > 0
    golden(str(error))


@pytest.mark.parametrize("name", TENSORS)
def test_tensor(name, source, golden):
    code, body = TENSORS[name]
    error = source.refused_body(body, x="f32 n1", i="i32 1")
    assert [report.code for report in error.reports] == [code]
    golden(str(error))


def test_argument_that_is_none(source, golden):
    text = """
def kernel(x: wl.Tensor, bias: wl.Tensor = None):
    t = wl.load(bias[0:4])
    n = bias.shape[0]
"""
    golden(str(source.refused(text, x="f32 1")))


def test_nested_copies(source, golden):
    body = """
for i in wl.unroll(100):
    for j in wl.unroll(100):
        pass
"""
    golden(str(source.refused_body(body)))


def test_captured_array(source, golden):
    golden(
        str(
            source.refused(
                "import numpy as np\nTABLE = np.zeros(4)\n\n"
                "def kernel(n: wl.i32):\n    a = TABLE[0]\n"
            )
        )
    )


def test_kernel_in_kernel(source, golden):
    text = """
@wl.kernel
def inner(y: wl.Tensor):
    wl.store(y[0], 1.0)

def kernel(y: wl.Tensor):
    inner(y)
    inner[1](y)
"""
    error = source.refused(text, y="f32 1")
    assert [report.code for report in error.reports] == ["F022", "F022"]
    golden(str(error))


def test_function_without_mark(source, golden):
    text = """
def helper(t):
    return t * 2

def kernel(n: wl.i32):
    a = helper(n)
"""
    golden(str(source.refused(text)))


def test_outside_a_kernel(golden):
    import warploom as wl

    with pytest.raises(wl.CompileError) as caught:
        wl.zeros((4,), wl.f32)
    golden(str(caught.value))


def test_arrays_given_to_the_language_outside_a_kernel():
    """It is the place that is wrong, whatever else the function finds wrong with an array."""
    import numpy as np

    import warploom as wl

    x = np.zeros(4, np.float32)
    for say in (lambda: wl.load(x), lambda: wl.store(x, x), lambda: wl.sum(x, 0)):
        with pytest.raises(wl.CompileError, match="F034"):
            say()


def test_function_outside_a_kernel(source, golden):
    import warploom as wl

    module = source.module("@wl.function\ndef double(t):\n    return t * 2\n")
    with pytest.raises(wl.CompileError) as caught:
        module.double(3)
    golden(str(caught.value))


def test_all_errors_at_once(source, golden):
    text = """
a = wl.zeros((n, 4), wl.f32)
b = a + 1
c = wl.expp(s)
for i in range(n):
    d = missing + c
    break
if wl.arange(4) > 2:
    e = other
print(f"{n}")
"""
    error = source.refused_body(text)
    assert [report.code for report in error.reports] == [
        "T008",
        "F024",
        "F013",
        "F019",
        "F030",
        "F013",
        "F028",
    ]
    golden(str(error))


def test_copies_of_a_mistake_are_one(source):
    error = source.refused_body("for i in wl.unroll(8):\n    a = wl.expp(s)")
    assert len(error.reports) == 1


def test_wide_characters(source, golden):
    golden(str(source.refused_body("größe = '日本' ; a = fehlt + n")))

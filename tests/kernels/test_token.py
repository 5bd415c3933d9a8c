"""Whole tokens in one launch against a float32 reference: lengths, batches, prompts, families."""

from dataclasses import replace

import numpy as np
import pytest

import warploom as wl
from tests.kernels.token_model import SMALL, error, machine, model
from warploom.base.errors import ShapeError
from warploom.kernels import token
from warploom.kernels.token import launch
from warploom.kernels.token.reference import forward
from warploom.testing.golden import Golden

BAR = 2.5e-2  # from float32, of a position with weights in bf16; the median is below 1.2e-2
# From the reference that rounds as the kernel does: mostly a millionth, but a number that lies in
# the middle may be rounded to the other side.
NEAR, MEDIAN = 1e-2, 1e-5


NEOX = replace(SMALL, kv_heads=4, rotary_dim=8, parallel=True, gated=False, layers=3)
FAMILIES = {
    "llama": model,
    "qwen3": lambda: model(norms=True),
    "neox": lambda: model(NEOX, biases=True),
}


def some(count: int, seed: int = 0, vocabulary: int = SMALL.vocabulary) -> list[int]:
    return np.random.default_rng(seed).integers(0, vocabulary, count).tolist()


def test_tokens_one_after_the_other(device) -> None:
    made = model()
    run = machine(device, made)
    # (With 7 a key in the middle is rounded to the other side at position 1, and stays so.)
    ids, errors, exact = [8], [], []
    for position in range(20):
        logits, columns = run.run([ids[-1]], [position], [0])
        expected = forward(made, ids).logits[-1]
        errors.append(error(logits[0], expected))
        exact.append(error(logits[0], forward(made, ids, short=True).logits[-1]))
        assert device.get(columns.ids)[0] == logits[0].argmax()
        assert device.get(columns.positions)[0] == position + 1
        ids.append(int(logits[0].argmax()))
    assert np.median(errors) < 1.2e-2 and max(errors) < BAR
    assert np.median(exact) < MEDIAN and max(exact) < NEAR


@pytest.mark.parametrize("length", [1, 15, 16, 17, 255, 256, 257, 513])
def test_lengths(device, length: int) -> None:
    made = model()
    ids = some(length)
    run = machine(device, made, context=768).holding([ids[:-1]])
    logits, _ = run.run(ids[-1:], [length - 1], [0])
    assert error(logits[0], forward(made, ids, short=True).logits[-1]) < NEAR


def test_many_chunks(device, monkeypatch) -> None:
    """More than one merge takes at a time, of which the last has fewer."""
    monkeypatch.setattr(launch, "MANY", 2)
    made = model(replace(SMALL, layers=1))
    ids = some(2 * 256 + 40)
    run = machine(device, made, context=9 * 256).holding([ids[:-1]])
    logits, _ = run.run(ids[-1:], [len(ids) - 1], [0])
    assert error(logits[0], forward(made, ids, short=True).logits[-1]) < NEAR


@pytest.mark.parametrize("layers", [1, 2])
def test_each_layer(device, layers: int) -> None:
    made = model(replace(SMALL, layers=layers))
    ids = some(9)
    run = machine(device, made).holding([ids[:-1]])
    run.run(ids[-1:], [8], [0], head=False)
    assert error(run.stream(1)[0], forward(made, ids, short=True).streams[-1][-1]) < NEAR


@pytest.mark.parametrize("family", ["llama", "qwen3", pytest.param("neox", marks=pytest.mark.slow)])
def test_keys_and_values_of_each_layer(device, family: str) -> None:
    """They are made of what the layer before has left."""
    made = FAMILIES[family]()
    ids = some(18)
    run = machine(device, made).holding([ids[:-1]])
    run.run(ids[-1:], [17], [0])
    wanted = forward(made, ids, short=True)
    page = device.get(run.cache.pages)[0, 1]
    for cache, rows in ((run.cache.keys, wanted.keys), (run.cache.values, wanted.values)):
        held = np.array(device.get(cache)).astype(np.float32)
        for layer in range(made.shape.layers):
            assert error(held[layer, page, 1], rows[layer][-1]) < NEAR, f"layer {layer}"


@pytest.mark.parametrize("family", ["llama", "neox"])
def test_a_batch_is_its_rows(device, family: str) -> None:
    """Sequences of mixed lengths, one column not used: each row equals the sequence alone, bit for
    bit, and two runs are the same."""
    made, lengths = FAMILIES[family](), [1, 15, 16, 0, 17, 40, 63]
    histories = [some(n, seed=n) for n in lengths]
    new = some(len(lengths), seed=99)
    empty = machine(device, made, context=64, sequences=len(lengths))
    positions = [n if n else -1 for n in lengths]
    runs = []
    for _ in range(2):
        logits, columns = empty.holding(histories).run(new, positions, list(range(len(lengths))))
        runs.append(logits)
        left = device.get(columns.positions)
        assert left.tolist() == [p + 1 if p >= 0 else -1 for p in positions]
    assert runs[0].tobytes() == runs[1].tobytes()
    for row, (history, position) in enumerate(zip(histories, positions, strict=True)):
        if position < 0:
            continue
        alone, _ = empty.holding(histories).run([new[row]], [position], [row])
        assert alone[0].tobytes() == runs[0][row].tobytes(), f"row {row}"
        expected = forward(made, [*history, new[row]], short=True).logits[-1]
        assert error(runs[0][row], expected) < NEAR


@pytest.mark.parametrize(
    ("begin", "count"), [(0, 8), (252, 8), (14, 8), pytest.param(3, 5, marks=pytest.mark.slow)]
)
def test_a_piece_of_a_prompt(device, begin: int, count: int) -> None:
    """Columns of one sequence see those before them; what they leave serves the next token."""
    made = model()
    ids = some(begin + count + 1)
    run = machine(device, made, context=320).holding([ids[:begin]])
    logits, _ = run.run(ids[begin:-1], list(range(begin, begin + count)), [0] * count)
    expected = forward(made, ids, short=True).logits
    for row in range(count):
        assert error(logits[row], expected[begin + row]) < NEAR
    run.run(ids[begin:-1], list(range(begin, begin + count)), [0] * count, head=False)
    logits, _ = run.run(ids[-1:], [begin + count], [0])
    assert error(logits[0], expected[-1]) < NEAR


def test_two_prompts_at_once(device) -> None:
    made = model()
    first, second = some(5, 1), some(14, 2)
    run = machine(device, made, sequences=2).holding([[], second[:11]])
    logits, _ = run.run([*first, *second[11:]], [0, 1, 2, 3, 4, 11, 12, 13], [0] * 5 + [1] * 3)
    expected = [
        *forward(made, first, short=True).logits,
        *forward(made, second, short=True).logits[11:],
    ]
    for row in range(8):
        assert error(logits[row], expected[row]) < NEAR


@pytest.mark.parametrize("family", ["llama", pytest.param("neox", marks=pytest.mark.slow)])
def test_rounds_are_launches(device, family: str) -> None:
    """Three tokens in one launch are those of three launches, bit for bit."""
    made, histories = FAMILIES[family](), [some(14, 1), some(30, 2)]
    runs = []
    for rounds in (3, 1):
        run = machine(device, made, sequences=2).holding(histories)
        columns = run.columns([5, 6], [14, 30], [0, 1])
        logits, chosen = [], []
        for _ in range(3 // rounds):
            run.call(columns, rounds=rounds).run()
            logits.append(run.logits(2))
            chosen.append(run.chosen(2))
        assert device.get(columns.positions).tolist() == [17, 33]
        assert np.array_equal(device.get(columns.ids), chosen[-1][-1])
        runs.append((np.concatenate(chosen), np.concatenate(logits)))
    assert runs[0][0].shape == (3, 2) and runs[0][1].shape == (6, SMALL.vocabulary)
    assert np.array_equal(runs[0][0], runs[1][0])
    assert runs[0][1].tobytes() == runs[1][1].tobytes()


def test_a_launch_behind_one_that_was_stopped(device) -> None:
    """Also where blocks end their waits: here because a block too many is waited for."""
    made, ids = model(), some(21)
    stop = wl.Stop("sim" if isinstance(device.put(np.zeros(1)), np.ndarray) else "gpu")
    run = machine(device, made).holding([ids[:-1]])
    columns = run.columns(ids[-1:], [20], [0])
    run.call(columns, stop=stop).run()
    wanted = run.logits(1)
    lonely = device.put(np.array([0, 1], np.int32))  # counts from one more than there is
    run.works[1] = replace(run.works[1], state=lonely)
    stop.ask()
    run.call(run.columns(ids[-1:], [20], [0]), stop=stop).run()
    run.logits(1)  # it has come back
    stop.clear()
    run.begin_anew()
    run.call(run.columns(ids[-1:], [20], [0]), stop=stop).run()
    assert run.logits(1).tobytes() == wanted.tobytes()


# Each is a variant to compile.
QUICK: list[tuple[dict, dict]] = [
    ({"rope_style": "interleaved"}, {"norms": True, "bias": True}),
    ({"head_dim": 128, "heads": 2, "kv_heads": 1, "rotary_dim": 32}, {}),
]
SLOW: list[tuple[dict, dict]] = [
    ({"kv_heads": 4}, {}),
    ({"kv_heads": 1}, {}),
    ({}, {"norms": True}),
    ({}, {"bias": True}),
    ({"rotary_dim": 8, "rope_style": "interleaved"}, {}),
    ({"head_dim": 80, "kv_heads": 4, "rotary_dim": 20}, {}),
    ({"head_dim": 64, "heads": 2, "kv_heads": 1, "rotary_dim": 64}, {}),
    ({"hidden": 192, "feed_forward": 320}, {}),
    ({"vocabulary": 1000}, {}),
    ({"parallel": True}, {}),
    ({"gated": False}, {}),
    ({}, {"biases": True}),
    ({}, {"dtype": np.float16}),
]


@pytest.mark.parametrize(
    ("change", "options"),
    [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
    ids=str,
)
def test_families(device, change: dict, options: dict) -> None:
    made = model(replace(SMALL, **change), **options)
    ids = some(21)
    run = machine(device, made).holding([ids[:-1]])
    logits, _ = run.run(ids[-1:], [20], [0])
    assert error(logits[0], forward(made, ids, short=True).logits[-1]) < NEAR


def test_neox(device) -> None:
    """Partial rotary, parallel residual, norms with means and biases, gelu; an odd number of
    layers, so that the stream ends in another half than it began."""
    made, ids = FAMILIES["neox"](), some(21)
    run = machine(device, made).holding([ids[:-1]])
    logits, _ = run.run(ids[-1:], [20], [0])
    assert error(logits[0], forward(made, ids, short=True).logits[-1]) < NEAR
    assert error(logits[0], forward(made, ids).logits[-1]) < BAR


@pytest.mark.parametrize(
    ("columns", "context"),
    [(1, 64), (2, 64), (1, 2560), pytest.param(3, 64, marks=pytest.mark.slow), (3, 1024)],
)
def test_neox_in_its_phases(device, columns: int, context: int) -> None:
    """Parts added up by who needs them or once for all, chunks of heads merged likewise. Rows of
    the last piece of a prompt."""
    made, ids = FAMILIES["neox"](), some(20 + columns)
    run = machine(device, made, context=context).holding([ids[:20]])
    logits, _ = run.run(ids[20:], list(range(20, 20 + columns)), [0] * columns)
    expected = forward(made, ids, short=True).logits[20:]
    assert run.plan.is_direct(columns, -(-context // 256)) == (context == 64)
    for row in range(columns):
        assert error(logits[row], expected[row]) < NEAR


def test_neox_after_other_launches(device) -> None:
    """Counters go on from launch to launch, with or without a head, on one block or more than a
    matrix has steps."""
    made, ids = FAMILIES["neox"](), some(23)
    for blocks in (1, 40):
        run = machine(device, made, blocks=blocks).holding([ids[:20]])
        run.run(ids[20:21], [20], [0], head=False)
        run.run(ids[21:22], [21], [0])
        logits, _ = run.run(ids[22:], [22], [0])
        assert error(logits[0], forward(made, ids, short=True).logits[-1]) < NEAR
        state = device.get(run.works[1].state)
        assert state[2] == 3 * made.shape.layers
        assert state[32:128:32].tolist() == [blocks * state[2]] * 3


@pytest.mark.parametrize("mean", [0.0, 300.0])
def test_a_mean_far_from_zero(device, mean: float) -> None:
    """A norm takes a large mean away without losing what is left."""
    made, ids = FAMILIES["neox"](), some(21)
    for layer in made.layers:
        layer.down_bias = np.float32(mean) + layer.down_bias
    run = machine(device, made).holding([ids[:-1]])
    logits, _ = run.run(ids[-1:], [20], [0])
    assert error(logits[0], forward(made, ids, short=True).logits[-1]) < NEAR


@pytest.mark.parametrize(
    ("blocks", "warps"),
    [
        (40, 4),
        (3, 16),
        *(pytest.param(b, w, marks=pytest.mark.slow) for b, w in ((1, 4), (2, 8), (7, 2))),
    ],
)
def test_blocks_and_warps(device, blocks: int, warps: int) -> None:
    """More blocks than a matrix has steps, and one that does everything."""
    made = model()
    ids = some(21)
    run = machine(device, made, blocks=blocks, warps=warps).holding([ids[:-1]])
    logits, _ = run.run(ids[-1:], [20], [0])
    assert error(logits[0], forward(made, ids, short=True).logits[-1]) < NEAR


@pytest.mark.parametrize("page", [pytest.param(4, marks=pytest.mark.slow), 64])
def test_pages(device, page: int) -> None:
    """Positions around the ends of pages; the variant is the same for all."""
    made = model()
    for length in (page - 1, page, page + 1, 2 * page):
        ids = some(length)
        run = machine(device, made, page=page, context=128).holding([ids[:-1]])
        logits, _ = run.run(ids[-1:], [length - 1], [0])
        assert error(logits[0], forward(made, ids, short=True).logits[-1]) < NEAR


def test_the_largest_logit_is_the_first(device) -> None:
    """Equal logits: the lowest token wins, wherever in the vocabulary the others stand."""
    made = model()
    made.head[:] = made.head[5]
    run = machine(device, made)
    logits, columns = run.run([3], [0], [0])
    assert len(set(logits[0].tolist())) == 1
    assert device.get(columns.ids)[0] == 0
    made.head[:123] = -made.head[5] if logits[0, 0] > 0 else made.head[5]
    made.head[123:] *= 1 if logits[0, 0] > 0 else -1
    run = machine(device, made)
    logits, columns = run.run([3], [0], [0])
    assert device.get(columns.ids)[0] == logits[0].argmax() == 123


@pytest.mark.parametrize(
    ("family", "ids", "positions", "sequences", "rounds"),
    [
        ("llama", [1, 2, 3], [15, 16, 5], [0, 0, 1], 1),
        ("llama", [4, 5], [-1, 20], [0, 1], 2),
        pytest.param("llama", [7], [0], [0], 2, marks=pytest.mark.slow),
        pytest.param("neox", [7], [0], [0], 2, marks=pytest.mark.slow),
    ],
)
def test_checked(check, family, ids, positions, sequences, rounds) -> None:
    """No race, no deadlock, nothing unwritten is read, under several orders."""
    from warploom.testing.devices import SimDevice

    histories = [some(15, 1), some(20, 2)]
    run = machine(SimDevice(), FAMILIES[family](), sequences=2, blocks=3).holding(histories)
    check(run.call(run.columns(ids, positions, sequences), rounds=rounds), seeds=3)


def test_refused(golden: Golden) -> None:
    from warploom.testing.devices import SimDevice

    run = machine(SimDevice(), model())
    texts = []
    for columns in (run.columns([1] * 9, [0] * 9, [0] * 9), run.columns([1], [0, 1], [0])):
        with pytest.raises(ShapeError) as refused:
            run.call(columns)
        texts.append(str(refused.value))
    for shape in (replace(SMALL, hidden=100), replace(SMALL, heads=8, head_dim=24)):
        with pytest.raises(ShapeError) as refused:
            token.make(shape, 5)
        texts.append(str(refused.value))
    with pytest.raises(ShapeError) as refused:
        token.make(replace(SMALL, hidden=16384), 1)
    texts.append(str(refused.value))
    wide = {name: getattr(run.cache, name).astype(np.float32) for name in ("keys", "values")}
    run.cache = replace(run.cache, **wide)
    with pytest.raises(TypeError) as refused:
        run.call(run.columns([1], [0], [0]))
    texts.append(str(refused.value))
    golden("\n\n".join(texts))

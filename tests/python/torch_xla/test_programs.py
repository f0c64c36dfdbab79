"""Programs of PyTorch on refcpu, beside the same on PyTorch's own CPU device."""

import pytest
import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
from torch import nn

# Autograd asks once how many devices there are, when it is first used.
DEVICE = torch_xla.device()

CASES = {}


def case(function):
    """Registers a function of a device that gives tensors."""
    CASES[function.__name__] = function
    return function


def normal(device, *shape, dtype=torch.float32, seed=0):
    """The same numbers on every device."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(device)


def trained(make_model, device, x, y, make_optimizer, steps=3):
    """The losses of some steps, by the seed that makes a model the same on every device."""
    torch.manual_seed(1)
    model = make_model().to(device)
    optimizer = make_optimizer(model.parameters())
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach().cpu())
    return losses


@case
def perceptron(device):
    def model():
        return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    labels = torch.arange(8).remainder(4).to(device)
    return trained(model, device, normal(device, 8, 16), labels, lambda p: torch.optim.Adam(p, 1e-2))


@case
def convolutional_network(device):
    def model():
        features = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*features, nn.Flatten(), nn.Linear(8 * 8 * 8, 5))

    images, labels = normal(device, 4, 3, 16, 16), torch.arange(4).to(device)
    return trained(model, device, images, labels, lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9))


def with_gradients(model, device, x):
    torch.manual_seed(1)
    model = model.to(device)
    output = model(x)
    output = output[0] if isinstance(output, tuple) else output
    output.square().mean().backward()
    return [output, *(parameter.grad for parameter in model.parameters())]


@case
def recurrent_network(device):
    torch.manual_seed(1)
    return with_gradients(nn.LSTM(8, 16, batch_first=True), device, normal(device, 2, 5, 8))


@case
def transformer_layer(device):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return with_gradients(layer, device, normal(device, 2, 6, 16))


@case
def attention(device):
    q, k, v = (normal(device, 2, 4, 8, 16, seed=seed).requires_grad_() for seed in range(3))
    output = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    output.sum().backward()
    return [output, q.grad, k.grad, v.grad]


@case
def embedding_and_layer_norm(device):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(20, 8), nn.LayerNorm(8))
    return with_gradients(model, device, torch.tensor([[1, 2, 3], [4, 5, 1]]).to(device))


@case
def sorting(device):
    a = normal(device, 5, 17)
    return [*a.sort(dim=1, descending=True), *a.topk(4), a.cumsum(1), a.cumprod(0), a.argmax(1), a.argsort(0), a.median()]


@case
def indexing(device):
    a = normal(device, 6, 7)
    rows = torch.tensor([0, 3, 2]).to(device)
    changed = a.clone()
    changed[1:3, 2] = 5.0
    changed.scatter_add_(1, torch.zeros(6, 1, dtype=torch.long).to(device), normal(device, 6, 1, seed=1))
    added = a.index_put((rows,), torch.ones(3, 7).to(device), accumulate=True)
    return [a[rows], torch.index_select(a, 1, rows), changed, added, a.take_along_dim(rows[None, :], 1)]


@case
def sizes_that_depend_on_data(device):
    a = torch.tensor([0, 1, 0, 3, 4]).to(device)
    return [a.nonzero(), a.masked_select(a > 1), torch.unique(torch.tensor([3, 1, 3, 2]).to(device))]


@case
def linear_algebra(device):
    a = normal(device, 5, 5)
    positive = a @ a.T + 5 * torch.eye(5).to(device)
    lower = torch.linalg.cholesky(positive)
    q, r = torch.linalg.qr(a)
    b = normal(device, 5, 2, seed=1)
    factors = [lower, q @ r, torch.linalg.inv(positive), torch.linalg.det(positive)]
    solved = [torch.linalg.solve(positive, b), torch.linalg.solve_triangular(lower, b, upper=False)]
    return [*factors, *solved, torch.linalg.eigvalsh(positive), torch.linalg.svdvals(a)]


@case
def fourier_transforms(device):
    a = normal(device, 4, 16)
    spectrum = torch.fft.rfft(a)
    return [torch.view_as_real(torch.fft.fft(a)), torch.view_as_real(spectrum), torch.fft.irfft(spectrum)]


@case
def convolutions(device):
    def weights(*shape):
        return normal(device, *shape, seed=1)

    image = normal(device, 1, 3, 8, 8)
    return [
        F.conv1d(normal(device, 2, 4, 10), weights(6, 2, 3), groups=2),
        F.conv2d(image, weights(4, 3, 3, 3), stride=2, dilation=2),
        F.conv_transpose2d(image, weights(3, 4, 3, 3), stride=2, padding=1, output_padding=1),
        F.conv3d(normal(device, 1, 2, 5, 5, 5), weights(3, 2, 2, 2, 2)),
    ]


@case
def pooling_and_interpolation(device):
    a = normal(device, 2, 3, 9, 9).requires_grad_()
    pooled = F.max_pool2d(a, 3, 2, 1) + F.avg_pool2d(a, 3, 2, 1) + F.adaptive_avg_pool2d(a, 5)
    larger = F.interpolate(a, scale_factor=2, mode="bilinear")
    (pooled.sum() + larger.square().sum()).backward()
    return [pooled, larger, F.interpolate(a.detach(), size=(7, 3), mode="nearest"), a.grad]


@case
def elementwise_functions(device):
    a = normal(device, 3, 50)
    positive = a.abs() + 0.1
    of_all = "sin cos tan tanh exp expm1 sigmoid erf erfc floor ceil round trunc frac sign atan asinh sinh cosh"
    of_positive = "log log1p log2 sqrt rsqrt reciprocal lgamma digamma"
    activations = [F.gelu, F.silu, F.softplus, F.elu, F.leaky_relu, F.hardswish, F.mish]
    values = [getattr(torch, name)(a) for name in of_all.split()]
    values += [getattr(torch, name)(positive) for name in of_positive.split()]
    values += [activation(a) for activation in activations]
    values += [torch.acosh(positive + 1), torch.erfinv(a.tanh()), F.log_softmax(a, -1), F.softmax(a, -1)]
    values += [torch.atan2(a, positive), torch.remainder(a, positive), torch.fmod(a, positive), a // positive]
    return [*values, torch.pow(positive, a), torch.clamp(a, -0.5, 0.5), torch.where(a > 0, a, positive)]


@case
def integers(device):
    a, b = torch.tensor([-7, 7, 5, -5]).to(device), torch.tensor([2, -2, 3, 3]).to(device)
    values = [a // b, a % b, torch.fmod(a, b), a << 1, a & b, a | b, a ^ b, ~a, a.to(torch.uint8)]
    return [*values, (a * b).sum(), a.max(), torch.bincount(b.abs())]


@case
def reductions(device):
    a = normal(device, 4, 5, 6)
    values = [a.var(1), a.std(), a.norm(dim=2), a.logsumexp(1), a.mean((0, 2)), a.amax((0, 1)), a.kthvalue(2, 1)[0]]
    return [*values, (a > 9).all(), (a > 0).any(1), a.prod(2)]


@case
def shapes(device):
    a = normal(device, 2, 3, 4)
    moved = [a.permute(2, 0, 1).reshape(4, 6), a.flip(0), a.roll(1, 2), a.unfold(2, 2, 1), a.expand(2, 3, 4)[:, ::2]]
    joined = [torch.cat([a, a], 1), torch.stack([a, a]), a.repeat(2, 1, 1), torch.kron(a[0], a[1])]
    padded = [F.pad(a, (1, 2)), F.pad(a, (1, 1), mode="reflect"), torch.tril(a), torch.diagonal(a, 0, 1, 2)]
    return [*moved, *joined, *padded, torch.einsum("abc,abd->acd", a, a), torch.bmm(a, a.transpose(1, 2))]


@case
def complex_numbers(device):
    a = torch.complex(normal(device, 3, 4), normal(device, 3, 4, seed=1))
    return [torch.view_as_real(z) for z in (a * a.conj(), torch.exp(a), a @ a.mT)] + [a.angle()]


@case
def double_precision(device):
    a = normal(device, 4, 4, dtype=torch.float64)
    return [a @ a, a.exp(), a.sum()]


def flat(values):
    return [tensor.detach().cpu() for tensor in values]


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_cpu(name):
    expected, found = flat(CASES[name](torch.device("cpu"))), flat(CASES[name](DEVICE))
    assert len(found) == len(expected)
    for e, f in zip(expected, found):
        torch.testing.assert_close(f, e, rtol=2e-4, atol=2e-5, equal_nan=True)


@pytest.mark.parametrize(
    "dtype",
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 float8_e4m3fn float8_e5m2".split(),
)
def test_types_come_back_as_they_went(dtype):
    values = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype))
    back = values.to(DEVICE).cpu()
    assert back.dtype == values.dtype
    assert torch.equal(back.to(torch.complex64), values.to(torch.complex64))


def test_programs_in_bfloat16_round_as_on_the_cpu():
    a = normal("cpu", 16, 16, dtype=torch.bfloat16)
    found = (a.to(DEVICE) @ a.to(DEVICE)).cpu()
    torch.testing.assert_close(found, a @ a, rtol=2e-2, atol=2e-2)


def test_a_step_at_a_time_uses_what_the_last_one_left():
    x = torch.zeros(1000, device=DEVICE)
    for _ in range(20):
        x += 1
        torch_xla.sync()
    assert x.sum().item() == 20000


def test_random_numbers_are_spread_evenly():
    numbers = torch.rand(10000, device=DEVICE).cpu()
    assert 0 <= numbers.min() and numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.02
    dropped = F.dropout(torch.ones(10000, device=DEVICE), 0.5).cpu()
    assert abs(dropped.mean() - 1) < 0.05


def test_compiled_functions_run():
    a = normal("cpu", 6, 6)
    compiled = torch.compile(lambda a, b: torch.softmax(a @ b, -1), backend="openxla")
    found = compiled(a.to(DEVICE), a.to(DEVICE)).cpu()
    torch.testing.assert_close(found, torch.softmax(a @ a, -1), rtol=1e-4, atol=1e-5)


def test_memory_is_counted():
    x = torch.randn(1 << 20).to(DEVICE)
    torch_xla.sync()
    info = xm.get_memory_info(DEVICE)
    assert 4 << 20 <= info["bytes_used"] <= info["peak_bytes_used"] < info["bytes_limit"]
    assert x.shape == (1 << 20,)


def test_reducing_over_one_device_changes_nothing():
    found = xm.all_reduce(xm.REDUCE_SUM, torch.ones(3, device=DEVICE)).cpu()
    assert torch.equal(found, torch.ones(3))

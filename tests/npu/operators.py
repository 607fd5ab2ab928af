"""Operators of npu tensors against the same on the CPU; test_torch_npu.py starts it. Not a test by itself.

torch_npu itself gives float32 where float64 was asked for, so that is not compared.
Prints one line per expression that differs, then how many were compared.
"""

import sys

import torch
import torch.nn.functional as F
import torch_npu  # noqa: F401

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
X, Y, W = torch.randn(7, 5), torch.randn(7, 5), torch.randn(3, 7, 5)
I = torch.randint(0, 5, (7,))
Z = torch.randint(-9, 9, (7, 5))
B = X > 0

# Each is evaluated with x, y, w (float tensors), z, i (int64), b (bool), d (the device), t (a dtype in turn).
TYPED = """
x.to(t) + y.to(t) | x.to(t) - 2 * y.to(t) | x.to(t) * y.to(t) | 1 - x.to(t) | x.to(t) * 3 | -x.to(t) | x.to(t).abs()
x.to(t) > y.to(t) | x.to(t) == 2 | x.to(t) != y.to(t) | x.to(t) <= 1 | x.to(t).max(1) | x.to(t).min(0)
torch.cat([x.to(t), y.to(t)], 1) | torch.stack([x.to(t), y.to(t)], 1) | x.to(t).float() | x.to(t).half()
x.to(t).sum() | x.to(t).sum(1) | x.to(t).sum((0, 1), keepdim=True) | x.to(t).t().contiguous() | w.to(t).permute(2, 0, 1).clone()
x.to(t)[1:6:2, ::3].contiguous() | x.to(t)[:, None].expand(7, 3, 5) + w.to(t).transpose(0, 1) | x.to(t).clamp(-1, 1)
torch.zeros(3, dtype=t, device=d) | torch.ones(3, dtype=t, device=d) | torch.full((2, 3), 7, dtype=t, device=d)
torch.where(b, x.to(t), y.to(t)) | x.to(t).masked_fill(b, 3) | torch.maximum(x.to(t), y.to(t)) | x.to(t).to(torch.int32)
"""
PLAIN = """
x / y | x / 3 | 2 / x | z / 4 | z // 3 | z % 3 | x // y | x % y | x.pow(2) | x ** 3 | x.abs() ** 0.5 | x.sqrt().isnan()
x.mean() | x.mean(0, keepdim=True) | x.var(1) | x.std() | x.prod(1) | x.norm() | torch.linalg.vector_norm(x, dim=1) | x.logsumexp(1)
x @ y.t() | F.linear(x, y) | F.linear(x, y, x.sum(1)) | torch.bmm(w, w.transpose(1, 2)) | w @ y.t() | x @ y[0] | torch.addmm(y @ y.t(), x, y.t(), beta=0.5, alpha=2)
x.softmax(1) | x.softmax(0) | x.log_softmax(1) | F.cross_entropy(x, i) | F.cross_entropy(x, i, reduction='none') | F.nll_loss(x, i, reduction='sum')
F.mse_loss(x, y) | F.mse_loss(x, y, reduction='sum') | F.binary_cross_entropy_with_logits(x, b.float()) | F.layer_norm(x, (5,)) | F.layer_norm(x, (5,), y[0], y[1])
x.argmax(1) | x.argmin() | x.amax(0) | x.min() | x.sort(1) | x.sort(0, descending=True) | x.topk(2) | x.cumsum(1) | x.cumsum(0)
x.exp() | x.abs().log() | x.abs().sqrt() | x.abs().rsqrt() | x.sigmoid() | x.tanh() | F.relu(x) | F.gelu(x) | F.silu(x) | x.sin() | x.cos() | x.sign() | x.reciprocal() | x.floor() | x.ceil() | x.round() | x.trunc() | x.erf()
x[i % 7] | x[b] | x[:, i % 5] | x[i % 7, i % 5] | w[1, i % 7] | w[:, i % 7, :] | x.gather(1, i[:, None]) | x.index_select(1, i % 5) | torch.nonzero(b) | x.masked_select(b)
torch.zeros(7, 5, device=d).scatter_(1, i[:, None], 1.0) | torch.zeros(7, 5, device=d).scatter_add_(1, i[:, None], x) | x.index_fill(0, torch.tensor([1, 3], device=d), 9.0)
F.embedding(i % 7, x) | F.one_hot(i, 5) | x.tril() | x.triu(1) | x.flip(0) | x.roll(2, 1) | x.repeat(2, 3) | F.pad(x, (1, 2)) | F.pad(x, (-1, 2, 1, 0)) | torch.eye(4, device=d)
torch.arange(10, device=d) | torch.arange(0, 1, 0.1, device=d) | torch.arange(5, 0, -2, device=d) | torch.linspace(0, 1, 5).to(d)
b & (y > 0) | torch.bitwise_or(b, y > 0) | ~b | z & 3 | torch.bitwise_or(z, 5) | ~z | z ^ 3 | b.all() | b.any(1) | (x == x).all() | b.sum() | b.float().mean() | b.logical_not()
x.addcmul(y, y, value=0.5) | x.addcdiv(y, y.abs() + 1, value=0.5) | x.lerp(y, 0.25) | x.lerp(y, 0.75) | torch.isclose(x, x + 1e-9) | x.isfinite()
torch.split(w, 2) | torch.chunk(x, 3) | torch.empty(0, 5, device=d).sum(0) | torch.cat([x[:0], y]) | x[:0] + y[:0] | x.to('cpu').to(d)
torch.full((), 2.5, device=d) + x | x.half().float() | x.bfloat16().float() | x.view(35)[3:30:4] | x.as_strided((3, 3), (5, 2), 1).clone()
"""
STATEMENTS = {
    "slice assignment": "a = x.clone(); a[0] = 1; a[1:3] = y[1:3]; a[:, 2] *= 2",
    "masked assignment": "a = x.clone(); a[b] = 0; a[i % 7] += 0",
    "in place": "a = x.clone(); a += 1; a *= y; a -= 2; a /= 3; a.clamp_(-1, 1); a.neg_()",
    "fill and zero": "a = x.clone(); a[1:].fill_(3); a[:1].zero_()",
    "index put": "a = x.clone(); a.index_put_((i % 7, i), x[:, 0], accumulate=True)",
    "copy between types": "a = torch.empty(7, 5, dtype=torch.int64, device=d); a.copy_(x * 4)",
    "copy between layouts": "a = torch.empty(5, 7, device=d).t(); a.copy_(x)",
    "backward of many": "p = x.clone().requires_grad_(); (F.gelu(p) + F.silu(p) + p.sigmoid() + p.tanh() + F.layer_norm(p, (5,)) + p.softmax(1)).square().sum().backward(); a = p.grad",
    "backward of embedding": "p = x.clone().requires_grad_(); F.embedding(i % 7, p).pow(2).sum().backward(); a = p.grad",
    "backward of matmul": "p = w.clone().requires_grad_(); (p @ y.t()).relu().mean().backward(); a = p.grad",
    "backward of loss": "p = x.clone().requires_grad_(); (F.cross_entropy(p, i) + F.mse_loss(p, y)).backward(); a = p.grad",
    "gradient of expand": "p = x[:1].clone().requires_grad_(); (p + y).pow(2).sum().backward(); a = p.grad",
}


def names(device):
    return dict(x=X.to(device), y=Y.to(device), w=W.to(device), z=Z.to(device), i=I.to(device), b=B.to(device), d=device, F=F, torch=torch)


def expressions():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        for text in TYPED.replace("\n", " | ").split(" | "):
            yield text.strip(), dtype
    for text in PLAIN.replace("\n", " | ").split(" | "):
        yield text.strip(), None


def same(a, b):
    if isinstance(b, tuple):
        return all(same(p, q) for p, q in zip(a, b))
    torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5, equal_nan=True)
    return True


def check(what, work):
    try:
        same(work("npu"), work("cpu"))
        return True
    except Exception as error:
        print("DIFFERS", what, "::", str(error).strip().replace("\n", " ")[:300])
        return False


def main():
    count = right = 0
    for text, dtype in expressions():
        if text:
            count, right = count + 1, right + check(f"{text} {dtype or ''}", lambda d: eval(text, names(d) | {"t": dtype}))
    for name, text in STATEMENTS.items():

        def run(device):
            scope = names(device)
            exec(text, scope)
            return scope["a"]

        count, right = count + 1, right + check(name, run)
    print(f"{right} of {count} right")


main()

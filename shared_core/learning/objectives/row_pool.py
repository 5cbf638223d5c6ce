"""What a training step needs of a pool with a row of V and B for each item, and its gradient in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Grams(NamedTuple):
    """VᵀV (K, K), VᵀB (K, K') and BᵀB (K', K'): all that log det(L + I) needs of the pool."""

    vv: Tensor
    vb: Tensor
    bb: Tensor


class Pool(NamedTuple):
    """V (m, K) and B (m, K') of m items, Σ w_i ||v_i||² and Σ w_i ||b_i||² over the whole pool, and its Grams."""

    v: Tensor
    b: Tensor
    squares_v: Tensor
    squares_b: Tensor
    grams: Grams | None


def row_pool(v: Tensor, b: Tensor, weights: Tensor, index: Tensor, grams: bool = True) -> Pool:
    """The parts of :class:`Pool` from V (M, K), B (M, K'), w (M,) and int64 ``index`` (m,); no Grams if not wanted.

    Examples
    --------
    >>> v, b = torch.tensor([[1.0], [2.0]], requires_grad=True), torch.zeros(2, 0)
    >>> pool = row_pool(v, b, torch.ones(2), torch.tensor([1]))
    >>> pool.v.tolist(), pool.squares_v.item(), pool.grams.vv.tolist()
    ([[2.0]], 5.0, [[5.0]])
    """
    rows_v, rows_b, squares_v, squares_b, *products = _RowPool.apply(v, b, weights, index, grams)  # type: ignore[no-untyped-call]
    return Pool(rows_v, rows_b, squares_v, squares_b, Grams(*products) if grams else None)


class _RowPool(torch.autograd.Function):
    """Left to itself autograd makes a matrix of the pool's size for each term, and takes three times as long."""

    @staticmethod
    def forward(ctx: Any, v: Tensor, b: Tensor, weights: Tensor, index: Tensor, grams: bool) -> tuple[Tensor, ...]:
        ctx.save_for_backward(v, b, weights, index)
        squares = (torch.einsum("mk,mk->m", x, x).dot(weights) for x in (v, b))
        products = (v.T @ v, v.T @ b, b.T @ b) if grams else ()
        return v.index_select(0, index), b.index_select(0, index), *squares, *products

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        v, b, weights, index = ctx.saved_tensors
        rows_v, rows_b, squares_v, squares_b, *products = upstream
        scale_v, scale_b = ((2 * squares * weights)[:, None] for squares in (squares_v, squares_b))
        if products:
            vv, vb, bb = products
            grad_v = (v @ (vv + vv.T)).addmm_(b, vb.T).addcmul_(v, scale_v)
            grad_b = (b @ (bb + bb.T)).addmm_(v, vb).addcmul_(b, scale_b)
        else:
            grad_v, grad_b = v * scale_v, b * scale_b
        return grad_v.index_add_(0, index, rows_v), grad_b.index_add_(0, index, rows_b), None, None, None

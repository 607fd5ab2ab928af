// Matrix products.
#include "op.h"

namespace emu {
namespace {

// multiply computes out = a @ b for one pair of matrices, summing in double (or int64) in a fixed order.
template <typename C>
void multiply(const C* a, const C* b, C* out, int64_t m, int64_t k, int64_t n) {
    using W = std::conditional_t<std::is_integral_v<C>, int64_t, double>;
    std::vector<W> row(static_cast<size_t>(n));
    for (int64_t i = 0; i < m; i++) {
        std::fill(row.begin(), row.end(), W(0));
        for (int64_t p = 0; p < k; p++) {
            W x = a[i * k + p];
            for (int64_t j = 0; j < n; j++) row[static_cast<size_t>(j)] += x * b[p * n + j];
        }
        for (int64_t j = 0; j < n; j++) out[i * n + j] = static_cast<C>(row[static_cast<size_t>(j)]);
    }
}

// product follows torch.matmul: vectors, matrices and broadcast batches of them.
template <typename C>
std::vector<C> product(View a, View b) {
    if (a.dims.size() == 1) a = a.with_dims({1, a.dims[0]}, {0, a.strides[0]});
    if (b.dims.size() == 1) b = b.with_dims({b.dims[0], 1}, {b.strides[0], 0});
    Dims batch_a(a.dims.begin(), a.dims.end() - 2), batch_b(b.dims.begin(), b.dims.end() - 2);
    Dims batch = broadcast(batch_a, batch_b), dims_a = batch, dims_b = batch;
    int64_t m = a.dims[a.dims.size() - 2], k = a.dims.back(), n = b.dims.back();
    if (b.dims[b.dims.size() - 2] != k) throw Refusal("inner dimensions differ");
    dims_a.insert(dims_a.end(), {m, k});
    dims_b.insert(dims_b.end(), {k, n});
    auto x = load<C>(a, dims_a), y = load<C>(b, dims_b);
    int64_t pairs = count_of(batch);
    std::vector<C> out(static_cast<size_t>(pairs * m * n));
    for (int64_t i = 0; i < pairs; i++) multiply(x.data() + i * m * k, y.data() + i * k * n, out.data() + i * m * n, m, k, n);
    return out;
}

Work matmul(const aclTensor* self, const aclTensor* other, const aclTensor* out) {
    return [a = View(self), b = View(other), o = View(out)] {
        compute({a.type, b.type, o.type}, [&](auto zero) { store(o, product<decltype(zero)>(a, b)); });
    };
}

// scaled computes beta * bias + alpha * a @ b.
Work scaled(const aclTensor* bias, const aclTensor* first, const aclTensor* second, const aclScalar* beta,
            const aclScalar* alpha, const aclTensor* out) {
    return [c = View(bias), a = View(first), b = View(second), s = *beta, t = *alpha, o = View(out)] {
        compute({a.type, b.type, o.type}, [&](auto zero) {
            using C = decltype(zero);
            auto p = product<C>(a, b);
            C add = number<C>(s), factor = number<C>(t);
            auto plus = add != 0 ? load<C>(c, o.dims) : std::vector<C>(p.size());
            for (size_t i = 0; i < p.size(); i++) p[i] = factor * p[i] + (add != 0 ? add * plus[i] : 0);
            store(o, p);
        });
    };
}

}  // namespace
}  // namespace emu

using namespace emu;

OPERATOR(Matmul, (const aclTensor* self, const aclTensor* other, const aclTensor* out, int), matmul(self, other, out))
OPERATOR(Mm, (const aclTensor* self, const aclTensor* other, const aclTensor* out, int), matmul(self, other, out))
OPERATOR(Mv, (const aclTensor* self, const aclTensor* other, const aclTensor* out, int), matmul(self, other, out))
OPERATOR(BatchMatMul, (const aclTensor* self, const aclTensor* other, const aclTensor* out, int), matmul(self, other, out))
OPERATOR(Dot, (const aclTensor* self, const aclTensor* other, const aclTensor* out), matmul(self, other, out))
OPERATOR(Addmm, (const aclTensor* bias, const aclTensor* first, const aclTensor* second, const aclScalar* beta,
                 const aclScalar* alpha, const aclTensor* out, int),
         scaled(bias, first, second, beta, alpha, out))
OPERATOR(Baddbmm, (const aclTensor* bias, const aclTensor* first, const aclTensor* second, const aclScalar* beta,
                   const aclScalar* alpha, const aclTensor* out, int),
         scaled(bias, first, second, beta, alpha, out))
OPERATOR(Addmv, (const aclTensor* bias, const aclTensor* first, const aclTensor* second, const aclScalar* alpha,
                 const aclScalar* beta, const aclTensor* out, int),
         scaled(bias, first, second, beta, alpha, out))

// Operators of neural networks: softmax, losses, normalisation, dropout, embedding.
#include <cmath>
#include <random>

#include "op.h"
#include "reduce.h"

namespace emu {
namespace {

// along maps each row of one dimension of the inputs (all of the output's shape) to a row of the output.
template <typename F>
Work along(const aclTensor* first, const aclTensor* second, int64_t dim, const aclTensor* out, F f) {
    return [=, a = View(first), b = View(second ? second : first), o = View(out)] {
        size_t d = o.dims.empty() ? 0 : static_cast<size_t>(wrap(dim, o.dims.size()));
        auto last = [&](const View& v) { return v.dims.empty() ? v.with_dims({1}, {0}) : v.transposed(d, v.dims.size() - 1); };
        View x = last(a), y = last(b), z = last(o);
        size_t width = static_cast<size_t>(z.dims.back());
        auto p = load<float>(x), q = load<float>(y);
        std::vector<float> r(p.size());
        for (size_t i = 0; width && i < r.size(); i += width) f(&p[i], &q[i], &r[i], width);
        store(z, r);
    };
}

void softmax_row(const float* x, const float*, float* out, size_t n) {
    float top = x[0];
    double total = 0;
    for (size_t i = 0; i < n; i++) top = std::max(top, x[i]);
    for (size_t i = 0; i < n; i++) total += std::exp(x[i] - top);
    for (size_t i = 0; i < n; i++) out[i] = static_cast<float>(std::exp(x[i] - top) / total);
}

void log_softmax_row(const float* x, const float*, float* out, size_t n) {
    float top = x[0];
    double total = 0;
    for (size_t i = 0; i < n; i++) top = std::max(top, x[i]);
    for (size_t i = 0; i < n; i++) total += std::exp(x[i] - top);
    for (size_t i = 0; i < n; i++) out[i] = static_cast<float>(x[i] - top - std::log(total));
}

void softmax_slope(const float* grad, const float* y, float* out, size_t n) {
    double dot = 0;
    for (size_t i = 0; i < n; i++) dot += grad[i] * y[i];
    for (size_t i = 0; i < n; i++) out[i] = static_cast<float>((grad[i] - dot) * y[i]);
}

void log_softmax_slope(const float* grad, const float* y, float* out, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; i++) total += grad[i];
    for (size_t i = 0; i < n; i++) out[i] = static_cast<float>(grad[i] - std::exp(y[i]) * total);
}

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

Work nll_loss(const aclTensor* self, const aclTensor* target, const aclTensor* weight, int64_t reduction,
              int64_t ignore, const aclTensor* out, const aclTensor* total) {
    return [=, x = View(self), t = View(target), w = View(weight), o = View(out), s = View(total)] {
        auto values = load<float>(x), weights = load<float>(w);
        auto targets = load<int64_t>(t);
        size_t classes = static_cast<size_t>(x.dims.back());
        std::vector<float> losses;
        double sum = 0, weighed = 0;
        for (size_t i = 0; i < targets.size(); i++) {
            bool skip = targets[i] == ignore;
            if (!skip && (targets[i] < 0 || targets[i] >= static_cast<int64_t>(classes))) throw Refusal("target out of range");
            float k = skip ? 0 : weights[static_cast<size_t>(targets[i])];
            losses.push_back(skip ? 0 : -k * values[i * classes + static_cast<size_t>(targets[i])]);
            sum += losses.back(), weighed += k;
        }
        if (reduction != kNone) losses = {static_cast<float>(reduction == kMean ? sum / weighed : sum)};
        store(o, losses);
        store(s, std::vector<float>(static_cast<size_t>(s.count()), static_cast<float>(weighed)));
    };
}

Work nll_slope(const aclTensor* grad, const aclTensor* self, const aclTensor* target, const aclTensor* weight,
               int64_t reduction, int64_t ignore, const aclTensor* total, const aclTensor* out) {
    return [=, g = View(grad), x = View(self), t = View(target), w = View(weight), s = View(total), o = View(out)] {
        auto grads = load<float>(g), weights = load<float>(w), sums = load<float>(s);
        auto targets = load<int64_t>(t);
        size_t classes = static_cast<size_t>(x.dims.back());
        std::vector<float> result(static_cast<size_t>(x.count()));
        for (size_t i = 0; i < targets.size(); i++) {
            if (targets[i] == ignore) continue;
            float k = -weights[static_cast<size_t>(targets[i])] * grads[reduction == kNone ? i : 0];
            if (reduction == kMean) k /= sums[0];
            result[i * classes + static_cast<size_t>(targets[i])] = k;
        }
        store(o, result);
    };
}

// loss reduces f(self, target) of each element; slope is its derivative by self.
template <typename F>
Work loss(const aclTensor* self, const aclTensor* target, int64_t reduction, const aclTensor* out, F f) {
    return [=, a = View(self), b = View(target), o = View(out)] {
        Dims dims = broadcast(a.dims, b.dims);
        auto x = load<float>(a, dims), y = load<float>(b, dims);
        double total = 0;
        for (size_t i = 0; i < x.size(); i++) total += x[i] = f(x[i], y[i]);
        if (reduction == kMean) total /= static_cast<double>(x.size());
        store(o, reduction == kNone ? x : std::vector<float>{static_cast<float>(total)});
    };
}

template <typename F>
Work slope(const aclTensor* grad, const aclTensor* self, const aclTensor* target, int64_t reduction,
           const aclTensor* out, F f) {
    return [=, g = View(grad), a = View(self), b = View(target), o = View(out)] {
        auto d = load<float>(g, o.dims), x = load<float>(a, o.dims), y = load<float>(b, o.dims);
        float by = reduction == kMean ? 1 / static_cast<float>(x.size()) : 1;
        for (size_t i = 0; i < x.size(); i++) x[i] = d[i] * f(x[i], y[i]) * by;
        store(o, x);
    };
}

Work cross_entropy(const aclTensor* self, const aclTensor* target, const aclTensor* weight, const aclTensor* positive,
                   int64_t reduction, const aclTensor* out) {
    return [=, a = View(self), b = View(target), w = View(weight), p = View(positive), o = View(out)] {
        auto x = load<float>(a), y = load<float>(b, a.dims);
        auto k = w.present ? load<float>(w, a.dims) : std::vector<float>(x.size(), 1);
        auto q = p.present ? load<float>(p, a.dims) : std::vector<float>(x.size(), 1);
        double total = 0;
        for (size_t i = 0; i < x.size(); i++) {
            double up = std::log1p(std::exp(-std::abs(x[i]))) + std::max(-x[i], 0.0f);  // -log(sigmoid)
            x[i] = static_cast<float>(k[i] * ((1 - y[i]) * x[i] + (1 + (q[i] - 1) * y[i]) * up));
            total += x[i];
        }
        if (reduction == kMean) total /= static_cast<double>(x.size());
        store(o, reduction == kNone ? x : std::vector<float>{static_cast<float>(total)});
    };
}

Work embedding(const aclTensor* weight, const aclTensor* indices, const aclTensor* out) {
    return [w = View(weight), i = View(indices), o = View(out)] {
        auto table = load<float>(w);
        size_t width = static_cast<size_t>(w.dims.back());
        std::vector<float> rows;
        for (int64_t at : load<int64_t>(i)) {
            if (at < 0 || at >= w.dims[0]) throw Refusal("index out of range");
            auto row = table.begin() + at * static_cast<int64_t>(width);
            rows.insert(rows.end(), row, row + static_cast<int64_t>(width));
        }
        store(o, rows);
    };
}

Work embedding_slope(const aclTensor* grad, const aclTensor* indices, uint64_t padding, const aclTensor* out) {
    return [=, g = View(grad), i = View(indices), o = View(out)] {
        auto grads = load<float>(g);
        auto at = load<int64_t>(i);
        size_t width = static_cast<size_t>(o.dims.back());
        std::vector<float> result(static_cast<size_t>(o.count()));
        for (size_t r = 0; r < at.size(); r++) {
            if (at[r] == static_cast<int64_t>(padding)) continue;
            for (size_t c = 0; c < width; c++) result[static_cast<size_t>(at[r]) * width + c] += grads[r * width + c];
        }
        store(o, result);
    };
}

struct Norm {
    View x, w, b, y, mean, rstd;
    double eps;
};

void layer_norm(const Norm& n, size_t width) {
    auto x = load<float>(n.x);
    auto w = n.w.present ? load<float>(n.w) : std::vector<float>(width, 1);
    auto b = n.b.present ? load<float>(n.b) : std::vector<float>(width, 0);
    std::vector<float> means, rstds;
    for (size_t i = 0; i < x.size(); i += width) {
        double total = 0, squares = 0;
        for (size_t j = 0; j < width; j++) total += x[i + j];
        double mean = total / static_cast<double>(width);
        for (size_t j = 0; j < width; j++) squares += (x[i + j] - mean) * (x[i + j] - mean);
        double rstd = 1 / std::sqrt(squares / static_cast<double>(width) + n.eps);
        for (size_t j = 0; j < width; j++) x[i + j] = static_cast<float>((x[i + j] - mean) * rstd * w[j] + b[j]);
        means.push_back(static_cast<float>(mean)), rstds.push_back(static_cast<float>(rstd));
    }
    store(n.y, x);
    if (n.mean.present) store(n.mean, means);
    if (n.rstd.present) store(n.rstd, rstds);
}

struct NormSlope {
    View grad, x, mean, rstd, w, dx, dw, db;
};

void layer_norm_slope(const NormSlope& n, size_t width) {
    auto g = load<float>(n.grad), x = load<float>(n.x), mean = load<float>(n.mean), rstd = load<float>(n.rstd);
    auto w = n.w.present ? load<float>(n.w) : std::vector<float>(width, 1);
    std::vector<float> dx(x.size()), dw(width), db(width);
    for (size_t row = 0; row * width < x.size(); row++) {
        double a = 0, b = 0;
        for (size_t j = 0, i = row * width; j < width; j++, i++) {
            double hat = (x[i] - mean[row]) * rstd[row];
            a += g[i] * w[j], b += g[i] * w[j] * hat;
            dw[j] += static_cast<float>(g[i] * hat), db[j] += g[i];
        }
        for (size_t j = 0, i = row * width; j < width; j++, i++) {
            double hat = (x[i] - mean[row]) * rstd[row];
            dx[i] = static_cast<float>((g[i] * w[j] - (a + hat * b) / static_cast<double>(width)) * rstd[row]);
        }
    }
    if (n.dx.present) store(n.dx, dx);
    if (n.dw.present) store(n.dw, dw);
    if (n.db.present) store(n.db, db);
}

size_t width_of(const aclIntArray* shape) { return static_cast<size_t>(count_of(shape->values)); }

// A dropout mask is one bit per element, packed in bytes.
Work dropout_mask(const aclIntArray* shape, double drop, int64_t seed, int64_t offset, const aclTensor* out) {
    return [n = count_of(shape->values), drop, seed, offset, o = View(out)] {
        std::mt19937_64 random(static_cast<uint64_t>(seed) * 1000003 + static_cast<uint64_t>(offset));
        std::bernoulli_distribution keep(1 - drop);
        std::vector<int64_t> bytes(static_cast<size_t>(o.count()));
        for (int64_t i = 0; i < n; i++) bytes[static_cast<size_t>(i / 8)] |= static_cast<int64_t>(keep(random)) << (i % 8);
        store(o, bytes);
    };
}

Work dropout(const aclTensor* self, const aclTensor* mask, double drop, const aclTensor* out) {
    return [drop, a = View(self), m = View(mask), o = View(out)] {
        auto x = load<float>(a);
        auto bytes = load<int64_t>(m);
        for (size_t i = 0; i < x.size(); i++) {
            x[i] = bytes[i / 8] >> (i % 8) & 1 ? static_cast<float>(x[i] / (1 - drop)) : 0;
        }
        store(o, x);
    };
}

}  // namespace
}  // namespace emu

using namespace emu;

OPERATOR(Softmax, (const aclTensor* self, int64_t dim, const aclTensor* out), along(self, nullptr, dim, out, softmax_row))
OPERATOR(LogSoftmax, (const aclTensor* self, int64_t dim, const aclTensor* out),
         along(self, nullptr, dim, out, log_softmax_row))
OPERATOR(SoftmaxBackward, (const aclTensor* grad, const aclTensor* result, int64_t dim, const aclTensor* out),
         along(grad, result, dim, out, softmax_slope))
OPERATOR(LogSoftmaxBackward, (const aclTensor* grad, const aclTensor* result, int64_t dim, const aclTensor* out),
         along(grad, result, dim, out, log_softmax_slope))
OPERATOR(NLLLoss, (const aclTensor* self, const aclTensor* target, const aclTensor* weight, int64_t reduction,
                   int64_t ignore, const aclTensor* out, const aclTensor* total),
         nll_loss(self, target, weight, reduction, ignore, out, total))
OPERATOR(NLLLossBackward, (const aclTensor* grad, const aclTensor* self, const aclTensor* target, const aclTensor* weight,
                           int64_t reduction, int64_t ignore, const aclTensor* total, const aclTensor* out),
         nll_slope(grad, self, target, weight, reduction, ignore, total, out))
OPERATOR(MseLoss, (const aclTensor* self, const aclTensor* target, int64_t reduction, const aclTensor* out),
         loss(self, target, reduction, out, [](float x, float y) { return (x - y) * (x - y); }))
OPERATOR(MseLossBackward, (const aclTensor* grad, const aclTensor* self, const aclTensor* target, int64_t reduction,
                           const aclTensor* out),
         slope(grad, self, target, reduction, out, [](float x, float y) { return 2 * (x - y); }))
OPERATOR(BinaryCrossEntropyWithLogits, (const aclTensor* self, const aclTensor* target, const aclTensor* weight,
                                        const aclTensor* positive, int64_t reduction, const aclTensor* out),
         cross_entropy(self, target, weight, positive, reduction, out))
OPERATOR(Embedding, (const aclTensor* weight, const aclTensor* indices, const aclTensor* out),
         embedding(weight, indices, out))
OPERATOR(EmbeddingDenseBackward, (const aclTensor* grad, const aclTensor* indices, uint64_t, uint64_t padding, bool,
                                  const aclTensor* out),
         embedding_slope(grad, indices, padding, out))
OPERATOR(LayerNorm, (const aclTensor* x, const aclIntArray* shape, const aclTensor* weight, const aclTensor* bias,
                     double eps, const aclTensor* out, const aclTensor* mean, const aclTensor* rstd),
         [n = Norm{x, weight, bias, out, mean, rstd, eps}, width = width_of(shape)] { layer_norm(n, width); })
OPERATOR(LayerNormBackward, (const aclTensor* grad, const aclTensor* x, const aclIntArray* shape, const aclTensor* mean,
                             const aclTensor* rstd, const aclTensor* weight, const aclTensor*, const aclBoolArray* mask,
                             const aclTensor* dx, const aclTensor* dw, const aclTensor* db),
         [n = NormSlope{grad, x, mean, rstd, weight, mask->values[0] ? dx : nullptr, mask->values[1] ? dw : nullptr,
                        mask->values[2] ? db : nullptr},
          width = width_of(shape)] { layer_norm_slope(n, width); })
OPERATOR(DropoutGenMask, (const aclIntArray* shape, double drop, int64_t seed, int64_t offset, const aclTensor* out),
         dropout_mask(shape, drop, seed, offset, out))
OPERATOR(DropoutGenMaskV2, (const aclIntArray* shape, double drop, int64_t seed, int64_t offset, aclDataType,
                            const aclTensor* out),
         dropout_mask(shape, drop, seed, offset, out))
OPERATOR(DropoutDoMask, (const aclTensor* self, const aclTensor* mask, double drop, const aclTensor* out),
         dropout(self, mask, drop, out))

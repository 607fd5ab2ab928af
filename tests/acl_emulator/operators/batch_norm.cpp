// Batch normalisation: each channel (dimension 1) over everything else, forward and backward.
#include <cmath>

#include "op.h"

namespace emu {
namespace {

// Channels walks a tensor of shape N, C, ...: f(channel, index in row-major order).
struct Channels {
    size_t channels, inner, count;
    explicit Channels(const View& x)
        : channels(static_cast<size_t>(x.dims.at(1))), inner(1), count(static_cast<size_t>(x.count())) {
        for (size_t d = 2; d < x.dims.size(); d++) inner *= static_cast<size_t>(x.dims[d]);
    }
    size_t of(size_t i) const { return i / inner % channels; }
    double size() const { return static_cast<double>(count / channels); }
};

std::vector<float> or_all(const View& view, size_t n, float value) {
    return view.present && view.count() ? load<float>(view) : std::vector<float>(n, value);
}

struct Norm {
    View x, weight, bias, mean, variance, y, saved_mean, saved_scale;
    bool training;
    double momentum, eps;
};

// statistics gives each channel's mean and biased variance, and moves the running ones towards them.
void statistics(const Norm& n, const Channels& at, const std::vector<float>& x, std::vector<double>& mean, std::vector<double>& variance) {
    mean.assign(at.channels, 0), variance.assign(at.channels, 0);
    for (size_t i = 0; i < x.size(); i++) mean[at.of(i)] += x[i] / at.size();
    for (size_t i = 0; i < x.size(); i++) variance[at.of(i)] += std::pow(x[i] - mean[at.of(i)], 2) / at.size();
    if (!n.mean.present || !n.mean.count()) return;
    auto m = load<double>(n.mean), v = load<double>(n.variance);
    double unbiased = at.size() / (at.size() - 1);
    for (size_t c = 0; c < at.channels; c++) {
        m[c] += n.momentum * (mean[c] - m[c]);
        v[c] += n.momentum * (variance[c] * unbiased - v[c]);
    }
    store(n.mean, m), store(n.variance, v);
}

void normalise(const Norm& n) {
    Channels at(n.x);
    auto x = load<float>(n.x), w = or_all(n.weight, at.channels, 1), b = or_all(n.bias, at.channels, 0);
    std::vector<double> mean, variance;
    if (n.training) statistics(n, at, x, mean, variance);
    else mean = load<double>(n.mean), variance = load<double>(n.variance);
    std::vector<double> scale;
    for (double v : variance) scale.push_back(1 / std::sqrt(v + n.eps));
    for (size_t i = 0; i < x.size(); i++) {
        size_t c = at.of(i);
        x[i] = static_cast<float>((x[i] - mean[c]) * scale[c] * w[c] + b[c]);
    }
    store(n.y, x);
    if (n.training) store(n.saved_mean, mean), store(n.saved_scale, scale);
}

struct Slope {
    View grad, x, weight, mean, variance, saved_mean, saved_scale;
    bool training;
    double eps;
    View dx, dw, db;
};

void slope(const Slope& n) {
    Channels at(n.x);
    auto g = load<float>(n.grad), x = load<float>(n.x), w = or_all(n.weight, at.channels, 1);
    auto mean = load<double>(n.training ? n.saved_mean : n.mean), scale = load<double>(n.training ? n.saved_scale : n.variance);
    if (!n.training) {
        for (double& v : scale) v = 1 / std::sqrt(v + n.eps);
    }
    std::vector<double> dw(at.channels), db(at.channels);
    for (size_t i = 0; i < x.size(); i++) {
        size_t c = at.of(i);
        dw[c] += g[i] * (x[i] - mean[c]) * scale[c], db[c] += g[i];
    }
    for (size_t i = 0; i < x.size(); i++) {
        size_t c = at.of(i);
        double through = n.training ? (db[c] + (x[i] - mean[c]) * scale[c] * dw[c]) / at.size() : 0;
        x[i] = static_cast<float>((g[i] - through) * scale[c] * w[c]);
    }
    if (n.dx.present) store(n.dx, x);
    if (n.dw.present) store(n.dw, dw);
    if (n.db.present) store(n.db, db);
}

}  // namespace
}  // namespace emu

using namespace emu;

OPERATOR(BatchNorm, (const aclTensor* x, const aclTensor* weight, const aclTensor* bias, const aclTensor* mean,
                     const aclTensor* variance, bool training, double momentum, double eps, const aclTensor* out,
                     const aclTensor* saved_mean, const aclTensor* saved_scale),
         [n = Norm{x, weight, bias, mean, variance, out, saved_mean, saved_scale, training, momentum, eps}] { normalise(n); })
OPERATOR(BatchNormBackward, (const aclTensor* grad, const aclTensor* x, const aclTensor* weight, const aclTensor* mean,
                             const aclTensor* variance, const aclTensor* saved_mean, const aclTensor* saved_scale,
                             bool training, double eps, const aclBoolArray* mask, const aclTensor* dx, const aclTensor* dw,
                             const aclTensor* db),
         [n = Slope{grad, x, weight, mean, variance, saved_mean, saved_scale, training, eps, mask->values[0] ? dx : nullptr,
                    mask->values[1] ? dw : nullptr, mask->values[2] ? db : nullptr}] { slope(n); })

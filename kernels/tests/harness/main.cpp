// main.cpp: runs the matrix.
//   kernel_tests_<arch> [--full] [--only NAME,...] [--seeds N] [--first N] [--pes N] [--blocks N] [--stop] [--limit SECONDS]
// A case that takes longer than the limit is a hang: it is named, and the run ends with status 3.
#include "world.hpp"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csignal>
#include <string>
#include <unistd.h>

std::vector<Test>& tests()
{
    static std::vector<Test> t;
    return t;
}

namespace {

struct Options {
    bool full = false, stop = false;
    std::string only;
    int pes = 0, blocks = 0;
    unsigned limit = 120;
    uint64_t seeds = 0, first = 0;
};

// The watchdog. What it prints is made before each case: a signal handler may only write.
char hang_text[200];

void on_alarm(int)
{
    const ssize_t ignored = write(STDOUT_FILENO, hang_text, std::strlen(hang_text));
    (void)ignored;
    _exit(3);
}

void watch(const Test& t, const Config& c, unsigned seconds)
{
    std::fflush(stdout);
    std::snprintf(hang_text, sizeof hang_text, "FAIL %s (%s): did not end within %u s (--limit)\n", t.name, c.text().c_str(), seconds);
    alarm(seconds);
}

Options parse(int argc, char** argv)
{
    Options o;
    for (int i = 1; i < argc; i++) {
        const std::string a = argv[i];
        const auto value = [&] { return i + 1 < argc ? argv[++i] : const_cast<char*>(""); };
        if (a == "--full") o.full = true;
        else if (a == "--stop") o.stop = true;
        else if (a == "--only") o.only = value();
        else if (a == "--pes") o.pes = std::atoi(value());
        else if (a == "--blocks") o.blocks = std::atoi(value());
        else if (a == "--limit") o.limit = static_cast<unsigned>(std::atoi(value()));
        else if (a == "--seeds") o.seeds = std::strtoull(value(), nullptr, 10);
        else if (a == "--first") o.first = std::strtoull(value(), nullptr, 10);
        else {
            std::fprintf(stderr, "unknown option %s\n", a.c_str());
            std::exit(2);
        }
    }
    return o;
}

// --only takes parts of names, separated by commas.
bool selected(const std::string& only, const std::string& name)
{
    if (only.empty()) return true;
    for (size_t at = 0; at <= only.size();) {
        const size_t comma = std::min(only.find(',', at), only.size());
        if (comma > at && name.find(only.substr(at, comma - at)) != std::string::npos) return true;
        at = comma + 1;
    }
    return false;
}

// The short form takes corners of the matrix; the full form all of it. Seeds choose the schedule's
// order and its policy (5 policies, 4 pipe preferences), so 20 seeds meet each pair.
std::vector<Config> matrix(const Options& o)
{
    std::vector<Config> all;
    const std::vector<int> pes = o.pes ? std::vector<int>{o.pes} : std::vector<int>{1, 2, 3, 5, 8};
    const uint64_t seeds = o.seeds ? o.seeds : o.full ? 20 : 1;
    for (int p : pes)
        for (uint32_t b = 1; b <= 8; b++) {
            if (o.blocks ? static_cast<int>(b) != o.blocks : !o.full && b != 1 && b != 3 && b != 8) continue;
            for (uint64_t s = 0; s < seeds; s++) {
                const uint64_t seed = o.first + (o.full || o.seeds ? s : static_cast<uint64_t>(p) * 7 + b * 3);
                all.push_back({p, b, KM_LAZY, seed});
                if (s % 5 == 0 && (o.full || o.seeds || b == 3)) all.push_back({p, b, KM_IN_ORDER, seed});
            }
        }
    return all;
}

} // namespace

int main(int argc, char** argv)
{
    const Options o = parse(argc, argv);
    std::signal(SIGALRM, on_alarm);
    const auto start = std::chrono::steady_clock::now();
    int cases = 0, failed = 0;
    for (const Test& t : tests()) {
        if (!selected(o.only, t.name)) continue;
        const auto begin = std::chrono::steady_clock::now();
        int bad = 0, ran = 0;
        for (const Config& c : matrix(o)) {
            ran++;
            watch(t, c, o.limit);
            try {
                t.run(c, o.full);
            } catch (const Failure& f) {
                if (bad++ < 3) std::printf("FAIL %s (%s): %s\n", t.name, c.text().c_str(), f.text.c_str());
            }
            if (bad && o.stop) return 1;
        }
        cases += ran;
        failed += bad;
        const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        std::printf("%-28s %5d cases %4d failed %7.2f s\n", t.name, ran, bad, s);
        std::fflush(stdout);
    }
    alarm(0);
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("arch %u: %d cases, %d failed, %.1f s\n", km_npu_arch(), cases, failed, s);
    return failed ? 1 : 0;
}

// stream.cpp: runs a Stream as one group launch whose "kernel" is the list of steps.
#include "../../cpu_model/src/launch.hpp"
#include "world.hpp"
#include <algorithm>

namespace {

struct StreamArgs {
    Stream* stream;
    int pe;
};

// The end of a kernel and the start of the next on the same stream: pipes are drained, rules
// checked, blocks joined.
void kernel_boundary()
{
    km::Core& c = km::core();
    c.finish();
    c.order = km::Order{};
    std::fill(std::begin(c.context), std::end(c.context), uint8_t{0});
    km::sync_all(km::Where{"kernel boundary", 0});
}

} // namespace

void run_stream(const void* p)
{
    const StreamArgs& a = *static_cast<const StreamArgs*>(p);
    for (const Stream::Step& s : a.stream->steps_) {
        if (s.host) {
            if (km::block_idx() == 0 && a.stream->failure_.empty()) {
                try {
                    s.host(a.pe);
                } catch (const Failure& f) {
                    if (a.stream->failure_.empty()) a.stream->failure_ = "PE " + std::to_string(a.pe) + ": " + f.text;
                }
            }
            km::sync_all(km::Where{"host step", 0});
            continue;
        }
        km::KernelEntry e;
        if (!km::find_kernel(s.kernel.c_str(), e)) km::stop("test", km::Where::here(), "no kernel %s", s.kernel.c_str());
        Args args = s.args(a.pe);
        args.insert(args.begin(), a.stream->world_.state(a.pe));
        if (args.size() * 8 != e.args_size)
            km::stop("test", km::Where::here(), "%s takes %zu arguments, not %zu", s.kernel.c_str(), e.args_size / 8, args.size());
        e.run(args.data());
        kernel_boundary();
    }
}

void Stream::kernel(const std::string& name, std::function<Args(int)> args) { steps_.push_back({name, std::move(args), {}}); }
void Stream::host(std::function<void(int)> step) { steps_.push_back({"", {}, std::move(step)}); }

int32_t Stream::launch(km::Fault* fault)
{
    km_register_kernel("stream", run_stream, sizeof(StreamArgs));
    std::vector<StreamArgs> args;
    std::vector<const void*> argp;
    std::vector<const km_device_t*> devs;
    for (int i = 0; i < world_.n(); i++) args.push_back({this, i});
    for (int i = 0; i < world_.n(); i++) {
        argp.push_back(&args[i]);
        devs.push_back(world_.device(i));
    }
    const uint32_t blocks = world_.config.blocks, n = static_cast<uint32_t>(world_.n());
    return fault ? km::launch_group("stream", blocks, argp.data(), sizeof(StreamArgs), devs.data(), n, *fault)
                 : km_launch_group("stream", blocks, argp.data(), sizeof(StreamArgs), devs.data(), n);
}

void Stream::run() { judge(launch(nullptr)); }
void Stream::run_with(km::Fault& fault) { judge(launch(&fault)); }

void Stream::judge(int32_t rc)
{
    if (rc != KM_OK) fail("rc %d: %s", rc, km_last_report());
    if (!failure_.empty()) fail("%s", failure_.c_str());
    world_.check_canaries();
}

void Stream::run_expecting(const std::string& rule)
{
    launch(nullptr);
    const std::string got = km_last_report();
    if (got.find(rule + ": ") == std::string::npos)
        fail("rule %s was not reported; the model said: %s", rule.c_str(), got.empty() ? "nothing" : got.c_str());
}

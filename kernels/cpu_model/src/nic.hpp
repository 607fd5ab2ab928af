// nic.hpp: the engines behind work queues in memory (RDMA, SDMA, UDMA) of one PE.
//
// There is no thread: the scheduler lets the engines do one entry now and then, and all that is
// left when a launch ends. Queues are served in any order, each in its own order. An engine works
// past every cache and only knows what the doorbell announced.
#ifndef KM_NIC_HPP
#define KM_NIC_HPP

#include "launch.hpp"
#include "device/shmem_state.h"

namespace km {

class Nic {
public:
    explicit Nic(Pe& pe);
    bool idle() const { return tables_.empty(); }
    bool step(Random& random); // one entry of a queue that has one; false when none has
private:
    struct Table {
        uint64_t address;
        uint32_t cores, pes;
        const char* name;
    };
    bool serve(const Table& t, uint64_t descriptor);
    void perform(const Table& t, const gshmem_wqe_t& w);
    void copy(const gshmem_wqe_t& w, bool write);
    void word(const gshmem_wqe_t& w);
    uint8_t* memory(uint64_t addr, uint64_t bytes);
    void report(const char* text, uint64_t a, uint64_t b);
    Pe& pe_;
    std::vector<Table> tables_;
};

} // namespace km
#endif

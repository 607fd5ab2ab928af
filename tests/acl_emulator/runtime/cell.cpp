#include "cell.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

namespace emu {

struct CellRef::Page {
    std::shared_ptr<Block> block;
    Cell* cells = nullptr;
    std::vector<bool> taken;

    ~Page() {
        if (cells) munmap(cells, block->size);
    }
    bool map() {
        void* at = mmap(nullptr, block->size, PROT_READ | PROT_WRITE, MAP_SHARED, block->fd, 0);
        cells = at == MAP_FAILED ? nullptr : static_cast<Cell*>(at);
        return cells != nullptr;
    }
};

namespace {

constexpr uint64_t kPageBytes = 64 << 10;
std::mutex pages_mutex;

}  // namespace

// The pages of own cells stay for the life of the process: there are few, and peers may hold keys to them.
std::shared_ptr<CellRef> CellRef::make(int32_t device) {
    static auto& pages = *new std::vector<std::shared_ptr<Page>>;
    std::lock_guard<std::mutex> lock(pages_mutex);
    auto ref = std::make_shared<CellRef>();
    for (const auto& page : pages) {
        auto free = std::find(page->taken.begin(), page->taken.end(), false);
        if (free == page->taken.end()) continue;
        ref->page_ = page;
        ref->index_ = static_cast<uint64_t>(free - page->taken.begin());
    }
    if (!ref->page_) {
        auto page = std::make_shared<Page>();
        page->block = make_block(kPageBytes, -1);
        if (!page->block || !page->map()) return nullptr;
        page->taken.resize(kPageBytes / sizeof(Cell));
        pages.push_back(page);
        ref->page_ = page;
    }
    ref->page_->taken[ref->index_] = true;
    ref->own_ = true;
    ref->cell_ = &ref->page_->cells[ref->index_];
    ref->cell_->recorded = 0;
    ref->cell_->completed = 0;
    ref->cell_->device = static_cast<uint64_t>(device);
    return ref;
}

std::shared_ptr<CellRef> CellRef::open(const Passport& passport) {
    auto ref = std::make_shared<CellRef>();
    ref->page_ = std::make_shared<Page>();
    ref->page_->block = open_block(passport);
    if (!ref->page_->block || !ref->page_->map()) return nullptr;
    if (passport.offset >= ref->page_->block->size / sizeof(Cell)) return nullptr;
    ref->cell_ = &ref->page_->cells[passport.offset];
    return ref;
}

CellRef::~CellRef() {
    if (!own_) return;
    std::lock_guard<std::mutex> lock(pages_mutex);
    page_->taken[index_] = false;
}

Passport CellRef::passport() const {
    return {static_cast<int32_t>(getpid()), page_->block->fd, page_->block->ticket->nonce, index_, sizeof(Cell)};
}

Ticket& CellRef::ticket() const { return *page_->block->ticket; }

bool wait_on(Stream& stream, Clock::time_point deadline, const std::function<bool()>& done,
             const std::function<void()>& hurry) {
    auto pause = std::chrono::microseconds(5);
    for (int turn = 0;; turn++) {
        if (done()) return true;
        if (stream.ending() || Clock::now() > deadline) return false;
        if (hurry && stream.hurried()) hurry();
        if (turn < 50) {
            std::this_thread::yield();
            continue;
        }
        std::this_thread::sleep_for(pause);
        if (pause < std::chrono::microseconds(300)) pause *= 2;
    }
}

}  // namespace emu

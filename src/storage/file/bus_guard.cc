// The handler of SIGBUS, and the table that it looks into.
#include "storage/file/bus_guard.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <vector>

namespace sluice {

// A place in the table. The handler reads it without a lock. It changes only while `end` is 0, and
// whoever reads it looks at `version` before and after.
struct GuardedRange {
  std::atomic<uint32_t> version{0};
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // 0: free
  std::atomic<bool> tripped{false};
};

namespace {

// Blocks of the table stay for ever, so that the handler may look into them at any time.
struct Ranges {
  std::array<GuardedRange, 64> places;
  Ranges* next = nullptr;
};

std::mutex mutex;  // of all that follows but for the handler's part
std::atomic<Ranges*> first{nullptr};
bool installed = false;
struct sigaction before;
uintptr_t page_bytes = 4096;

// In the handler: the range that has `address`, or null. Ranges that somebody still uses do not
// change, so it is enough to skip those that do.
GuardedRange* RangeOf(uintptr_t address) {
  for (Ranges* block = first.load(std::memory_order_acquire); block != nullptr;
       block = block->next) {
    for (GuardedRange& place : block->places) {
      const uint32_t version = place.version.load(std::memory_order_acquire);
      const uintptr_t begin = place.begin.load(std::memory_order_acquire);
      const uintptr_t end = place.end.load(std::memory_order_acquire);
      if (address < begin || address >= end) continue;
      if (place.version.load(std::memory_order_acquire) == version) return &place;
    }
  }
  return nullptr;
}

// A system call alone, as handlers may make it: mmap is no function that they may call.
bool PutZeros(uintptr_t address) {
  const uintptr_t page = address / page_bytes * page_bytes;
  const int64_t mapped = syscall(SYS_mmap, page, page_bytes, PROT_READ,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return mapped == static_cast<int64_t>(page);
}

void PassOn(int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  const bool was_sent = info->si_code <= 0;  // by a process, not by an access
  if (before.sa_handler == SIG_IGN && was_sent) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    return before.sa_handler(signal);
  }
  // An access is made again, and ends the program as it would have without us.
  std::signal(signal, SIG_DFL);
  if (was_sent) raise(signal);
}

void Handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  GuardedRange* const range = info->si_code == BUS_ADRERR ? RangeOf(address) : nullptr;
  // Before the zeros: nobody sees them and no note.
  if (range != nullptr) range->tripped.store(true, std::memory_order_release);
  const bool mended = range != nullptr && PutZeros(address);
  errno = error;
  if (!mended) PassOn(signal, info, context);
}

// True if the handler is there. Locked.
bool Install() {
  struct sigaction now;
  if (sigaction(SIGBUS, nullptr, &now) != 0) return false;
  const bool ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &Handle;
  if (ours || installed) return ours;
  page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  before = now;
  struct sigaction action = {};
  action.sa_sigaction = &Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (now.sa_flags & (SA_RESTART | SA_NODEFER));
  action.sa_mask = now.sa_mask;
  installed = sigaction(SIGBUS, &action, nullptr) == 0;
  return installed;
}

// Places that nobody has. Never destroyed: the last mapping may go when the program ends. Locked.
std::vector<GuardedRange*>& FreePlaces() {
  static auto* const kFree = new std::vector<GuardedRange*>;
  return *kFree;
}

// Locked.
GuardedRange* TakePlace() {
  std::vector<GuardedRange*>& free = FreePlaces();
  if (free.empty()) {
    auto* const block = new Ranges;
    for (GuardedRange& place : block->places) free.push_back(&place);
    block->next = first.load(std::memory_order_relaxed);
    first.store(block, std::memory_order_release);
  }
  GuardedRange* const place = free.back();
  free.pop_back();
  return place;
}

}  // namespace

std::unique_ptr<BusGuard> BusGuard::Watch(const std::byte* data, int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!Install()) return nullptr;
  GuardedRange* const place = TakePlace();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  place->version.fetch_add(1, std::memory_order_acq_rel);
  place->tripped.store(false, std::memory_order_relaxed);
  place->begin.store(begin, std::memory_order_release);
  // The last page of the file is watched whole.
  const uintptr_t end = (begin + static_cast<uintptr_t>(bytes) + page_bytes - 1) / page_bytes;
  place->end.store(end * page_bytes, std::memory_order_release);
  return std::unique_ptr<BusGuard>(new BusGuard(place));
}

BusGuard::~BusGuard() {
  const std::lock_guard<std::mutex> lock(mutex);
  range_->end.store(0, std::memory_order_release);
  range_->version.fetch_add(1, std::memory_order_acq_rel);
  FreePlaces().push_back(range_);
}

bool BusGuard::tripped() const { return range_->tripped.load(std::memory_order_acquire); }

}  // namespace sluice

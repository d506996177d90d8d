// Anonymous memory files, opened by others through the owner's table of descriptors.
#include "fakes/fake_shared_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

namespace sluice::fake_cuda {
namespace {

constexpr size_t kControlBytes = 4096;

using MapKey = std::tuple<int32_t, int32_t, uint64_t>;

MapKey KeyOf(const SharedKey& key) { return {key.process, key.descriptor, key.id}; }

// What this process has mapped.
struct Mapped {
  std::mutex mutex;
  std::map<MapKey, std::weak_ptr<SharedMemory>> memory;
  std::atomic<uint64_t> next_id = 1;
};

// Each allocation keeps a descriptor, and users often begin with 1024 of those.
void AllowAllDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Mapped& TheMapped() {
  static auto* const mapped = [] {
    AllowAllDescriptors();
    return new Mapped;
  }();
  return *mapped;
}

}  // namespace

bool IsAlive(int32_t process) {
  if (process == 0 || kill(process, 0) != 0) return false;
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  // An iterator would throw where the process ends between the opening and the reading.
  std::string text;
  std::getline(file, text, '\0');
  const size_t name_end = text.rfind(") ");  // the state follows
  return name_end != text.npos && text[name_end + 2] != 'Z' && text[name_end + 2] != 'X';
}

bool SharedMemory::Map(int descriptor) {
  mapped_ = kControlBytes + key_.bytes;
  void* const mapping =
      mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (mapping == MAP_FAILED) return false;
  mapping_ = static_cast<std::byte*>(mapping);
  data_ = mapping_ + kControlBytes;
  return true;
}

std::shared_ptr<SharedMemory> SharedMemory::Create(size_t bytes) {
  Mapped& mapped = TheMapped();
  std::shared_ptr<SharedMemory> memory(new SharedMemory);
  memory->descriptor_ = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (memory->descriptor_ < 0) return nullptr;
  memory->key_ = {.process = getpid(),
                  .descriptor = memory->descriptor_,
                  .id = mapped.next_id++,
                  .bytes = bytes};
  if (ftruncate(memory->descriptor_, static_cast<off_t>(kControlBytes + bytes)) != 0 ||
      !memory->Map(memory->descriptor_)) {
    return nullptr;
  }
  memory->control().id = memory->key_.id;
  const std::lock_guard lock(mapped.mutex);
  mapped.memory[KeyOf(memory->key_)] = memory;
  return memory;
}

std::shared_ptr<SharedMemory> SharedMemory::Open(const SharedKey& key) {
  Mapped& mapped = TheMapped();
  const std::lock_guard lock(mapped.mutex);
  std::weak_ptr<SharedMemory>& known = mapped.memory[KeyOf(key)];
  if (std::shared_ptr<SharedMemory> memory = known.lock()) {
    const bool is_closed = memory->is_mine() && memory->descriptor_ < 0;
    return is_closed ? nullptr : memory;
  }
  if (key.process == getpid()) return nullptr;
  const std::string path =
      "/proc/" + std::to_string(key.process) + "/fd/" + std::to_string(key.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  std::shared_ptr<SharedMemory> memory(new SharedMemory);
  memory->key_ = key;
  const bool is_whole =
      lseek(descriptor, 0, SEEK_END) == static_cast<off_t>(kControlBytes + key.bytes);
  const bool is_open = is_whole && memory->Map(descriptor);
  close(descriptor);
  if (!is_open || memory->control().id != key.id) return nullptr;  // the descriptor is another's
  known = memory;
  return memory;
}

SharedMemory::~SharedMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
  if (descriptor_ >= 0) close(descriptor_);
}

bool SharedMemory::is_mine() const { return key_.process == getpid(); }

void SharedMemory::AddUser() {
  for (std::atomic<int32_t>& user : control().users) {
    int32_t nobody = 0;
    if (user.compare_exchange_strong(nobody, getpid())) return;
  }
}

void SharedMemory::RemoveUser() {
  for (std::atomic<int32_t>& user : control().users) {
    int32_t me = getpid();
    if (user.compare_exchange_strong(me, 0)) return;
  }
}

int SharedMemory::Users() const {
  return static_cast<int>(
      std::count_if(control().users.begin(), control().users.end(),
                    [](const std::atomic<int32_t>& user) { return IsAlive(user.load()); }));
}

void SharedMemory::CloseDescriptor() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace sluice::fake_cuda

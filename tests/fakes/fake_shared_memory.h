// Memory that other processes can open by a key. It has no name, so nothing is left after a crash.
#ifndef SLUICE_TESTS_FAKES_FAKE_SHARED_MEMORY_H_
#define SLUICE_TESTS_FAKES_FAKE_SHARED_MEMORY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sluice::fake_cuda {

// What finds the memory again: bytes that may be sent to other processes on the node.
struct SharedKey {
  int32_t process;
  int32_t descriptor;
  uint64_t id;
  uint64_t bytes;
};

// Whether a process of this number runs; one that ended and was not waited for does not.
bool IsAlive(int32_t process);

class SharedMemory {
 public:
  // Of zeros, without pages until they are written to. nullptr if the system has none.
  static std::shared_ptr<SharedMemory> Create(size_t bytes);

  // nullptr if it is gone. Each process maps it once, also the one that made it.
  static std::shared_ptr<SharedMemory> Open(const SharedKey& key);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  const SharedKey& key() const { return key_; }
  std::byte* data() const { return data_; }
  bool is_mine() const;

  // Processes that say that they use it, for the owner to see; those that died do not count.
  void AddUser();
  void RemoveUser();
  int Users() const;

  // From now on nobody can open it; who has it open keeps it.
  void CloseDescriptor();

 private:
  static constexpr int kMaxUsers = 64;
  struct Control {
    uint64_t id;
    std::array<std::atomic<int32_t>, kMaxUsers> users;
  };

  SharedMemory() = default;
  bool Map(int descriptor);
  Control& control() const { return *reinterpret_cast<Control*>(mapping_); }

  SharedKey key_ = {};
  std::byte* mapping_ = nullptr;
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  int descriptor_ = -1;
};

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_SHARED_MEMORY_H_

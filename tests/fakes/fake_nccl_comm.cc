// Making, asking and ending communicators.
#include "fakes/fake_nccl_comm.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_check.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_nccl_call.h"
#include "fakes/fake_nccl_group.h"

namespace sluice::fake_nccl {
namespace {

using fake_cuda::AddMisuse;
using fake_cuda::SharedKey;
using fake_cuda::SharedMemory;

constexpr unsigned kConfigMagic = 0xcafebeef;

struct Comms {
  std::mutex mutex;
  std::map<uintptr_t, std::shared_ptr<Comm>> live;
  std::set<uintptr_t> ended;
  std::vector<std::shared_ptr<SharedMemory>> ids;  // made here
  uintptr_t next_handle = 0x100000;
};

void CheckLeft();

Comms& TheComms() {
  static auto* const comms = [] {
    fake_cuda::AddCheck(CheckLeft);
    return new Comms;
  }();
  return *comms;
}

void CheckLeft() {
  Comms& comms = TheComms();
  const std::lock_guard lock(comms.mutex);
  for (const auto& [handle, comm] : comms.live) {
    AddMisuse("left: a communicator never destroyed, of rank " + std::to_string(comm->rank));
    comm->is_aborted = true;
  }
  comms.live.clear();
  comms.ended.clear();
  comms.ids.clear();
  CheckNoOpenGroup();
  ForgetCalls();
}

uintptr_t NewHandle(Comms& comms) { return comms.next_handle += 0x10; }

void End(const Comm& comm, RankState state) {
  comm.slot(comm.rank).state = state;
  Comms& comms = TheComms();
  const std::lock_guard lock(comms.mutex);
  comms.live.erase(comm.handle);
  comms.ended.insert(comm.handle);
}

int32_t BusId(int device) {
  int id = 0;
  return cudaDeviceGetAttribute(&id, cudaDevAttrPciBusId, device) == cudaSuccess ? id : -1;
}

// Waits until `is_true`; false if the communicator is aborted before.
template <class Condition>
bool WaitFor(const Comm& comm, const Condition& is_true) {
  for (int64_t pauses = 0; !is_true();) {
    if (comm.is_aborted) return false;
    Pause(pauses);
  }
  return true;
}

template <class Condition>
bool AllRanks(const Comm& comm, const Condition& is_true) {
  for (int rank = 0; rank < comm.ranks; ++rank) {
    if (!is_true(comm.slot(rank))) return false;
  }
  return true;
}

ncclResult_t CheckDevices(const Comm& comm) {
  for (int i = 0; i < comm.ranks; ++i) {
    for (int j = i + 1; j < comm.ranks; ++j) {
      if (comm.slot(i).bus_id != comm.slot(j).bus_id) continue;
      std::array<char, 16> device = {};
      std::snprintf(device.data(), device.size(), "%x000",
                    static_cast<unsigned>(comm.slot(i).bus_id.load()));
      return Fail(ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(i) +
                                        " and rank " + std::to_string(j) + " both on CUDA device " +
                                        device.data());
    }
  }
  return ncclSuccess;
}

// The rendezvous of all ranks.
ncclResult_t Meet(Comm& comm) {
  int32_t nobody = 0;
  if (!comm.block->ranks.compare_exchange_strong(nobody, comm.ranks) && nobody != comm.ranks) {
    return Misuse(ncclInvalidUsage, "rank " + std::to_string(comm.rank) + " says " +
                                        std::to_string(comm.ranks) + " ranks, and another " +
                                        std::to_string(nobody));
  }
  RankSlot& mine = comm.slot(comm.rank);
  RankState absent = RankState::kAbsent;
  if (!mine.state.compare_exchange_strong(absent, RankState::kPresent)) {
    if (comm.is_aborted) return ncclInternalError;  // before this began
    return Misuse(ncclInvalidUsage, "rank " + std::to_string(comm.rank) + " comes twice");
  }
  mine.process = getpid();
  mine.bus_id = BusId(comm.device);
  mine.has_arrived = 1;
  if (!WaitFor(comm, [&] {
        return AllRanks(comm, [](const RankSlot& slot) { return slot.has_arrived != 0; });
      })) {
    return ncclInternalError;
  }
  return CheckDevices(comm);
}

ncclResult_t CheckConfig(const ncclConfig_t& config) {
  const auto is_given = [](int value) { return value != NCCL_CONFIG_UNDEF_INT; };
  if (config.magic != kConfigMagic || config.size != sizeof(ncclConfig_t)) {
    return Misuse(ncclInvalidArgument, "a configuration without NCCL_CONFIG_INITIALIZER");
  }
  const bool is_good =
      (!is_given(config.blocking) || config.blocking == 0 || config.blocking == 1) &&
      (!is_given(config.minCTAs) || config.minCTAs > 0) &&
      (!is_given(config.maxCTAs) || config.maxCTAs > 0) &&
      (!is_given(config.minCTAs) || !is_given(config.maxCTAs) ||
       config.minCTAs <= config.maxCTAs) &&
      (!is_given(config.nChannelsPerNetPeer) || config.nChannelsPerNetPeer > 0);
  return is_good ? ncclSuccess : Fail(ncclInvalidArgument, "Invalid config attributes");
}

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return ncclInvalidArgument;
  const std::shared_ptr<SharedMemory> memory = SharedMemory::Create(sizeof(Block));
  if (memory == nullptr) return Fail(ncclSystemError, "no shared memory");
  static_assert(sizeof(SharedKey) <= sizeof(id->internal));
  *id = {};
  std::memcpy(id->internal, &memory->key(), sizeof(SharedKey));
  Comms& comms = TheComms();
  const std::lock_guard lock(comms.mutex);
  comms.ids.push_back(memory);
  return ncclSuccess;
}

// An id is used once: when all have come, nobody else will.
void ForgetId(const std::shared_ptr<SharedMemory>& memory) {
  Comms& comms = TheComms();
  const std::lock_guard lock(comms.mutex);
  std::erase(comms.ids, memory);
}

ncclResult_t Init(ncclComm_t* handle, int ranks, const ncclUniqueId& id, int rank,
                  const ncclConfig_t* given) {
  if (handle == nullptr || ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks) {
    return Fail(ncclInvalidArgument, "ncclCommInitRankConfig: invalid rank or number of ranks");
  }
  *handle = nullptr;
  const ncclConfig_t config = given == nullptr ? ncclConfig_t NCCL_CONFIG_INITIALIZER : *given;
  const ncclResult_t verdict = CheckConfig(config);
  if (verdict != ncclSuccess) return verdict;
  RememberConfig(config);
  SharedKey key;
  std::memcpy(&key, id.internal, sizeof(key));
  const auto comm = std::make_shared<Comm>();
  comm->memory = SharedMemory::Open(key);
  if (comm->memory == nullptr || key.bytes != sizeof(Block)) {
    return Fail(ncclSystemError, "the maker of the unique id is gone");
  }
  comm->block = reinterpret_cast<Block*>(comm->memory->data());
  comm->rank = rank;
  comm->ranks = ranks;
  comm->device = fake_cuda::CurrentDevice();
  comm->is_blocking = config.blocking != 0;
  {
    Comms& comms = TheComms();
    const std::lock_guard lock(comms.mutex);
    comm->handle = NewHandle(comms);
    comms.live[comm->handle] = comm;
  }
  const ncclResult_t result = RunJob(comm, [comm] {
    const ncclResult_t met = Meet(*comm);
    ForgetId(comm->memory);
    return met;
  });
  if (result == ncclSuccess || result == ncclInProgress) {
    *handle = static_cast<ncclComm_t>(fake_cuda::PointerTo(comm->handle));
  } else {
    End(*comm, RankState::kLeft);
  }
  return result;
}

// What has been launched is done.
void WaitForKernels(const Comm& comm) {
  if (comm.last_kernel.stream == nullptr) return;
  fake_cuda::Lock lock(fake_cuda::TheState().mutex);
  fake_cuda::WaitUntilDone(lock, comm.last_kernel);
}

ncclResult_t Finalize(const std::shared_ptr<Comm>& comm) {
  if (comm->is_finalized) return Misuse(ncclInvalidUsage, "ncclCommFinalize twice");
  comm->is_finalized = true;
  return RunJob(comm, [comm] {
    WaitForKernels(*comm);
    comm->slot(comm->rank).state = RankState::kFinalized;
    const bool met = WaitFor(*comm, [&] {
      return AllRanks(*comm, [](const RankSlot& slot) {
        return slot.state == RankState::kFinalized || slot.state == RankState::kLeft;
      });
    });
    return met ? ncclSuccess : ncclInternalError;
  });
}

ncclResult_t Destroy(const std::shared_ptr<Comm>& comm) {
  if (comm->is_pending) {
    comm->is_aborted = true;
    AddMisuse("ncclCommDestroy while an operation is in progress");
  }
  if (!comm->registrations.empty()) {
    AddMisuse("ncclCommDestroy with " + std::to_string(comm->registrations.size()) +
              " buffer(s) never deregistered");
  }
  if (comm->error == ncclSuccess) WaitForKernels(*comm);
  End(*comm, RankState::kLeft);
  return ncclSuccess;
}

ncclResult_t Register(Comm& comm, void* buffer, size_t bytes, void** handle) {
  if (buffer == nullptr || bytes == 0 || handle == nullptr) return ncclInvalidArgument;
  {
    fake_cuda::State& state = fake_cuda::TheState();
    const fake_cuda::Lock lock(state.mutex);
    if (fake_cuda::DeviceBytes(state, {buffer, bytes}, comm.device, "ncclCommRegister") ==
        nullptr) {
      return Fail(ncclInvalidArgument, "ncclCommRegister of what is no device memory");
    }
  }
  Comms& comms = TheComms();
  const std::lock_guard lock(comms.mutex);
  comm.registrations.push_back({NewHandle(comms), static_cast<const std::byte*>(buffer), bytes});
  *handle = fake_cuda::PointerTo(comm.registrations.back().handle);
  return ncclSuccess;
}

ncclResult_t Deregister(Comm& comm, const void* handle) {
  const size_t erased = std::erase_if(comm.registrations, [&](const Registration& known) {
    return known.handle == reinterpret_cast<uintptr_t>(handle);
  });
  return erased != 0 ? ncclSuccess
                     : Misuse(ncclInvalidUsage, "ncclCommDeregister of what is not registered");
}

}  // namespace

std::shared_ptr<Comm> FindComm(ncclComm_t handle, const char* function) {
  Comms& comms = TheComms();
  const std::lock_guard lock(comms.mutex);
  const auto key = reinterpret_cast<uintptr_t>(handle);
  const auto found = comms.live.find(key);
  if (found != comms.live.end()) return found->second;
  Misuse(ncclInvalidArgument,
         std::string(function) + (comms.ended.contains(key)
                                      ? " of a communicator after it was destroyed"
                                      : " of a communicator that there is not"));
  return nullptr;
}

ncclResult_t CheckReady(const Comm& comm, const char* function) {
  if (comm.is_pending) {
    return Misuse(ncclInvalidArgument, std::string(function) +
                                           ": Attempt to use communicator before the previous "
                                           "operation returned ncclSuccess");
  }
  return comm.error;
}

ncclResult_t RunJob(const std::shared_ptr<Comm>& comm, std::function<ncclResult_t()> job) {
  if (comm->is_blocking) {
    const ncclResult_t result = job();
    if (result != ncclSuccess) comm->error = result;
    return result;
  }
  comm->is_pending = true;
  std::thread([comm, work = std::move(job)] {
    constexpr auto kAWhile = std::chrono::microseconds(200);
    std::this_thread::sleep_for(kAWhile);
    const ncclResult_t result = comm->is_aborted ? ncclInternalError : work();
    if (result != ncclSuccess) comm->error = result;
    comm->is_pending = false;
  }).detach();
  return ncclInProgress;
}

void Pause(int64_t& pauses) {
  constexpr int64_t kYields = 100;
  constexpr int64_t kLongestUs = 300;
  ++pauses;
  if (pauses <= kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(pauses, kLongestUs)));
  }
}

namespace {

enum class IfFailed { kNothing, kDoIt };

// Runs `body(comm)` if there is such a communicator.
template <class Body>
ncclResult_t Call(const char* function, IfFailed if_failed, ncclComm_t handle, const Body& body) {
  const ncclResult_t failure = CountCall(function);
  if (failure != ncclSuccess && if_failed == IfFailed::kNothing) return failure;
  const std::shared_ptr<Comm> comm = FindComm(handle, function);
  const ncclResult_t result = comm == nullptr ? ncclInvalidArgument : body(comm);
  return failure != ncclSuccess ? failure : result;
}

}  // namespace
}  // namespace sluice::fake_nccl

namespace fake = sluice::fake_nccl;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  const ncclResult_t failure = fake::CountCall(__func__);
  return failure != ncclSuccess ? failure : fake::GetUniqueId(uniqueId);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  const ncclResult_t failure = fake::CountCall(__func__);
  if (failure != ncclSuccess) return failure;
  if (fake::IsInGroup()) {
    return fake::Misuse(ncclInvalidUsage, "ncclCommInitRankConfig in a group: not in the fake");
  }
  return fake::Init(comm, nranks, commId, rank, config);
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return fake::Call(__func__, fake::IfFailed::kNothing, handle, [](const auto& comm) {
    const ncclResult_t ready = fake::CheckReady(*comm, "ncclCommFinalize");
    return ready != ncclSuccess ? ready : fake::Finalize(comm);
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  return fake::Call(__func__, fake::IfFailed::kDoIt, handle, fake::Destroy);
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  return fake::Call(__func__, fake::IfFailed::kDoIt, handle, [](const auto& comm) {
    // As NCCL does, this ends what is in progress, and so does not come before its end.
    comm->is_aborted = true;
    for (int64_t pauses = 0; comm->is_pending;) fake::Pause(pauses);
    fake::End(*comm, fake::RankState::kAborted);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* asyncError) {
  return fake::Call(__func__, fake::IfFailed::kNothing, handle, [&](const auto& comm) {
    if (asyncError == nullptr) return ncclInvalidArgument;
    *asyncError = comm->is_pending ? ncclInProgress : comm->error.load();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* buff, size_t size, void** out) {
  return fake::Call(__func__, fake::IfFailed::kNothing, handle, [&](const auto& comm) {
    const ncclResult_t ready = fake::CheckReady(*comm, "ncclCommRegister");
    return ready != ncclSuccess ? ready : fake::Register(*comm, buff, size, out);
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registration) {
  return fake::Call(__func__, fake::IfFailed::kDoIt, handle,
                    [&](const auto& comm) { return fake::Deregister(*comm, registration); });
}

}  // extern "C"

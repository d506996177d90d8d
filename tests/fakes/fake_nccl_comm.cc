// Making communicators, asking them, and the table of them.
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
#include "fakes/fake_cuda_context.h"
#include "fakes/locked.h"

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
  WaitForEnding();
  const Locked comms(TheComms());
  for (const auto& [handle, comm] : comms->live) {
    AddMisuse("left: a communicator never destroyed, of rank " + std::to_string(comm->rank));
    comm->is_aborted = true;
  }
  comms->live.clear();
  comms->ended.clear();
  comms->ids.clear();
  CheckNoOpenGroup();
  ForgetMemory();
  ForgetCalls();
}

uintptr_t NewHandle(Comms& comms) { return comms.next_handle += 0x10; }

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
  const Locked comms(TheComms());
  comms->ids.push_back(memory);
  return ncclSuccess;
}

// An id is used once: when all have come, nobody else will.
void ForgetId(const std::shared_ptr<SharedMemory>& memory) {
  std::erase(Locked(TheComms())->ids, memory);
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
    const Locked comms(TheComms());
    comm->handle = NewHandle(*comms);
    comms->live[comm->handle] = comm;
  }
  const ncclResult_t result = RunJob(comm, [comm] {
    // It allocates, on a thread of its own that captures in the global mode forbid that.
    const bool may_work = fake_cuda::CheckUnsafeCall() == cudaSuccess;
    const ncclResult_t met =
        may_work ? Meet(*comm) : Fail(ncclUnhandledCudaError, "a stream is being captured");
    ForgetId(comm->memory);
    return met;
  });
  if (result == ncclSuccess || result == ncclInProgress) {
    *handle = static_cast<ncclComm_t>(fake_cuda::PointerTo(comm->handle));
  } else {
    Leave(*comm, RankState::kLeft);
  }
  return result;
}

}  // namespace

std::vector<std::shared_ptr<Comm>> LiveComms() {
  const Locked comms(TheComms());
  std::vector<std::shared_ptr<Comm>> live;
  for (const auto& [handle, comm] : comms->live) live.push_back(comm);
  return live;
}

void Leave(const Comm& comm, RankState state) {
  comm.slot(comm.rank).state = state;
  const Locked comms(TheComms());
  comms->live.erase(comm.handle);
  comms->ended.insert(comm.handle);
}

std::shared_ptr<Comm> FindComm(ncclComm_t handle, const char* function) {
  const Locked comms(TheComms());
  const auto key = reinterpret_cast<uintptr_t>(handle);
  const auto found = comms->live.find(key);
  if (found != comms->live.end()) return found->second;
  Misuse(ncclInvalidArgument,
         std::string(function) + (comms->ended.contains(key)
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

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* asyncError) {
  return fake::Call(__func__, fake::IfFailed::kNothing, handle, [&](const auto& comm) {
    if (asyncError == nullptr) return ncclInvalidArgument;
    *asyncError = comm->is_pending ? ncclInProgress : comm->error.load();
    return ncclSuccess;
  });
}

}  // extern "C"

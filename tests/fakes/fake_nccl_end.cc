// Finalizing, destroying and aborting communicators: what waits for whom.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_nccl.h"
#include "fakes/fake_nccl_block.h"
#include "fakes/fake_nccl_comm.h"

namespace sluice::fake_nccl {
namespace {

using fake_cuda::AddMisuse;

// What has been launched is done.
void WaitForKernels(const Comm& comm) {
  if (comm.last_kernel.stream == nullptr) return;
  fake_cuda::Lock lock(fake_cuda::TheState().mutex);
  fake_cuda::WaitUntilDone(lock, comm.last_kernel);
}

// It waits for no other rank.
ncclResult_t Finalize(const std::shared_ptr<Comm>& comm) {
  if (comm->is_finalized) return Misuse(ncclInvalidUsage, "ncclCommFinalize twice");
  comm->is_finalized = true;
  return RunJob(comm, [comm] {
    WaitForKernels(*comm);
    comm->slot(comm->rank).state = RankState::kFinalized;
    return ncclSuccess;
  });
}

// Whether every rank that this one has met has begun to leave, or never will.
bool OthersLeave(const Comm& comm) {
  for (int rank = 0; rank < comm.ranks; ++rank) {
    const RankSlot& slot = comm.slot(rank);
    if (HaveMet(*comm.block, comm.rank, rank) && !HasLeft(slot) && !IsGone(slot)) return false;
  }
  return true;
}

ncclResult_t Destroy(const std::shared_ptr<Comm>& comm) {
  comm->is_ending = true;
  if (comm->is_pending) {
    comm->is_aborted = true;
    AddMisuse("ncclCommDestroy while an operation is in progress");
  }
  if (const size_t left = Registrations(*comm); left > 0) {
    AddMisuse("ncclCommDestroy with " + std::to_string(left) + " buffer(s) never deregistered");
  }
  if (comm->error == ncclSuccess) WaitForKernels(*comm);
  comm->slot(comm->rank).state = RankState::kLeaving;
  for (int64_t pauses = 0; !OthersLeave(*comm);) Pause(pauses);
  Leave(*comm, RankState::kLeft);
  return ncclSuccess;
}

// As NCCL does, this ends what is in progress, and so does not come before its end.
ncclResult_t Abort(const std::shared_ptr<Comm>& comm) {
  comm->is_ending = true;
  comm->is_aborted = true;
  int64_t pauses = 0;
  while (comm->is_pending) Pause(pauses);
  while (HoldsAborts()) Pause(pauses);
  Leave(*comm, RankState::kAborted);
  return ncclSuccess;
}

}  // namespace

void WaitForEnding() {
  constexpr int64_t kPausesMax = 50000;
  const auto is_ending = [](const auto& comm) { return comm->is_ending.load(); };
  for (int64_t pauses = 0; pauses < kPausesMax;) {
    const std::vector<std::shared_ptr<Comm>> live = LiveComms();
    if (std::none_of(live.begin(), live.end(), is_ending)) return;
    Pause(pauses);
  }
}

}  // namespace sluice::fake_nccl

bool sluice::FakeNcclIsGone(ncclComm_t handle, int rank) {
  const std::shared_ptr<fake_nccl::Comm> comm = fake_nccl::FindComm(handle, "FakeNcclIsGone");
  return comm == nullptr || IsGone(comm->slot(rank));
}

namespace fake = sluice::fake_nccl;

extern "C" {

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const sluice::fake_cuda::DeviceSetAgain device;
  return fake::Call(__func__, fake::IfFailed::kNothing, handle, [](const auto& comm) {
    const ncclResult_t ready = fake::CheckReady(*comm, "ncclCommFinalize");
    return ready != ncclSuccess ? ready : fake::Finalize(comm);
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const sluice::fake_cuda::DeviceSetAgain device;
  return fake::Call(__func__, fake::IfFailed::kDoIt, handle, fake::Destroy);
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const sluice::fake_cuda::DeviceSetAgain device;
  return fake::Call(__func__, fake::IfFailed::kDoIt, handle, fake::Abort);
}

}  // extern "C"

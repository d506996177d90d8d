// Making, watching and ending a non-blocking NCCL communicator.
#include "transport/nccl/nccl_communicator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_error.h"
#include "tensor/error_text.h"
#include "transport/all_ok.h"
#include "transport/nccl/nccl_error.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

// How long a communicator that nobody needs any more waits for its last kernels.
constexpr absl::Duration kClosing = absl::Seconds(10);
// From this version on NCCL decides itself whether two ranks may share a GPU.
constexpr int kSharesGpus = NCCL_VERSION(2, 30, 0);
// Versions from the one to before the other are known to hang: 2.29.2 and 2.29.3 were released.
constexpr int kHangsFrom = NCCL_VERSION(2, 29, 2);
constexpr int kHangsNoMore = NCCL_VERSION(2, 29, 7);

void Pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

// Which GPU a rank has.
struct GpuIdentity {
  std::array<char, 32> bus_id{};
  int32_t version = 0;
};

absl::Status FindGpu(int ordinal, GpuIdentity* gpu) {
  SLUICE_ASSIGN_OR_RETURN(const std::string bus_id, PciBusIdOf(ordinal));
  std::memcpy(gpu->bus_id.data(), bus_id.data(), std::min(bus_id.size(), gpu->bus_id.size() - 1));
  int version = 0;
  const ncclResult_t result = ncclGetVersion(&version);
  if (result != ncclSuccess)
    return NcclError(result, "ncclGetVersion", nullptr, ErrorText("NCCL's set-up"));
  gpu->version = version;
  return absl::OkStatus();
}

std::string VersionText(int version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

// The same on all ranks, because all see the same gpus.
absl::Status CheckGpus(absl::Span<const int> node_of_rank, const std::vector<GpuIdentity>& gpus) {
  for (size_t high = 0; high < gpus.size(); ++high) {
    if (gpus[high].version != gpus[0].version) {
      return MakeError(absl::StatusCode::kFailedPrecondition, RankInWords(0), " has NCCL ",
                       VersionText(gpus[0].version), ", ", RankInWords(high), " has NCCL ",
                       VersionText(gpus[high].version));
    }
    if (gpus[high].version >= kHangsFrom && gpus[high].version < kHangsNoMore) {
      return absl::FailedPreconditionError(
          absl::StrCat("NCCL ", VersionText(gpus[high].version),
                       " is known to hang; use 2.28.9 or older, or 2.29.7 or later"));
    }
    if (gpus[high].version >= kSharesGpus) continue;
    for (size_t low = 0; low < high; ++low) {
      if (node_of_rank[low] != node_of_rank[high]) continue;
      if (gpus[low].bus_id != gpus[high].bus_id) continue;
      return MakeError(
          absl::StatusCode::kFailedPrecondition, RankInWords(low, "ranks "),
          RankInWords(high, " and "), " share the GPU ", gpus[low].bus_id.data(), ", and NCCL ",
          VersionText(gpus[low].version),
          " refuses two ranks on one GPU (NCCL below 2.30 does); use cuda_ipc between them");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ncclUniqueId> AgreeOnId(Fabric* fabric, absl::Duration timeout) {
  ncclUniqueId id = {};
  absl::Status status;
  if (fabric->rank() == 0) {
    const ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess) {
      status = NcclError(result, "ncclGetUniqueId", nullptr, ErrorText("NCCL's set-up"));
    }
  }
  SLUICE_ASSIGN_OR_RETURN(const auto ids, ExchangeIfAllOk(fabric, id, status, timeout));
  return ids[0];
}

ncclConfig_t ConfigOf(const NcclOptions& options) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (options.min_ctas) config.minCTAs = *options.min_ctas;
  if (options.max_ctas) config.maxCTAs = *options.max_ctas;
  // NCCL_MAX_P2P_NCHANNELS bounds them all; this is the only bound that NCCL has per communicator.
  if (options.max_channels_per_peer) config.nChannelsPerNetPeer = *options.max_channels_per_peer;
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Connect(
    Fabric* fabric, const absl::StatusOr<CudaQueue>& queue, const NcclOptions& options) {
  GpuIdentity gpu;
  absl::Status found = queue.ok() ? FindGpu(queue->ordinal, &gpu) : queue.status();
  auto ending = NcclEnding::Create();
  found.Update(ending.status());
  SLUICE_ASSIGN_OR_RETURN(const auto gpus, ExchangeIfAllOk(fabric, gpu, found, options.timeout));
  SLUICE_RETURN_IF_ERROR(CheckGpus(fabric->node_of_rank(), gpus));

  SLUICE_ASSIGN_OR_RETURN(const ncclUniqueId id, AgreeOnId(fabric, options.timeout));
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(
      fabric->rank(), fabric->size(), *queue, options.timeout, *std::move(ending)));
  absl::Status status = made->UntilAllConnected(fabric, made->Begin(id, options));
  if (!status.ok()) {
    made->Abort();
    return status;
  }
  return made;
}

absl::Status NcclCommunicator::Begin(const ncclUniqueId& id, const NcclOptions& options) {
  const CurrentCudaDevice current(queue_.ordinal);  // which NCCL takes
  if (!current.status().ok()) return current.status();
  ncclConfig_t config = ConfigOf(options);
  return Check(ncclCommInitRankConfig(&comm_, size_, id, rank_, &config), "ncclCommInitRankConfig");
}

// In rounds, so that a rank that fails is heard of by those that NCCL lets wait for it.
absl::Status NcclCommunicator::UntilAllConnected(Fabric* fabric, absl::Status begun) {
  const Deadline deadline(timeout_);
  uint8_t connected = 0;
  for (;;) {
    if (begun.ok() && connected == 0) {
      const absl::StatusOr<bool> ready = Ready();
      begun = ready.status();
      connected = ready.ok() && *ready ? 1 : 0;
    }
    if (begun.ok() && connected == 0 && deadline.Passed()) {
      begun = MakeError(absl::StatusCode::kDeadlineExceeded,
                        "ncclCommInitRankConfig has not ended within ",
                        absl::FormatDuration(timeout_), "; ", Describe());
    }
    SLUICE_ASSIGN_OR_RETURN(const auto all, ExchangeIfAllOk(fabric, connected, begun, timeout_));
    if (std::all_of(all.begin(), all.end(), [](uint8_t one) { return one != 0; })) {
      return absl::OkStatus();
    }
    Pause();
  }
}

NcclCommunicator::~NcclCommunicator() {
  if (!aborted()) {
    if (Finalize(ForLastSteps()).ok()) {
      ending_->Start(ncclCommDestroy, std::exchange(comm_, nullptr), queue_.ordinal);
    } else {
      Abort();
    }
  }
  const Deadline deadline = ForLastSteps();
  while (!ending_->over() && !deadline.Passed()) Pause();
}

absl::Status NcclCommunicator::Finalize(const Deadline& deadline) {
  const CurrentCudaDevice current(queue_.ordinal);  // see Launch
  if (!current.status().ok()) return current.status();
  absl::Status status = Deregister(deadline);
  if (status.ok()) status = Check(ncclCommFinalize(comm_), "ncclCommFinalize");
  return status.ok() ? UntilReady("ncclCommFinalize", deadline) : status;
}

Deadline NcclCommunicator::ForLastSteps() const { return Deadline(std::min(timeout_, kClosing)); }

absl::StatusOr<bool> NcclCommunicator::Ready() {
  ncclResult_t state = ncclSuccess;
  SLUICE_RETURN_IF_ERROR(Check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError"));
  if (IsNcclError(state)) return NcclError(state, "NCCL", comm_, Describe());
  return state == ncclSuccess;
}

absl::Status NcclCommunicator::Launch(absl::Span<const TransportOp> first,
                                      absl::Span<const TransportOp> rest) {
  // NCCL goes back to the thread's device by cudaSetDevice, which makes a context there.
  const CurrentCudaDevice current(queue_.ordinal);
  if (!current.status().ok()) return current.status();
  SLUICE_ASSIGN_OR_RETURN(last_launched_, queue_.ComeAfterBatches());
  absl::Status status = Check(ncclGroupStart(), "ncclGroupStart");
  if (!status.ok()) return status;
  for (const absl::Span<const TransportOp> ops : {first, rest}) {
    for (const TransportOp& op : ops) {
      if (status.ok() && op.bytes > 0) status = Issue(op);
    }
  }
  const ncclResult_t ended = ncclGroupEnd();  // closes the group even if something in it failed
  return status.ok() ? Check(ended, "ncclGroupEnd") : status;
}

absl::Status NcclCommunicator::Issue(const TransportOp& op) {
  const bool send = op.kind == TransportOp::Kind::kSend;
  const ncclResult_t result =
      send ? ncclSend(op.data, op.bytes, ncclUint8, op.peer, comm_, queue_.stream)
           : ncclRecv(op.data, op.bytes, ncclUint8, op.peer, comm_, queue_.stream);
  if (!IsNcclError(result)) return absl::OkStatus();
  return NcclError(result, send ? "ncclSend" : "ncclRecv", comm_, DescribeOp(op, rank_));
}

absl::Status NcclCommunicator::Register(absl::Span<std::byte> memory) {
  const CurrentCudaDevice current(queue_.ordinal);  // see Launch
  if (!current.status().ok()) return current.status();
  const Deadline deadline = ForLastSteps();
  absl::Status status = Deregister(deadline);
  if (!status.ok() || memory.empty()) return status;
  status = Check(ncclCommRegister(comm_, memory.data(), memory.size(), &registration_),
                 "ncclCommRegister");
  return status.ok() ? UntilReady("ncclCommRegister", deadline) : status;
}

absl::Status NcclCommunicator::Deregister(const Deadline& deadline) {
  if (registration_ == nullptr) return absl::OkStatus();
  SLUICE_RETURN_IF_ERROR(UntilIdle(deadline));
  absl::Status status = Check(ncclCommDeregister(comm_, registration_), "ncclCommDeregister");
  registration_ = nullptr;
  return status.ok() ? UntilReady("ncclCommDeregister", deadline) : status;
}

absl::Status NcclCommunicator::UntilIdle(const Deadline& deadline) {
  SLUICE_RETURN_IF_ERROR(UntilReady("the last group", deadline));
  cudaError_t state = cudaStreamQuery(queue_.stream);
  while (state == cudaErrorNotReady && !deadline.Passed()) {
    (void)CudaStatus(state, "cudaStreamQuery");
    Pause();
    state = cudaStreamQuery(queue_.stream);
  }
  return CudaStatus(state, "cudaStreamQuery", "kernels that use registered memory");
}

absl::Status NcclCommunicator::UntilReady(absl::string_view call, const Deadline& deadline) {
  for (;;) {
    const absl::StatusOr<bool> ready = Ready();
    if (!ready.ok() || *ready) return ready.status();
    if (deadline.Passed()) {
      return MakeError(absl::StatusCode::kDeadlineExceeded, call, " has not ended within ",
                       absl::FormatDuration(deadline.timeout()), "; ", Describe());
    }
    Pause();
  }
}

void NcclCommunicator::Abort() {
  if (comm_ == nullptr) return;
  ending_->Start(ncclCommAbort, std::exchange(comm_, nullptr), queue_.ordinal);
  registration_ = nullptr;
}

absl::Status NcclCommunicator::Check(ncclResult_t result, absl::string_view call) const {
  if (!IsNcclError(result)) return absl::OkStatus();
  return NcclError(result, call, comm_, Describe());
}

ErrorText NcclCommunicator::Describe() const {
  return ErrorText(RankInWords(rank_), " of ", size_, " on GPU ", queue_.ordinal);
}

}  // namespace sluice

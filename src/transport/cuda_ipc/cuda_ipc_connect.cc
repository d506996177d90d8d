// Finds out whether ranks of a node can open one another's memory, and makes transports for users.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_error.h"
#include "sluice/cuda.h"
#include "tensor/error_text.h"
#include "transport/all_ok.h"
#include "transport/cuda_ipc/cuda_ipc_transport.h"

namespace sluice {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);

// A rank's memory, which the others open on trial.
struct Probe {
  std::array<char, 32> gpu = {};  // its PCI bus id, for messages
  cudaIpcMemHandle_t handle = {};
};

// Device memory that others open on trial.
class ProbeMemory {
 public:
  explicit ProbeMemory(int ordinal) : ordinal_(ordinal) {}
  ~ProbeMemory() {
    if (data_ == nullptr) return;
    const CurrentCudaDevice current(ordinal_);
    (void)CudaStatus(cudaFree(data_), "cudaFree");
  }
  ProbeMemory(const ProbeMemory&) = delete;
  ProbeMemory& operator=(const ProbeMemory&) = delete;

  absl::StatusOr<Probe> Make() {
    // A block of its own: the handle is of all that shares one.
    constexpr size_t kBytes = size_t{2} << 20;
    const CurrentCudaDevice current(ordinal_);
    if (!current.status().ok()) return current.status();
    SLUICE_ASSIGN_OR_RETURN(const std::string gpu, PciBusIdOf(ordinal_));
    SLUICE_CUDA_RETURN_IF_ERROR(cudaMalloc, (&data_, kBytes));
    Probe probe;
    std::memcpy(probe.gpu.data(), gpu.data(), std::min(gpu.size(), probe.gpu.size() - 1));
    SLUICE_CUDA_RETURN_IF_ERROR(cudaIpcGetMemHandle, (&probe.handle, data_));
    return probe;
  }

 private:
  const int ordinal_;
  void* data_ = nullptr;
};

absl::Status CheckOneNode(absl::Span<const int> node_of_rank) {
  for (size_t rank = 1; rank < node_of_rank.size(); ++rank) {
    if (node_of_rank[rank] == node_of_rank[0]) continue;
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "cuda_ipc is for ranks of one node: ", RankInWords(0, "ranks "),
                     RankInWords(rank, " and "), " are on different ones");
  }
  return absl::OkStatus();
}

// Opening is the only question whose answer is right everywhere. This process may not see the other
// GPU (CUDA_VISIBLE_DEVICES), and may be in another container.
absl::Status Try(const Probe& own, size_t rank, const Probe& probe) {
  void* data = nullptr;
  const cudaError_t error =
      cudaIpcOpenMemHandle(&data, probe.handle, cudaIpcMemLazyEnablePeerAccess);
  if (error == cudaSuccess) return CudaStatus(cudaIpcCloseMemHandle(data), "cudaIpcCloseMemHandle");
  const bool lacks_a_way = error == cudaErrorPeerAccessUnsupported;
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "GPU ", own.gpu.data(),
      " cannot access the memory of ", RankInWords(rank), ", of GPU ", probe.gpu.data(), ": ",
      CudaStatus(error, "cudaIpcOpenMemHandle"),
      lacks_a_way ? ""
                  : " (ranks have to be processes of their own, containers need a common PID and "
                    "IPC namespace, and slices of MIG do not reach one another)");
}

absl::Status TryAll(int ordinal, size_t own, const std::vector<Probe>& probes) {
  const CurrentCudaDevice current(ordinal);
  if (!current.status().ok()) return current.status();
  for (size_t rank = 0; rank < probes.size(); ++rank) {
    if (rank == own) continue;
    SLUICE_RETURN_IF_ERROR(Try(probes[own], rank, probes[rank]));
  }
  return absl::OkStatus();
}

// On all ranks, whatever came of it on one.
absl::Status Agree(Fabric* fabric, const absl::Status& status, absl::Duration timeout) {
  return GatherIfAllOk(fabric, status, {}, timeout).status();
}

class CudaIpcMaker final : public TransportMaker {
 public:
  CudaIpcMaker(std::shared_ptr<Accelerator> accelerator, const CudaIpcOptions& options)
      : accelerator_(std::move(accelerator)), options_(options) {}

  std::string name() const override { return "cuda_ipc"; }

  absl::StatusOr<std::unique_ptr<Transport>> Open(Fabric* fabric, Device* device) override {
    return CudaIpcTransport::Connect(fabric, QueueOf(device, name()), options_, kTimeout);
  }

 private:
  const std::shared_ptr<Accelerator> accelerator_;  // outlives the transports
  const CudaIpcOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaIpcTransport>> CudaIpcTransport::Connect(
    Fabric* fabric, const absl::StatusOr<CudaQueue>& queue, const CudaIpcOptions& options,
    absl::Duration timeout) {
  using Made = absl::StatusOr<std::unique_ptr<CudaIpcTransport>>;
  Made made = queue.ok() ? Prepare(*fabric, *queue, options) : Made(queue.status());
  ProbeMemory memory(queue.ok() ? queue->ordinal : 0);
  using Own = absl::StatusOr<Probe>;
  const Own own = made.ok() ? memory.Make() : Own(made.status());
  SLUICE_ASSIGN_OR_RETURN(
      const auto probes, ExchangeIfAllOk(fabric, own.ok() ? *own : Probe(), own.status(), timeout));
  SLUICE_RETURN_IF_ERROR(CheckOneNode(fabric->node_of_rank()));

  absl::Status status = TryAll(queue->ordinal, static_cast<size_t>(fabric->rank()), probes);
  if (status = Agree(fabric, status, timeout); !status.ok()) return status;
  status = (*made)->OpenMessages(fabric);
  if (status = Agree(fabric, status, timeout); !status.ok()) return status;
  return made;
}

absl::StatusOr<std::unique_ptr<CudaIpcTransport>> CudaIpcTransport::Prepare(
    const Fabric& fabric, const CudaQueue& queue, const CudaIpcOptions& options) {
  int multiprocessors = 0;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute,
                              (&multiprocessors, cudaDevAttrMultiProcessorCount, queue.ordinal));
  SLUICE_ASSIGN_OR_RETURN(CudaIpcExporter exporter,
                          CudaIpcExporter::Create(options.open_bytes_max));
  return std::unique_ptr<CudaIpcTransport>(new CudaIpcTransport(
      fabric.rank(), queue, multiprocessors, std::move(exporter), fabric.size()));
}

absl::Status CudaIpcTransport::OpenMessages(Fabric* fabric) {
  for (std::unique_ptr<Transport>* messages : {&offers_, &answers_}) {
    SLUICE_ASSIGN_OR_RETURN(*messages, fabric->OpenTransport());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<TransportMaker>> MakeCudaIpcTransport(
    std::shared_ptr<Accelerator> accelerator, const CudaIpcOptions& options) {
  if (options.open_bytes_max < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("CudaIpcOptions: open_bytes_max is ", options.open_bytes_max));
  }
  return std::make_shared<CudaIpcMaker>(std::move(accelerator), options);
}

}  // namespace sluice

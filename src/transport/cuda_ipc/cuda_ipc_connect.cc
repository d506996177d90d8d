// How ranks of a node find out whether their GPUs reach one another, and what users ask that with.
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/cuda_current.h"
#include "device/cuda_error.h"
#include "sluice/cuda.h"
#include "transport/agreement.h"
#include "transport/cuda_ipc_transport.h"

namespace sluice {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);

using BusId = std::array<char, 32>;

absl::StatusOr<BusId> OwnBusId(const absl::StatusOr<CudaQueue>& queue) {
  if (!queue.ok()) return queue.status();
  const absl::StatusOr<std::string> id = PciBusIdOf(queue->ordinal);
  if (!id.ok()) return id.status();
  BusId bus_id{};
  std::memcpy(bus_id.data(), id->data(), std::min(id->size(), bus_id.size() - 1));
  return bus_id;
}

absl::Status CheckOneNode(absl::Span<const int> node_of_rank) {
  for (size_t rank = 1; rank < node_of_rank.size(); ++rank) {
    if (node_of_rank[rank] == node_of_rank[0]) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "cuda_ipc is for ranks of one node: ranks 0 and ", rank, " are on different ones"));
  }
  return absl::OkStatus();
}

// This process's number of a GPU; negative: it does not see it.
absl::StatusOr<int> OrdinalOf(const BusId& bus_id) {
  int count = 0;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaGetDeviceCount, (&count));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const absl::StatusOr<std::string> id = PciBusIdOf(ordinal);
    if (!id.ok()) return id.status();
    if (*id == bus_id.data()) return ordinal;
  }
  return -1;
}

// Lets `own`, which is current, reach the memory of the GPU that `rank` has.
absl::Status Reach(int own, size_t rank, const BusId& bus_id) {
  const absl::StatusOr<int> theirs = OrdinalOf(bus_id);
  if (!theirs.ok()) return theirs.status();
  if (*theirs == own) return absl::OkStatus();
  if (*theirs < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the GPU of rank ", rank, ", ", bus_id.data(),
                     ", is not visible to this process (CUDA_VISIBLE_DEVICES)"));
  }
  int can = 0;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceCanAccessPeer, (&can, own, *theirs));
  if (can == 0) {
    return absl::FailedPreconditionError(absl::StrCat("GPU ", own, " cannot access the memory of ",
                                                      "that of rank ", rank, ", ", bus_id.data()));
  }
  const cudaError_t error = cudaDeviceEnablePeerAccess(*theirs, 0);
  const absl::Status status = CudaStatus(error, "cudaDeviceEnablePeerAccess");
  return error == cudaErrorPeerAccessAlreadyEnabled ? absl::OkStatus() : status;
}

absl::Status ReachAll(const CudaQueue& queue, const std::vector<BusId>& bus_ids) {
  const CurrentCudaDevice current(queue.ordinal);
  if (!current.status().ok()) return current.status();
  for (size_t rank = 0; rank < bus_ids.size(); ++rank) {
    absl::Status status = Reach(queue.ordinal, rank, bus_ids[rank]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// On all ranks, whatever came of it on one.
absl::Status Agree(Fabric* fabric, const absl::Status& status, absl::Duration timeout) {
  return GatherIfAllOk(fabric, {}, status, timeout).status();
}

class CudaIpcMaker final : public TransportMaker {
 public:
  explicit CudaIpcMaker(std::shared_ptr<Accelerator> accelerator)
      : accelerator_(std::move(accelerator)) {}

  std::string name() const override { return "cuda_ipc"; }

  absl::StatusOr<std::unique_ptr<Transport>> Open(Fabric* fabric, Device* device) override {
    return CudaIpcTransport::Connect(fabric, QueueOf(device, name()), kTimeout);
  }

 private:
  const std::shared_ptr<Accelerator> accelerator_;  // outlives the transports
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaIpcTransport>> CudaIpcTransport::Connect(
    Fabric* fabric, const absl::StatusOr<CudaQueue>& queue, absl::Duration timeout) {
  const absl::StatusOr<BusId> own = OwnBusId(queue);
  const auto bus_ids = ExchangeIfAllOk(fabric, own.ok() ? *own : BusId{}, own.status(), timeout);
  if (!bus_ids.ok()) return bus_ids.status();
  if (absl::Status status = CheckOneNode(fabric->node_of_rank()); !status.ok()) return status;

  absl::StatusOr<std::unique_ptr<CudaIpcTransport>> made = Prepare(*fabric, *queue);
  absl::Status status = made.status();
  if (status.ok()) status = ReachAll(*queue, *bus_ids);
  if (status = Agree(fabric, status, timeout); !status.ok()) return status;
  status = (*made)->OpenMessages(fabric);
  if (status = Agree(fabric, status, timeout); !status.ok()) return status;
  return made;
}

absl::StatusOr<std::unique_ptr<CudaIpcTransport>> CudaIpcTransport::Prepare(
    const Fabric& fabric, const CudaQueue& queue) {
  int multiprocessors = 0;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute,
                              (&multiprocessors, cudaDevAttrMultiProcessorCount, queue.ordinal));
  const absl::StatusOr<CudaIpcExporter> exporter = CudaIpcExporter::Create();
  if (!exporter.ok()) return exporter.status();
  return std::unique_ptr<CudaIpcTransport>(
      new CudaIpcTransport(fabric.rank(), queue, multiprocessors, *exporter, fabric.size()));
}

absl::Status CudaIpcTransport::OpenMessages(Fabric* fabric) {
  for (std::unique_ptr<Transport>* messages : {&offers_, &answers_}) {
    absl::StatusOr<std::unique_ptr<Transport>> opened = fabric->OpenTransport();
    if (!opened.ok()) return opened.status();
    *messages = *std::move(opened);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<TransportMaker>> MakeCudaIpcTransport(
    std::shared_ptr<Accelerator> accelerator) {
  return std::make_shared<CudaIpcMaker>(std::move(accelerator));
}

}  // namespace sluice

// Direct copies by the node's own handshake; GPUs' transports by a session that moves nothing.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "doctor/look_system.h"
#include "gpu/gpu.h"
#include "sluice/session.h"
#include "transport/direct/direct_node.h"

namespace sluice::bench {
namespace {

absl::Status Nothing() { return absl::OkStatus(); }

// Whether a transport can be opened between these ranks.
absl::Status TryTransport(Job* job, Ranks* ranks, const std::string& name,
                          const DoctorOptions& options, GpuTrial* trial) {
  GpuOptions gpu_options;
  gpu_options.src_device = gpu_options.dst_device = "cuda";
  gpu_options.transport = name;
  const absl::StatusOr<Gpu> gpu = OpenGpu(gpu_options, ranks->local_rank());
  absl::Status opened = ranks->AllOk(gpu.status(), options.timeout(), &Nothing);
  if (EndsAll(opened)) return opened;
  trial->was_tried = true;
  trial->error = std::string(opened.message());
  if (!opened.ok()) return absl::OkStatus();
  auto fabric = job->MakeFabric(options.timeout());
  if (!fabric.ok()) return fabric.status();
  fabric = PlanNodes(*std::move(fabric), options.ranks_per_node);
  SessionOptions session_options;
  session_options.timeout = options.timeout();
  session_options.accelerator = gpu->accelerator;
  session_options.transport = gpu->transport;
  const auto session = Session::Create(*std::move(fabric), session_options);
  absl::Status status = session.status();
  if (session.ok()) status = (*session)->Close();
  if (EndsAll(status)) return status;
  status = ranks->AllOk(status, options.timeout(), &Nothing);
  trial->error = std::string(status.message());
  return EndsAll(status) ? status : absl::OkStatus();
}

}  // namespace

absl::Status TryDirect(Ranks* ranks, absl::Span<const int> node_of_rank, absl::Duration timeout,
                       WireFacts* facts, DirectLimit* limit) {
  const auto exchange = [&](const absl::Status& own,
                            const std::string& record) -> absl::StatusOr<std::vector<std::string>> {
    if (absl::Status all = ranks->AllOk(own, timeout, &Nothing); !all.ok()) return all;
    return ranks->AllGather(record, timeout, &Nothing);
  };
  absl::StatusOr<DirectNode> node = DirectNode::Connect(ranks->rank(), node_of_rank, exchange);
  if (EndsAll(node.status())) return node.status();
  facts->direct_error = std::string(node.status().message());
  if (!node.ok()) return absl::OkStatus();
  for (const DirectPeer& peer : node->peers()) {
    if (!peer.reads() || !peer.CanWriteHere(DirectPlace())) facts->refused.push_back(peer.rank());
  }
  *limit = node->limit();
  // A rank that goes on may not end what others still map.
  return ranks->Barrier(timeout, &Nothing);
}

absl::Status TryGpus(Job* job, Ranks* ranks, absl::Span<const int> node_of_rank,
                     const DoctorOptions& options, GpuFacts* facts, GpuTrial* cuda_ipc,
                     GpuTrial* nccl) {
  const GpuSight sight = LookForGpus();
  facts->built_in = GpuBuiltWith();
  facts->has_cuda = sight.has_cuda;
  facts->has_nccl = sight.has_nccl;
  facts->visible = sight.visible;
  facts->nvidia_devices = CountEntries("/proc/driver/nvidia/gpus", "");
  if (!sight.has_cuda) return absl::OkStatus();
  GpuOptions gpu_options;
  gpu_options.src_device = gpu_options.dst_device = "cuda";
  {
    const absl::StatusOr<Gpu> gpu = OpenGpu(gpu_options, ranks->local_rank());
    if (gpu.ok()) facts->device = gpu->accelerator->description();
    facts->error = std::string(gpu.status().message());
  }
  const absl::StatusOr<std::vector<std::string>> devices =
      ranks->AllGather(facts->device, options.timeout(), &Nothing);
  if (!devices.ok()) return devices.status();
  const bool all_have_one = std::none_of(devices->begin(), devices->end(),
                                         [](const std::string& device) { return device.empty(); });
  if (!all_have_one || ranks->size() == 1) return absl::OkStatus();
  const bool is_one_node =
      std::all_of(node_of_rank.begin(), node_of_rank.end(), [](int node) { return node == 0; });
  absl::Status status;
  if (is_one_node) status = TryTransport(job, ranks, "cuda_ipc", options, cuda_ipc);
  if (status.ok() && sight.has_nccl) status = TryTransport(job, ranks, "nccl", options, nccl);
  return status;
}

}  // namespace sluice::bench

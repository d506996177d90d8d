// GPUs: what is built in, what each rank has, and what carries bytes between them.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "doctor/findings.h"

namespace sluice::bench {
namespace {

constexpr char kHelp[] = "docs/troubleshooting.md, \"GPUs\"";

// "NVIDIA H100 80GB HBM3" of "cuda:0 (NVIDIA H100 80GB HBM3)": ranks that have a GPU each do not
// differ.
std::string ModelOf(const std::string& device) {
  const size_t begin = device.find('(');
  const size_t end = device.rfind(')');
  const bool has_both = begin != std::string::npos && end != std::string::npos && begin < end;
  return has_both ? device.substr(begin + 1, end - begin - 1) : device;
}

Finding ExamineGpu(const RankFacts& facts) {
  const GpuFacts& gpu = facts.gpu;
  const std::string built = absl::StrCat("built with ", gpu.built_in);
  if (!gpu.device.empty()) {
    return {"gpus", absl::StrCat(gpu.visible, " visible, ", ModelOf(gpu.device), "; ", built),
            State::kOk, "", ""};
  }
  if (gpu.visible == 0 && gpu.nvidia_devices == 0) {
    return {"gpus", absl::StrCat("none here; ", built), State::kOk, "", ""};
  }
  const std::string seen =
      absl::StrCat("NVIDIA's driver has ", gpu.nvidia_devices, ", ", gpu.visible, " visible; ");
  if (!gpu.has_cuda) {
    return {"gpus", absl::StrCat(seen, built), State::kMissing,
            "build with -DSLUICE_CUDA=ON, which says what it lacks", ""};
  }
  return {"gpus", absl::StrCat(seen, "none can be used: ", gpu.error, "; ", built), State::kMissing,
          absl::StrCat(kHelp, "; in containers `docker run --gpus all`"), ""};
}

bool AllHaveGpus(const JobFacts& job) {
  return std::all_of(job.ranks.begin(), job.ranks.end(),
                     [](const RankFacts& facts) { return !facts.gpu.device.empty(); });
}

Finding OfTrial(const std::string& check, const GpuTrial& trial, const std::string& where) {
  if (!trial.was_tried) return {check, "not tried", State::kOk, "", ""};
  if (trial.error.empty()) return {check, where, State::kOk, "", ""};
  return {check, absl::StrCat("cannot be used: ", trial.error, "; messages of MPI carry bytes"),
          State::kSlow, absl::StrCat("as this line says; ", kHelp), ""};
}

}  // namespace

Findings ExamineGpus(const JobFacts& job) {
  Findings all = ForRanks(job, [](const RankFacts& facts, int) { return ExamineGpu(facts); });
  if (!job.ranks.front().gpu.has_cuda || !AllHaveGpus(job)) {
    all.push_back({"wire_gpu_ipc", "none: not all ranks have a GPU", State::kOk, "", ""});
    all.push_back({"wire_gpu_nccl", "none: not all ranks have a GPU", State::kOk, "", ""});
    return all;
  }
  if (job.ranks.size() == 1) {
    all.push_back({"wire_gpu_ipc", "none: one rank", State::kOk, "", ""});
    all.push_back({"wire_gpu_nccl", "none: one rank", State::kOk, "", ""});
    return all;
  }
  if (RanksOfNodes(job).size() > 1) {
    all.push_back({"wire_gpu_ipc", "none: it is for ranks of one node", State::kOk, "", ""});
  } else {
    all.push_back(OfTrial("wire_gpu_ipc", job.cuda_ipc, "cuda_ipc: between GPUs of the node"));
  }
  if (job.ranks.front().gpu.has_nccl) {
    all.push_back(OfTrial("wire_gpu_nccl", job.nccl, "nccl: between all GPUs"));
  } else {
    all.push_back({"wire_gpu_nccl", "NCCL is not built in", State::kSlow,
                   "build with -DSLUICE_NCCL=ON, which says what it lacks", ""});
  }
  return all;
}

}  // namespace sluice::bench

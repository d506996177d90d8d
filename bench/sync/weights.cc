// From flags to tensors and layouts.
#include "sync/weights.h"

#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/status.h"
#include "sluice/tensor.h"
#include "tensor/stable_hash.h"
#include "workload/json_input.h"
#include "workload/local_part.h"
#include "workload/model_mapping.h"
#include "workload/numbers.h"
#include "workload/shipped_file.h"

namespace sluice::bench {
namespace {

// The ranks of one copy of the model.
int64_t RanksOfCopy(const Parallelism& side) {
  return std::lcm(side.fsdp_size * side.tp_size, side.ep_size) * side.pp_size;
}

absl::StatusOr<Model> MakeToyModel(const std::string& text) {
  SLUICE_ASSIGN_OR_RETURN(const auto numbers, Prefixed("--tensors", ParseIntegers(text)));
  constexpr int64_t kMost = 1 << 20;
  const bool is_good = numbers.size() == 3 && numbers[0] >= 1 && numbers[0] <= kMost &&
                       numbers[1] >= 1 && numbers[1] <= kMost && numbers[2] >= 1 &&
                       numbers[2] <= kMost;
  if (!is_good) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensors: \"", text, "\" is not N,ROWS,COLUMNS, each 1 to ", kMost));
  }
  Model model;
  model.layers = static_cast<int>(numbers[0]);
  for (int layer = 0; layer < model.layers; ++layer) {
    ModelTensor tensor;
    tensor.name = absl::StrCat("model.layers.", layer, ".mlp.up_proj.weight");
    tensor.shape = {numbers[1], numbers[2]};
    tensor.layer = layer;
    model.tensors.push_back(std::move(tensor));
  }
  return model;
}

absl::StatusOr<Model> ReadSyncModel(const SyncOptions& options) {
  if (options.model_file.empty()) return MakeToyModel(options.tensors);
  SLUICE_ASSIGN_OR_RETURN(const auto text, ReadShippedFile(options.model_file, "models"));
  return Prefixed(options.model_file, ParseModelFile(text, options.cut));
}

void AddSide(const Parallelism& side, StableHash* hash) {
  for (const int64_t size :
       {side.tp_size, side.cp_size, side.ep_size, side.pp_size, side.fsdp_size}) {
    hash->AddSigned(size);
  }
}

}  // namespace

absl::StatusOr<SyncWeights> SyncWeights::Make(const SyncOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(auto model, ReadSyncModel(options));
  System system;
  if (!options.system_file.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const auto text, ReadShippedFile(options.system_file, "systems"));
    SLUICE_ASSIGN_OR_RETURN(system, Prefixed(options.system_file, ParseSystemFile(text)));
  }
  SyncWeights weights(std::move(model), std::move(system));
  weights.cuts_by_trainers_ = options.system_file.empty();
  StableHash hash;  // of whatever ranks must have been given alike
  for (const ModelTensor& tensor : weights.tensors()) {
    weights.bytes_ += ElementsOf(tensor.shape) * DTypeBytes(tensor.dtype);
    hash.AddText(tensor.name);
    for (const int64_t size : tensor.shape) hash.AddSigned(size);
    hash.AddSigned(static_cast<int64_t>(tensor.dtype));
  }
  AddSide(weights.system_.train, &hash);
  AddSide(weights.system_.generation, &hash);
  hash.AddSigned(options.versions);
  hash.AddSigned(options.seed);
  weights.hash_ = static_cast<int64_t>(hash.value() >> 1);
  return weights;
}

int64_t SyncWeights::replica() const { return RanksOfCopy(system_.generation); }

absl::StatusOr<Layouts> SyncWeights::OfTrainers(int trainers) const {
  System system;
  system.train = system_.train;
  system.train.num_gpus = trainers;
  if (cuts_by_trainers_) system.train.fsdp_size = trainers;
  const int64_t copy = RanksOfCopy(system.train);
  if (trainers % copy != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--system trains on a multiple of ", copy,
                                                   " ranks, and there are ", trainers));
  }
  SLUICE_ASSIGN_OR_RETURN(auto spec, MapModel(model_, system));
  Layouts layouts;
  for (TensorTransfer& tensor : spec.tensors) layouts.push_back(std::move(tensor.src));
  return layouts;
}

absl::StatusOr<std::vector<Layouts>> SyncWeights::OfServers(int trainers, int servers) const {
  const int64_t in_whole = servers / replica() * replica();
  const int64_t left_over = servers - in_whole;
  std::vector<std::pair<int64_t, Parallelism>> sides;  // the first rank, and what begins there
  if (in_whole > 0) {
    Parallelism whole = system_.generation;
    whole.num_gpus = in_whole;
    sides.emplace_back(trainers, whole);
  }
  if (left_over > 0) {
    Parallelism rest;
    rest.num_gpus = rest.tp_size = left_over;
    sides.emplace_back(trainers + in_whole, rest);
  }
  std::vector<Layouts> all;
  for (const auto& [first, side] : sides) {
    System system;
    system.train.num_gpus = first;  // the ranks before it, however they lie
    system.generation = side;
    SLUICE_ASSIGN_OR_RETURN(auto spec, MapModel(model_, system));
    Layouts layouts;
    for (TensorTransfer& tensor : spec.tensors) layouts.push_back(std::move(tensor.dst));
    all.push_back(std::move(layouts));
  }
  return all;
}

}  // namespace sluice::bench

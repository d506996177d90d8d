// Model files: names, shapes and dtypes of the tensors of a model, as safetensors headers have
// them.
//
// {"model.norm.weight": {"shape": [4096], "dtype": "BF16"}, ..}; "__metadata__" is left out.
#ifndef SLUICE_BENCH_WORKLOAD_MODEL_FILE_H_
#define SLUICE_BENCH_WORKLOAD_MODEL_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/tensor.h"

namespace sluice::bench {

struct ModelTensor {
  std::string name;
  std::vector<int64_t> shape;
  DType dtype = DType::kBF16;
  std::optional<int> layer;      // from "layers.N." in the name
  bool stacked_experts = false;  // dimension 0 counts experts
};

struct Model {
  std::vector<ModelTensor> tensors;  // in the order of the file
  int layers = 0;                    // one more than the largest layer
  std::vector<std::string> notes;
};

struct ModelCut {
  int layers = 0;     // keep only the first `layers`; 0: all
  int64_t scale = 1;  // divide every dimension by this, upwards
};

// Tensors of single experts ("..experts.7.gate_proj.weight") are stacked into one per projection
// ("..experts.gate_proj.weight", [experts, ..]). InvalidArgument names the tensor that is wrong, or
// whose expert is missing or of another shape.
absl::StatusOr<Model> ParseModelFile(absl::string_view text, const ModelCut& cut);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_MODEL_FILE_H_

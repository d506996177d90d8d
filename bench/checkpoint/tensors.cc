// From flags, a model, or the headers of a checkpoint to tensors and their layouts.
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/options.h"
#include "checkpoint/plain_files.h"
#include "sluice/layout.h"
#include "sluice/status.h"
#include "workload/json_input.h"
#include "workload/model_mapping.h"
#include "workload/numbers.h"
#include "workload/shipped_file.h"
#include "workload/system_file.h"

namespace sluice::bench {
namespace {

Layout Fitted(Layout layout, size_t dims) {
  for (Placement& placement : layout.placements) {
    if (placement.dim >= static_cast<int>(dims)) placement = Placement::Replicate();
  }
  return layout;
}

struct Layouts {
  Layout save;
  Layout load;
};

absl::StatusOr<Layouts> LayoutsOf(const CheckpointBenchOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const Layout load, Prefixed("--layout", Layout::Parse(options.layout)));
  if (options.save_layout.empty()) return Layouts{load, load};
  SLUICE_ASSIGN_OR_RETURN(const Layout save,
                          Prefixed("--save-layout", Layout::Parse(options.save_layout)));
  return Layouts{save, load};
}

TensorTransfer TensorOf(std::string name, std::vector<int64_t> shape, DType dtype,
                        const Layouts& layouts) {
  TensorTransfer tensor;
  tensor.name = std::move(name);
  tensor.src_dtype = dtype;
  tensor.dst_dtype = dtype;
  tensor.src = Fitted(layouts.save, shape.size());
  tensor.dst = Fitted(layouts.load, shape.size());
  tensor.shape = std::move(shape);
  return tensor;
}

absl::StatusOr<TransferSpec> OfFlags(const CheckpointBenchOptions& options,
                                     const Layouts& layouts) {
  SLUICE_ASSIGN_OR_RETURN(const auto shape, Prefixed("--shape", ParseIntegers(options.shape)));
  SLUICE_ASSIGN_OR_RETURN(const DType dtype, Prefixed("--dtype", ParseDType(options.dtype)));
  TransferSpec spec;
  for (int i = 0; i < options.tensors; ++i) {
    spec.tensors.push_back(TensorOf(absl::StrCat("tensor.", i), shape, dtype, layouts));
  }
  return spec;
}

absl::StatusOr<TransferSpec> OfModel(const CheckpointBenchOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const auto model_text, ReadShippedFile(options.model_file, "models"));
  SLUICE_ASSIGN_OR_RETURN(const auto model,
                          Prefixed(options.model_file, ParseModelFile(model_text, options.cut)));
  if (!options.has_system()) {
    SLUICE_ASSIGN_OR_RETURN(const Layouts layouts, LayoutsOf(options));
    TransferSpec spec;
    for (const ModelTensor& tensor : model.tensors) {
      spec.tensors.push_back(TensorOf(tensor.name, tensor.shape, tensor.dtype, layouts));
    }
    return spec;
  }
  SLUICE_ASSIGN_OR_RETURN(const auto system_text, ReadShippedFile(options.system_file, "systems"));
  SLUICE_ASSIGN_OR_RETURN(auto system, Prefixed(options.system_file, ParseSystemFile(system_text)));
  return Prefixed(options.model_file, MapModel(model, system));
}

// Headers alone are read, by each rank.
absl::StatusOr<TransferSpec> OfDirectory(const std::string& directory, const Layouts& layouts) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<PlainFile> files, CheckpointFiles(directory));
  std::map<std::string, TensorTransfer> by_name;
  const auto add = [&](const SafetensorsTensor& tensor, const std::byte*) {
    const std::optional<DType> dtype = DTypeOf(tensor.type);
    if (!dtype || !tensor.unreadable.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", tensor.name,
          "': ", tensor.unreadable.empty() ? ElementName(tensor.type) : tensor.unreadable));
    }
    std::vector<int64_t> shape = tensor.shape;
    if (shape.empty()) shape.push_back(1);
    by_name[tensor.name] = TensorOf(tensor.name, std::move(shape), *dtype, layouts);
    return absl::OkStatus();
  };
  for (const PlainFile& plain : files) SLUICE_RETURN_IF_ERROR(ForEachTensor(plain, add));
  if (by_name.empty()) {
    return absl::NotFoundError(absl::StrCat(directory, " has no *.safetensors with tensors"));
  }
  TransferSpec spec;
  for (auto& [name, tensor] : by_name) spec.tensors.push_back(std::move(tensor));
  return spec;
}

}  // namespace

absl::StatusOr<TransferSpec> TensorsOf(const CheckpointBenchOptions& options) {
  if (options.has_system()) {
    if (options.model_file.empty()) return absl::InvalidArgumentError("--system needs --model");
    if (!options.layout.empty() || !options.save_layout.empty()) {
      return absl::InvalidArgumentError("--layout does not go with --system, which has layouts");
    }
  }
  if (!options.model_file.empty()) {
    if (!options.shape.empty()) return absl::InvalidArgumentError("--shape and --model: give one");
    return OfModel(options);
  }
  SLUICE_ASSIGN_OR_RETURN(const Layouts layouts, LayoutsOf(options));
  if (!options.shape.empty()) return OfFlags(options, layouts);
  if (options.make) return absl::InvalidArgumentError("--make needs --shape, or --model");
  const absl::StatusOr<std::string> directory = DirectoryOf(options);
  if (!directory.ok()) {
    return absl::InvalidArgumentError("over HTTP give --shape or --model: nothing can be listed");
  }
  return OfDirectory(*directory, layouts);
}

}  // namespace sluice::bench

// From flags, a model, or the headers of a checkpoint to tensors and their layouts.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/options.h"
#include "checkpoint/plain_files.h"
#include "sluice/layout.h"
#include "storage/format/safetensors.h"
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
  const absl::StatusOr<Layout> load = Layout::Parse(options.layout);
  if (!load.ok()) return Prefixed("--layout", load.status());
  if (options.save_layout.empty()) return Layouts{*load, *load};
  const absl::StatusOr<Layout> save = Layout::Parse(options.save_layout);
  if (!save.ok()) return Prefixed("--save-layout", save.status());
  return Layouts{*save, *load};
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
  const absl::StatusOr<std::vector<int64_t>> shape = ParseIntegers(options.shape);
  if (!shape.ok()) return Prefixed("--shape", shape.status());
  const absl::StatusOr<DType> dtype = ParseDType(options.dtype);
  if (!dtype.ok()) return Prefixed("--dtype", dtype.status());
  TransferSpec spec;
  for (int i = 0; i < options.tensors; ++i) {
    spec.tensors.push_back(TensorOf(absl::StrCat("tensor.", i), *shape, *dtype, layouts));
  }
  return spec;
}

absl::StatusOr<TransferSpec> OfModel(const CheckpointBenchOptions& options) {
  const auto model_text = ReadShippedFile(options.model_file, "models");
  if (!model_text.ok()) return model_text.status();
  const auto model = ParseModelFile(*model_text, options.cut);
  if (!model.ok()) return Prefixed(options.model_file, model.status());
  if (!options.has_system()) {
    const absl::StatusOr<Layouts> layouts = LayoutsOf(options);
    if (!layouts.ok()) return layouts.status();
    TransferSpec spec;
    for (const ModelTensor& tensor : model->tensors) {
      spec.tensors.push_back(TensorOf(tensor.name, tensor.shape, tensor.dtype, *layouts));
    }
    return spec;
  }
  const auto system_text = ReadShippedFile(options.system_file, "systems");
  if (!system_text.ok()) return system_text.status();
  auto system = ParseSystemFile(*system_text);
  if (!system.ok()) return Prefixed(options.system_file, system.status());
  absl::StatusOr<TransferSpec> spec = MapModel(*model, *system);
  if (!spec.ok()) return Prefixed(options.model_file, spec.status());
  return spec;
}

// Headers alone are read, by each rank.
absl::StatusOr<TransferSpec> OfDirectory(const std::string& directory, const Layouts& layouts) {
  const absl::StatusOr<std::vector<PlainFile>> files = CheckpointFiles(directory);
  if (!files.ok()) return files.status();
  std::map<std::string, TensorTransfer> by_name;
  for (const PlainFile& plain : *files) {
    const std::string& path = plain.path;
    std::ifstream file(path, std::ios::binary);
    if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
    std::string text(static_cast<size_t>(kSafetensorsPrefixBytes), '\0');
    file.read(text.data(), kSafetensorsPrefixBytes);
    const auto bytes = [&text] {
      return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), text.size());
    };
    std::error_code error;
    const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
    const absl::StatusOr<int64_t> header_bytes = SafetensorsHeaderBytes(bytes(), size);
    if (!header_bytes.ok()) return Prefixed(path, header_bytes.status());
    text.resize(static_cast<size_t>(*header_bytes));
    file.seekg(0);
    file.read(text.data(), *header_bytes);
    const absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(bytes(), size);
    if (!header.ok()) return Prefixed(path, header.status());
    for (const SafetensorsTensor& tensor : header->tensors) {
      if (!plain.Counts(tensor.name)) continue;
      const std::optional<DType> dtype = DTypeOf(tensor.type);
      if (!dtype || !tensor.unreadable.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "tensor '", tensor.name,
            "': ", tensor.unreadable.empty() ? ElementName(tensor.type) : tensor.unreadable));
      }
      std::vector<int64_t> shape = tensor.shape;
      if (shape.empty()) shape.push_back(1);
      by_name[tensor.name] = TensorOf(tensor.name, std::move(shape), *dtype, layouts);
    }
  }
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
  const absl::StatusOr<Layouts> layouts = LayoutsOf(options);
  if (!layouts.ok()) return layouts.status();
  if (!options.shape.empty()) return OfFlags(options, *layouts);
  if (options.make) return absl::InvalidArgumentError("--make needs --shape, or --model");
  const absl::StatusOr<std::string> directory = DirectoryOf(options);
  if (!directory.ok()) {
    return absl::InvalidArgumentError("over HTTP give --shape or --model: nothing can be listed");
  }
  return OfDirectory(*directory, *layouts);
}

}  // namespace sluice::bench

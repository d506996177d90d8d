// From the JSON of a case file to cases.
#include "workload/case_file.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

absl::StatusOr<DType> ReadDType(const Json& object, DType otherwise) {
  if (!object.contains("dtype")) return otherwise;
  const auto name = GetString(object, "dtype");
  if (!name.ok()) return name.status();
  auto dtype = ParseDType(*name);
  if (!dtype.ok()) return Prefixed("key \"dtype\"", dtype.status());
  return dtype;
}

absl::StatusOr<Mesh> ReadMesh(const Json& side) {
  auto sizes = GetIntegers(side, "mesh");
  if (!sizes.ok()) return sizes.status();
  const auto listed = GetIntegers(side, "ranks");
  if (!listed.ok()) return listed.status();
  std::vector<int> ranks;
  for (const int64_t rank : *listed) {
    if (rank < 0 || rank > std::numeric_limits<int>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("key \"ranks\": there is no rank ", rank));
    }
    ranks.push_back(static_cast<int>(rank));
  }
  auto mesh = Mesh::Create(*std::move(sizes), std::move(ranks));
  if (!mesh.ok()) return Prefixed("keys \"mesh\" and \"ranks\"", mesh.status());
  return mesh;
}

absl::StatusOr<Layout> ReadLayout(const Json& side) {
  auto mesh = ReadMesh(side);
  if (!mesh.ok()) return mesh.status();
  const auto names = GetStrings(side, "placements");
  if (!names.ok()) return names.status();
  Layout layout{*std::move(mesh), {}};
  for (const std::string& name : *names) {
    auto placement = ParsePlacement(name);
    if (!placement.ok()) return Prefixed("key \"placements\"", placement.status());
    layout.placements.push_back(*placement);
  }
  if (!side.contains("order")) return layout;
  const auto order = GetIntegers(side, "order");
  if (!order.ok()) return order.status();
  for (const int64_t dim : *order) {
    if (dim < 0 || dim >= static_cast<int64_t>(layout.placements.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("key \"order\": there is no mesh dimension ", dim));
    }
    layout.order.push_back(static_cast<int>(dim));
  }
  return layout;
}

// Reads one side of `object` into the parts of a tensor transfer that belong to it.
absl::Status ReadSide(const Json& object, const char* key, DType case_dtype, Layout* layout,
                      DType* dtype, std::vector<std::string>* notes) {
  const auto side = GetObject(object, key);
  if (!side.ok()) return side.status();
  const std::string where = absl::StrCat("\"", key, "\"");
  NoteUnknownKeys(**side, {"mesh", "ranks", "placements", "order", "dtype"}, where, notes);
  auto side_layout = ReadLayout(**side);
  if (!side_layout.ok()) return Prefixed(where, side_layout.status());
  const auto side_dtype = ReadDType(**side, case_dtype);
  if (!side_dtype.ok()) return Prefixed(where, side_dtype.status());
  *layout = *std::move(side_layout);
  *dtype = *side_dtype;
  return absl::OkStatus();
}

absl::StatusOr<TensorTransfer> ReadTensor(const Json& object, std::vector<std::string>* notes) {
  TensorTransfer tensor;
  tensor.name = "tensor";
  auto shape = GetIntegers(object, "shape");
  if (!shape.ok()) return shape.status();
  tensor.shape = *std::move(shape);
  const auto dtype = ReadDType(object, DType::kF32);
  if (!dtype.ok()) return dtype.status();
  absl::Status status = ReadSide(object, "source", *dtype, &tensor.src, &tensor.src_dtype, notes);
  if (!status.ok()) return status;
  status = ReadSide(object, "target", *dtype, &tensor.dst, &tensor.dst_dtype, notes);
  if (!status.ok()) return status;
  status = Prefixed("\"source\"", ValidateLayout(tensor.src, tensor.shape));
  if (!status.ok()) return status;
  status = Prefixed("\"target\"", ValidateLayout(tensor.dst, tensor.shape));
  if (!status.ok()) return status;
  return tensor;
}

Case ReadCase(const Json& object, size_t index, std::vector<std::string>* notes) {
  Case result;
  result.id = absl::StrCat("case ", index);
  if (!object.is_object()) {
    result.status = absl::InvalidArgumentError("a case must be an object");
    return result;
  }
  if (object.contains("id")) {
    auto id = GetString(object, "id");
    if (!id.ok()) {
      result.status = id.status();
      return result;
    }
    result.id = *std::move(id);
  }
  std::vector<std::string> case_notes;
  NoteUnknownKeys(object, {"id", "shape", "dtype", "source", "target"}, "case", &case_notes);
  auto tensor = ReadTensor(object, &case_notes);
  if (tensor.ok()) {
    result.spec.tensors.push_back(*std::move(tensor));
  } else {
    result.status = tensor.status();
  }
  for (const std::string& note : case_notes) {
    notes->push_back(absl::StrCat("case \"", result.id, "\": ", note));
  }
  return result;
}

absl::StatusOr<Workload> Read(absl::string_view text) {
  const auto root = ParseJson(text);
  if (!root.ok()) return root.status();
  if (!root->is_object()) {
    return absl::InvalidArgumentError("a case file must be an object with the key \"cases\"");
  }
  Workload workload;
  if (!root->contains("cases")) {
    workload.cases.push_back(ReadCase(*root, 0, &workload.notes));
    return workload;
  }
  if (root->contains("shape") || root->contains("source") || root->contains("target")) {
    return absl::InvalidArgumentError("both \"cases\" and a bare case: which of them is meant?");
  }
  const Json& cases = (*root)["cases"];
  if (!cases.is_array() || cases.empty()) {
    return absl::InvalidArgumentError("key \"cases\" must be a list of at least one case");
  }
  NoteUnknownKeys(*root, {"cases"}, "file", &workload.notes);
  std::set<std::string> ids;
  for (const Json& object : cases) {
    workload.cases.push_back(ReadCase(object, workload.cases.size(), &workload.notes));
    if (!ids.insert(workload.cases.back().id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two cases have the id \"", workload.cases.back().id, "\""));
    }
  }
  return workload;
}

}  // namespace

absl::StatusOr<Workload> ParseCaseFile(absl::string_view text) {
  absl::StatusOr<Workload> workload = Read(text);
  if (!workload.ok()) return Readable(workload.status());
  for (Case& entry : workload->cases) entry.status = Readable(entry.status);
  for (std::string& note : workload->notes) note = Readable(note);
  return workload;
}

}  // namespace sluice::bench

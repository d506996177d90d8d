// From the JSON of a case file to cases.
#include "workload/case_file.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensor/quoted.h"
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

absl::StatusOr<std::vector<Box>> ReadParts(const Json& of_rank) {
  if (!of_rank.contains("parts") || !of_rank["parts"].is_array()) {
    return absl::InvalidArgumentError("key \"parts\" must be a list");
  }
  std::vector<Box> boxes;
  for (const Json& part : of_rank["parts"]) {
    if (!part.is_object()) return absl::InvalidArgumentError("a part must be an object");
    auto offset = GetIntegers(part, "offset");
    if (!offset.ok()) return offset.status();
    auto shape = GetIntegers(part, "shape");
    if (!shape.ok()) return shape.status();
    boxes.push_back({*std::move(offset), *std::move(shape)});
  }
  return boxes;
}

// "boxes": [{"rank": 3, "parts": [{"offset": [0, 512], "shape": [4096, 512]}]}]
absl::StatusOr<Layout> ReadBoxes(const Json& side) {
  for (const char* other : {"mesh", "ranks", "placements", "order"}) {
    if (!side.contains(other)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("both \"boxes\" and \"", other, "\": which of them is meant?"));
  }
  const Json& listed = side["boxes"];
  if (!listed.is_array() || listed.empty()) {
    return absl::InvalidArgumentError("key \"boxes\" must be a list of at least one rank");
  }
  std::vector<RankBoxes> ranks;
  for (const Json& of_rank : listed) {
    if (!of_rank.is_object()) {
      return absl::InvalidArgumentError("key \"boxes\": each of its entries must be an object");
    }
    const auto rank = GetInteger(of_rank, "rank");
    if (!rank.ok()) return Prefixed("key \"boxes\"", rank.status());
    if (*rank < 0 || *rank > std::numeric_limits<int>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("key \"boxes\": there is no rank ", *rank));
    }
    auto boxes = ReadParts(of_rank);
    if (!boxes.ok()) return Prefixed(absl::StrCat("boxes of rank ", *rank), boxes.status());
    ranks.push_back({static_cast<int>(*rank), *std::move(boxes)});
  }
  auto list = BoxList::Create(std::move(ranks));
  if (!list.ok()) return Prefixed("key \"boxes\"", list.status());
  Layout layout;
  layout.boxes = *std::move(list);
  return layout;
}

absl::StatusOr<Layout> ReadLayout(const Json& side) {
  if (side.contains("boxes")) return ReadBoxes(side);
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
  NoteUnknownKeys(**side, {"mesh", "ranks", "placements", "order", "boxes", "dtype"}, where, notes);
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
    notes->push_back(absl::StrCat("case ", Quoted(result.id), ": ", note));
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
          absl::StrCat("two cases have the id ", Quoted(workload.cases.back().id)));
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

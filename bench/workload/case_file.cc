// From the JSON of a case file to cases.
#include "workload/case_file.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/status.h"
#include "tensor/quoted.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

absl::Status CheckRank(int64_t rank, const char* key) {
  if (rank >= 0 && rank <= std::numeric_limits<int>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("key \"", key, "\": there is no rank ", rank));
}

absl::Status ReadMesh(const Json& side, Mesh* mesh) {
  std::vector<int64_t> sizes;
  std::vector<int64_t> listed;
  absl::Status status = Read(side, "mesh", &sizes);
  status.Update(Read(side, "ranks", &listed));
  for (const int64_t rank : listed) status.Update(CheckRank(rank, "ranks"));
  if (!status.ok()) return status;
  SLUICE_ASSIGN_OR_RETURN(*mesh,
                          Prefixed("keys \"mesh\" and \"ranks\"",
                                   Mesh::Create(std::move(sizes), {listed.begin(), listed.end()})));
  return absl::OkStatus();
}

absl::Status ReadParts(const Json& of_rank, std::vector<Box>* boxes) {
  if (!of_rank.contains("parts") || !of_rank["parts"].is_array()) {
    return absl::InvalidArgumentError("key \"parts\" must be a list");
  }
  for (const Json& part : of_rank["parts"]) {
    if (!part.is_object()) return absl::InvalidArgumentError("a part must be an object");
    Box& box = boxes->emplace_back();
    SLUICE_RETURN_IF_ERROR(Read(part, "offset", &box.offset));
    SLUICE_RETURN_IF_ERROR(Read(part, "shape", &box.shape));
  }
  return absl::OkStatus();
}

// "boxes": [{"rank": 3, "parts": [{"offset": [0, 512], "shape": [4096, 512]}]}]
absl::Status ReadBoxes(const Json& side, BoxList* boxes) {
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
    int64_t rank = 0;
    SLUICE_RETURN_IF_ERROR(Prefixed("key \"boxes\"", Read(of_rank, "rank", &rank)));
    SLUICE_RETURN_IF_ERROR(CheckRank(rank, "boxes"));
    RankBoxes& one = ranks.emplace_back(RankBoxes{static_cast<int>(rank), {}});
    SLUICE_RETURN_IF_ERROR(
        Prefixed(absl::StrCat("boxes of rank ", rank), ReadParts(of_rank, &one.boxes)));
  }
  SLUICE_ASSIGN_OR_RETURN(*boxes, Prefixed("key \"boxes\"", BoxList::Create(std::move(ranks))));
  return absl::OkStatus();
}

absl::Status ReadLayout(const Json& side, Layout* layout) {
  if (side.contains("boxes")) return ReadBoxes(side, &layout->boxes);
  std::vector<std::string> names;
  absl::Status status = ReadMesh(side, &layout->mesh);
  status.Update(Read(side, "placements", &names));
  if (!status.ok()) return status;
  for (const std::string& name : names) {
    SLUICE_ASSIGN_OR_RETURN(auto placement, Prefixed("key \"placements\"", ParsePlacement(name)));
    layout->placements.push_back(placement);
  }
  if (!side.contains("order")) return status;
  std::vector<int64_t> order;
  status = Read(side, "order", &order);
  for (const int64_t dim : order) {
    if (dim < 0 || dim >= static_cast<int64_t>(names.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("key \"order\": there is no mesh dimension ", dim));
    }
    layout->order.push_back(static_cast<int>(dim));
  }
  return status;
}

// Reads one side of `object` into the parts of a tensor transfer that belong to it. `dtype` is the
// case's, unless the side has its own.
absl::Status ReadSide(const Json& object, const char* key, Layout* layout, DType* dtype,
                      std::vector<std::string>* notes) {
  const Json* side = nullptr;
  SLUICE_RETURN_IF_ERROR(Read(object, key, &side));
  const std::string where = absl::StrCat("\"", key, "\"");
  NoteUnknownKeys(*side, {"mesh", "ranks", "placements", "order", "boxes", "dtype"}, where, notes);
  absl::Status status = ReadLayout(*side, layout);
  if (side->contains("dtype")) status.Update(Read(*side, "dtype", dtype));
  return Prefixed(where, status);
}

absl::Status ReadTensor(const Json& object, TensorTransfer* tensor,
                        std::vector<std::string>* notes) {
  tensor->name = "tensor";
  tensor->dst_dtype = DType::kF32;
  absl::Status status = Read(object, "shape", &tensor->shape);
  if (object.contains("dtype")) status.Update(Read(object, "dtype", &tensor->dst_dtype));
  tensor->src_dtype = tensor->dst_dtype;
  if (!status.ok()) return status;
  SLUICE_RETURN_IF_ERROR(ReadSide(object, "source", &tensor->src, &tensor->src_dtype, notes));
  SLUICE_RETURN_IF_ERROR(ReadSide(object, "target", &tensor->dst, &tensor->dst_dtype, notes));
  status = Prefixed("\"source\"", ValidateLayout(tensor->src, tensor->shape));
  status.Update(Prefixed("\"target\"", ValidateLayout(tensor->dst, tensor->shape)));
  return status;
}

Case ReadCase(const Json& object, size_t index, std::vector<std::string>* notes) {
  Case result;
  result.id = absl::StrCat("case ", index);
  if (!object.is_object()) {
    result.status = absl::InvalidArgumentError("a case must be an object");
    return result;
  }
  if (object.contains("id")) result.status = Read(object, "id", &result.id);
  if (!result.status.ok()) return result;
  std::vector<std::string> case_notes;
  NoteUnknownKeys(object, {"id", "shape", "dtype", "source", "target"}, "case", &case_notes);
  TensorTransfer tensor;
  result.status = ReadTensor(object, &tensor, &case_notes);
  if (result.status.ok()) result.spec.tensors.push_back(std::move(tensor));
  for (const std::string& note : case_notes) {
    notes->push_back(absl::StrCat("case ", Quoted(result.id), ": ", note));
  }
  return result;
}

absl::StatusOr<Workload> ReadCases(absl::string_view text) {
  SLUICE_ASSIGN_OR_RETURN(const auto root, ParseJson(text));
  if (!root.is_object()) {
    return absl::InvalidArgumentError("a case file must be an object with the key \"cases\"");
  }
  Workload workload;
  if (!root.contains("cases")) {
    workload.cases.push_back(ReadCase(root, 0, &workload.notes));
    return workload;
  }
  if (root.contains("shape") || root.contains("source") || root.contains("target")) {
    return absl::InvalidArgumentError("both \"cases\" and a bare case: which of them is meant?");
  }
  const Json& cases = root["cases"];
  if (!cases.is_array() || cases.empty()) {
    return absl::InvalidArgumentError("key \"cases\" must be a list of at least one case");
  }
  NoteUnknownKeys(root, {"cases"}, "file", &workload.notes);
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
  absl::StatusOr<Workload> workload = ReadCases(text);
  if (!workload.ok()) return Readable(workload.status());
  for (Case& entry : workload->cases) entry.status = Readable(entry.status);
  for (std::string& note : workload->notes) note = Readable(note);
  return workload;
}

}  // namespace sluice::bench

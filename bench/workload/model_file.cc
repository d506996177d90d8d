// From a model file's JSON to tensors; single experts are stacked.
#include "workload/model_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "sluice/status.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

constexpr int kMostLayers = 1 << 20;

// A name that has a part "marker" followed by a number and a dot.
struct NumberedName {
  absl::string_view before;  // up to and with the marker
  int number;
  absl::string_view after;
};

std::optional<NumberedName> FindNumber(absl::string_view name, absl::string_view marker) {
  const size_t at = name.find(marker);
  if (at == absl::string_view::npos) return std::nullopt;
  const size_t begin = at + marker.size();
  const size_t end = name.find('.', begin);
  int number = 0;
  if (end == absl::string_view::npos ||
      !absl::SimpleAtoi(name.substr(begin, end - begin), &number) || number < 0) {
    return std::nullopt;
  }
  return NumberedName{name.substr(0, begin), number, name.substr(end + 1)};
}

absl::StatusOr<ModelTensor> ReadTensor(const std::string& name, const Json& object,
                                       std::vector<std::string>* notes) {
  if (!object.is_object()) return absl::InvalidArgumentError("must be an object");
  NoteUnknownKeys(object, {"shape", "dtype", "data_offsets"}, name, notes);
  ModelTensor tensor;
  tensor.name = name;
  SLUICE_RETURN_IF_ERROR(Read(object, "shape", &tensor.shape));
  if (std::any_of(tensor.shape.begin(), tensor.shape.end(), [](int64_t n) { return n < 0; })) {
    return absl::InvalidArgumentError("key \"shape\" has a negative size");
  }
  SLUICE_RETURN_IF_ERROR(Read(object, "dtype", &tensor.dtype));
  if (const auto layer = FindNumber(name, "layers.")) {
    if (layer->number >= kMostLayers) {
      return absl::InvalidArgumentError(absl::StrCat("there are no ", kMostLayers, " layers"));
    }
    tensor.layer = layer->number;
  }
  tensor.stacked_experts = absl::StrContains(name, ".experts.");
  return tensor;
}

// Collects the experts of one projection of one layer, which a file may list in any order.
class ExpertStacker {
 public:
  absl::Status Add(const NumberedName& name, ModelTensor tensor,
                   std::vector<ModelTensor>* tensors) {
    const std::string stacked_name = absl::StrCat(name.before, name.after);
    const auto [stack, is_new] = stacks_.try_emplace(stacked_name);
    if (is_new) {
      stack->second.index = tensors->size();
      tensor.name = stacked_name;
      tensor.shape.insert(tensor.shape.begin(), 1);
      tensors->push_back(tensor);
    } else {
      const ModelTensor& first = (*tensors)[stack->second.index];
      const bool equal =
          first.dtype == tensor.dtype && first.shape.size() == tensor.shape.size() + 1 &&
          std::equal(tensor.shape.begin(), tensor.shape.end(), first.shape.begin() + 1);
      if (!equal) return absl::InvalidArgumentError("differs from the other experts");
    }
    if (!stack->second.experts.insert(name.number).second) {
      return absl::InvalidArgumentError("is there twice");
    }
    return absl::OkStatus();
  }

  absl::Status Finish(std::vector<ModelTensor>* tensors) const {
    for (const auto& [name, stack] : stacks_) {
      const auto count = static_cast<int64_t>(stack.experts.size());
      if (*stack.experts.rbegin() != count - 1) {
        return absl::InvalidArgumentError(absl::StrCat(name, ": experts are missing: there are ",
                                                       count, ", the last one is ",
                                                       *stack.experts.rbegin()));
      }
      (*tensors)[stack.index].shape[0] = count;
    }
    return absl::OkStatus();
  }

 private:
  struct Stack {
    size_t index = 0;  // of the stacked tensor
    std::set<int> experts;
  };
  std::map<std::string, Stack> stacks_;
};

void Scale(int64_t divisor, std::vector<int64_t>* shape) {
  for (int64_t& size : *shape) size = size / divisor + (size % divisor != 0 ? 1 : 0);
}

absl::StatusOr<Model> ReadModel(absl::string_view text, const ModelCut& cut) {
  if (cut.layers < 0 || cut.scale < 1) {
    return absl::InvalidArgumentError("--layers must not be negative, --scale must be at least 1");
  }
  SLUICE_ASSIGN_OR_RETURN(const auto root, ParseJson(text));
  if (!root.is_object()) return absl::InvalidArgumentError("a model file must be an object");
  Model model;
  ExpertStacker experts;
  for (const auto& [name, object] : root.items()) {
    if (name == "__metadata__") continue;
    SLUICE_ASSIGN_OR_RETURN(auto tensor, Prefixed(name, ReadTensor(name, object, &model.notes)));
    if (tensor.layer && cut.layers > 0 && *tensor.layer >= cut.layers) continue;
    if (tensor.layer) model.layers = std::max(model.layers, *tensor.layer + 1);
    if (const auto expert = FindNumber(name, ".experts.")) {
      SLUICE_RETURN_IF_ERROR(
          Prefixed(name, experts.Add(*expert, std::move(tensor), &model.tensors)));
    } else {
      model.tensors.push_back(std::move(tensor));
    }
  }
  SLUICE_RETURN_IF_ERROR(experts.Finish(&model.tensors));
  if (model.tensors.empty()) return absl::InvalidArgumentError("a model file without tensors");
  for (ModelTensor& tensor : model.tensors) Scale(cut.scale, &tensor.shape);
  return model;
}

}  // namespace

absl::StatusOr<Model> ParseModelFile(absl::string_view text, const ModelCut& cut) {
  absl::StatusOr<Model> model = ReadModel(text, cut);
  if (!model.ok()) return Readable(model.status());
  for (std::string& note : model->notes) note = Readable(note);
  return model;
}

}  // namespace sluice::bench

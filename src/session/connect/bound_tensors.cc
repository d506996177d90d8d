// Views by name and by tensor.
#include "session/connect/bound_tensors.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/string_view.h"
#include "plan/connect/half_builder.h"
#include "plan/connect/texts.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// The needs of one rank's views. A thousand tensors are of a dozen kinds, and local shapes take
// longer than telling these kinds apart.
class NeedsOfRank {
 public:
  explicit NeedsOfRank(int rank) : rank_(rank) {}

  std::shared_ptr<const TensorNeeds> Of(const Layout& layout, const std::vector<int64_t>& shape,
                                        DType dtype) {
    const auto kind = static_cast<size_t>(kinds_.KindOf(shape, dtype, layout));
    // Kinds are numbered as they come. The layout has been found valid.
    if (kind == needs_.size()) {
      needs_.push_back(std::make_shared<const TensorNeeds>(
          TensorNeeds::Of(layout, shape, dtype, rank_).value()));
    }
    return needs_[kind];
  }

 private:
  const int rank_;
  HalfBuilder kinds_;
  std::vector<std::shared_ptr<const TensorNeeds>> needs_;
};

int64_t NextBinding() {
  static std::atomic<int64_t> last = 0;
  return ++last;
}

bool HasPart(const Layout& layout, int rank) {
  return layout.boxes.empty() ? layout.mesh.PositionOf(rank).has_value()
                              : !layout.boxes.Of(rank).empty();
}

}  // namespace

absl::Status BoundTensors::Bind(const Match& match, const ConnectSpec& own, int rank,
                                const MemoryRules& rules) {
  absl::flat_hash_map<absl::string_view, const ConnectTensor*> sources, targets;
  for (const ConnectTensor& tensor : own.sources) {
    sources[tensor.name] = &tensor;
    src_.tensors[tensor.name];
  }
  for (const ConnectTensor& tensor : own.targets) {
    targets[tensor.name] = &tensor;
    dst_.tensors[tensor.name];
  }
  NeedsOfRank needs(rank);
  const std::vector<TensorTransfer>& tensors = match.spec.tensors;
  src_.views.resize(tensors.size());
  dst_.views.resize(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    const TensorTransfer& tensor = tensors[t];
    names_.push_back(tensor.name);
    src_.needs.push_back(needs.Of(tensor.src, tensor.shape, tensor.src_dtype));
    dst_.needs.push_back(needs.Of(tensor.dst, tensor.shape, tensor.dst_dtype));
    // A rank that has no element may have left the tensor out.
    const auto source = sources.find(match.source_names[t]);
    if (source != sources.end() && HasPart(tensor.src, rank)) {
      src_.views[t] = source->second->view;
      src_.tensors[source->first].push_back(t);
    }
    // Other ranks may ask for the same name.
    const auto target = targets.find(tensor.name);
    if (target != targets.end() && HasPart(tensor.dst, rank)) {
      dst_.views[t] = target->second->view;
      dst_.tensors[target->first].push_back(t);
    }
  }
  may_lack_data_ = own.late_targets;
  binding_ = NextBinding();
  return Check(src_.views, dst_.views, rules);
}

absl::Status BoundTensors::Replace(absl::Span<const Connection::NamedView> views,
                                   const char* side_name, const Side& side,
                                   std::vector<TensorView>* replaced) {
  for (const auto& [name, view] : views) {
    const auto at = side.tensors.find(name);
    if (at == side.tensors.end()) {
      return MakeError(absl::StatusCode::kNotFound, "this rank gave no ", side_name, " ",
                       QuotedName(name), " to Connect");
    }
    for (const size_t t : at->second) (*replaced)[t] = view;
  }
  return absl::OkStatus();
}

absl::Status BoundTensors::Rebind(absl::Span<const Connection::NamedView> sources,
                                  absl::Span<const Connection::NamedView> targets,
                                  const MemoryRules& rules) {
  std::vector<TensorView> src = src_.views;
  std::vector<TensorView> dst = dst_.views;
  if (absl::Status s = Replace(sources, "source", src_, &src); !s.ok()) return s;
  if (absl::Status s = Replace(targets, "target", dst_, &dst); !s.ok()) return s;
  if (absl::Status s = Check(src, dst, rules); !s.ok()) return s;
  src_.views = std::move(src);
  dst_.views = std::move(dst);
  binding_ = NextBinding();
  return absl::OkStatus();
}

absl::Status BoundTensors::BindSide(const Side& side, const std::vector<TensorView>& views,
                                    bool are_targets, const MemoryRules& rules,
                                    std::vector<std::vector<BoundView>>* bound) const {
  bound->resize(views.size());
  for (size_t t = 0; t < views.size(); ++t) {
    const TensorNeeds& need = *side.needs[t];
    if (are_targets && may_lack_data_ && need.IsLacking(views[t])) continue;
    const absl::Status status = need.Fit(views[t], rules, are_targets, &(*bound)[t]);
    if (status.ok()) continue;
    return MakeError(status.code(), are_targets ? "target " : "source of ", QuotedName(names_[t]),
                     ": ", status);
  }
  return absl::OkStatus();
}

absl::Status BoundTensors::Check(const std::vector<TensorView>& src,
                                 const std::vector<TensorView>& dst,
                                 const MemoryRules& rules) const {
  std::vector<std::vector<BoundView>> bound_src, bound_dst;
  if (absl::Status s = BindSide(src_, src, false, rules, &bound_src); !s.ok()) return s;
  if (absl::Status s = BindSide(dst_, dst, true, rules, &bound_dst); !s.ok()) return s;
  // Each box is a view of its own, with the tensor's name and number.
  std::vector<BoundView> all_src, all_dst;
  std::vector<absl::string_view> names;
  std::vector<int> numbers;
  for (size_t t = 0; t < names_.size(); ++t) {
    const size_t views = std::max(bound_src[t].size(), bound_dst[t].size());
    all_src.insert(all_src.end(), bound_src[t].begin(), bound_src[t].end());
    all_dst.insert(all_dst.end(), bound_dst[t].begin(), bound_dst[t].end());
    names.resize(names.size() + views, names_[t]);
    numbers.resize(names.size(), static_cast<int>(t));
    all_src.resize(names.size());
    all_dst.resize(names.size());
  }
  return CheckAliasing(all_src, all_dst, names, numbers);
}

}  // namespace sluice

// Test memory of a whole transfer.
#include "session/rank_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"

namespace sluice::session_test {
namespace {

// Of each tensor the same on all ranks.
Likeness RandomLikeness(oracle::Dice* dice, size_t dims) {
  Likeness alike;
  if (dims > 1 && dice->Chance(25)) {
    alike.slid = static_cast<int>(dice->Between(0, static_cast<int64_t>(dims) - 2));
  }
  for (size_t d = 0; d < dims; ++d) {
    const int dim = static_cast<int>(d);
    const bool slides = alike.slid >= 0 && (dim == alike.slid || dim == alike.slid + 1);
    if (!slides && dice->Chance(40)) alike.repeated.push_back(d);
  }
  return alike;
}

}  // namespace

RankMemory::RankMemory(const TransferSpec& spec, int rank, std::optional<uint64_t> style_seed,
                       const std::shared_ptr<Accelerator>& accelerator) {
  if (accelerator != nullptr) {
    absl::StatusOr<std::unique_ptr<Device>> opened = accelerator->OpenDevice();
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (opened.ok()) device_ = *std::move(opened);
  }
  oracle::Dice dice(style_seed.value_or(0) * 1000 + static_cast<uint64_t>(rank));
  oracle::Dice common(style_seed.value_or(0));
  const auto style = [&](bool alike) {
    if (!style_seed) return ViewStyle::kDense;
    if (alike && dice.Chance(60)) return ViewStyle::kAlike;
    return dice.Pick<ViewStyle>({ViewStyle::kDense, ViewStyle::kSlice, ViewStyle::kTransposed,
                                 ViewStyle::kSpaced, ViewStyle::kRotated, ViewStyle::kInterleaved});
  };
  for (size_t t = 0; t < spec.tensors.size(); ++t) {
    const TensorTransfer& tensor = spec.tensors[t];
    const bool has_alike = style_seed && common.Chance(40);
    const Likeness alike = has_alike ? RandomLikeness(&common, tensor.shape.size()) : Likeness();
    const auto add = [&](std::vector<Memory>* memories, Side side, const Box* box) {
      TensorMemory memory(tensor, t, side, rank, style(side == Side::kSource && has_alike), alike,
                          box);
      if (device_ != nullptr && !(style_seed && dice.Chance(25))) {
        memory.PutOn(device_, *accelerator);
      }
      memories->push_back({t, std::move(memory)});
      return memories->back().memory.view();
    };
    const auto add_side = [&](std::vector<Memory>* memories, Side side, const Layout& layout) {
      if (layout.boxes.empty()) return add(memories, side, nullptr);
      TensorView view;
      for (const Box& box : layout.boxes.Of(rank)) view.boxes.push_back(add(memories, side, &box));
      return view;
    };
    src_views_.push_back(add_side(&src_, Side::kSource, tensor.src));
    dst_views_.push_back(add_side(&dst_, Side::kDestination, tensor.dst));
  }
}

void RankMemory::Prepare(uint64_t round) {
  for (Memory& each : src_) each.memory.Fill(round);
  for (Memory& each : dst_) each.memory.Poison(round);
}

std::string RankMemory::Check(uint64_t round) const {
  for (const Memory& each : dst_) {
    if (each.memory.Holds(round)) continue;
    return absl::StrCat("destination of tensor ", each.tensor, ": ", each.memory.Difference(round));
  }
  return CheckSources(round);
}

std::string RankMemory::CheckSources(uint64_t round) const {
  for (const Memory& each : src_) {
    if (each.memory.Holds(round)) continue;
    return absl::StrCat("source of tensor ", each.tensor,
                        " has changed: ", each.memory.Difference(round));
  }
  return "";
}

bool RankMemory::Untouched(uint64_t round) const {
  return std::all_of(dst_.begin(), dst_.end(),
                     [&](const Memory& each) { return each.memory.IsPoisoned(round); });
}

}  // namespace sluice::session_test

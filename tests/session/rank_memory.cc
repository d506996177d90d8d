// Test memory of a whole transfer.
#include "session/rank_memory.h"

#include <algorithm>

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
    src_.emplace_back(tensor, t, Side::kSource, rank, style(has_alike), alike);
    dst_.emplace_back(tensor, t, Side::kDestination, rank, style(false), alike);
    for (TensorMemory* const memory : {&src_.back(), &dst_.back()}) {
      if (device_ == nullptr || (style_seed && dice.Chance(25))) continue;
      memory->PutOn(device_, *accelerator);
    }
    src_views_.push_back(src_.back().view());
    dst_views_.push_back(dst_.back().view());
  }
}

void RankMemory::Prepare(uint64_t round) {
  for (TensorMemory& memory : src_) memory.Fill(round);
  for (TensorMemory& memory : dst_) memory.Poison(round);
}

std::string RankMemory::Check(uint64_t round) const {
  for (size_t t = 0; t < dst_.size(); ++t) {
    if (dst_[t].Holds(round)) continue;
    return absl::StrCat("destination of tensor ", t, ": ", dst_[t].Difference(round));
  }
  return CheckSources(round);
}

std::string RankMemory::CheckSources(uint64_t round) const {
  for (size_t t = 0; t < src_.size(); ++t) {
    if (src_[t].Holds(round)) continue;
    return absl::StrCat("source of tensor ", t, " has changed: ", src_[t].Difference(round));
  }
  return "";
}

bool RankMemory::Untouched(uint64_t round) const {
  return std::all_of(dst_.begin(), dst_.end(),
                     [&](const TensorMemory& memory) { return memory.IsPoisoned(round); });
}

}  // namespace sluice::session_test

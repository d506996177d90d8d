// Memory in one piece, with each tensor on pages of its own.
#include "sync/holding.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/status.h"
#include "workload/local_tensor.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

constexpr size_t kPageBytes = 4096;

uint32_t ModulusOfAll(const SyncWeights& weights) {
  uint32_t modulus = FillModulus(DType::kF32);
  for (const ModelTensor& tensor : weights.tensors()) {
    modulus = std::min(modulus, FillModulus(tensor.dtype));
  }
  return modulus;
}

}  // namespace

MappedMemory Shelf::Take(size_t bytes) {
  size_t best = memory_.size();
  for (size_t i = 0; i < memory_.size(); ++i) {
    const size_t has = memory_[i].get_deleter().bytes;
    if (has < bytes || has / 2 > bytes) continue;
    if (best == memory_.size() || has < memory_[best].get_deleter().bytes) best = i;
  }
  if (best < memory_.size()) {
    MappedMemory taken = std::move(memory_[best]);
    memory_.erase(memory_.begin() + static_cast<std::ptrdiff_t>(best));
    return taken;
  }
  // What does not fit any more would be kept beside what does.
  memory_.clear();
  return MapMemory(bytes);
}

void Shelf::Put(MappedMemory memory) {
  if (memory == nullptr) return;
  memory_.push_back(std::move(memory));
  if (memory_.size() > kMost) memory_.erase(memory_.begin());
}

void Shelf::Stock(int pieces, size_t bytes) {
  for (int i = 0; i < pieces; ++i) {
    MappedMemory memory = MapMemory(bytes);
    if (memory == nullptr) return;
    std::memset(memory.get(), 0, bytes);
    Put(std::move(memory));
  }
}

Holding::Holding(const SyncWeights& weights, int64_t seed, Shelf* shelf, const Place& place)
    : weights_(weights),
      seed_(seed),
      shelf_(shelf),
      place_(place),
      modulus_(ModulusOfAll(weights)) {}

Holding::~Holding() { shelf_->Put(std::move(data_)); }

absl::Status Holding::LayOut(absl::Span<const Layouts> sides, int rank,
                             std::vector<size_t>* offsets) {
  for (size_t i = 0; i < weights_.tensors().size(); ++i) {
    const ModelTensor& tensor = weights_.tensors()[i];
    Piece piece;
    offsets->push_back(bytes_);
    for (const Layouts& layouts : sides) {
      if (!layouts[i].mesh.PositionOf(rank)) continue;
      SLUICE_ASSIGN_OR_RETURN(auto part, LocalPart::Create(layouts[i], tensor.shape, rank));
      const auto bytes = static_cast<size_t>(part.elements() * DTypeBytes(tensor.dtype));
      bytes_ += (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
      piece.part = std::move(part);
    }
    pieces_.push_back(std::move(piece));
  }
  bytes_ = std::max(bytes_, kPageBytes);
  return absl::OkStatus();
}

absl::StatusOr<size_t> Holding::BytesOf(const SyncWeights& weights, absl::Span<const Layouts> sides,
                                        int rank) {
  Shelf none;
  Holding holding(weights, 0, &none, {});
  std::vector<size_t> offsets;
  SLUICE_RETURN_IF_ERROR(holding.LayOut(sides, rank, &offsets));
  return holding.bytes_;
}

absl::StatusOr<std::shared_ptr<Holding>> Holding::Make(const SyncWeights& weights,
                                                       absl::Span<const Layouts> sides, int rank,
                                                       int64_t seed, Shelf* shelf,
                                                       const Place& place) {
  std::shared_ptr<Holding> holding(new Holding(weights, seed, shelf, place));
  std::vector<size_t> offsets;
  SLUICE_RETURN_IF_ERROR(holding->LayOut(sides, rank, &offsets));
  holding->data_ = shelf->Take(holding->bytes_);
  if (holding->data_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot allocate ", BytesName(static_cast<int64_t>(holding->bytes_)), " of tensors"));
  }
  for (size_t i = 0; i < holding->pieces_.size(); ++i) {
    Piece& piece = holding->pieces_[i];
    if (!piece.part) continue;
    piece.view = DenseView(holding->data_.get() + offsets[i], piece.part->shape(),
                           weights.tensors()[i].dtype);
  }
  holding->Poison();
  return holding;
}

Filler Holding::FillerOf(size_t tensor, int64_t version) const {
  const ModelTensor& model = weights_.tensors()[tensor];
  // Far apart, so that no two versions of two seeds meet by chance.
  constexpr int kBitsOfVersion = 40;
  const uint64_t seed =
      (static_cast<uint64_t>(seed_) << kBitsOfVersion) + static_cast<uint64_t>(version);
  const bench::Fill fill = {modulus_, static_cast<int64_t>(seed), /*mixed=*/true};
  return Filler(model.dtype, modulus_, fill.HashOf(model.name));
}

void Holding::Fill(size_t tensor, int64_t version) {
  const Piece& piece = pieces_[tensor];
  if (!piece.part) return;
  FillPart(*piece.part, FillerOf(tensor, version), static_cast<std::byte*>(piece.view.data));
}

int64_t Holding::CountWrong(size_t tensor, int64_t version) const {
  const Piece& piece = pieces_[tensor];
  if (!piece.part) return 0;
  return bench::CountWrong(*piece.part, FillerOf(tensor, version),
                           static_cast<const std::byte*>(piece.view.data));
}

void Holding::Poison() {
  version_ = 0;
  std::memset(data_.get(), kPoisonByte, bytes_);
}

void Holding::Give(const Layouts& layouts, int rank, std::vector<ConnectTensor>* tensors) const {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].part || !layouts[i].mesh.PositionOf(rank)) continue;
    const ModelTensor& model = weights_.tensors()[i];
    tensors->push_back({{model.name, model.shape, model.dtype, layouts[i], pieces_[i].view}});
  }
}

std::vector<Connection::NamedView> Holding::Views() const {
  std::vector<Connection::NamedView> views;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].part) views.emplace_back(weights_.tensors()[i].name, pieces_[i].view);
  }
  return views;
}

}  // namespace sluice::bench

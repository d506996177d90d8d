// One member's memory for a version of the weights: its part of every tensor.
#ifndef SLUICE_BENCH_SYNC_HOLDING_H_
#define SLUICE_BENCH_SYNC_HOLDING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "memory/mapped_memory.h"
#include "sluice/connect.h"
#include "sluice/tensor.h"
#include "sync/weights.h"
#include "workload/fill.h"
#include "workload/local_part.h"

namespace sluice::bench {

// Pages that the kernel gives for the first time cost more than filling them: where a hypervisor
// has yet to find them, a GiB took five seconds. So what has been used is used again.
// Thread: one.
class Shelf {
 public:
  // At least `bytes`, of any content; what is here already, if a piece is no larger than twice
  // that. Null: there is not so much memory.
  MappedMemory Take(size_t bytes);
  // Keeps up to kMost pieces, the last ones that came.
  void Put(MappedMemory memory);
  // Puts `pieces` of `bytes` there that have been written to. Less where memory ends.
  void Stock(int pieces, size_t bytes);

  size_t pieces() const { return memory_.size(); }

 private:
  static constexpr size_t kMost = 3;

  std::vector<MappedMemory> memory_;  // the oldest first
};

// Where a server's part is of: so many servers, of which it is this one, in the order of ranks.
struct Place {
  int64_t servers = 0;
  int64_t index = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

class Holding {
 public:
  // Of `rank`, by all of `sides`, of which at most one has the rank for each tensor. Poisoned. Its
  // memory is of `shelf`, and goes back there. `weights` and `shelf` must outlive it.
  // ResourceExhausted: there is not so much memory.
  static absl::StatusOr<std::shared_ptr<Holding>> Make(const SyncWeights& weights,
                                                       absl::Span<const Layouts> sides, int rank,
                                                       int64_t seed, Shelf* shelf,
                                                       const Place& place = {});
  ~Holding();
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  // How much memory such a one takes.
  static absl::StatusOr<size_t> BytesOf(const SyncWeights& weights, absl::Span<const Layouts> sides,
                                        int rank);

  const Place& place() const { return place_; }
  // That all of it is of; 0: of none, or of several.
  int64_t version() const { return version_; }
  void set_version(int64_t version) { version_ = version; }

  size_t tensors() const { return pieces_.size(); }
  bool has(size_t tensor) const { return pieces_[tensor].part.has_value(); }
  // Writes what `tensor` is in `version`.
  void Fill(size_t tensor, int64_t version);
  // How many of its elements are something else.
  int64_t CountWrong(size_t tensor, int64_t version) const;
  // Overwrites everything with what is in no version.
  void Poison();

  // Its tensors for Connect, with such layouts: those that it has, and whose mesh has `rank`.
  void Give(const Layouts& layouts, int rank, std::vector<ConnectTensor>* tensors) const;
  // The same for Rebind.
  std::vector<Connection::NamedView> Views() const;

 private:
  struct Piece {
    std::optional<LocalPart> part;
    TensorView view;
  };
  Holding(const SyncWeights& weights, int64_t seed, Shelf* shelf, const Place& place);
  // Its pieces, without memory. `offsets`: where each will begin.
  absl::Status LayOut(absl::Span<const Layouts> sides, int rank, std::vector<size_t>* offsets);
  Filler FillerOf(size_t tensor, int64_t version) const;

  const SyncWeights& weights_;
  const int64_t seed_;
  Shelf* const shelf_;
  const Place place_;
  uint32_t modulus_;
  int64_t version_ = 0;
  std::vector<Piece> pieces_;
  MappedMemory data_;
  size_t bytes_ = 0;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_HOLDING_H_

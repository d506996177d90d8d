// No redistribution but a bound on all of them: what the cores of a node can do together.
//
// Every byte of the targets is written once, where the run has it, with streaming stores. Only what
// fits a core's share of the cache is written with plain stores, which are faster there. The ranks
// of a node share the work, whoever's the targets are, so that all cores write. A piece that
// several targets hold alike is read once, by the rank that writes it to all of them.
//
// A rank can help only where it has mapped the targets. Private memory of other processes cannot be
// written in this way. There each rank writes its own targets, so cores are idle where fewer ranks
// than cores have targets.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "device/cache_share.h"
#include "device/stores.h"
#include "device/stream_rows.h"
#include "reshard/baselines/baseline.h"
#include "reshard/baselines/seen_memory.h"
#include "reshard/baselines/wire.h"
#include "sluice/status.h"
#include "tensor/stable_hash.h"
#include "workload/local_part.h"

namespace sluice::bench {
namespace {

// Small enough to stay in a core's own cache while it is written to several targets.
constexpr uint64_t kPieceBytes = 256 << 10;

// A target, as its owner tells others.
struct TargetRecord {
  SharedPlace place;
  uint64_t bytes = 0;
};

// Which ranks see the same targets: equal on all of them, and on no others.
struct GroupRecord {
  int32_t alone = -1;  // the rank, if nobody else writes what it writes
  int32_t ranks = 0;
  uint64_t hash = 0;  // of the ranks

  bool operator==(const GroupRecord&) const = default;
};

class Bound final : public Baseline {
 public:
  absl::Status Plan(const BaselineJob& job) override {
    job_ = job;
    MPI_Comm_size(job.wire->comm(), &ranks_);
    SLUICE_RETURN_IF_ERROR(FillOnce(job));
    SLUICE_RETURN_IF_ERROR(FindTargets());
    SLUICE_RETURN_IF_ERROR(FindGroup());
    TakeShare();
    // Until here others have read these targets.
    Wire::Requests requests;
    SLUICE_RETURN_IF_ERROR(
        Wire::FromMpi(MPI_Ibarrier(job.wire->comm(), &requests.emplace_back()), "MPI_Ibarrier"));
    return job.wire->Wait(&requests);
  }

  absl::Status Run() override {
    for (const Piece& piece : pieces_) {
      const std::byte* const content = contents_.data() + piece.content;
      if (streams_) {
        StreamRows(content, piece.target, CopyAxis(), static_cast<int64_t>(piece.bytes));
      } else {
        std::memcpy(piece.target, content, piece.bytes);
      }
    }
    if (streams_) StreamFence();
    return absl::OkStatus();
  }

 private:
  struct Piece {
    std::byte* target;
    uint64_t bytes;
    size_t content;  // where it begins in contents_
  };

  size_t tensors() const { return job_.dst.size(); }

  // What all ranks say, one after the other. Nobody goes on before all have come.
  template <typename Record>
  absl::Status Gather(const std::vector<Record>& mine, std::vector<Record>* all) {
    all->resize(mine.size() * static_cast<size_t>(ranks_));
    const auto bytes = static_cast<int>(mine.size() * sizeof(Record));
    Wire::Requests requests;
    absl::Status status =
        Wire::FromMpi(MPI_Iallgather(mine.data(), bytes, MPI_BYTE, all->data(), bytes, MPI_BYTE,
                                     job_.wire->comm(), &requests.emplace_back()),
                      "MPI_Iallgather");
    return status.ok() ? job_.wire->Wait(&requests) : status;
  }

  // Has records_ and seen_ name all targets of all ranks.
  absl::Status FindTargets() {
    const SeenMemory seen = SeenMemory::OfThisProcess();
    std::vector<TargetRecord> mine;
    for (const TensorView& view : job_.dst) {
      const absl::Span<std::byte> bytes = BytesOf(view);
      mine.push_back({seen.PlaceOf(bytes.data()), bytes.size()});
    }
    SLUICE_RETURN_IF_ERROR(Gather(mine, &records_));
    for (const TargetRecord& record : records_) {
      const bool is_there = record.place.inode != 0 && record.bytes > 0;
      seen_.push_back(is_there ? seen.Find(record.place, record.bytes) : nullptr);
    }
    return absl::OkStatus();
  }

  // Whether this rank can write all targets of `rank`, which has some.
  bool Sees(int rank) const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < tensors(); ++i) {
      const size_t at = static_cast<size_t>(rank) * tensors() + i;
      if (records_[at].bytes > 0 && seen_[at] == nullptr) return false;
      bytes += records_[at].bytes;
    }
    return bytes > 0;
  }

  bool HasTargets(int rank) const {
    const size_t first = static_cast<size_t>(rank) * tensors();
    return std::any_of(records_.begin() + static_cast<int64_t>(first),
                       records_.begin() + static_cast<int64_t>(first + tensors()),
                       [](const TargetRecord& record) { return record.bytes > 0; });
  }

  // Ranks that see the same targets, among them their own, write them together.
  absl::Status FindGroup() {
    StableHash hash;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!Sees(rank)) continue;
      owners_.push_back(rank);
      hash.AddSigned(rank);
    }
    GroupRecord mine = {-1, static_cast<int32_t>(owners_.size()), hash.value()};
    const bool sees_own = !HasTargets(job_.rank) || Sees(job_.rank);
    if (owners_.empty() || !sees_own) {
      mine = GroupRecord();
      mine.alone = job_.rank;
      owners_ = {job_.rank};
    }
    std::vector<GroupRecord> all;
    absl::Status status = Gather(std::vector<GroupRecord>{mine}, &all);
    if (!status.ok()) return status;
    // Others may see an owner that does not see all that they see: it is with another group.
    owners_.erase(
        std::remove_if(owners_.begin(), owners_.end(),
                       [&](int owner) { return !(all[static_cast<size_t>(owner)] == mine); }),
        owners_.end());
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!(all[static_cast<size_t>(rank)] == mine)) continue;
      if (rank < job_.rank) ++place_;
      ++writers_;
    }
    return status;
  }

  std::byte* TargetOf(int owner, size_t tensor) const {
    if (owner == job_.rank) return BytesOf(job_.dst[tensor]).data();
    return seen_[static_cast<size_t>(owner) * tensors() + tensor];
  }

  // The pieces of the group's targets, in an order in which equal ones are together, are cut into
  // equal shares.
  void TakeShare() {
    uint64_t total = 0;
    ForEachPiece([&](std::byte*, uint64_t bytes, bool) { total += bytes; });
    contents_.reserve(total / writers_ + kPieceBytes);
    uint64_t before = 0;
    uint64_t mine = 0;
    size_t first = 0;  // of the pieces that may be equal to the present one
    ForEachPiece([&](std::byte* target, uint64_t bytes, bool is_elsewhere) {
      const uint64_t writer = before * writers_ / total;
      before += bytes;
      if (is_elsewhere) first = pieces_.size();
      if (writer != place_) return;
      mine += bytes;
      pieces_.push_back({target, bytes, ContentOf(target, bytes, first)});
    });
    const double of_core = static_cast<double>(mine) * RanksPerCpu(static_cast<int64_t>(writers_));
    streams_ =
        ResolveStores(WriteHint::kAuto, static_cast<int64_t>(of_core)) == WriteHint::kStreaming;
  }

  // Calls `visit(target, bytes, is_elsewhere)`; the last is false if the piece has the same place
  // in another owner's target as the one before.
  template <typename Visit>
  void ForEachPiece(Visit visit) const {
    for (size_t i = 0; i < tensors(); ++i) {
      uint64_t longest = 0;
      for (const int owner : owners_) longest = std::max(longest, BytesIn(owner, i));
      for (uint64_t offset = 0; offset < longest; offset += kPieceBytes) {
        bool is_elsewhere = true;
        for (const int owner : owners_) {
          const uint64_t size = BytesIn(owner, i);
          if (offset >= size) continue;
          visit(TargetOf(owner, i) + offset, std::min(kPieceBytes, size - offset), is_elsewhere);
          is_elsewhere = false;
        }
      }
    }
  }

  uint64_t BytesIn(int owner, size_t tensor) const {
    return records_[static_cast<size_t>(owner) * tensors() + tensor].bytes;
  }

  // Where the content of such a piece is kept: with an equal piece from `first` on, or by itself.
  size_t ContentOf(const std::byte* target, uint64_t bytes, size_t first) {
    for (size_t i = first; i < pieces_.size(); ++i) {
      const Piece& other = pieces_[i];
      if (other.bytes != bytes) continue;
      if (std::memcmp(contents_.data() + other.content, target, bytes) == 0) return other.content;
    }
    const size_t at = contents_.size();
    contents_.insert(contents_.end(), target, target + bytes);
    return at;
  }

  BaselineJob job_ = {};
  int ranks_ = 0;
  std::vector<TargetRecord> records_;  // of all ranks, tensor by tensor
  std::vector<std::byte*> seen_;       // where this process has them, or null
  std::vector<int> owners_;            // whose targets the group writes
  uint64_t writers_ = 0;               // ranks of the group
  uint64_t place_ = 0;                 // of this rank among them
  std::vector<Piece> pieces_;          // that this rank writes
  std::vector<std::byte> contents_;
  bool streams_ = true;
};

}  // namespace

std::unique_ptr<Baseline> MakeBoundBaseline() { return std::make_unique<Bound>(); }

}  // namespace sluice::bench

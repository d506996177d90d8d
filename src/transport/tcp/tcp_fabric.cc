// Gathers and posts as control records of TCP links, or of what is nearer.
#include "transport/tcp/tcp_fabric.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"
#include "transport/tree_gather.h"

namespace sluice {
namespace {

// So many messages of a gather may be on their way to a rank.
constexpr int kGatherMessages = 8;

size_t GatherMessageBytes(int size) {
  return std::max(TcpLinks::kMaxControlBytes / kGatherMessages, TreeGather::MinMessageBytes(size));
}

// A hint to a rank that nothing has gone to costs a connection. Gathers are slower if many
// processes share few cores, without anybody being silent.
int64_t GatherPatienceNs(int size) {
  constexpr int kRanks = 16;
  constexpr int kMost = 10;
  return TreeGather::kPatienceNs * std::clamp(size / kRanks, 1, kMost);
}

class TcpFabric final : public Fabric {
 public:
  explicit TcpFabric(TcpFabricOptions options)
      : Fabric(options.links->rank(), options.node_of_rank),
        options_(std::move(options)),
        near_(options_.near.get()),
        links_(options_.links),
        gather_(rank(), size(), GatherMessageBytes(size()), GatherPatienceNs(size())),
        busy_from_(std::max(
            1, static_cast<int>(TcpLinks::kMaxControlBytes / GatherMessageBytes(size())))) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    if (gather_.is_under_way()) {
      return absl::FailedPreconditionError("an all-gather is under way");
    }
    SLUICE_CHECK(record.size() <= kMaxRecordBytes, "the record is too long");
    told_.clear();
    gather_.Start(record, GatherNs());
    return Carry();
  }

  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    SLUICE_CHECK(gather_.is_under_way(), "no all-gather is under way");
    SLUICE_RETURN_IF_ERROR(Carry());
    if (gather_.IsReady() && !HasTold(missing)) {
      all->clear();
      return false;
    }
    return gather_.Poll(all, missing);
  }

  absl::Status Post(int dst, absl::Span<const std::byte> record) override {
    CheckPost(dst, record.size(), rank(), size());
    const int pending = Untaken(dst, kPost);
    if (pending >= kMaxPostsPending) {
      links_->Progress();  // receipts may have come
      if (Untaken(dst, kPost) >= kMaxPostsPending) {
        return links_->HasEnded(dst) ? absl::OkStatus() : PostRefusal(dst, pending);
      }
    }
    const absl::Status status = Send(dst, kPost, record);
    // Nobody who has ended is kept from anything.
    return absl::IsUnavailable(status) ? absl::OkStatus() : status;
  }

  bool PollPost(int* src, std::vector<std::byte>* record) override {
    carried_ = Carry();
    return Take(kPost, src, record);
  }

  bool HasLeft(int rank) const override { return links_->HasLeft(rank); }
  absl::Status CheckRanks() override {
    if (!carried_.ok()) return carried_;
    if (near_ != nullptr) {
      SLUICE_RETURN_IF_ERROR(near_->Check());
    }
    absl::Status status = links_->CheckRanks();
    if (status.ok() && options_.check_ranks != nullptr) status = options_.check_ranks();
    // Records that a near rank sent before its end come first, if they are asked for now.
    if (!status.ok() && near_ != nullptr && !std::exchange(knows_of_ends_, true) &&
        (near_->HasArrived(kGather) || near_->HasArrived(kPost))) {
      return absl::OkStatus();
    }
    return status;
  }

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    const int number = transports_++;
    if (options_.open_transport != nullptr) return options_.open_transport(number);
    SLUICE_CHECK(number < kTcpFabricTransports, "the fabric has opened too many transports");
    return links_->OpenTransport(options_.number * kTcpFabricTransports + number);
  }

  WireReport DescribeWire(int /*peer*/) const override { return options_.wire; }

  absl::Status CheckOtherThread() const override { return absl::OkStatus(); }

 private:
  // Kinds of records.
  static constexpr int kGather = 0;
  static constexpr int kPost = 1;

  uint8_t LinkKind(int kind) const { return static_cast<uint8_t>(2 * options_.number + kind); }
  bool IsNear(int rank) const { return near_ != nullptr && near_->Reaches(rank); }

  absl::Status Send(int dst, int kind, absl::Span<const std::byte> record) {
    if (IsNear(dst)) return near_->Send(dst, kind, record);
    return links_->SendControl(dst, LinkKind(kind), record);
  }
  bool Take(int kind, int* src, std::vector<std::byte>* record) {
    if (near_ != nullptr && near_->Poll(kind, src, record)) return true;
    return links_->PollControl(LinkKind(kind), src, record);
  }
  int Untaken(int dst, int kind) const {
    return IsNear(dst) ? near_->Untaken(dst, kind) : links_->UntakenRecords(dst, LinkKind(kind));
  }
  uint64_t Mark(int dst) const { return IsNear(dst) ? near_->Mark(dst) : links_->Mark(dst); }
  bool IsSent(int dst, uint64_t mark) const {
    if (!IsNear(dst)) return links_->IsSent(dst, mark);
    return near_->IsSent(dst, mark) || links_->HasEnded(dst);
  }

  static int64_t GatherNs() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  // A message sent to a rank.
  struct Told {
    int dst;
    uint64_t mark;
  };

  // Takes and sends the messages of gathers.
  absl::Status Carry() {
    int src = -1;
    std::vector<std::byte> message;
    while (Take(kGather, &src, &message)) {
      SLUICE_RETURN_IF_ERROR(gather_.Take(src, message));
    }
    const auto busy = [this](int dst) { return Untaken(dst, kGather) >= busy_from_; };
    TreeGather::Outgoing out;
    while (gather_.Next(GatherNs(), busy, &out)) {
      absl::Status status = Send(out.dst, kGather, out.bytes);
      // A rank that has ended needs no message; CheckRanks names those that ended without a
      // farewell.
      if (!status.ok() && !absl::IsUnavailable(status)) return status;
      if (out.is_needed) told_.push_back({out.dst, Mark(out.dst)});
    }
    return absl::OkStatus();
  }

  // Whether what others need of this rank in this gather reaches them, whatever this one does next.
  bool HasTold(std::vector<int>* missing) {
    std::erase_if(told_, [this](const Told& told) { return IsSent(told.dst, told.mark); });
    if (missing != nullptr) {
      missing->clear();
      for (const Told& told : told_) missing->push_back(told.dst);
      std::sort(missing->begin(), missing->end());
      missing->erase(std::unique(missing->begin(), missing->end()), missing->end());
    }
    return told_.empty();
  }

  const TcpFabricOptions options_;
  NearRecords* const near_;  // null: all records go over the links
  const std::shared_ptr<TcpLinks> links_;
  TreeGather gather_;
  const int busy_from_;
  std::vector<Told> told_;  // that others need
  absl::Status carried_;
  bool knows_of_ends_ = false;
  int transports_ = 0;  // opened
};

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> MakeTcpFabric(TcpFabricOptions options) {
  if (options.number < 0 || options.number >= kMaxTcpFabrics) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric ", options.number, "; 0 .. ", kMaxTcpFabrics - 1));
  }
  if (options.links == nullptr) return absl::InvalidArgumentError("a fabric without links");
  if (options.node_of_rank.size() != static_cast<size_t>(options.links->size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.node_of_rank.size(), " nodes of ", options.links->size(), " ranks"));
  }
  return std::make_unique<TcpFabric>(std::move(options));
}

}  // namespace sluice

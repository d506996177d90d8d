// Two transfers, which every member knows whole: of all rows to rank 0, and from there to all.
#include "sync/exchange.h"

#include <numeric>
#include <utility>

#include "sluice/layout.h"
#include "sluice/transfer.h"

namespace sluice::bench {
namespace {

constexpr auto kRowWords = static_cast<int64_t>(sizeof(SyncRow) / sizeof(int64_t));

// Of rows on ranks 0 .. `ranks` - 1.
absl::StatusOr<Layout> RowLayout(int ranks, const Placement& placement) {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  absl::StatusOr<Mesh> mesh = Mesh::Create({ranks}, std::move(all));
  if (!mesh.ok()) return mesh.status();
  return Layout{*std::move(mesh), {placement}};
}

TransferSpec RowSpec(const char* name, int ranks, const Layout& src, const Layout& dst) {
  TransferSpec spec;
  spec.tensors.push_back({.name = name,
                          .shape = {ranks, kRowWords},
                          .src_dtype = DType::kI64,
                          .dst_dtype = DType::kI64,
                          .src = src,
                          .dst = dst});
  return spec;
}

TensorView RowsView(std::vector<SyncRow>* rows) {
  return DenseView(rows->data(), {static_cast<int64_t>(rows->size()), kRowWords}, DType::kI64);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> Exchange::Create(Session* session) {
  const int ranks = session->size();
  std::unique_ptr<Exchange> exchange(new Exchange(session));
  exchange->own_.resize(1);
  exchange->all_.resize(static_cast<size_t>(ranks));
  if (session->rank() == 0) exchange->gathered_.resize(static_cast<size_t>(ranks));
  const auto cut = RowLayout(ranks, Placement::Shard(0));
  const auto first = RowLayout(1, Placement::Replicate());
  const auto all = RowLayout(ranks, Placement::Replicate());
  for (const auto* layout : {&cut, &first, &all}) {
    if (!layout->ok()) return layout->status();
  }
  const auto gather = session->Compile(RowSpec("rows of all members", ranks, *cut, *first));
  if (!gather.ok()) return gather.status();
  exchange->gather_ = *gather;
  const auto spread = session->Compile(RowSpec("rows for all members", ranks, *first, *all));
  if (!spread.ok()) return spread.status();
  exchange->spread_ = *spread;
  return exchange;
}

absl::StatusOr<std::vector<SyncRow>> Exchange::Swap(const SyncRow& own, Await await) {
  own_[0] = own;
  const TensorView own_row = RowsView(&own_);
  const TensorView gathered = RowsView(&gathered_);
  const TensorView all = RowsView(&all_);
  const auto gather = session_->Start(gather_, {&own_row, 1}, {&gathered, 1});
  if (!gather.ok()) return gather.status();
  if (absl::Status status = await(*gather); !status.ok()) return status;
  const auto spread = session_->Start(spread_, {&gathered, 1}, {&all, 1});
  if (!spread.ok()) return spread.status();
  if (absl::Status status = await(*spread); !status.ok()) return status;
  return all_;
}

}  // namespace sluice::bench

// What a member tells all others in an epoch, and what it makes of their rows.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/layout.h"
#include "sluice/status.h"
#include "sluice/transfer.h"
#include "sync/epoch.h"

namespace sluice::bench {
namespace {

constexpr auto kRowWords = static_cast<int64_t>(sizeof(SyncRow) / sizeof(int64_t));

// Of rows on ranks 0 .. `ranks` - 1.
absl::StatusOr<Layout> RowLayout(int ranks, const Placement& placement) {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  SLUICE_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Create({ranks}, std::move(all)));
  return Layout{std::move(mesh), {placement}};
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

SyncRow SyncEpoch::OwnRow(Word word) const {
  SyncRow row;
  row.alike = state_->weights->hash();
  row.word = static_cast<int64_t>(word);
  row.reached = state_->reached;
  row.time_us = state_->time_us;
  row.wrong = state_->wrong;
  if (!state_->is_trainer && state_->newest != nullptr) {
    row.held_version = state_->newest->version();
    row.held_servers = state_->newest->place().servers;
    row.held_index = state_->newest->place().index;
  }
  if (weights_ != nullptr) {
    row.sent_bytes = weights_->transfer()->stats().sent_bytes;
    row.received_bytes = weights_->transfer()->stats().received_bytes;
  }
  if (catch_up_ != nullptr) {
    row.catch_up_sent_bytes = catch_up_->sent_bytes();
    row.catch_up_us = catch_up_->time_us();
    row.catch_up_wrong = catch_up_->wrong();
  }
  return row;
}

absl::StatusOr<std::vector<SyncRow>> SyncEpoch::Swap(Word word) {
  auto rows = exchange_->Swap(OwnRow(word), [this](const sluice::Run& run) { return Await(run); });
  if (rows.ok()) Tell(*rows);
  return rows;
}

SyncVersion SyncEpoch::Totals(absl::Span<const SyncRow> rows, bool catch_up) const {
  SyncVersion totals;
  totals.version = catch_up ? catch_up_->version() : next_;
  totals.epoch = state_->world->epoch();
  totals.catch_up = catch_up;
  totals.trainers = trainers_;
  totals.servers = servers_;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool is_trainer = i < static_cast<size_t>(trainers_);
    (is_trainer ? totals.trainer_bytes : totals.server_bytes) +=
        catch_up ? rows[i].catch_up_sent_bytes : rows[i].sent_bytes;
    if (!catch_up) totals.payload_bytes += rows[i].received_bytes;
  }
  return totals;
}

void SyncEpoch::Tell(absl::Span<const SyncRow> rows) {
  TellCatchUp(rows);
  if (!state_->untold || state_->reached < state_->untold->version) return;
  SyncVersion& version = *state_->untold;
  for (const SyncRow& row : rows) {
    if (row.reached != version.version) continue;
    version.time_us = std::max(version.time_us, row.time_us);
    version.wrong += row.wrong;
  }
  state_->tell(version);
  state_->untold = std::nullopt;
}

void SyncEpoch::TellCatchUp(absl::Span<const SyncRow> rows) {
  if (catch_up_ == nullptr || is_catch_up_told_) return;
  SyncVersion version = Totals(rows, /*catch_up=*/true);
  const std::vector<WorldMember> members = state_->world->epoch_members();
  for (size_t i = 0; i < catches_up_.size(); ++i) {
    if (!catches_up_[i]) continue;
    const SyncRow& row = rows[i + static_cast<size_t>(trainers_)];
    if (row.catch_up_us == 0) return;  // it is still under way
    version.time_us = std::max(version.time_us, row.catch_up_us);
    version.wrong += row.catch_up_wrong;
    const WorldMember& member = members[i + static_cast<size_t>(trainers_)];
    version.caught_up.push_back(absl::StrCat(member.role, " ", member.rank));
  }
  version.own_us = catch_up_->time_us();
  version.payload_bytes = version.trainer_bytes + version.server_bytes;
  is_catch_up_told_ = true;
  state_->tell(version);
}

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
  SLUICE_ASSIGN_OR_RETURN(exchange->gather_,
                          session->Compile(RowSpec("rows of all members", ranks, *cut, *first)));
  SLUICE_ASSIGN_OR_RETURN(exchange->spread_,
                          session->Compile(RowSpec("rows for all members", ranks, *first, *all)));
  return exchange;
}

absl::StatusOr<std::vector<SyncRow>> Exchange::Swap(const SyncRow& own, Await await) {
  own_[0] = own;
  const TensorView own_row = RowsView(&own_);
  const TensorView gathered = RowsView(&gathered_);
  const TensorView all = RowsView(&all_);
  SLUICE_ASSIGN_OR_RETURN(const auto gather, session_->Start(gather_, {own_row}, {&gathered, 1}));
  SLUICE_RETURN_IF_ERROR(await(gather));
  SLUICE_ASSIGN_OR_RETURN(const auto spread, session_->Start(spread_, {gathered}, {&all, 1}));
  SLUICE_RETURN_IF_ERROR(await(spread));
  return all_;
}

}  // namespace sluice::bench

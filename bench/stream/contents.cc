// Finding catalogs, and preparing the fills of the types that occur in them.
#include "stream/contents.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "job/host_clock.h"
#include "plan/shard/cursor.h"
#include "session/stream/stream_catalog.h"
#include "session/stream/stream_source.h"
#include "sluice/status.h"
#include "workload/json_input.h"

namespace sluice::bench {

absl::StatusOr<Catalog> FindCatalog(const StreamOptions& stream) {
  SLUICE_ASSIGN_OR_RETURN(const auto address, ParseSourceAddress(stream.source.uri));
  SLUICE_ASSIGN_OR_RETURN(const auto text,
                          FetchCatalogText(address, stream.source, stream.reads.retry));
  return ReadCatalogText(text, stream.source);
}

absl::StatusOr<std::unique_ptr<Contents>> Contents::Make(const StreamBenchOptions& options,
                                                         Catalog catalog) {
  auto contents = std::unique_ptr<Contents>(new Contents);
  if (options.is_generator()) {
    contents->items_ = options.items;
    contents->item_bytes_ = options.stream.source.item_bytes;
  } else {
    contents->has_catalog_ = true;
    contents->catalog_ = std::move(catalog);
    contents->items_ = contents->catalog_.items();
  }
  SLUICE_RETURN_IF_ERROR(contents->AddFills(options));
  return contents;
}

absl::Status Contents::AddFill(ElementType type, uint64_t seed) {
  SLUICE_ASSIGN_OR_RETURN(auto fill, ShardFill::Make(type, seed));
  fills_.emplace(type, std::move(fill));
  return absl::OkStatus();
}

absl::Status Contents::AddFills(const StreamBenchOptions& options) {
  if (options.stream.buffers.transform)
    plain_type_ = *ElementTypeOf(options.stream.buffers.transform->src);
  SLUICE_RETURN_IF_ERROR(AddFill(plain_type_, options.fill_seed));
  for (const ItemType& type : catalog_.types()) {
    if (options.stream.buffers.transform && type.element != plain_type_) {
      return absl::InvalidArgumentError(
          absl::StrCat("--transform is from ", DTypeName(options.stream.buffers.transform->src),
                       ", but items are ", "of ", ElementName(type.element)));
    }
    SLUICE_RETURN_IF_ERROR(AddFill(type.element, options.fill_seed));
  }
  const int64_t element_bytes = ElementBytes(plain_type_);
  const bool whole =
      item_bytes_ % element_bytes == 0 &&
      std::all_of(catalog_.runs().begin(), catalog_.runs().end(), [&](const Catalog::Stretch& run) {
        return run.type >= 0 || run.item_bytes % element_bytes == 0;
      });
  if (whole) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an item is no whole number of elements of ", ElementName(plain_type_)));
}

int64_t Contents::BytesOf(int64_t item) const {
  return has_catalog_ ? catalog_.ItemAt(item).bytes : item_bytes_;
}

ElementType Contents::TypeOf(int64_t item) const {
  if (!has_catalog_) return plain_type_;
  const int type = catalog_.ItemAt(item).type;
  return type < 0 ? plain_type_ : catalog_.types()[static_cast<size_t>(type)].element;
}

std::vector<int64_t> Contents::ShapeOf(int64_t item) const {
  const int type = has_catalog_ ? catalog_.ItemAt(item).type : -1;
  if (type >= 0) return catalog_.types()[static_cast<size_t>(type)].shape;
  return {BytesOf(item) / ElementBytes(plain_type_)};
}

absl::StatusOr<StreamPlan> Contents::PlanOf(const StreamOptions& stream) const {
  StreamPlanOptions plan;
  plan.items = items_;
  plan.epochs = stream.order.epochs;
  plan.shuffle = stream.order.shuffle;
  plan.seed = stream.order.seed;
  plan.block_items = stream.order.shuffle_block_items.value_or(1);
  plan.exchange = false;
  const Selection& selection = stream.selection;
  plan.places = {
      {selection.first, selection.step, std::min(selection.end.value_or(items_), items_)}};
  if (!stream.order.cursor.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const auto cursor,
                            Prefixed("--cursor", Cursor::Parse(stream.order.cursor)));
    const auto merged = MergeCursors({cursor});  // as the library does with those of all ranks
    if (!merged.ok()) return Prefixed("--cursor", merged.status());
    plan.released = merged->layers;
  }
  return StreamPlan(plan, 0);
}

Generator MakeFillGenerator(const ShardFill& fill, int64_t generate_ns) {
  const auto kept = std::make_shared<const ShardFill>(fill);
  return [kept, generate_ns](int64_t item, absl::Span<std::byte> into) {
    const int64_t due_ns = MonotonicNs() + generate_ns;
    kept->FillItem(item, 0, into);
    if (generate_ns > 0) {
      // As the consumer does: otherwise the kernel may wake this thread 50 us late.
      prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
      SleepUntilNs(due_ns);
    }
    return absl::OkStatus();
  };
}

}  // namespace sluice::bench

// The readers behind addresses.
#include "session/stream/stream_source.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "session/stream/catalog_items.h"
#include "session/stream/generate_gate.h"
#include "session/stream/item_normalizer.h"
#include "storage/delayed_source.h"
#include "storage/fault_spec.h"
#include "storage/generator_source.h"
#include "storage/sized_item.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

absl::optional<DType> TransformedType(const StreamOptions& options) {
  if (!options.buffers.transform) return absl::nullopt;
  return options.buffers.transform->src;
}

std::vector<int64_t> TransformedShape(const StreamOptions& options) {
  if (!options.buffers.transform) return {};
  return options.buffers.transform->shape;
}

// A transform takes whole elements.
absl::Status CheckElements(const StreamOptions& options, int64_t item_bytes,
                           absl::string_view where) {
  if (!options.buffers.transform) return absl::OkStatus();
  const int64_t element_bytes = DTypeBytes(options.buffers.transform->src);
  if (item_bytes % element_bytes == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("items of ", item_bytes, " bytes", where, " do not hold whole elements of ",
                   DTypeName(options.buffers.transform->src), ", which the transform takes"));
}

absl::StatusOr<std::unique_ptr<Source>> Delay(std::unique_ptr<Source> source,
                                              const InjectedDelay& delay) {
  DelayOptions options;
  options.seed = delay.seed;
  options.latency_ns = absl::ToInt64Nanoseconds(delay.latency);
  options.jitter = delay.jitter;
  options.tail_percent = delay.tail_percent;
  options.tail_factor = delay.tail_factor;
  SLUICE_ASSIGN_OR_RETURN(const FaultSpec faults, ParseFaultSpec(delay.faults));
  options.faults = faults;
  if (options.latency_ns == 0 && delay.faults.empty()) return source;
  return MakeDelayedSource(std::move(source), options);
}

absl::StatusOr<std::unique_ptr<Source>> MakeReader(const SourceAddress& address,
                                                   const StreamOptions& options,
                                                   const Catalog& catalog, bool read_ahead,
                                                   int in_flight_max) {
  std::vector<std::string> names;
  OpenOptions open = OpenOptionsOf(options.source);
  open.in_flight_max = in_flight_max;
  open.read_ahead = read_ahead;
  for (const Catalog::Object& object : catalog.objects()) {
    names.push_back(object.name);
    open.object_bytes.push_back(object.bytes);
  }
  return OpenSource(address, std::move(names), open);
}

// A generator of whole items says nothing of their length.
GenerateItem GenerateItemOf(const StreamSource& source) {
  if (source.sized_generator != nullptr) return source.sized_generator;
  return [make = source.generator](int64_t item,
                                   absl::Span<std::byte> into) -> absl::StatusOr<int64_t> {
    if (absl::Status status = make(item, into); !status.ok()) return status;
    return static_cast<int64_t>(into.size());
  };
}

}  // namespace

OpenOptions OpenOptionsOf(const StreamSource& source) {
  OpenOptions open;
  open.connections = source.connections;
  open.ca_file = source.ca_file;
  open.s3 = source.s3;
  return open;
}

absl::StatusOr<OpenedSource> OpenCatalog(const SourceAddress& address, const StreamOptions& options,
                                         const InjectedDelay& delay, Catalog catalog,
                                         int in_flight_max) {
  if (catalog.items() == 0) return absl::InvalidArgumentError("the source has no items");
  for (const Catalog::Stretch& run : catalog.runs()) {
    const std::string& object = catalog.objects()[static_cast<size_t>(run.object)].name;
    SLUICE_RETURN_IF_ERROR(CheckElements(options, run.item_bytes, absl::StrCat(" of ", object)));
  }
  OpenedSource opened;
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Source> reader,
                          MakeReader(address, options, catalog, delay.read_ahead, in_flight_max));
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, Delay(std::move(reader), delay));
  opened.source = std::move(source);
  opened.items = std::make_unique<CatalogItems>(std::move(catalog), TransformedType(options),
                                                TransformedShape(options));
  if (absl::Status status = CheckTransformOf(options.buffers.transform, *opened.items);
      !status.ok()) {
    return status;
  }
  return opened;
}

absl::StatusOr<OpenedSource> OpenGenerator(const StreamOptions& options,
                                           const InjectedDelay& delay) {
  const StreamSource& source = options.source;
  const bool sized = source.sized_generator != nullptr;
  if ((!source.generator && !sized) || source.generator_items < 1 || source.item_bytes < 1) {
    return absl::InvalidArgumentError(
        "a source needs a uri, or a generator with generator_items and item_bytes");
  }
  // Items lie one behind the other in the generator's one object.
  if (source.item_bytes > kObjectBytesMax / 2 ||
      source.generator_items >
          kObjectBytesMax / (sized ? StoredBytes(source.item_bytes) : source.item_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(source.generator_items, " items of ",
                                                   source.item_bytes, " bytes are too many"));
  }
  if (absl::Status status = CheckElements(options, source.item_bytes, ""); !status.ok()) {
    return status;
  }
  OpenedSource opened;
  GeneratorOptions generator;
  generator.item_bytes = source.item_bytes;
  generator.sized = sized;
  if (options.buffers.transform) {
    generator.element_bytes = DTypeBytes(options.buffers.transform->src);
  }
  generator.threads = source.generator_threads;
  generator.batches = GenerateGate(source).batches();
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<GeneratorSource> made,
                          MakeGeneratorSource(GenerateItemOf(source), generator));
  opened.generator = made.get();
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Source> delayed, Delay(std::move(made), delay));
  opened.source = std::move(delayed);
  opened.items =
      std::make_unique<GeneratedItems>(source.generator_items, source.item_bytes,
                                       TransformedType(options), sized, TransformedShape(options));
  if (absl::Status status = CheckTransformOf(options.buffers.transform, *opened.items);
      !status.ok()) {
    return status;
  }
  opened.whole_items = true;
  return opened;
}

}  // namespace sluice

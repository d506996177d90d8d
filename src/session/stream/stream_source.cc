// Addresses, and the readers behind them.
#include "session/stream_source.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "session/catalog_items.h"
#include "storage/delayed_source.h"
#include "storage/fault_spec.h"
#include "storage/file_source.h"
#include "storage/generator_source.h"
#include "storage/http_source.h"
#include "storage/http_url.h"
#include "storage/mmap_source.h"

namespace sluice {
namespace {

absl::optional<DType> TransformedType(const StreamOptions& options) {
  if (!options.transform) return absl::nullopt;
  return options.transform->src;
}

// A transform takes whole elements.
absl::Status CheckElements(const StreamOptions& options, int64_t item_bytes,
                           absl::string_view where) {
  if (!options.transform) return absl::OkStatus();
  const int64_t element_bytes = DTypeBytes(options.transform->src);
  if (item_bytes % element_bytes == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("items of ", item_bytes, " bytes", where, " do not hold whole elements of ",
                   DTypeName(options.transform->src), ", which the transform takes"));
}

absl::StatusOr<std::unique_ptr<Source>> Delay(std::unique_ptr<Source> source,
                                              const InjectedDelay& delay) {
  DelayOptions options;
  options.seed = delay.seed;
  options.latency_ns = absl::ToInt64Nanoseconds(delay.latency);
  options.jitter = delay.jitter;
  options.tail_percent = delay.tail_percent;
  options.tail_factor = delay.tail_factor;
  const absl::StatusOr<FaultSpec> faults = ParseFaultSpec(delay.faults);
  if (!faults.ok()) return faults.status();
  options.faults = *faults;
  if (options.latency_ns == 0 && delay.faults.empty()) return source;
  return MakeDelayedSource(std::move(source), options);
}

absl::StatusOr<std::unique_ptr<Source>> MakeReader(const SourceAddress& address,
                                                   const StreamOptions& options,
                                                   const Catalog& catalog, int in_flight_max) {
  std::vector<std::string> names;
  HttpOptions http = HttpOptionsOf(options.source);
  // Which request is late is the stream's to say, who tries it again.
  http.timeout_ns = http.stall_timeout_ns = INT64_MAX;
  for (const Catalog::Object& object : catalog.objects()) {
    names.push_back(object.name);
    http.object_bytes.push_back(object.bytes);
  }
  if (address.is_http()) return MakeHttpSource(address.place, names, http);
  if (address.scheme == "mmap") return MakeMmapSource(address.place, std::move(names), {});
  FileSourceOptions file;
  file.access = address.scheme == "file" ? FileAccess::kDirect : FileAccess::kBuffered;
  file.in_flight_max = in_flight_max;
  return MakeFileSource(address.place, std::move(names), file);
}

}  // namespace

HttpOptions HttpOptionsOf(const StreamSource& source) {
  HttpOptions options;
  options.connections_per_host = source.connections;
  options.connections_max = source.connections;
  options.ca_file = source.ca_file;
  return options;
}

absl::StatusOr<SourceAddress> ParseSourceAddress(absl::string_view uri) {
  if (uri.empty()) return SourceAddress();
  for (const absl::string_view scheme : {"http", "https"}) {
    if (!absl::StartsWith(uri, absl::StrCat(scheme, "://"))) continue;
    if (absl::Status status = CheckHttpUrl(uri); !status.ok()) return status;
    return SourceAddress{std::string(scheme),
                         absl::StrCat(uri, absl::EndsWith(uri, "/") ? "" : "/")};
  }
  for (const absl::string_view scheme : {"file", "buffered", "mmap"}) {
    absl::string_view place = uri;
    if (!absl::ConsumePrefix(&place, absl::StrCat(scheme, ":"))) continue;
    // "file:///data" is the same as "file:/data".
    if (absl::StartsWith(place, "///")) place.remove_prefix(2);
    if (place.empty()) break;
    return SourceAddress{std::string(scheme), std::string(place)};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      ShownUrl(uri), " is no source: file:DIR, buffered:DIR, mmap:DIR, http://HOST/BASE/ ",
      "or https://HOST/BASE/"));
}

absl::StatusOr<OpenedSource> OpenCatalog(const SourceAddress& address, const StreamOptions& options,
                                         Catalog catalog, int in_flight_max) {
  if (catalog.items() == 0) return absl::InvalidArgumentError("the source has no items");
  for (const Catalog::Run& run : catalog.runs()) {
    const std::string& object = catalog.objects()[static_cast<size_t>(run.object)].name;
    absl::Status status = CheckElements(options, run.item_bytes, absl::StrCat(" of ", object));
    if (!status.ok()) return status;
  }
  OpenedSource opened;
  absl::StatusOr<std::unique_ptr<Source>> reader =
      MakeReader(address, options, catalog, in_flight_max);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<std::unique_ptr<Source>> source = Delay(*std::move(reader), options.source.delay);
  if (!source.ok()) return source.status();
  opened.source = *std::move(source);
  opened.items = std::make_unique<CatalogItems>(std::move(catalog), TransformedType(options));
  return opened;
}

absl::StatusOr<OpenedSource> OpenGenerator(const StreamOptions& options) {
  const StreamSource& source = options.source;
  if (!source.generator || source.generator_items < 1 || source.item_bytes < 1) {
    return absl::InvalidArgumentError(
        "a source needs a uri, or a generator with generator_items and item_bytes");
  }
  // Items lie one behind the other in the generator's one object.
  if (source.generator_items > kObjectBytesMax / source.item_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(source.generator_items, " items of ",
                                                   source.item_bytes, " bytes are too many"));
  }
  if (absl::Status status = CheckElements(options, source.item_bytes, ""); !status.ok()) {
    return status;
  }
  OpenedSource opened;
  GeneratorOptions generator;
  generator.item_bytes = source.item_bytes;
  generator.after_update = source.generate_after_update;
  absl::StatusOr<std::unique_ptr<GeneratorSource>> made =
      MakeGeneratorSource(source.generator, generator);
  if (!made.ok()) return made.status();
  GeneratorSource* const reader = made->get();
  opened.end_update = [reader](int64_t item) { reader->UpdateEnded(item); };
  absl::StatusOr<std::unique_ptr<Source>> delayed = Delay(*std::move(made), source.delay);
  if (!delayed.ok()) return delayed.status();
  opened.source = *std::move(delayed);
  opened.items = std::make_unique<GeneratedItems>(source.generator_items, source.item_bytes,
                                                  TransformedType(options));
  opened.whole_items = true;
  return opened;
}

}  // namespace sluice

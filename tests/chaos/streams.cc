// Streams over files or a generator, whose bytes follow from seed, item and offset.
#include "chaos/streams.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "chaos/values.h"
#include "sluice/stream.h"
#include "sluice/testing.h"

namespace sluice::chaos {
namespace {

using nlohmann::json;

void FillItem(uint64_t seed, int64_t item, absl::Span<std::byte> into) {
  for (size_t at = 0; at < into.size(); at += sizeof(uint64_t)) {
    const uint64_t word = Mix(Mix(seed, static_cast<uint64_t>(item)), at);
    std::memcpy(into.data() + at, &word, std::min(sizeof(word), into.size() - at));
  }
}

std::string FileOf(const json& dataset, const std::string& folder, int64_t file) {
  return absl::StrCat(folder, "/", dataset.at("dir").get<std::string>(), "/part-", 100 + file,
                      ".bin");
}

}  // namespace

absl::Status MakeDatasets(const json& datasets, const std::string& folder) {
  for (const json& dataset : datasets) {
    std::filesystem::create_directories(folder + "/" + dataset.at("dir").get<std::string>());
    const int64_t files = dataset.at("files");
    const int64_t items = dataset.at("items");
    std::vector<std::byte> item(dataset.at("item_bytes").get<size_t>());
    for (int64_t file = 0; file < files; ++file) {
      std::ofstream out(FileOf(dataset, folder, file), std::ios::binary);
      for (int64_t i = items * file / files; i < items * (file + 1) / files; ++i) {
        FillItem(dataset.at("seed"), i, absl::MakeSpan(item));
        out.write(reinterpret_cast<const char*>(item.data()),
                  static_cast<std::streamsize>(item.size()));
      }
      if (!out.flush()) return absl::InternalError("cannot write a data set");
    }
  }
  return absl::OkStatus();
}

Streams::~Streams() {
  for (auto& [number, open] : open_) open.held.Release();
}

bool Streams::Open(const json& op) {
  const int number = op.at("stream");
  const json& spec = job_.at("streams").at(static_cast<size_t>(number));
  const json& dataset = job_.at("datasets").at(op.at("dataset").get<size_t>());
  const size_t rank = static_cast<size_t>(session_->rank());
  StreamOptions options;
  const std::string source = spec.at("source");
  const int64_t item_bytes = dataset.at("item_bytes");
  const int64_t items = dataset.at("items");
  options.source.item_bytes = item_bytes;
  if (source == "generator") {
    options.source.generator_items = items;
    // Ranks take as many as they like: none may wait for another one's consumer.
    options.source.generate_ahead = std::numeric_limits<int64_t>::max();
    options.source.generator = [seed = dataset.at("seed").get<uint64_t>()](
                                   int64_t item, absl::Span<std::byte> into) {
      FillItem(seed, item, into);
      return absl::OkStatus();
    };
  } else {
    options.source.uri =
        absl::StrCat(source, ":", folder_, "/", dataset.at("dir").get<std::string>());
    options.source.format = ItemFormat::kRaw;
  }
  InjectedDelay delay;
  delay.latency = absl::Milliseconds(spec.at("latency_ms").get<int64_t>());
  delay.jitter = spec.at("jitter");
  delay.faults = spec.at("faults");
  delay.seed = spec.at("seed");
  const json& selection = spec.at("selections").at(rank);
  options.selection = {selection.at(0), selection.at(1), absl::nullopt};
  options.order.shuffle = spec.at("shuffle");
  options.order.seed = spec.at("seed");
  options.order.epochs = spec.at("epochs");
  options.reads.budget_bytes = spec.at("budget_bytes");
  if (const int64_t slots = spec.at("slots"); slots > 0) options.reads.slots = slots;
  if (const int64_t bytes = spec.at("piece_bytes"); bytes > 0) options.reads.piece_bytes = bytes;
  options.buffers.count = spec.at("device_buffers");
  options.buffers.batch_items = spec.at("batch_items");
  options.order.in_order = spec.at("in_order");
  options.reads.exchange = spec.at("exchange");
  options.reads.hedge.enabled = spec.at("hedge");
  options.reads.hedge.extra_share_max = 0.5;
  options.reads.retry.backoff = absl::Milliseconds(2);
  options.reads.retry.attempts_max = 8;
  options.reads.retry.request_timeout = absl::Seconds(spec.at("request_timeout_s").get<int64_t>());
  options.timeout = absl::Seconds(spec.at("timeout_s").get<int64_t>());
  Past& past = past_[number];
  if (op.at("resume")) {
    options.order.cursor = past.cursor;
  } else {
    past = Past();
  }
  Open_& open = open_[number];
  open = Open_();
  open.spec = &spec;
  open.number = number;
  open.dataset = op.at("dataset");
  open.allowed = options.reads.budget_bytes +
                 (options.buffers.count + 2) * options.buffers.batch_items * (item_bytes + 4096);
  watch_->Allow(open.allowed);
  auto stream = OpenDelayedStream(session_, options, delay);
  if (!verdict_->Take(stream.status(), absl::StrCat("OpenStream ", number))) {
    open.failed = true;
    return session_->Poll().ok();
  }
  open.stream = *std::move(stream);
  ++verdict_->counts["streams"];
  return true;
}

void Streams::CheckItem(Open_* open, const Lease& lease, int64_t i) {
  const json& dataset = job_.at("datasets").at(open->dataset);
  const int64_t item = lease.item(i);
  const TensorView view = lease.view(i);
  std::vector<std::byte> want(dataset.at("item_bytes").get<size_t>());
  FillItem(dataset.at("seed"), item, absl::MakeSpan(want));
  const std::byte* const got = static_cast<const std::byte*>(view.data) + view.byte_offset;
  const std::string name = absl::StrCat("stream ", open->number, ", item ", item);
  if (view.shape != std::vector<int64_t>{static_cast<int64_t>(want.size())}) {
    return verdict_->Wrong(name + " has another shape");
  }
  if (std::memcmp(want.data(), got, want.size()) != 0) verdict_->Wrong(name + " has other bytes");
  ++verdict_->counts["items"];
  const Item taken = {lease.epoch(i), item};
  open->taken.push_back(taken);
  if (!past_[open->number].released.insert(taken).second && open->spec->at("disjoint")) {
    verdict_->Wrong(name + " came twice");
  }
}

bool Streams::Take(const json& op) {
  Open_& open = open_[op.at("stream")];
  if (open.stream == nullptr || open.failed) return true;
  const size_t rank = static_cast<size_t>(session_->rank());
  // A consumer that stops, while its rank goes on.
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(op.at("pause_ms").at(rank).get<int64_t>());
  while (std::chrono::steady_clock::now() < until && between_() && session_->Poll().ok()) {
    std::this_thread::yield();
  }
  int64_t left = op.at("batches").at(rank);
  while (left-- != 0 && !open.ended) {
    open.held.Release();
    // Runs in flight may wait for memory of this rank.
    while (!open.stream->Ready() && between_() && session_->Poll().ok()) std::this_thread::yield();
    absl::StatusOr<Lease> lease = open.stream->Next();
    if (!verdict_->Take(lease.status(), absl::StrCat("Next of stream ", open.number))) {
      open.failed = true;
      return session_->Poll().ok();
    }
    open.ended = lease->end();
    for (int64_t i = 0; !open.ended && i < lease->items(); ++i) CheckItem(&open, *lease, i);
    if (!open.ended) open.held = *std::move(lease);
  }
  return true;
}

std::vector<int64_t> Streams::Selected(const Open_& open) const {
  const json& dataset = job_.at("datasets").at(open.dataset);
  const json& selection = open.spec->at("selections").at(static_cast<size_t>(session_->rank()));
  std::vector<int64_t> items;
  for (int64_t item = selection.at(0); item < dataset.at("items").get<int64_t>();
       item += selection.at(1).get<int64_t>()) {
    items.push_back(item);
  }
  return items;
}

// Of a stream that has come to its end: every item of the selection, once.
void Streams::CheckAll(const Open_& open) {
  const std::set<Item>& released = past_[open.number].released;
  const json& spec = *open.spec;
  const bool shuffled = spec.at("shuffle");
  const std::vector<int64_t> selected = Selected(open);
  const int64_t epochs = spec.at("epochs");
  if (released.size() != selected.size() * static_cast<size_t>(epochs)) {
    verdict_->Wrong(absl::StrCat("stream ", open.number, " gave ", released.size(), " of ",
                                 selected.size() * static_cast<size_t>(epochs), " items"));
  } else if (!shuffled) {
    for (const int64_t item : selected) {
      if (!released.contains({0, item})) {
        verdict_->Wrong(absl::StrCat("stream ", open.number, " never gave item ", item));
      }
    }
    if (spec.at("in_order") && !std::is_sorted(open.taken.begin(), open.taken.end())) {
      verdict_->Wrong(absl::StrCat("stream ", open.number, " is not in order"));
    }
  }
  ++verdict_->counts["streams_to_the_end"];
}

bool Streams::Close(const json& op) {
  Open_& open = open_[op.at("stream")];
  open.held.Release();
  if (open.stream != nullptr) {
    past_[open.number].cursor = open.stream->Cursor();
    const StreamStats stats = open.stream->stats();
    if (stats.budget_bytes_peak > stats.budget_bytes || stats.slots_peak > stats.slots_max) {
      verdict_->Wrong(absl::StrCat("stream ", open.number, " held ", stats.budget_bytes_peak,
                                   " of ", stats.budget_bytes, " bytes"));
    }
    if (open.ended && !open.failed && !open.truncated) CheckAll(open);
    if (!open.ended && !open.failed) ++verdict_->counts["streams_closed_early"];
  }
  open.stream.reset();
  watch_->Allow(-open.allowed);
  open.allowed = 0;
  return true;
}

bool Streams::Truncate(const json& op) {
  Open_& open = open_[op.at("stream")];
  open.truncated = true;
  if (session_->rank() != 0) return true;
  const json& dataset = job_.at("datasets").at(op.at("dataset").get<size_t>());
  std::error_code error;
  std::filesystem::resize_file(FileOf(dataset, folder_, op.at("file")),
                               op.at("bytes").get<size_t>(), error);
  return true;
}

}  // namespace sluice::chaos

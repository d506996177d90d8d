// Keeps the reads that are at the server, those that wait, and those that are late.
#include "storage/http/http_source.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "storage/growing_ring.h"
#include "storage/http/http_multi.h"
#include "storage/http/http_transfer.h"
#include "storage/http/http_url.h"
#include "storage/source_check.h"
#include "storage/wake_set.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

class HttpSource final : public Source {
 public:
  explicit HttpSource(const HttpOptions& options)
      : options_(options), versions_(options.versions) {}
  ~HttpSource() override;
  absl::Status Init(absl::string_view base_url, absl::Span<const std::string> names);

  absl::string_view name() const override { return "http"; }
  int64_t alignment() const override { return 1; }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return wake_->fd(); }

 private:
  absl::Status AddObjects(absl::string_view base_url, absl::Span<const std::string> names);
  // Carries on with whatever can be.
  void Advance();
  void CollectDone();
  bool BeginWaiting();
  void CheckDeadlines();
  int64_t DeadlineNs(const HttpTransfer& transfer) const;
  void End(HttpTransfer* transfer, absl::Status status);
  void DropAll();

  const HttpOptions options_;
  std::shared_ptr<HttpVersions> versions_;
  std::unique_ptr<WakeSet> wake_;
  std::unique_ptr<HttpMulti> multi_;
  std::vector<HttpObject> objects_;
  // Requests do not queue in libcurl: its time limits would count the wait.
  GrowingRing<ReadOp> waiting_;
  std::vector<std::unique_ptr<HttpTransfer>> transfers_;  // as many as there may be connections
  std::vector<HttpTransfer*> idle_;
  GrowingRing<ReadEvent> finished_;
  int64_t deadline_ns_ = WakeSet::kNever;  // no request is late before
};

absl::Status HttpSource::Init(absl::string_view base_url, absl::Span<const std::string> names) {
  SLUICE_RETURN_IF_ERROR(CheckHttpOptions(options_));
  SLUICE_RETURN_IF_ERROR(AddObjects(base_url, names));
  SLUICE_ASSIGN_OR_RETURN(wake_, WakeSet::Make());
  const int connections = std::min(options_.connections_per_host, options_.connections_max);
  for (int i = 0; i < connections; ++i) {
    transfers_.push_back(std::make_unique<HttpTransfer>());
    SLUICE_RETURN_IF_ERROR(transfers_.back()->Init(options_));
    idle_.push_back(transfers_.back().get());
  }
  multi_ = std::make_unique<HttpMulti>(wake_.get());
  return multi_->Init(connections);
}

absl::Status HttpSource::AddObjects(absl::string_view base_url,
                                    absl::Span<const std::string> names) {
  if (!options_.object_bytes.empty() && options_.object_bytes.size() != names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.object_bytes.size(), " sizes of ", names.size(), " objects"));
  }
  if (versions_ == nullptr) versions_ = std::make_shared<HttpVersions>(names.size());
  if (versions_->size() != names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(versions_->size(), " versions of ", names.size(), " objects"));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(std::string url, JoinHttpUrl(base_url, names[i]));
    const int64_t bytes = options_.object_bytes.empty() ? -1 : options_.object_bytes[i];
    objects_.push_back({names[i], std::move(url), bytes, false, &(*versions_)[i]});
    objects_.back().AskForVersion();
  }
  return CheckHttpUrl(base_url);
}

HttpSource::~HttpSource() { DropAll(); }

absl::Status HttpSource::Start(absl::Span<const ReadOp> ops) {
  const int objects = static_cast<int>(objects_.size());
  SLUICE_RETURN_IF_ERROR(CheckReadOps(ops, objects));
  if (!multi_->status().ok()) return multi_->status();
  for (const ReadOp& op : ops) {
    op.TellWaits();
    waiting_.Push(op);
  }
  Advance();
  wake_->SetReady(!finished_.empty() || !multi_->status().ok());
  return absl::OkStatus();
}

absl::StatusOr<int> HttpSource::Poll(absl::Span<ReadEvent> events) {
  Advance();
  if (!multi_->status().ok()) {
    DropAll();
    return multi_->status();
  }
  size_t count = 0;
  while (count < events.size() && !finished_.empty()) events[count++] = finished_.Pop();
  wake_->SetReady(!finished_.empty());
  return static_cast<int>(count);
}

void HttpSource::Cancel(uint64_t cookie) {
  const auto cancelled = [](absl::string_view text) {
    return absl::CancelledError(absl::StrCat(text, ": cancelled"));
  };
  for (size_t i = 0; i < waiting_.size(); ++i) {
    const ReadOp& op = waiting_[i];
    if (op.cookie != cookie) continue;
    const size_t object = static_cast<size_t>(op.object);
    finished_.Push({cookie, cancelled(RangeText(objects_[object].name, op.offset, op.bytes)), 0});
    waiting_.Erase(i);
    wake_->SetReady(true);
    return;
  }
  for (const std::unique_ptr<HttpTransfer>& transfer : transfers_) {
    if (!transfer->busy() || transfer->op().cookie != cookie) continue;
    End(transfer.get(), cancelled(transfer->Text()));
    wake_->SetReady(true);
    return;
  }
}

void HttpSource::Advance() {
  if (!multi_->status().ok()) return;
  multi_->RunSockets();
  multi_->RunTimer();
  CollectDone();
  // After the sockets, as what a caller finds late may have come in time; before others begin in
  // the place of what is late.
  CheckDeadlines();
  while (BeginWaiting()) {
    multi_->RunTimer();
    CollectDone();
  }
  wake_->WakeAt(std::min(multi_->timer_ns(), deadline_ns_));
}

void HttpSource::CollectDone() {
  CURLcode code = CURLE_OK;
  while (CURL* const easy = multi_->NextDone(&code)) {
    char* self = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &self);
    auto* const transfer = reinterpret_cast<HttpTransfer*>(self);
    End(transfer, transfer->Outcome(code));
  }
}

// True if requests were begun: they are at libcurl's timer.
bool HttpSource::BeginWaiting() {
  bool began = false;
  while (!idle_.empty() && !waiting_.empty() && multi_->status().ok()) {
    HttpTransfer* const transfer = idle_.back();
    idle_.pop_back();
    const ReadOp op = waiting_.Pop();
    HttpObject& object = objects_[static_cast<size_t>(op.object)];
    counters_.opens += object.requested ? 0 : 1;
    object.requested = true;
    ++counters_.requests;
    absl::Status status = transfer->Begin(op, &object);
    if (status.ok()) multi_->Add(transfer->easy());
    if (!status.ok()) End(transfer, std::move(status));
    deadline_ns_ = std::min(deadline_ns_, DeadlineNs(*transfer));
    began = true;
  }
  return began;
}

int64_t HttpSource::DeadlineNs(const HttpTransfer& transfer) const {
  const auto after = [](int64_t time_ns, int64_t limit_ns) {
    return limit_ns > INT64_MAX - time_ns ? WakeSet::kNever : time_ns + limit_ns;
  };
  return std::min(after(transfer.begun_ns(), options_.timeout_ns),
                  after(transfer.moved_ns(), options_.stall_timeout_ns));
}

void HttpSource::CheckDeadlines() {
  const int64_t now_ns = MonotonicNs();
  if (now_ns < deadline_ns_) return;
  deadline_ns_ = WakeSet::kNever;
  for (const std::unique_ptr<HttpTransfer>& transfer : transfers_) {
    if (!transfer->busy()) continue;
    const int64_t deadline_ns = DeadlineNs(*transfer);
    if (now_ns < deadline_ns) {
      deadline_ns_ = std::min(deadline_ns_, deadline_ns);
      continue;
    }
    const bool stalled = now_ns - transfer->moved_ns() >= options_.stall_timeout_ns;
    const int64_t limit_ns = stalled ? options_.stall_timeout_ns : options_.timeout_ns;
    End(transfer.get(),
        absl::UnavailableError(absl::StrCat(
            transfer->Text(), ": ", stalled ? "nearly nothing came for " : "not done within ",
            limit_ns / 1'000'000, " ms")));
  }
}

// Whether libcurl is done with it or not: a connection in the middle of an answer is closed.
void HttpSource::End(HttpTransfer* transfer, absl::Status status) {
  counters_.connections += transfer->connects();
  counters_.bytes_read += transfer->bytes_received();
  multi_->Remove(transfer->easy());
  finished_.Push({transfer->op().cookie, std::move(status), 0});
  transfer->End();
  idle_.push_back(transfer);
}

void HttpSource::DropAll() {
  for (const std::unique_ptr<HttpTransfer>& transfer : transfers_) {
    if (!transfer->busy()) continue;
    transfer->Forget();
    multi_->Remove(transfer->easy());
    transfer->End();
    idle_.push_back(transfer.get());
  }
  waiting_.Clear();
  finished_.Clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> MakeHttpSource(absl::string_view base_url,
                                                       absl::Span<const std::string> names,
                                                       const HttpOptions& options) {
  auto source = std::make_unique<HttpSource>(options);
  SLUICE_RETURN_IF_ERROR(source->Init(base_url, names));
  return source;
}

}  // namespace sluice

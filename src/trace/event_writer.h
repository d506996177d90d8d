// Events as text in the Trace Event Format
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#ifndef SLUICE_SRC_TRACE_EVENT_WRITER_H_
#define SLUICE_SRC_TRACE_EVENT_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "trace/trace_event.h"

namespace sluice {

class EventWriter {
 public:
  // Times are taken from `origin_ns` on.
  explicit EventWriter(int64_t origin_ns) : origin_ns_(origin_ns) {}

  // A rank's events, after what describes them. `label` may be empty.
  void Add(const TraceContent& content, const std::string& label);

  // The whole file.
  std::string Finish() &&;

 private:
  int ThreadOf(const TraceEvent& event) const;
  std::string TrackName(int track) const;

  void Begin(const char* phase, absl::string_view name);
  void BeginQuoted(const char* phase, absl::string_view quoted_name);
  void AddMetadata(absl::string_view name, absl::string_view key, absl::string_view value);
  void Describe(const std::string& label);
  void DescribeTracks();
  void DescribeThread(int thread, absl::string_view quoted_name);
  void AddEvent(const TraceEvent& event);
  void AddStage(const TraceEvent& event);
  void AddStreamSpan(const TraceEvent& event);
  void AddItem(const TraceEvent& event);
  void AddStreamArgs(const TraceEvent& event);
  void AddCounter(absl::string_view quoted_name, absl::string_view key, int64_t value,
                  int64_t at_ns);

  int64_t origin_ns_;
  uint64_t items_ = 0;  // written so far; numbers their ids
  std::string text_;
  // State of the rank whose events are being written:
  const TraceContent* content_ = nullptr;
  int process_ = 0;
  int slots_ = 0;  // tracks of slots; those with names come after
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_EVENT_WRITER_H_

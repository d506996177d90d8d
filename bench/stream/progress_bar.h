// How far a run has come, on a terminal; nothing where standard error is none.
#ifndef SLUICE_BENCH_STREAM_PROGRESS_BAR_H_
#define SLUICE_BENCH_STREAM_PROGRESS_BAR_H_

#include <cstdint>
#include <string>

namespace sluice::bench {

// Thread: one.
class ProgressBar {
 public:
  // `shown`: if this rank is the one to show it.
  explicit ProgressBar(bool shown);
  ~ProgressBar() { Clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // What follows is `items` items of `label`, "threads:8x4, round 2 of 9".
  void Begin(const std::string& label, int64_t items);
  // Draws at most ten times a second.
  void Advance(int64_t items_done, int64_t bytes_done, int64_t now_ns) {
    if (shown_ && now_ns >= next_ns_) Draw(items_done, bytes_done, now_ns);
  }
  void Clear();

 private:
  void Draw(int64_t items_done, int64_t bytes_done, int64_t now_ns);

  const bool shown_;
  std::string label_;
  int64_t items_ = 0;
  int64_t begin_ns_ = 0;
  int64_t next_ns_ = 0;
  bool drawn_ = false;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_PROGRESS_BAR_H_

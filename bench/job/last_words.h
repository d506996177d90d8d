// What an interrupted run still says.
#ifndef SLUICE_BENCH_JOB_LAST_WORDS_H_
#define SLUICE_BENCH_JOB_LAST_WORDS_H_

#include <mutex>
#include <string>
#include <thread>

namespace sluice::bench {

// From its making to its end SIGINT and SIGTERM end the process with kInterruptedExit; a process
// that speaks prints its last words to stdout first, whatever its other threads do. A second signal
// ends it at once. One object at a time.
class LastWords {
 public:
  explicit LastWords(bool speaks);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  // Thread: any.
  void Set(const std::string& text);

 private:
  void Run();

  int pipe_[2] = {-1, -1};  // the handler writes, the thread reads
  std::mutex mutex_;
  std::string text_;  // under the mutex
  void (*before_int_)(int);
  void (*before_term_)(int);
  std::thread thread_;
};

// Whether such a signal has come.
bool WasInterrupted();

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_LAST_WORDS_H_
